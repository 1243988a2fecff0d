"""`corpusforge dedupe` on plain files: the same rows as the stage would keep, whatever the slices, threads, index."""

from __future__ import annotations

import errno
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corpusforge as cf
from corpusforge import methods
from corpusforge.cli import main
from corpusforge.errors import ConfigError, SchemaError, SourceError, StaleLockError, StorageError
from corpusforge.io import index
from corpusforge.io.dedupe import labels
from corpusforge.shell import run_stage
from corpusforge.stages import _near
from tests.projects import chat, make_project

WORDS = [f"w{i}" for i in range(60)]


def texts(count: int, seed: int = 3) -> list[str | None]:
    """Texts of about 30 words, a third of them copies with few words replaced; some say nothing."""
    draw = random.Random(seed)
    made: list[str | None] = []
    for number in range(count):
        if number % 3 == 2:
            words = (draw.choice([one for one in made if one]) or "").split()
            for _ in range(draw.randrange(3)):
                words[draw.randrange(len(words))] = draw.choice(WORDS)
            made.append(" ".join(words))
        else:
            made.append(" ".join(draw.choices(WORDS, k=draw.randrange(20, 40))))
    return [*made, "", None, " \n", "!?", "one", "One", "é", "e\u0301"]


def lay(path: Path, rows: list[str | None], group: int = 50) -> Path:
    """A Parquet file of texts with ids and another column."""
    table = pa.table({"id": [f"r{i}" for i in range(len(rows))], "text": rows, "n": range(len(rows))})
    pq.write_table(table, path, row_group_size=group)
    return path


def read(folder: Path) -> tuple[pa.Table, list[dict[str, Any]]]:
    """What stayed, and the ledger with its details as objects."""
    ledger = pq.read_table(folder / "dropped.parquet").to_pylist()
    return pq.read_table(folder / "kept"), [{**line, **json.loads(line["detail"])} for line in ledger]


def jaccard(a: str, b: str) -> float:
    """Of the sets of five words; a shorter text is one shingle."""
    one, two = ({tuple(w[i : i + 5]) for i in range(max(1, len(w) - 4))} for w in (a.split(), b.split()))
    return len(one & two) / len(one | two)


def test_every_removal_is_proven_and_nothing_vanishes(tmp_path: Path) -> None:
    """Kept and dropped are the input; each partner stayed and is as similar as stated; no kept pair is a duplicate."""
    rows = texts(300)
    said = cf.dedupe_files(lay(tmp_path / "new.parquet", rows), tmp_path / "out", num_perm=512, recall=0.9999)
    kept, ledger = read(tmp_path / "out")
    by_id = {f"r{i}": row or "" for i, row in enumerate(rows)}
    stays = kept["id"].to_pylist()
    assert sorted([*stays, *(line["record_id"] for line in ledger)]) == sorted(by_id)
    assert stays == sorted(stays, key=lambda one: int(one[1:]))
    assert kept["n"].to_pylist() == [int(one[1:]) for one in stays]
    for line in ledger:
        assert line["kept"] in stays
        alike = jaccard(by_id[line["record_id"]].lower(), by_id[line["kept"]].lower()) if len(line["record_id"]) else 0
        assert line["record_id"] in ("r305", "r307") or line["similarity"] == round(alike, 6) >= 0.8
    pairs = [(a, b) for a in stays for b in stays if a < b and min(len(by_id[a]), len(by_id[b])) > 9]
    assert not [pair for pair in pairs if jaccard(by_id[pair[0]], by_id[pair[1]]) >= 0.8]
    assert said.metrics["in"] == len(rows) == said.metrics["kept"] + said.metrics["dropped"]
    assert {"r300", "r301", "r302", "r303"} <= set(stays), "what says nothing is no duplicate"


def test_the_stage_keeps_the_same_rows(tmp_path: Path) -> None:
    """A plain file and the rows that `read` makes of it lose the same records, for the same partners."""
    new = lay(tmp_path / "new.parquet", texts(200))
    cf.dedupe_files(new, tmp_path / "out")
    _, ledger = read(tmp_path / "out")
    with pytest.warns(UserWarning, match="plain texts"):
        rows = cf.read(str(new))
    staged = cf.dedupe(rows)
    own = dict(zip(rows["row_id"].to_pylist(), pc.struct_field(rows["source"], "record_id").to_pylist(), strict=True))
    partner = {line["record_id"]: own[json.loads(line["detail"])["kept"]] for line in staged.dropped.to_pylist()}
    assert {line["record_id"]: line["kept"] for line in ledger} == partner


