"""The same content under two licences: the stricter one governs, and both stay on record, whichever copy survives."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.projects import make_project
from tests.rows import row, table

from corpusforge.errors import SourceError
from corpusforge.licences import RESTRICTIONS, implied
from corpusforge.project import Project
from corpusforge.shell import run_stage
from corpusforge.stages.dedupe import dedupe
from corpusforge.stages.scrub import scrub

LONG = " ".join(f"word{i}" for i in range(60))
NEAR = LONG.replace("word59", "other")


def governed(rows: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """Licence, restrictions and provenance of the rows that dedupe keeps."""
    kept = dedupe(table(rows), **more).kept
    return [
        {
            **{key: source[key] for key in ("license", "restrictions")},
            "provenance": json.loads(told) if told else None,
        }
        for source, told in zip(kept["source"].to_pylist(), kept["provenance"].to_pylist(), strict=True)
    ]


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")], ids=["kept first", "kept last"])
def test_both_provenances_are_kept_and_the_stricter_governs(names: tuple[str, str]) -> None:
    plain = row(1, LONG, source=names[0])
    strict = [row(n, LONG, source=names[1], license="CC-BY-4.0", restrictions=["no-train"]) for n in (1, 2)]
    (found,) = governed([plain, *strict])
    assert (found["license"], found["restrictions"]) == ("CC-BY-4.0 AND MIT", ["no-train"])
    assert sorted(found["provenance"], key=lambda one: one["license"]) == [
        {"source": names[1], "license": "CC-BY-4.0", "restrictions": ["no-train"], "row": f"{names[1]}#1", "rows": 2},
        {"source": names[0], "license": "MIT", "restrictions": [], "row": f"{names[0]}#1", "rows": 1},
    ]


def test_a_row_without_copies_has_no_provenance_and_keeps_its_terms() -> None:
    assert governed([row(1, LONG, license="CC-BY-SA-4.0")]) == [
        {"license": "CC-BY-SA-4.0", "restrictions": [], "provenance": None}
    ]


def test_near_copies_count_as_well() -> None:
    (found,) = governed([row(1, LONG), row(2, NEAR, license="CC-BY-NC-4.0")])
    assert (found["license"], found["restrictions"]) == ("CC-BY-NC-4.0 AND MIT", ["non-commercial"])
    assert len(found["provenance"]) == 2


@pytest.mark.parametrize(
    ("own", "twin", "text", "governs"),
    [
        ("unknown", "MIT", LONG, "MIT"),
        ("MIT", "unknown", LONG, "MIT"),
        ("MIT", "unknown", NEAR, "MIT"),
        ("unknown", "MIT", NEAR, "unknown"),
        ("MIT AND MIT", "MIT", LONG, "MIT AND MIT"),
    ],
)
def test_unknown_says_nothing_and_a_near_copy_licenses_nothing(own: str, twin: str, text: str, governs: str) -> None:
    assert [one["license"] for one in governed([row(1, LONG, license=own), row(2, text, license=twin)])] == [governs]


TERMS = st.tuples(
    st.sampled_from(["MIT", "CC-BY-NC-4.0", "CC-BY-SA-4.0", "unknown", "MIT OR Apache-2.0"]),
    st.lists(st.sampled_from(sorted(RESTRICTIONS)), max_size=2, unique=True).map(sorted),
)


@settings(max_examples=25)
@given(st.lists(TERMS, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_what_governs_depends_on_neither_order_nor_survivor(said: list[tuple[str, list[str]]], random: Any) -> None:
    """Whatever the copies' order and names: one outcome, nothing weaker than any of them, every statement kept."""
    outcomes = []
    for _ in range(2):
        order = random.sample(range(len(said)), len(said))
        rows = [
            row(1, LONG, source=f"s{place}", license=said[at][0], restrictions=said[at][1])
            for place, at in enumerate(order)
        ]
        random.shuffle(rows)
        (found,) = governed(rows, exact_only=True)
        found["provenance"] = sorted(
            (one["license"], one["restrictions"], one["rows"]) for one in found["provenance"] or []
        )
        outcomes.append(found)
    assert outcomes[0] == outcomes[1]
    if len(said) > 1:
        assert set(outcomes[0]["restrictions"]) == {
            word for name, words in said for word in [*words, *implied(name)]
        } | set(implied(outcomes[0]["license"]))
        assert sum(rows for *_, rows in outcomes[0]["provenance"]) == len(said)


def test_a_second_run_changes_nothing_and_adds_to_what_is_known() -> None:
    once = dedupe(table([row(1, LONG), row(2, LONG, license="CC-BY-4.0")])).kept
    assert dedupe(once).kept.equals(once)
    more = pa.concat_tables([once.drop_columns(["provenance"]), table([row(9, LONG, license="Apache-2.0")])])
    told = pa.chunked_array([pa.array([once["provenance"][0].as_py(), None], pa.string())])
    again = dedupe(more.append_column("provenance", told)).kept
    said = [(one["license"], one["rows"]) for one in json.loads(again["provenance"][0].as_py())]
    assert said == [("Apache-2.0", 1), ("CC-BY-4.0", 1), ("MIT", 1)]
    assert again["source"][0].as_py()["license"] == "Apache-2.0 AND CC-BY-4.0 AND MIT"


