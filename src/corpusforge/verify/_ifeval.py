"""The 25 instructions of IFEval (Zhou et al. 2023, arXiv 2311.07911), one function each, and a table of them by name.

    ask("length_constraints:number_words", {"num_words": 300, "relation": "at least"})("…")  ->  True or False

Each means what it means in the paper's own programme, oddities included (a rule "---" is a bullet; a keyword counts
inside of a longer word), with these differences, by which a verdict is the same everywhere and every time:

    - Keywords, markers and dividers are texts, not patterns; all checks are linear in the length of the response.
    - Sentences are counted by rules (`sentences`), words in capitals are cut at blanks and marks: no model is fetched.
    - The language is what fastText says of most of the text, not what langdetect draws.
    - An argument that is missing or odd is an error; there, the original draws another at random.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from corpusforge.text.language import UNDETERMINED, likeliest

Follows = Callable[[str], bool]
_CODES: Final = (
    "af ar bg bn ca cs cy da de el en es et fa fi fr gu he hi hr hu id it ja kn ko lt lv mk ml mr ne nl no pa pl pt ro "
    "ru sk sl so sq sv sw ta te th tl tr uk ur vi zh zh-cn zh-tw"
)
_LANGUAGES: Final = frozenset(_CODES.split())  # langdetect's; fastText knows them all
_OPTIONS: Final = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_RELATIONS: Final = ("at least", "less than")
_HIGHLIGHTS: Final = (re.compile(r"\*[^\n*]*\*"), re.compile(r"\*\*[^\n*]*\*\*"))
_CAPITALS: Final = re.compile(r"[^\s,;:?!()\[\]{}<>\"“”…@#$%&]+")


class Odd(ValueError):
    """An instruction that is not known, or arguments that are not its own. Holds no text."""


def ask(name: Any, arguments: Any) -> Follows:
    """The question whether a text follows an instruction. Raises Odd for an instruction that cannot be asked."""
    if not isinstance(name, str) or name not in RULES:
        raise Odd("unknown_instruction")
    if not isinstance(arguments, (dict, type(None))):
        raise Odd("unreadable_arguments")
    follows, readers = RULES[name]
    given = {key: value for key, value in (arguments or {}).items() if value is not None}
    if given.keys() != readers.keys():
        raise Odd("unreadable_arguments")
    read = {key: readers[key](value) for key, value in given.items()}
    if not read.get("nth_paragraph", 1) <= read.get("num_paragraphs", 1):
        raise Odd("unreadable_arguments")
    return partial(follows, **read)


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9 or value != int(value):
        raise Odd("unreadable_arguments")
    return int(value)


def _place(value: Any) -> int:
    place = _number(value)
    if place == 0:
        raise Odd("unreadable_arguments")
    return place


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Odd("unreadable_arguments")
    return value.strip()


def _texts(value: Any) -> list[str]:
    if not isinstance(value, (list, tuple)) or not value:
        raise Odd("unreadable_arguments")
    return [_text(one) for one in value]


def _relation(value: Any) -> str:
    if not isinstance(value, str) or value not in _RELATIONS:
        raise Odd("unreadable_arguments")
    return value


def _letter(value: Any) -> str:
    letter = _text(value)
    if len(letter) != 1:
        raise Odd("unreadable_arguments")
    return letter.lower()


def _language(value: Any) -> str:
    if not isinstance(value, str) or value not in _LANGUAGES:
        raise Odd("unreadable_arguments")
    return value.partition("-")[0]


def _holds(count: int, relation: str, threshold: int) -> bool:
    return count >= threshold if relation == "at least" else count < threshold


def existence(text: str, keywords: list[str]) -> bool:
    """Every keyword occurs, in whatever case, also inside of a word."""
    return all(re.search(re.escape(keyword), text, re.IGNORECASE) for keyword in keywords)


def frequency(text: str, keyword: str, frequency: int, relation: str) -> bool:
    """The keyword occurs at least, or less than, so many times."""
    return _holds(len(re.findall(re.escape(keyword), text, re.IGNORECASE)), relation, frequency)


def forbidden_words(text: str, forbidden_words: list[str]) -> bool:
    """None of the words occurs as a word of its own."""
    return not any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in forbidden_words)


def letter_frequency(text: str, letter: str, let_frequency: int, let_relation: str) -> bool:
    """The letter, or mark, occurs at least, or less than, so many times, in whatever case."""
    return _holds(text.lower().count(letter), let_relation, let_frequency)


def response_language(text: str, language: str) -> bool:
    """Most of the text is in the language; a text without any letter is in every one."""
    return likeliest(text) in (language, UNDETERMINED)


def number_sentences(text: str, num_sentences: int, relation: str) -> bool:
    """At least, or less than, so many sentences."""
    from corpusforge.verify._sentences import count

    return _holds(count(text), relation, num_sentences)


def number_paragraphs(text: str, num_paragraphs: int) -> bool:
    """Exactly so many paragraphs, divided by ***; none between two dividers is empty."""
    parts = [bool(part.strip()) for part in text.split("***")]
    return all(parts[1:-1]) and sum(parts) == num_paragraphs


def number_words(text: str, num_words: int, relation: str) -> bool:
    """At least, or less than, so many runs of letters, digits and underscores."""
    return _holds(sum(1 for _ in re.finditer(r"\w+", text)), relation, num_words)


def nth_paragraph_first_word(text: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    """Exactly so many paragraphs, divided by an empty line, of which the nth begins with the word."""
    paragraphs = text.split("\n\n")
    written = sum(1 for paragraph in paragraphs if paragraph.strip())
    if written != num_paragraphs or not paragraphs[nth_paragraph - 1].strip():
        return False
    word = paragraphs[nth_paragraph - 1].split(maxsplit=1)[0].lstrip("'").lstrip('"')
    return re.split(r"[.,?!'\"]", word, maxsplit=1)[0].lower() == first_word.lower()


def number_placeholders(text: str, num_placeholders: int) -> bool:
    """At least so many placeholders in square brackets, each on one line."""
    found = 0
    for line in text.split("\n"):
        at = line.find("[")
        while at >= 0 and (end := line.find("]", at)) >= 0:
            found += 1
            at = line.find("[", end)
    return found >= num_placeholders


def postscript(text: str, postscript_marker: str) -> bool:
    """The marker of the postscript occurs, in whatever case; P.S. and P.P.S also with blanks in them."""
    patterns = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}
    return bool(re.search(patterns.get(postscript_marker, re.escape(postscript_marker.lower())), text.lower()))


def number_bullet_lists(text: str, num_bullets: int) -> bool:
    """Exactly so many lines that begin with a dash, or with one asterisk."""
    lines = [line.lstrip() for line in text.split("\n")]
    return sum(line[:1] == "-" or (line[:1] == "*" and line[1:2] not in ("", "*")) for line in lines) == num_bullets


def constrained_response(text: str) -> bool:
    """One of the three given answers occurs."""
    return any(option in text for option in _OPTIONS)


def number_highlighted_sections(text: str, num_highlights: int) -> bool:
    """At least so many pieces between single or double asterisks, each on one line and not empty."""
    found = sum(bool(piece.strip("*").strip()) for pattern in _HIGHLIGHTS for piece in pattern.findall(text))
    return found >= num_highlights


def multiple_sections(text: str, section_spliter: str, num_sections: int) -> bool:
    """At least so many section marks with a number: "Section 1"."""
    return len(re.findall(rf"{re.escape(section_spliter)}\s?\d+", text)) >= num_sections


def json_format(text: str) -> bool:
    """The whole is JSON, in a fence or without."""
    bare = re.sub(r"\A```(?:json|Json|JSON)?", "", text.strip()).removesuffix("```").strip()
    try:
        json.loads(bare)
    except (ValueError, RecursionError):
        return False
    return True


def title(text: str) -> bool:
    """A title stands between double angular brackets on one line: <<title>>."""
    for line in text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start <= end - 3 and line[start : end + 2].lstrip("<").rstrip(">").strip():
            return True
    return False


def two_responses(text: str) -> bool:
    """Two different responses, divided by ******."""
    parts = [part.strip() for part in text.split("******")]
    written = [part for part in parts if part]
    return all(parts[1:-1]) and len(written) == 2 and written[0] != written[1]


def repeat_prompt(text: str, prompt_to_repeat: str) -> bool:
    """The response begins with the request, word for word, in whatever case."""
    return text.strip().lower().startswith(prompt_to_repeat.lower())


def end_checker(text: str, end_phrase: str) -> bool:
    """The response ends with the phrase, in whatever case; a closing quotation mark may follow."""
    return text.strip().strip('"').lower().endswith(end_phrase.lower())


def capital_word_frequency(text: str, capital_frequency: int, capital_relation: str) -> bool:
    """At least, or less than, so many words all in capitals; a word with a hyphen or an apostrophe is one."""
    words = _CAPITALS.finditer(text.replace("--", " ").replace("...", " "))
    return _holds(sum(word[0].isupper() for word in words), capital_relation, capital_frequency)


def english_capital(text: str) -> bool:
    """English, without small letters."""
    return text.isupper() and response_language(text, "en")


def english_lowercase(text: str) -> bool:
    """English, without capitals."""
    return text.islower() and response_language(text, "en")


def no_comma(text: str) -> bool:
    """No comma."""
    return "," not in text


def quotation(text: str) -> bool:
    """The whole stands between double quotation marks."""
    whole = text.strip()
    return len(whole) > 1 and whole[0] == whole[-1] == '"'


_Readers = dict[str, Callable[[Any], Any]]
RULES: Final[dict[str, tuple[Callable[..., bool], _Readers]]] = {
    "keywords:existence": (existence, {"keywords": _texts}),
    "keywords:frequency": (frequency, {"keyword": _text, "frequency": _number, "relation": _relation}),
    "keywords:forbidden_words": (forbidden_words, {"forbidden_words": _texts}),
    "keywords:letter_frequency": (
        letter_frequency,
        {"letter": _letter, "let_frequency": _number, "let_relation": _relation},
    ),
    "language:response_language": (response_language, {"language": _language}),
    "length_constraints:number_sentences": (number_sentences, {"num_sentences": _number, "relation": _relation}),
    "length_constraints:number_paragraphs": (number_paragraphs, {"num_paragraphs": _number}),
    "length_constraints:number_words": (number_words, {"num_words": _number, "relation": _relation}),
    "length_constraints:nth_paragraph_first_word": (
        nth_paragraph_first_word,
        {"num_paragraphs": _number, "nth_paragraph": _place, "first_word": _text},
    ),
    "detectable_content:number_placeholders": (number_placeholders, {"num_placeholders": _number}),
    "detectable_content:postscript": (postscript, {"postscript_marker": _text}),
    "detectable_format:number_bullet_lists": (number_bullet_lists, {"num_bullets": _number}),
    "detectable_format:constrained_response": (constrained_response, {}),
    "detectable_format:number_highlighted_sections": (number_highlighted_sections, {"num_highlights": _number}),
    "detectable_format:multiple_sections": (multiple_sections, {"section_spliter": _text, "num_sections": _number}),
    "detectable_format:json_format": (json_format, {}),
    "detectable_format:title": (title, {}),
    "combination:two_responses": (two_responses, {}),
    "combination:repeat_prompt": (repeat_prompt, {"prompt_to_repeat": _text}),
    "startend:end_checker": (end_checker, {"end_phrase": _text}),
    "change_case:capital_word_frequency": (
        capital_word_frequency,
        {"capital_frequency": _number, "capital_relation": _relation},
    ),
    "change_case:english_capital": (english_capital, {}),
    "change_case:english_lowercase": (english_lowercase, {}),
    "punctuation:no_comma": (no_comma, {}),
    "startend:quotation": (quotation, {}),
}
"""What each instruction asks, and how each of its arguments is read; all of them must be given, and no others."""
