"""Sources to rows: files found, fingerprinted, joined and read in batches."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from corpusforge.errors import ConfigError, SourceError
from corpusforge.io import pieces
from corpusforge.io.ingest import build_rows, read, read_with_ledger, source_rows
from corpusforge.io.readers import blocks
from corpusforge.stages._stage import concat
from corpusforge.stages.ingest import IngestConfig, SourceConfig

if TYPE_CHECKING:
    from pathlib import Path


def lines(folder: Path, name: str, *records: Any) -> Path:
    """A JSON Lines file."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def ids(table: Any) -> list[str]:
    """Row ids."""
    return list(table["row_id"].to_pylist())


def test_ids_of_one_file_and_of_several(tmp_path: Path) -> None:
    """A file beside it moves no id."""
    lines(tmp_path, "d/a.jsonl", {"text": "1"})
    lines(tmp_path, "d/sub/b.jsonl", {"text": "2"})
    (tmp_path / "d/LICENSE").write_text("no data")
    assert ids(read("d/a.jsonl", name="s", root=tmp_path)) == ["s#1"]
    assert ids(read("d", name="s", root=tmp_path)) == ["s/a.jsonl#1", "s/sub/b.jsonl#1"]
    assert ids(read("d/*.jsonl", name="s", root=tmp_path)) == ["s/a.jsonl#1"]
    assert ids(read("d/**/*.jsonl", name="s", root=tmp_path)) == ["s/a.jsonl#1", "s/sub/b.jsonl#1"]
    assert ids(read(["d/sub/b.jsonl", "d/a.jsonl"], name="s", root=tmp_path)) == ["s/d/sub/b.jsonl#1", "s/d/a.jsonl#1"]


@pytest.mark.parametrize("path", ["d/a.jsonl", "d/*.jsonl", "d"])
def test_what_is_no_file_stops_the_build(tmp_path: Path, path: str) -> None:
    """A pipe would be waited for without end, and a link to nowhere is a file that is missing."""
    (tmp_path / "d").mkdir()
    lines(tmp_path, "d/b.jsonl", {"text": "1"})
    os.mkfifo(tmp_path / "d/a.jsonl")
    with pytest.raises(SourceError, match=r"a\.jsonl' is no file"):
        read(path, name="s", root=tmp_path)
    (tmp_path / "d/a.jsonl").unlink()
    (tmp_path / "d/a.jsonl").symlink_to("nowhere")
    with pytest.raises(SourceError, match=r"is no file|does not exist"):
        read(path, name="s", root=tmp_path)


def test_a_linked_folder_is_not_passed_over(tmp_path: Path) -> None:
    """Its rows would be missing unseen. A link inside the folder hides nothing."""
    lines(tmp_path, "d/a.jsonl", {"text": "1"})
    lines(tmp_path, "other/b.jsonl", {"text": "2"})
    (tmp_path / "d/self").symlink_to(".")
    assert ids(read("d", name="s", root=tmp_path)) == ["s/a.jsonl#1"]
    (tmp_path / "d/more").symlink_to("../other")
    with pytest.raises(SourceError, match="'more' is a link to a folder elsewhere"):
        read("d", name="s", root=tmp_path)


def test_a_name_that_is_not_utf8_is_told_before_a_row_is_made(tmp_path: Path) -> None:
    name = os.fsdecode(b"bad\xff.jsonl")
    try:
        lines(tmp_path, name, {"text": "1"})
    except OSError:
        pytest.skip("this file system takes no such name")
    with pytest.raises(SourceError, match="is not UTF-8"):
        read(name, name="s", root=tmp_path)


def test_a_path_outside_the_project(tmp_path: Path) -> None:
    """It is shown as declared, never as the machine has it."""
    lines(tmp_path, "raw/a.jsonl", {"text": "1"})
    root = tmp_path / "project"
    root.mkdir()
    for declared in ("../raw/a.jsonl", "../raw/*.jsonl", str(tmp_path / "raw/a.jsonl")):
        (row,) = read(declared, name="s", root=root).to_pylist()
        assert str(tmp_path) not in json.dumps(row)


