"""Shards hold every row and copy once, in an order of their own, and every reader reads them."""

from __future__ import annotations

import importlib.util
import io
import json
import os
from pathlib import Path
from unittest import mock

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.projects import chat, make_project
from tests.rows import message, row, table

from corpusforge.engine.local import LocalEngine
from corpusforge.errors import ConfigError, ProjectError
from corpusforge.io import parquet, shards
from corpusforge.io.manifest import Manifest, read_manifest, verify
from corpusforge.io.shards import shard_kind, write_shards
from corpusforge.sample import ADDED, KINDS, dumps
from corpusforge.stages.blend import blend

CALL = {"type": "function", "function": {"name": "set_lamp", "arguments": {"room": "attic", "percent": None}}}
TOOL = {"type": "function", "function": {"name": "set_lamp", "description": "d", "parameters": {"type": "object"}}}


def every_kind() -> pa.Table:
    """Three rows of each kind, one of them a conversation with a tool."""
    call = [message("user", "Reset it."), message("assistant", None, tool_calls=dumps([CALL])), message("tool", "done")]
    rows = [row(i, f"q {i}", f"a {i}") for i in range(2)]
    rows.append(row(2, messages=[*call, message("assistant", "Reset.")], tools=dumps([TOOL])))
    for i in range(3, 6):
        said = {"chosen": [message("assistant", "good")], "rejected": [message("assistant", f"bad {i}")]}
        rows.append(row(i, f"q {i}", kind="preference", **said))
        rows.append(row(i + 10, f"q {i}", kind="task", verifier={"kind": "numeric", "spec": '{"answer":"1"}'}))
        rows.append(row(i + 20, f"q {i}", "a", kind="rated", rating={"value": 1.0, "scale": "yes/no", "by": "x"}))
    return table(rows)


def with_copies(rows: pa.Table, copies: list[int], splits: list[str] | None = None) -> pa.Table:
    """Rows as `blend` leaves them."""
    rows = rows.append_column("split", pa.array(splits or ["train"] * rows.num_rows, ADDED["split"]))
    return rows.append_column("copies", pa.array(copies, ADDED["copies"]))


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by relative path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def ids(folder: Path) -> list[str]:
    """Row ids of all lines in all shards, sorted."""
    return sorted(i for path in folder.glob("*/*.parquet") for i in pq.read_table(path)["row_id"].to_pylist())


@given(st.lists(st.integers(1, 4), min_size=1, max_size=30), st.integers(1, 12))
@settings(max_examples=20)
def test_every_row_is_there_as_often_as_it_has_copies(tmp_path_factory, copies, per_shard):
    folder = tmp_path_factory.mktemp("shards")
    splits = ["heldout" if n == 1 else "train" for n in copies]
    rows = with_copies(table([row(i, f"q {i}", "a") for i in range(len(copies))]), copies, splits)
    held = write_shards(rows, folder / "out", rows_per_shard=per_shard)
    assert ids(folder / "out") == sorted(f"test#{i}" for i, n in enumerate(copies) for _ in range(n))
    assert sum(shard["rows"] for shard in held["shards"]) == sum(copies) == held["sources"]["test"]["copies"]
    for shard in held["shards"]:
        lines = pq.read_table(folder / "out" / shard["path"])
        assert lines.num_rows == shard["rows"]
        assert all(
            (copies[int(name[5:])] == 1) == (shard["split"] == "heldout") for name in lines["row_id"].to_pylist()
        )


@given(st.permutations(range(24)))
@settings(max_examples=10)
def test_the_order_of_rows_does_not_change_a_byte(tmp_path_factory, permutation):
    folder = tmp_path_factory.mktemp("shards")
    rows = table([row(i, f"q {i}", "a") for i in range(24)])
    write_shards(rows, folder / "a", rows_per_shard=7)
    write_shards(rows.take(pa.array(permutation)), folder / "b", rows_per_shard=7)
    assert files(folder / "a") == files(folder / "b")


def test_cuts_and_workers_do_not_change_a_byte(tmp_path, monkeypatch):
    rows = with_copies(every_kind(), [1, 2, 3] * 4)
    written = {}
    for cut, workers in ((12, 1), (5, 1), (5, 2)):
        parts = []
        for start in range(0, 12, cut):
            parts.append(tmp_path / f"{cut}-{start}.parquet")
            pq.write_table(rows.slice(start, cut), parts[-1])
        out = tmp_path / f"out-{cut}-{workers}"
        out.mkdir()
        monkeypatch.setattr(shards, "_SMALL", 0)
        shards._write(
            parts, out, shards.ShardConfig(rows_per_shard=2), shards._Context({}, {}, {}), LocalEngine(workers)
        )
        written[cut, workers] = files(out)
    assert written[12, 1] == written[5, 1] == written[5, 2]
    assert len(written[12, 1]) > 6


