r"""Multiple choice: a question with options, and which of them is right.

    {"question": "…", "choices": ["no", "yes"], "answer": 1}                      its index, counted from 0
    {"question": "…", "options": {"A": "no", "B": "yes"}, "answer": "B"}          its letter
    {"question": "…", "choices": {"label": ["1", "2"], "text": ["no", "yes"]}, "answerKey": "2"}
    {"question": "…", "choices": [{"label": "A", "text": "no"}, …], "answer": "yes"}     the option itself
    {"question": "…", "A": "no", "B": "yes", "answer": "B"}                       a column each
    {"question": "…\n (A) No\n (B) Yes", "answer_matching_behavior": " (B)", …}   model-written evaluations

The options are listed under letters, whatever they were called, and the verifier is `choice`. An answer that could be
two of them ("2" among "3", "2", "1": the option, or the index?) is refused as `answer_ambiguous`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from corpusforge.shapes._draft import Draft, Unrepresentable, json_text, maybe_json, string, user, verifier

if TYPE_CHECKING:
    from collections.abc import Mapping

QUESTIONS: Final = ("question", "query", "ctx")
OPTIONS: Final = ("choices", "options", "endings")
ANSWERS: Final = ("answer", "answerKey", "answer_idx", "label")
COLUMNS: Final = ("A", "B", "C", "D", "E")
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LABELS: Final = ("label", "key", "letter", "id")
_TEXTS: Final = ("text", "content", "value", "option")
_LISTED: Final = re.compile(r"^[ \t]*\(([A-Z])\)", re.MULTILINE)


def multiple_choice(record: Mapping[str, Any]) -> list[Draft]:
    """A question with options; the answer is an index, a letter, a label, or the option itself."""
    labels, options, used = _options(record)
    if not 2 <= len(options) <= len(_LETTERS):
        raise Unrepresentable("choices_not_texts")
    key = next((name for name in ANSWERS if record.get(name) is not None), "answer")
    letter = _LETTERS[_right(record.get(key), labels, options)]
    letters = list(_LETTERS[: len(options)])
    listed = "\n".join(f"{sign}. {option}" for sign, option in zip(letters, options, strict=True))
    field = next((name for name in QUESTIONS if name in record), QUESTIONS[0])
    prompt = f"{string(record, field)}\n\n{listed}"
    checker = verifier("choice", answer=letter, choices=letters)
    return [Draft("task", [user(prompt)], used | {field, key}, verifier=checker)]


def _options(record: Mapping[str, Any]) -> tuple[list[str], list[str], frozenset[str]]:
    """Labels (where the source has its own), texts, and the fields that they stand in."""
    field = next((name for name in OPTIONS if name in record), None)
    if field is None:
        columns = [name for name in COLUMNS if record.get(name) not in (None, "")]
        if columns != list(COLUMNS[: len(columns)]):
            raise Unrepresentable("choices_not_texts")
        return [], [_text(record[name]) for name in columns], frozenset(COLUMNS)
    given = maybe_json(record[field])
    labels: Any = []
    if isinstance(given, dict):
        texts = maybe_json(given["text"]) if "text" in given else list(given.values())
        labels = maybe_json(given.get("label")) if "text" in given else list(given)
    elif isinstance(given, list) and given and all(isinstance(one, dict) for one in given):
        labels = [_first(one, _LABELS) for one in given]
        texts = [_first(one, _TEXTS) for one in given]
    else:
        texts = given
    if not isinstance(texts, list):
        raise Unrepresentable("choices_not_texts")
    labels = labels if isinstance(labels, list) and len(labels) == len(texts) and None not in labels else []
    return [_text(label) for label in labels], [_text(one) for one in texts], frozenset({field})


def _first(given: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _text(value: Any) -> str:
    """An option as text; a number is written as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float, bool)):
        return json_text(value)
    raise Unrepresentable("choices_not_texts")


def _right(answer: Any, labels: list[str], options: list[str]) -> int:
    """Where the right option stands. Raises Unrepresentable where that is nowhere, or could be two places."""
    if not isinstance(answer, (str, int, float)) or isinstance(answer, bool):
        raise Unrepresentable("answer_not_among_choices")
    said = answer if isinstance(answer, str) else json_text(answer)
    if labels.count(said) == 1:
        return labels.index(said)
    places = {number for number, option in enumerate(options) if option == said}
    letter = said.strip().strip("().:").strip()
    if len(letter) == 1 and letter.upper() in _LETTERS[: len(options)]:
        places.add(_LETTERS.index(letter.upper()))
    if said.isascii() and said.isdigit() and int(said) < len(options):
        places.add(int(said))
    if len(places) != 1:
        raise Unrepresentable("answer_ambiguous" if places else "answer_not_among_choices")
    return places.pop()


def model_written(record: Mapping[str, Any]) -> list[Draft]:
    """A question about a behaviour, and the answer that shows it: what is asked for, never what is right."""
    question, answer = string(record, "question"), string(record, "answer_matching_behavior").strip()
    letters = list(dict.fromkeys(_LISTED.findall(question)))
    letter = answer.strip("()")
    listed = letter in letters and len(letters) > 1
    checker = (
        verifier("choice", answer=letter, choices=letters)
        if listed
        else verifier("exact", answer=answer, ignore_case=True)
    )
    used = frozenset({"question", "answer_matching_behavior"})
    return [Draft("task", [user(question)], used, verifier=checker)]