def test_ids_count_from_1_and_say_which_file_is_meant(tmp_path: Path) -> None:
    """Files of one name are told apart, and so are own ids that new and old rows share."""
    text = " ".join(WORDS)
    places = [tmp_path / name / "part.parquet" for name in ("a", "b", "old")]
    for place, rows in zip(places, ([text, "one"], ["two", f"{text} more"], ["one"]), strict=True):
        place.parent.mkdir()
        lay(place, rows)  # type: ignore[arg-type]
    cf.dedupe_files(places[:2], tmp_path / "out", against=places[2])
    _, ledger = read(tmp_path / "out")
    said = [tuple(line[name] for name in ("row_id", "record_id", "kept", "kept_row", "kept_in")) for line in ledger]
    assert said == [
        ("part#1", "r0", "r1", "part~2#2", "new"),
        ("part#2", "r1", "r0", "part~3#1", "against"),
    ]


def test_no_made_up_name_is_that_of_a_file() -> None:
    files = [Path(name) for name in ("x/a.parquet", "y/a.parquet", "a~2.parquet", "z/a.parquet")]
    assert labels(files) == ["a", "a~3", "a~2", "a~4"]


@settings(max_examples=8)
@given(st.integers(1, 90), st.integers(1, 3), st.sampled_from([1, 400, 1 << 24]))
def test_slices_threads_and_batches_change_no_byte(group: int, workers: int, batch: int) -> None:
    """Row groups of any size, one thread or three, batches of one group each: the same ledger and rows."""
    import tempfile

    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        folder = Path(place)
        cf.dedupe_files(lay(folder / "new.parquet", texts(120)), folder / "one")
        patch.setattr(_near, "_BATCH", batch)
        patch.setenv("CORPUSFORGE_WORKERS", str(workers))
        patch.setattr("corpusforge.io.texts._ROWS", 40)
        patch.setattr("corpusforge.io.texts._BYTES", 900)
        cf.dedupe_files(lay(folder / "new.parquet", texts(120), group), folder / "other")
        assert (folder / "one/dropped.parquet").read_bytes() == (folder / "other/dropped.parquet").read_bytes()
        assert pq.read_table(folder / "one/kept").equals(pq.read_table(folder / "other/kept"))
        assert (folder / "one/metrics.json").read_bytes() == (folder / "other/metrics.json").read_bytes()


def test_against_a_file_and_against_its_index_are_the_same(tmp_path: Path) -> None:
    """New rows go for rows that are there already, whichever form those come in; old rows are never judged."""
    every = texts(240)
    old, new = lay(tmp_path / "old.parquet", every[:150]), lay(tmp_path / "new.parquet", every[100:])
    cf.index_files(old, tmp_path / "known")
    by_file = cf.dedupe_files(new, tmp_path / "file", against=old)
    by_index = cf.dedupe_files(new, tmp_path / "index", against=tmp_path / "known")
    assert (tmp_path / "file/dropped.parquet").read_bytes() == (tmp_path / "index/dropped.parquet").read_bytes()
    assert by_file.metrics == by_index.metrics
    assert by_file.metrics["against"] == 150
    kept, _ = read(tmp_path / "file")
    assert not set(kept["text"].to_pylist()) & {row for row in every[:150] if row and row.strip(" \n!?")}


def test_rows_of_any_form_against_an_index(tmp_path: Path) -> None:
    """Conversations and tasks are held against an index of rows as against the rows themselves."""
    draw = random.Random(5)
    said = [" ".join(draw.choices(WORDS, k=30)) for _ in range(60)]
    lines = [
        {"messages": [{"role": "user", "content": a}, {"role": "assistant", "content": b}]}
        for a, b in zip(said[::2], said[1::2], strict=True)
    ]
    lines += [{"question": text, "answer": "4"} for text in said[:20]]
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text("\n".join(map(json.dumps, lines[:35])))
    new.write_text("\n".join(map(json.dumps, lines[20:])))
    cf.index_files(old, tmp_path / "known")
    rows = cf.read(str(new))
    plain, indexed = cf.dedupe(rows, reference=cf.read(str(old))), cf.dedupe(rows, reference=tmp_path / "known")
    assert plain.kept.equals(indexed.kept)
    assert plain.dropped.equals(indexed.dropped)
    assert plain.metrics == indexed.metrics
    assert plain.dropped.num_rows == 15
    found = cf.dedupe_files(new, tmp_path / "out", against=tmp_path / "known")
    assert (found.form, found.metrics["dropped"]) == ("rows", 15)