def test_the_revision_is_the_content(tmp_path: Path) -> None:
    """The same bytes, the same revision, wherever the project lies."""
    revisions = []
    for number, text in enumerate(["a", "a", "b"]):
        lines(tmp_path, f"{number}/x.jsonl", {"text": text})
        (row,) = read("x.jsonl", root=tmp_path / str(number)).to_pylist()
        revisions.append(row["source"]["revision"])
    assert revisions[0] == revisions[1] != revisions[2]


@pytest.mark.parametrize("how", ["appended", "rewritten", "replaced"])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """The revision would be of other bytes than the rows, so there are no rows."""
    path = lines(tmp_path, "a.jsonl", *({"text": f"row {n}"} for n in range(5)))
    monkeypatch.setattr(blocks, "SIZE", 1)
    rows = source_rows(SourceConfig(name="s", path="a.jsonl"), tmp_path)
    next(rows)
    if how == "appended":
        with path.open("a") as file:
            file.write('{"text": "more"}\n')
    elif how == "rewritten":
        path.write_text(path.read_text().replace("row", "RAW"))
    else:
        stat = path.stat()
        lines(tmp_path, "b.jsonl", *({"text": f"ROW {n}"} for n in range(5))).replace(path)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(SourceError, match=r"a\.jsonl changed while it was read"):
        list(rows)


def test_a_limited_source_is_checked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the rest of its file is never read."""
    path = lines(tmp_path, "a.jsonl", *({"text": f"row {n}"} for n in range(5)))
    monkeypatch.setattr(blocks, "SIZE", 1)
    rows = source_rows(SourceConfig(name="s", path="a.jsonl", limit=2), tmp_path)
    next(rows)
    path.write_text(path.read_text() + "\n")
    with pytest.raises(SourceError, match="changed while it was read"):
        list(rows)


@pytest.mark.parametrize("name", ["a.json", "a.csv", "a.parquet"])
def test_pieces_of_large_records_are_few_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What is held in memory at a time is bounded in bytes, not in records alone."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"text": f"{n} " + "x" * 1000} for n in range(50)]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "a.csv").write_text("text\n" + "".join(row["text"] + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    monkeypatch.setattr(pieces, "BYTES", 5000)
    sizes = [len(piece.work) for piece in pieces.pieces(SourceConfig(name="s", path=name), tmp_path)]
    assert max(sizes) <= 5
    assert sum(sizes) == 50


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_pieces_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Cuts change nothing."""
    path = lines(tmp_path, "a.jsonl", *({"text": f"row {n}"} if n % 3 else {"odd": n} for n in range(20)))
    (tmp_path / "a.json").write_text("[" + ",".join(path.read_text().splitlines()) + "]")
    source = SourceConfig(name="s", path=name)
    whole = concat("ingest", list(source_rows(source, tmp_path)))
    monkeypatch.setattr(pieces, "BATCH", 3)
    monkeypatch.setattr(blocks, "SIZE", 50)
    cut = list(source_rows(source, tmp_path))
    joined = concat("ingest", cut)
    assert len(cut) >= 7
    assert joined.kept.equals(whole.kept)
    assert joined.dropped.equals(whole.dropped)
    assert joined.metrics == whole.metrics


def test_answers_are_joined_by_id(tmp_path: Path) -> None:
    """BFCL keeps its accepted calls in a file of their own."""
    question = {"id": "simple_0", "question": [[{"role": "user", "content": "Q?"}]], "function": [{"name": "f"}]}
    lines(tmp_path, "q.json", question)
    lines(tmp_path, "gold.json", {"id": "simple_0", "ground_truth": [{"f": {"x": [1]}}]})
    rows = read("q.json", options={"answers": "gold.json"}, root=tmp_path)
    assert rows["kind"].to_pylist() == ["task", "sft"]


def test_records_in_a_field_are_named_and_read(tmp_path: Path) -> None:
    """A file that is one object around its records says where they seem to be."""
    (tmp_path / "a.json").write_text('{"version": 1, "data": {"x": [{"text": "a"}]}, "rows": [{"text": "b"}]}')
    result = read_with_ledger("a.json", root=tmp_path)
    assert result.reasons() == {"unknown_shape": 1}
    assert json.loads(result.dropped["detail"][0].as_py())["lists"] == ["rows"]
    assert read("a.json", options={"records": "rows"}, root=tmp_path)["messages"][0][0]["content"].as_py() == "b"
    assert read("a.json", options={"records": "data.x"}, root=tmp_path)["messages"][0][0]["content"].as_py() == "a"