@pytest.mark.parametrize("strict", [0, 1], ids=["kept", "goes"])
def test_rows_that_scrubbing_makes_equal_take_on_one_anothers_terms(strict: int) -> None:
    """Two mails to two addresses become one tag: what stays is as strict as what went."""
    more = [{"license": "CC-BY-4.0", "restrictions": ["no-train"]} if n == strict else {} for n in range(2)]
    rows = [row(n + 1, f"Write to user{n}@mail-house.com today", "Done.", **more[n]) for n in range(2)]
    result = scrub(table(rows), key=b"0" * 32, actions={"EMAIL_ADDRESS": "tag"})
    assert result.reasons() == {"equal_after_scrub": 1}
    (source,) = result.kept["source"].to_pylist()
    assert (source["license"], source["restrictions"]) == ("CC-BY-4.0 AND MIT", ["no-train"])
    assert len(json.loads(result.kept["provenance"][0].as_py())) == 2


@pytest.mark.parametrize("text", [LONG, NEAR], ids=["exact", "near"])
def test_what_repeats_a_refused_row_goes_for_its_terms(text: str) -> None:
    barred = table([row(7, text, source="barred", license="CC-BY-4.0", restrictions=["no-train"])])
    result = dedupe(table([row(1, LONG), row(2, "quite another text")]), refused=barred)
    assert result.kept["row_id"].to_pylist() == ["test#2"]
    (line,) = result.dropped.to_pylist()
    detail = json.loads(line["detail"])
    assert (line["reason"], detail["twin"], detail["restrictions"]) == ("restricted", "barred#7", ["no-train"])


COUNT = 5_000


def build(root: Any, order: list[str], allow: list[str], by_row: bool) -> Project:
    """A corpus of the same 5,000 rows twice: under MIT, and from people who forbid training on them."""
    records = [{"id": f"r{n}", "prompt": f"What is {n} doubled?", "completion": f"{2 * n}."} for n in range(COUNT)]
    strict = [{**one, "restrictions": ["no-train"]} if by_row else one for one in records]
    make_project(root, {name: strict if name == "strict" else records for name in order}, dedupe={"exact_only": True})
    text = (root / "params.yaml").read_text()
    more = {"restrictions": [] if by_row else ["no-train"], "allow": allow}
    added = "".join(f"\n    {key}: {json.dumps(value)}" for key, value in more.items() if value)
    (root / "params.yaml").write_text(text.replace("raw/strict.jsonl", f"raw/strict.jsonl{added}"))
    return Project(root)


@pytest.mark.parametrize("order", [["plain", "strict"], ["strict", "plain"]], ids=["strict last", "strict first"])
def test_five_thousand_rows_under_two_licences_have_one_outcome(tmp_path: Any, order: list[str]) -> None:
    """Allowed on purpose: every row stays once, under no-train, with both provenances."""
    project = build(tmp_path, order, ["no-train"], by_row=False)
    run_stage(project, "ingest")
    assert run_stage(project, "dedupe")["kept"] == COUNT
    rows = project.rows("dedupe", ["source", "provenance"])
    assert {tuple(one["restrictions"]) for one in rows["source"].to_pylist()} == {("no-train",)}
    told = [json.loads(text) for text in rows["provenance"].to_pylist()]
    assert {tuple((one["source"], tuple(one["restrictions"]), one["rows"]) for one in each) for each in told} == {
        (("plain", (), 1), ("strict", ("no-train",), 1))
    }


@pytest.mark.parametrize("order", [["plain", "strict"], ["strict", "plain"]], ids=["strict last", "strict first"])
def test_five_thousand_forbidden_rows_are_not_laundered_by_a_copy(tmp_path: Any, order: list[str]) -> None:
    """Not allowed: those that say so are quarantined, and their copies under MIT go for the same reason."""
    project = build(tmp_path, order, [], by_row=True)
    assert run_stage(project, "ingest")["quarantine"] == {"restricted": COUNT}
    found = run_stage(project, "dedupe")
    assert (found["in"], found["kept"], found["reasons"]) == (COUNT, 0, {"restricted": COUNT})


def test_a_source_that_forbids_training_stops_the_build_and_says_how_to_allow_it(tmp_path: Any) -> None:
    project = build(tmp_path, ["plain", "strict"], [], by_row=False)
    with pytest.raises(SourceError, match=r"'strict' is restricted: no-train[\s\S]*allow: \[no-train\]"):
        run_stage(project, "ingest")