def test_an_index_of_other_options_is_refused(tmp_path: Path) -> None:
    """The message names what differs, and what is wanted."""
    file = lay(tmp_path / "new.parquet", texts(30))
    cf.index_files(file, tmp_path / "known", threshold=0.9)
    with pytest.raises(ConfigError, match=r"index known was made in another way: bands \d+, not 16; rows_per_band"):
        cf.dedupe_files(file, tmp_path / "out", against=tmp_path / "known")
    with pytest.raises(ConfigError, match="is of plain texts"):
        cf.dedupe(cf.read([{"question": "a", "answer": "b"}]), reference=tmp_path / "known", threshold=0.9)


@pytest.mark.parametrize("name", ["facts.ipc", "band_003.u64", "content.u32", "starts.i64", "index.json", "values.u64"])
@pytest.mark.parametrize("how", ["cut", "flip", "gone"])
def test_a_damaged_index_is_an_error(tmp_path: Path, name: str, how: str) -> None:
    """No wrong answer comes of a file that lost bytes, or has others."""
    file = lay(tmp_path / "new.parquet", texts(90))
    cf.index_files(file, tmp_path / "known")
    path = tmp_path / "known" / name
    data = bytearray(path.read_bytes())
    if how == "flip":
        if name == "index.json":
            data[data.index(b'"bands"') + 1] ^= 1
        else:
            data[len(data) // 2] ^= 4
    path.unlink()
    if how != "gone":
        path.write_bytes(data[:-8] if how == "cut" else data)
    near = lay(tmp_path / "near.parquet", [f"{row} more" for row in texts(90)])
    with pytest.raises(SourceError, match=r"index known is broken|holds no data file"):
        cf.dedupe_files(near, tmp_path / "out", against=tmp_path / "known")


def test_a_folder_that_is_no_result_is_not_replaced(tmp_path: Path) -> None:
    """An earlier result is; the messages say what to do."""
    file = lay(tmp_path / "new.parquet", texts(30))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/precious").write_text("x")
    with pytest.raises(ConfigError, match="no result of dedupe"):
        cf.dedupe_files(file, tmp_path / "mine")
    with pytest.raises(ConfigError, match="no index"):
        cf.index_files(file, tmp_path / "mine")
    assert (tmp_path / "mine/precious").exists()
    for _ in range(2):
        cf.dedupe_files(file, tmp_path / "out")
        cf.index_files(file, tmp_path / "known")
    assert index.is_index(tmp_path / "known")


def test_columns_are_chosen_by_name(tmp_path: Path) -> None:
    """Another text column and another id column; one that is not there is named."""
    table = pa.table({"body": ["a b c d e f"] * 2, "uid": [7, 8]})
    pq.write_table(table, tmp_path / "new.parquet")
    cf.dedupe_files(tmp_path / "new.parquet", tmp_path / "out", text="body", own_id="uid")
    assert [(line["record_id"], line["kept"]) for line in read(tmp_path / "out")[1]] == [("8", "7")]
    with pytest.raises(SchemaError, match="has no column 'nid'; it has body, uid"):
        cf.dedupe_files(tmp_path / "new.parquet", tmp_path / "out", text="body", own_id="nid")
    with pytest.raises(ConfigError, match="prefer: plain texts"):
        cf.dedupe_files(tmp_path / "new.parquet", tmp_path / "out", text="body", prefer=["length asc"])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_of_any_string_type(tmp_path: Path, kind: pa.DataType) -> None:
    """Large strings and views, in one chunk or several, give the same ledger."""
    rows = texts(60)
    cf.dedupe_files(lay(tmp_path / "plain.parquet", rows), tmp_path / "one")
    table = pq.read_table(tmp_path / "plain.parquet")
    pq.write_table(table.set_column(1, "text", pa.array(rows, kind)), tmp_path / "plain.parquet", row_group_size=7)
    cf.dedupe_files(tmp_path / "plain.parquet", tmp_path / "other")
    assert read(tmp_path / "one")[1] == read(tmp_path / "other")[1]


def test_columns_of_what_is_no_plain_file_are_refused(tmp_path: Path) -> None:
    """A text column that is not there is named, not passed over; so is one of a file of another form."""
    file = lay(tmp_path / "new.parquet", texts(30))
    (tmp_path / "new.jsonl").write_text('{"prompt": "a", "completion": "b"}')
    for path in (file, tmp_path / "new.jsonl"):
        with pytest.raises(ConfigError, match=f"{path.name} is not Parquet with a text column 'body'"):
            cf.dedupe_files(path, tmp_path / "out", text="body")


def test_an_empty_file_and_one_row(tmp_path: Path) -> None:
    """Nothing in, nothing out; one row stays; an index of nothing is held against."""
    for number in (0, 1):
        table = pa.table({"id": ["a"][:number], "text": pa.array(["x y z"][:number], pa.string())})
        pq.write_table(table, tmp_path / f"{number}.parquet")
        found = cf.dedupe_files(tmp_path / f"{number}.parquet", tmp_path / f"out{number}")
        assert found.metrics["kept"] == number
    cf.index_files(tmp_path / "0.parquet", tmp_path / "known")
    again = cf.dedupe_files(tmp_path / "1.parquet", tmp_path / "out1", against=tmp_path / "known")
    assert again.metrics["kept"] == 1


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints what the call returns, and takes options of the stage by name."""
    monkeypatch.chdir(tmp_path)
    lay(tmp_path / "new.parquet", texts(60))
    assert main(["index", "new.parquet", "known", "--option", "shingle=4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["method"]["shingle"] == 4
    against = ["dedupe", "new.parquet", "--out", "out", "--against", "known", "--option"]
    assert main([*against, "shingle=4"]) == 0
    assert "held against 68 that are there already: 4 stay, 64 go" in " ".join(capsys.readouterr().out.split())
    assert main([*against, "shingles=4"]) == 4
    assert "did you mean 'shingle'" in capsys.readouterr().err
    assert main([*against, "against=known"]) == 2
    assert "has an option of its own" in capsys.readouterr().err


@pytest.mark.parametrize("call", ["dedupe_files", "index_files"])
def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place of the bands is taken before they are written, so that a full disk is told, not died of."""

    def full(_file: int, _start: int, _size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    file = lay(tmp_path / "new.parquet", texts(30))
    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(StorageError, match="the disk is full"):
        getattr(cf, call)(file, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["new.parquet"]


def test_takes_of_a_store_are_what_was_put(tmp_path: Path) -> None:
    """On disk as in memory, parts come back in their order, by batch."""
    from corpusforge.io.scratch import Scratch
    from corpusforge.stages._stage import Memory

    for store in (Scratch(tmp_path, 0), Memory()):
        for batch in (0, 1, 0):
            store.put(batch, np.arange(batch + 2), np.zeros(0, np.uint64))
        first, second = store.take(0)
        assert (first.tolist(), len(second)) == ([0, 1, 0, 1], 0)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_project_holds_its_rows_against_an_index(tmp_path: Path) -> None:
    """Rows of the accepted build go from the next; the index is watched, and its fingerprint is recorded."""
    old = make_project(tmp_path / "old", {"chats": [chat(i) for i in range(30)]})
    for name in ("ingest", "dedupe"):
        run_stage(old, name)
    cf.index_files(old.root / "data/dedupe/rows", tmp_path / "new/known")
    records = [chat(i) for i in range(20, 40)]
    new = make_project(tmp_path / "new", {"more": records}, dedupe={"against": "known"})
    assert methods.current(new)["dedupe"]["index"] == index.fingerprint(tmp_path / "new/known")
    assert methods.watched(new)["dedupe"] == ["known"]
    run_stage(new, "ingest")
    found = run_stage(new, "dedupe")
    assert (found["in"], found["kept"], found["reasons"]) == (20, 10, {"exact_duplicate": 10})
    ledger = pq.read_table(new.root / "data/dedupe/dropped.parquet")
    assert {json.loads(line)["kept"].partition("#")[0] for line in ledger["detail"].to_pylist()} == {"chats"}
    cf.index_files(old.root / "data/dedupe/rows", tmp_path / "new/known", seed=2)
    with pytest.raises(StaleLockError, match=r"dedupe was recorded with index [0-9a-f]{16}"):
        run_stage(new, "dedupe")
    methods.sync(new)
    with pytest.raises(ConfigError, match="index known was made in another way: seed 2, not 1"):
        run_stage(new, "dedupe")


def test_nothing_to_hold_against_is_an_error(tmp_path: Path) -> None:
    """Old rows that cannot be read would let every copy of them back in."""
    for name, text in (("new", '{"prompt": "What is up?", "response": "The sky."}'), ("old", '{"nothing": "of note"}')):
        (tmp_path / f"{name}.jsonl").write_text(text + "\n", encoding="utf-8")
    with pytest.raises(SourceError, match=r"old\.jsonl: no row to hold others against") as caught:
        cf.dedupe_files(tmp_path / "new.jsonl", tmp_path / "out", against=tmp_path / "old.jsonl")
    assert "note" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_only_what_was_written_is_replaced(tmp_path: Path) -> None:
    """Neither a folder that has a file of that name by chance, nor one that holds an input."""
    file = lay(tmp_path / "new.parquet", texts(20))
    for folder, name in (("model", "metrics.json"), ("site", "index.json")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text("{}")
        (tmp_path / folder / "precious").write_text("kept")
    with pytest.raises(ConfigError, match="model holds what was not written by this command: precious"):
        cf.dedupe_files(file, tmp_path / "model")
    with pytest.raises(ConfigError, match="site holds what was not written by this command: precious"):
        cf.index_files(file, tmp_path / "site")
    cf.dedupe_files(file, tmp_path / "out")
    cf.index_files(file, tmp_path / "known")
    with pytest.raises(ConfigError, match=r"out is replaced, and part-00000\.parquet lies in it"):
        cf.dedupe_files(tmp_path / "out" / "kept" / "part-00000.parquet", tmp_path / "out")
    again = cf.dedupe_files(file, tmp_path / "out"), cf.index_files(file, tmp_path / "known")
    assert again[1].rows == again[0].metrics["in"]


def test_a_link_to_a_result_is_followed(tmp_path: Path) -> None:
    """What it leads to is replaced, and it stays a link."""
    file = lay(tmp_path / "new.parquet", texts(20))
    cf.dedupe_files(file, tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    cf.dedupe_files(file, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "new.parquet", "real"]


def test_changed_bands_of_an_index_are_noticed(tmp_path: Path) -> None:
    """Their length does not tell."""
    file = lay(tmp_path / "new.parquet", texts(20))
    cf.index_files(file, tmp_path / "known")
    bands = tmp_path / "known" / "bands.u64"
    bands.write_bytes(bytes(bands.stat().st_size))
    with pytest.raises(SourceError, match=r"bands\.u64 is not what was written"):
        cf.dedupe_files(file, tmp_path / "out", against=tmp_path / "known")


@pytest.mark.parametrize("end", [b"word \xf4", "word \U0001f600".encode()[:-2], b"\xf8\x88\x88\x88\x88", b"caf\xe9"])
def test_a_text_that_is_no_utf8_is_told_by_its_row(tmp_path: Path, end: bytes) -> None:
    """Cut within a character, or in another encoding: not read, and not shown."""
    values = pa.array([b"one two", b"three", end], pa.binary()).view(pa.string())
    for column in ("text", "id"):
        plain = pa.array(["a", "b", "c"])
        pq.write_table(pa.table({"text": plain, "id": plain} | {column: values}), tmp_path / "new.parquet")
        with pytest.raises(SourceError, match=r"new\.parquet: row 3 is not UTF-8"):
            cf.dedupe_files(tmp_path / "new.parquet", tmp_path / "out")


def test_odd_columns_and_no_compression(tmp_path: Path) -> None:
    """Two columns of one name and ids that are lists are refused; Parquet without compression is written so."""
    plain = pa.array(["a b", "b c", "c d"])
    for names in (("text", "text"), ("id", "id", "text")):
        pq.write_table(pa.Table.from_arrays([plain] * len(names), names=names), tmp_path / "new.parquet")
        with pytest.raises(SchemaError, match="more than one column"):
            cf.dedupe_files(tmp_path / "new.parquet", tmp_path / "out")
    pq.write_table(pa.table({"text": plain, "id": [["a"], ["b"], ["c"]]}), tmp_path / "new.parquet")
    with pytest.raises(SchemaError, match="holds no ids that are text"):
        cf.dedupe_files(tmp_path / "new.parquet", tmp_path / "out")
    pq.write_table(pa.table({"text": plain}), tmp_path / "new.parquet", compression="none")
    cf.dedupe_files(tmp_path / "new.parquet", tmp_path / "out")
    written = pq.read_metadata(tmp_path / "out" / "kept" / "part-00000.parquet")
    assert written.row_group(0).column(0).compression == "UNCOMPRESSED"