@pytest.mark.parametrize(
    ("name", "data", "lines"),
    [
        ("a.jsonl",
         b'{"uid": 7, "text": "\\ud83e"}\n{"uid": "x", "text": NaN}\n{"uid": 1, "uid": 2, "text": ""}\n{"u\n',
         [("7", "invalid_unicode"), ("x", "nan_or_infinity"), (None, "duplicate_key"), (None, "broken_json")]),
        ("a.jsonl", b'{"uid": "\\ud83e", "text": ""}\n{"uid": "\xff", "text": ""}\n',
         [(None, "invalid_unicode"), (None, "invalid_unicode")]),
        ("a.json", b'[{"uid": 7, "text": "\\ud83e"}]', [("7", "invalid_unicode")]),
        ("a.csv", b"uid,text\n7,\xff\n\xff,x\n", [("7", "invalid_unicode"), (None, "invalid_unicode")]),
    ],
    ids=["lines", "ids that no ledger can hold", "array", "table"],
)  # fmt: skip
def test_a_record_that_no_row_can_hold_is_called_by_its_own_id(
    tmp_path: Path, name: str, data: bytes, lines: list[Any]
) -> None:
    """A person looks for it by that id, not by a line of a file that may change."""
    (tmp_path / name).write_bytes(data)
    dropped = read_with_ledger(name, fields={"id": "uid"}, root=tmp_path).dropped.to_pylist()
    assert [(line["record_id"], line["reason"]) for line in dropped] == lines


def test_services_are_joined_by_their_names(tmp_path: Path) -> None:
    """SGD keeps its schemas in a file of their own; a dialogue with a service that it lacks is told."""
    turns = [{"speaker": "USER", "utterance": "Hi", "frames": []}, {"speaker": "SYSTEM", "utterance": "Yes?"}]
    schema = {"service_name": "T_1", "slots": [], "intents": [{"name": "Book", "required_slots": []}]}
    (tmp_path / "schema.json").write_text(json.dumps([schema]))
    dialogues = [{"dialogue_id": n, "turns": turns, "services": [n]} for n in ("T_1", "T_2")]
    lines(tmp_path, "d.jsonl", *dialogues)
    result = read_with_ledger("d.jsonl", options={"schemas": "schema.json"}, root=tmp_path)
    assert [json.loads(tools)[0]["function"]["name"] for tools in result.kept["tools"].to_pylist()] == ["Book"]
    assert result.reasons() == {"service_unknown": 1}
    lines(tmp_path, "schema.json", {"name": "T_1"})
    with pytest.raises(SourceError, match="no schema with a service_name"):
        read_with_ledger("d.jsonl", options={"schemas": "schema.json"}, root=tmp_path)


def test_limit(tmp_path: Path) -> None:
    """Records, counted as read."""
    lines(tmp_path, "a.jsonl", *({"text": str(n)} for n in range(5)))
    assert read_with_ledger("a.jsonl", limit=2, root=tmp_path).metrics["records"] == 2


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("nope.jsonl", r"'nope\.jsonl' does not exist[\s\S]*holds: a\.jsonl"),
        ("*.csv", r"'\*\.csv' matches no file"),
        ("empty", "holds no data file"),
    ],
)
def test_a_missing_source_says_what_is_there(tmp_path: Path, path: str, says: str) -> None:
    """All sources are looked for before the first row is made."""
    lines(tmp_path, "a.jsonl", {"text": "1"})
    (tmp_path / "empty").mkdir()
    config = IngestConfig(sources=[SourceConfig(name="s", path="a.jsonl"), SourceConfig(name="t", path=path)])
    with pytest.raises(SourceError, match=says):
        next(build_rows(config, tmp_path))