def test_a_row_more_changes_one_shard(tmp_path):
    rows = [row(i, f"q {i}", "a") for i in range(100)]
    before = write_shards(table(rows), tmp_path / "a", rows_per_shard=10)["shards"]
    after = write_shards(table([row(1000, "new", "a"), *rows]), tmp_path / "b", rows_per_shard=10)["shards"]
    assert len(before) == len(after) == 16
    assert sum(a["sha256"] != b["sha256"] for a, b in zip(before, after, strict=True)) == 1


def test_another_seed_gives_another_order(tmp_path):
    rows = table([row(i, f"q {i}", "a") for i in range(20)])
    orders = []
    for seed in (0, 1):
        write_shards(rows, tmp_path / str(seed), seed=seed)
        orders.append(pq.read_table(tmp_path / str(seed) / "sft/train-00000-of-00001.parquet")["row_id"].to_pylist())
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != rows["row_id"].to_pylist()


def test_row_groups_stay_below_the_cap(tmp_path):
    rows = table([row(i, "apple " * 16_666, "barrel") for i in range(40)])
    write_shards(rows, tmp_path / "out", row_group_mib=1.0)
    meta = pq.read_metadata(tmp_path / "out/sft/train-00000-of-00001.parquet")
    assert meta.num_rows == 40
    assert meta.num_row_groups >= 4
    assert all(meta.row_group(i).total_byte_size <= 2**20 for i in range(meta.num_row_groups))


def test_kinds_without_rows_have_no_file_but_are_reported(tmp_path):
    held = write_shards(table([row(1, "q", "a")]), tmp_path / "out")
    assert [shard["path"] for shard in held["shards"]] == ["sft/train-00000-of-00001.parquet"]
    assert set(held["empty"]) == {f"{k}/{s}" for k in KINDS for s in ("train", "heldout")} - {"sft/train"}
    assert held["kinds"]["task"]["columns"]["prompt"].startswith("list")


def test_a_corpus_of_no_rows_is_written_and_said(tmp_path):
    held = write_shards(table([]), tmp_path / "out")
    assert held["shards"] == []
    assert len(held["empty"]) == 8
    assert verify(tmp_path / "out") == []


@pytest.fixture
def written(tmp_path):
    """Shards of every kind."""
    write_shards(every_kind(), tmp_path / "out")
    return tmp_path / "out"


def load(path: Path | str, name: str, cache: Path, split: str = "train"):
    """Rows as `datasets` loads them, by config name or by files."""
    import datasets

    datasets.disable_progress_bars()
    if name == "parquet":
        return datasets.load_dataset(name, data_files=str(path), split=split, cache_dir=str(cache))
    return datasets.load_dataset(str(path), name, split=split, cache_dir=str(cache))


@pytest.mark.parametrize("kind", KINDS)
def test_datasets_polars_and_duckdb_read_every_kind(written, tmp_path, kind):
    path = written / kind / "train-00000-of-00001.parquet"
    by_card, by_file = load(written, kind, tmp_path / "c"), load(path, "parquet", tmp_path / "c")
    assert by_card.to_list() == by_file.to_list()
    names = pq.read_table(path)["row_id"].to_pylist()
    assert len(names) == 3
    assert by_card["row_id"] == names
    assert pl.read_parquet(path)["row_id"].to_list() == names
    conversation = "messages" if kind == "sft" else "prompt"
    text = pl.read_parquet(path)[conversation].to_list()[0][0]
    assert json.loads(text) == by_card[0][conversation][0]
    query = f"select row_id, {conversation}[1]->>'role' from '{path}'"
    assert duckdb.sql(query).fetchall() == [(name, "user") for name in names]


def test_a_card_does_not_serve_an_old_build_from_the_cache(tmp_path):
    for count in (1, 2):
        write_shards(table([row(i, f"q {i}", "a") for i in range(count)]), tmp_path / "out")
        assert len(load(tmp_path / "out", "sft", tmp_path / "c")) == count


def test_images_load_as_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    image.new("RGB", (3, 2)).save(buffer, "PNG")
    turns = [message("user", "What?", parts=dumps([{"type": "image"}, {"type": "text", "text": "What?"}]))]
    rows = [row(1, "q", "a"), row(2, messages=turns, images=[{"bytes": buffer.getvalue(), "path": None}])]
    write_shards(table(rows), tmp_path / "out")
    (line,) = load(tmp_path / "out", "sft_images", tmp_path / "c")
    assert line["images"][0].size == (3, 2)
    assert line["messages"][0]["content"][0] == {"type": "image"}
    assert "images" not in load(tmp_path / "out", "sft", tmp_path / "c").column_names


