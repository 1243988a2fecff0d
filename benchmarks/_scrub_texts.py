"""What the scrub benchmark reads: public data sets as rows, and labelled sentences in two halves.

The sentences come from templates. A template is in one half or the other, by a hash of its id, so that nothing that was
tuned on one half has seen a sentence of the other half's templates. The labels are taken as they are, with the faults
that `scrub.py --only labels` counts. Nothing is tuned to them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import corpusforge as cf

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

SPEED = ("gsm8k", "mbpp", "gpteacher", "oasst", "hh_rlhf")
HARM = ("mbpp", "humaneval", "gsm8k", "bfcl", "ifeval")
PATHS: dict[str, list[str]] = {
    "gsm8k": ["gsm8k/*.jsonl"],
    "mbpp": ["mbpp/mbpp.jsonl"],
    "gpteacher": ["gpteacher/*.json"],
    "oasst": ["oasst_sample/en_100_tree.jsonl"],
    "hh_rlhf": ["hh_rlhf/harmless-base_test.jsonl.gz"],
    "humaneval": ["humaneval/HumanEval.jsonl.gz"],
    "bfcl": ["bfcl_v4/*.json"],
    "ifeval": ["ifeval/input_data.jsonl"],
}
# A label's kind under the name that both tools are compared by. Kinds that are absent are told apart and not scored.
KINDS = {
    "PERSON": "PERSON",
    "LOCATION": "LOCATION",
    "ADDRESS": "LOCATION",
    "ORGANIZATION": "ORGANIZATION",
    "CREDIT_CARD": "CREDIT_CARD",
    "PHONE_NUMBER": "PHONE_NUMBER",
    "EMAIL_ADDRESS": "EMAIL_ADDRESS",
    "US_SSN": "US_SSN",
    "IBAN_CODE": "IBAN_CODE",
    "IP_ADDRESS": "IP_ADDRESS",
}
PATTERN_KINDS = ("CREDIT_CARD", "PHONE_NUMBER", "EMAIL_ADDRESS", "US_SSN", "IBAN_CODE", "IP_ADDRESS")
NOT_SCORED = ("DATE_TIME", "DOMAIN_NAME", "TITLE", "PREFIX", "US_DRIVER_LICENSE")


def rows_of(data: Path, name: str) -> pa.Table:
    """Rows of a data set, read as a recipe would declare it."""
    source: dict[str, Any] = {"name": name, "license": "MIT", "origin": "mixed", "language": "en"}
    if name == "bfcl":
        source["options"] = {"answers": str(data / "bfcl_v4/possible_answer")}
    return cf.ingest([str(data / path) for path in PATHS[name]], source).kept


@dataclass(frozen=True)
class Sentence:
    """A labelled sentence: spans are (start, end, kind) under the names of KINDS; others are under their own."""

    text: str
    spans: tuple[tuple[int, int, str], ...]
    template: int

    @property
    def tuning(self) -> bool:
        """Whether its template belongs to the half that may be tuned on."""
        return int(hashlib.sha256(str(self.template).encode()).hexdigest(), 16) % 2 == 0


def sentences(data: Path) -> list[Sentence]:
    """The labelled sentences of presidio_synth_pii."""
    lines = json.loads((data / "presidio_synth_pii/generated_large.json").read_text(encoding="utf-8"))
    return [
        Sentence(
            line["full_text"],
            tuple(
                (one["start_position"], one["end_position"], KINDS.get(one["entity_type"], one["entity_type"]))
                for one in line["spans"]
            ),
            line["template_id"],
        )
        for line in lines
    ]


def as_rows(texts: list[str]) -> pa.Table:
    """One English row for each text, without a file."""
    import polars as pl

    return cf.ingest(pl.DataFrame({"text": texts}), {"name": "text", "language": "en", "license": "MIT"}).kept