def test_an_empty_source_is_counted(tmp_path: Path) -> None:
    """With no records, not left out."""
    lines(tmp_path, "a.jsonl")
    (result,) = build_rows(IngestConfig(sources=[SourceConfig(name="s", path="a.jsonl")]), tmp_path)
    assert result.metrics["sources"] == {
        "s": {"records": 0, "with_rows": 0, "quarantined": 0, "rows": 0, "reasons": {}, "kinds": {}}
    }


def test_benchmarks_may_forbid_training(tmp_path: Path) -> None:
    """`source_rows` reads them, a build refuses them."""
    lines(tmp_path, "a.jsonl", {"text": "1"})
    source = SourceConfig(name="s", path="a.jsonl", restrictions=["no-train"])
    assert sum(r.kept.num_rows for r in source_rows(source, tmp_path)) == 1
    with pytest.raises(SourceError, match="no-train"):
        next(build_rows(IngestConfig(sources=[source]), tmp_path))


def test_a_wrong_option_is_answered_with_the_right_one(tmp_path: Path) -> None:
    """Keyword arguments are the fields of a source."""
    with pytest.raises(ConfigError, match="did you mean 'shape'"):
        read("a.jsonl", shap="chat", root=tmp_path)


def test_rows_are_read_as_rows(tmp_path: Path) -> None:
    """A Parquet file in the row format comes back as it is."""
    import pyarrow.parquet as pq

    lines(tmp_path, "a.jsonl", {"text": "1"})
    rows = read("a.jsonl", root=tmp_path)
    pq.write_table(rows, tmp_path / "part-00000.parquet")
    assert read("part-00000.parquet", root=tmp_path).equals(rows)


REAL: dict[str, tuple[dict[str, Any], int, dict[str, int], dict[str, int]]] = {
    "gsm8k/train.jsonl": ({}, 7473, {"task": 7473}, {}),
    "mbpp/mbpp.jsonl": (
        {"where": {"task_id": {"not_between": [11, 510]}}}, 974, {"task": 474}, {"excluded_by_where": 500},
    ),
    "humaneval/HumanEval.jsonl.gz": ({}, 164, {"task": 164}, {}),
    "ifeval/input_data.jsonl": ({}, 541, {"task": 541}, {}),
    "self_instruct/seed_tasks.jsonl": ({}, 175, {"sft": 175}, {}),
    "gpteacher/roleplay-similarity_0.6-instruct-dataset.json": ({}, 3146, {"sft": 3146}, {}),
    "oasst_sample/en_100_tree.jsonl": ({}, 100, {"sft": 100, "preference": 212}, {}),
    "hh_rlhf/harmless-base_test.jsonl.gz": ({}, 2312, {"preference": 2307}, {"prompts_differ": 5}),
    "bfcl_v4/BFCL_v4_irrelevance.json": ({}, 240, {"task": 240}, {}),
    "bfcl_v4/BFCL_v4_parallel_multiple.json": (
        {"options": {"answers": "bfcl_v4/possible_answer/BFCL_v4_parallel_multiple.json"}},
        200, {"task": 200, "sft": 200}, {},
    ),
    "reasoning_gym/generated_rg0.1.25_seed42.jsonl": ({}, 1040, {"task": 1040}, {}),
    "hatecheck/test_suite_cases.csv": ({"fields": {"text": "test_case"}}, 3728, {"sft": 3728}, {}),
    "nlvr/dev.json": ({}, 989, {}, {"unknown_shape": 989}),
}  # fmt: skip


@pytest.mark.parametrize("path", REAL)
def test_public_data_sets(shared: Path, path: str) -> None:
    """Records, kinds and quarantine of data sets as they are published."""
    options, records, kinds, quarantined = REAL[path]
    result = read_with_ledger(path, root=shared / "data", detect_language=False, **options)
    assert result.metrics["records"] == records
    assert Counter(result.kept["kind"].to_pylist()) == kinds
    assert result.reasons() == quarantined


def test_carriage_returns_inside_code_survive(shared: Path) -> None:
    """MBPP's code has them in 972 of its 974 records."""
    rows = read("mbpp/mbpp.jsonl", root=shared / "data", detect_language=False).to_pylist()
    assert sum("\r" in json.loads(row["verifier"]["spec"])["reference"] for row in rows) == 972