def templates() -> list[Path]:
    """The chat templates that the installed TRL ships."""
    spec = importlib.util.find_spec("trl")
    folder = Path(str(spec.origin)).parent / "chat_templates" if spec else Path("absent")
    names = ("qwen2_5", "qwen3", "llama3_2", "gptoss", "qwen2_5_training", "qwen3_training")
    return [folder / f"{name}.jinja" for name in names]


@pytest.mark.skipif(not templates()[0].exists(), reason="TRL is not installed: pip install 'corpusforge[train]'")
@pytest.mark.parametrize("template", templates(), ids=lambda path: path.stem)
def test_tool_calls_render_in_chat_templates(written, tmp_path, template):
    from transformers.utils.chat_template_utils import render_jinja_template

    (line,) = (line for line in load(written, "sft", tmp_path / "c") if line["tools"])
    rendered, _ = render_jinja_template(
        conversations=[line["messages"]],
        tools=json.loads(line["tools"]),
        chat_template=template.read_text(encoding="utf-8"),
    )
    assert "set_lamp" in rendered[0]
    assert '"room": "attic"' in rendered[0] or '"room":"attic"' in rendered[0]
    assert rendered[0].count("null") == 1  # the user's own, in percent
    assert "None" not in rendered[0]


def test_a_shard_says_what_it_is(written):
    path = written / "task/train-00000-of-00001.parquet"
    assert shard_kind(path) == {"format": 1, "kind": "task", "split": "train"}
    foreign = written / "foreign.parquet"
    pq.write_table(pa.table({"a": [1]}), foreign)
    assert shard_kind(foreign) is None


def test_the_manifest_is_as_its_model_says_and_holds_no_clock_or_path(written, tmp_path):
    text = (written / "manifest.json").read_text()
    held = Manifest.model_validate_json(text)
    assert str(tmp_path) not in text
    assert held.sources["test"].licenses == {"MIT": 12}
    assert held.sources["test"].revisions == ["r1"]
    assert len(held.sources["test"].hash) == 32
    assert held.seed == 0
    assert {"corpusforge", "pyarrow"} == held.tool.keys()


def test_verify_names_what_was_changed_added_or_lost(written):
    assert verify(written) == []
    with (written / "sft/train-00000-of-00001.parquet").open("ab") as file:
        file.write(b"x")
    (written / "task/train-00000-of-00001.parquet").rename(written / "task/other.parquet")
    assert verify(written) == [
        "sft/train-00000-of-00001.parquet",
        "task/other.parquet",
        "task/train-00000-of-00001.parquet",
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"shards": [{"path": 1}], "build": "x"}'])
def test_a_broken_manifest_is_an_error_of_ours(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ProjectError, match="is not a manifest"):
        read_manifest(tmp_path)


def test_a_failing_write_leaves_the_old_shards(written):
    before = files(written)
    with (
        mock.patch.object(shards.card, "render", side_effect=OSError(28, os.strerror(28))),
        pytest.raises(OSError, match="space"),
    ):
        write_shards(table([row(1, "q", "a")]), written)
    assert files(written) == before
    assert [path.name for path in written.parent.iterdir() if path.name.startswith(".")] == []


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("all there is")
    with pytest.raises(ConfigError, match="holds other things than shards"):
        write_shards(table([row(1, "q", "a")]), tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "all there is"


def test_the_stage_writes_what_blend_kept_and_counts_it(tmp_path):
    project = make_project(tmp_path / "p", {"chats": [chat(1)]})
    folder = project.data("blend") / "rows"
    folder.mkdir(parents=True)
    rows = with_copies(every_kind(), [1, 2, 3] * 4, ["train"] * 11 + ["heldout"])
    for number, start in enumerate((0, 7)):
        parquet.write(rows.slice(start, 7), folder / parquet.part_name(number))
    (tmp_path / "out").mkdir()
    figures = shards.run(project, tmp_path / "out")
    assert figures["in"] == figures["kept"] == 12
    assert figures["lines"] == figures["copies"] == 24 == len(ids(tmp_path / "out"))
    assert sum(sum(kind.values()) for kind in figures["kinds"].values()) == 24
    held = read_manifest(tmp_path / "out")
    assert held["build"] == figures["build"]
    assert held["params"]["scrub"]["key"] == "public-demo"
    assert held["methods"].keys() >= {"scrub", "shard"}
    assert held["key"] == held["methods"]["scrub"]["key"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"manifest.json", "README.md", *KINDS}


def test_blended_rows_go_straight_into_shards(tmp_path):
    rows = table([row(i, f"q {i}", "a", source="s", origin="human") for i in range(40)])
    kept = blend(rows, total=60, when_short="repeat", heldout=0.2).kept
    held = write_shards(kept, tmp_path / "out")
    assert {shard["split"] for shard in held["shards"]} == {"train", "heldout"}
    assert sum(shard["rows"] for shard in held["shards"] if shard["split"] == "train") == 60
