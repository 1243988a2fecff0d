"""Public data sets through dedupe: which rows go, and whether each removal is what it says it is.

The check shares no code with what it checks, but for the text that is compared: sets of five words in a row, section by
section (a removal must reach the threshold as a whole, and by what stands behind the first section).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dedupe_check import WORD

import corpusforge as cf
from corpusforge.text.views import compare_text

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

SOURCES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "gpteacher": (
        ["gpteacher/toolformer-dedupe-only-dataset.json", "gpteacher/toolformer-similarity-0.9-dataset.json"],
        {"license": "MIT", "restrictions": ["provider-terms"], "allow": ["provider-terms"], "origin": "synthetic"},
    ),
    "gsm8k": (["gsm8k/train.jsonl"], {"license": "MIT", "origin": "human"}),
    "hatecheck": (["hatecheck/test_suite_cases.csv"], {"license": "CC-BY-4.0", "origin": "human"}),
    "oasst": (["oasst_sample/en_100_tree.jsonl"], {"license": "Apache-2.0", "origin": "human"}),
    "tau_bench": (["tau_bench/MockRetailDomainEnv-few_shot.jsonl"], {"license": "MIT", "origin": "mixed"}),
    "bfcl": (["bfcl_v4/*.json"], {"license": "Apache-2.0", "origin": "mixed"}),
    "hh_rlhf": (["hh_rlhf/harmless-base_test.jsonl.gz"], {"license": "MIT", "origin": "mixed"}),
    "self_instruct": (["self_instruct/seed_tasks.jsonl"], {"license": "Apache-2.0", "origin": "human"}),
}
FEBRL = "{given_name} {surname}, {street_number} {address_1}, {address_2}, {suburb} {postcode} {state}, "
FEBRL += "{date_of_birth}, {soc_sec_id}"
HATECHECK: dict[str, dict[str, Any]] = {  # the same file, its label stored in four ways
    "rating": {"rating": {"path": "label_gold", "values": {"hateful": 1, "non-hateful": 0}}, "text": "test_case"},
    "text": {"text": "test_case"},
    "answer": {"prompt": "test_case", "answer": "label_gold"},
    "response": {"prompt": "test_case", "response": "label_gold"},
}


def rows_of(data: Path, name: str, fields: dict[str, Any] | None = None) -> pa.Table:
    """Rows of a data set, read as a recipe would declare it."""
    paths, source = SOURCES[name]
    more: dict[str, Any] = {"name": name, "language": "en", **source}
    if name == "bfcl":
        more["options"] = {"answers": str(data / "bfcl_v4/possible_answer")}
    if name == "hatecheck":
        more["fields"] = {"id": "case_id", **(fields or HATECHECK["rating"])}
    return cf.ingest([str(data / path) for path in paths], more).kept


def febrl_of(data: Path, number: int) -> pa.Table:
    """One FEBRL file as texts; a row's own id names its person."""
    fields = {"id": "rec_id", "text": {"template": FEBRL}}
    source = {"name": "febrl", "license": "BSD-3-Clause", "origin": "synthetic", "language": "en", "fields": fields}
    return cf.ingest(str(data / f"febrl/dataset{number}.csv"), source).kept


@dataclass
class Removals:
    """What went from one table, and what of it is wrong."""

    rows: int
    pairs: list[tuple[str, str, float]]  # row, the row it went for, similarity
    reasons: dict[str, int]
    wrong: list[str] = field(default_factory=list)


def removals(rows: pa.Table, threshold: float = 0.8, **options: Any) -> Removals:
    """Dedupe, and work out each removal anew."""
    result = cf.dedupe(rows, threshold=threshold, **options)
    kept = set(result.kept["row_id"].to_pylist())
    lines = [(line["row_id"], json.loads(line["detail"])) for line in result.dropped.to_pylist()]
    out = Removals(rows.num_rows, [(one, d["kept"], d["similarity"]) for one, d in lines], result.reasons())
    texts = dict(zip(rows["row_id"].to_pylist(), compare_text(rows).to_pylist(), strict=True))
    if len(kept) + len(lines) != rows.num_rows:
        out.wrong.append("rows are missing")
    for one, other, stated in out.pairs:
        exact = similarity(texts[one], texts[other], options.get("shingle", 5))
        if other not in kept or one in kept or exact < threshold or abs(exact - stated) > 1e-6:
            out.wrong.append(f"{one} went for {other}: {exact:.6f}, stated {stated}")
    return out


def similarity(one: str, other: str, shingle: int = 5) -> float:
    """Jaccard similarity as a whole, or of what stands behind the first section where that is less."""
    (a, more_a), (b, more_b) = _sets(one, shingle), _sets(other, shingle)
    whole = len((a | more_a) & (b | more_b)) / len(a | more_a | b | more_b)
    behind = more_a | more_b
    return min(whole, len(more_a & more_b) / len(behind)) if behind else whole


def _sets(text: str, shingle: int) -> tuple[set[Any], set[Any]]:
    first: set[Any] = set()
    behind: set[Any] = set()
    for place, section in enumerate(text.split("\x1e")):
        words = WORD.findall(section.lower())
        runs = list(zip(*(words[i:] for i in range(shingle)), strict=False))
        pieces = runs or [" ".join(section.lower().split())] * bool(words)
        (behind if place else first).update((place, piece) for piece in pieces)
    return first, behind


def person(own_id: str) -> str:
    """`rec-17-dup-2` is a record of person 17."""
    return own_id.split("-")[1]


def found(rows: pa.Table, **options: Any) -> tuple[float, float]:
    """Precision and recall on FEBRL: a removal is right when both are one person; all but one of each should go."""
    own = {
        one: source["record_id"]
        for one, source in zip(*(rows[n].to_pylist() for n in ("row_id", "source")), strict=True)
    }
    gone = removals(rows, **options)
    right = sum(person(own[one]) == person(own[other]) for one, other, _ in gone.pairs)
    surplus = rows.num_rows - len({person(value) for value in own.values()})
    return right / max(len(gone.pairs), 1), right / surplus
