"""`corpusforge verify`: how healthy the verifiers of plain files' tasks are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import corpusforge as cf
from corpusforge.cli import main
from corpusforge.errors import ConfigError, SourceError
from corpusforge.io import parquet
from corpusforge.io import tasks as laid
from corpusforge.verify.sandbox._scratch import swept
from tests.projects import chat, write_jsonl

SOUND = [
    {"id": f"t{n}", "prompt": f"What is {n} times {n + 1}?", "verifier": {"kind": "numeric", "answer": str(n * n + n)}}
    for n in range(1, 5)
]
SECRET = "Because the marquess said so."
BROKEN = {"id": "lost", "prompt": "Why?", "verifier": {"kind": "math", "answer": SECRET}}


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    write_jsonl(tmp_path / "tasks.jsonl", [*SOUND, chat(1)])
    return tmp_path / "tasks.jsonl"


def test_sound_tasks_are_healthy(tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, and rows that are no tasks do not count."""
    assert main(["verify", str(tasks)]) == 0
    said = capsys.readouterr().out
    assert "4 tasks" in said
    assert "All healthy." in said
    assert "0.0000 (0.0000-0.1206) of 28" in said


def test_an_unhealthy_task_is_named_and_its_text_is_not(
    tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1; several files are one table."""
    write_jsonl(tmp_path / "more.jsonl", [BROKEN])
    assert main(["verify", str(tasks), str(tmp_path / "more.jsonl")]) == 1
    said = capsys.readouterr().out
    line = next(line for line in said.splitlines() if "lost" in line)
    assert line.split()[:5] == ["unverifiable_gold", "math", "math.unparsable_gold", "1", "lost"]
    assert "marquess" not in said


def test_tests_that_do_not_notice_a_fault_are_listed_with_their_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The task stays, so the exit code is 0."""
    weak = {"task_id": 7, "text": "Say which of two numbers is larger.", "test_list": ["assert larger(1, 5) == 5"]}
    code = "def larger(a, b):\n    if a > b:\n        return a\n    return b"
    write_jsonl(tmp_path / "weak.jsonl", [weak | {"code": code}])
    assert main(["verify", str(tmp_path / "weak.jsonl"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["noted"], told["survived"]) == ({"weak_tests": ["7"]}, {"7": ["boundary"]})
    assert main(["verify", str(tmp_path / "weak.jsonl")]) == 0
    assert "7 (boundary)" in capsys.readouterr().out


def test_json_holds_the_same(tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts and intervals, by kind."""
    write_jsonl(tmp_path / "more.jsonl", [BROKEN])
    main(["verify", str(tasks), str(tmp_path / "more.jsonl"), "--json"])
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert said["unhealthy"] == {"unverifiable_gold": {"math": ["lost"]}}
    assert said["rules"] == {"unverifiable_gold": {"math": {"math.unparsable_gold": ["lost"]}}}
    assert said["verifiers"]["numeric"]["false_reject"]["of"] == 4
    assert said == cf.verify_tasks([tasks, tmp_path / "more.jsonl"]).to_dict() | {"seconds": said["seconds"]}


def test_the_first_tasks_of_each_kind(tasks: Path) -> None:
    """`limit` counts per kind, over all files."""
    assert cf.verify_tasks(tasks, limit=2).tasks == 2
    assert cf.verify_tasks([tasks, tasks], limit=5).tasks == 5


def test_the_size_of_partitions_changes_nothing(tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, rows in the row format, dicts; and the temporary folder is gone."""
    write_jsonl(tmp_path / "more.jsonl", [BROKEN, *SOUND])
    paths = [tasks, tmp_path / "more.jsonl"]
    parquet.write(cf.read(tmp_path / "more.jsonl"), tmp_path / "rows.parquet")
    given: list[Any] = [paths, [tasks, tmp_path / "rows.parquet"], [BROKEN, *SOUND]]
    before = [cf.verify_tasks(one).to_dict() | {"seconds": {}} for one in given]
    monkeypatch.setattr(laid, "_ROWS", 2)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert [cf.verify_tasks(one).to_dict() | {"seconds": {}} for one in given] == before
    assert before[0]["unhealthy"] == {"unverifiable_gold": {"math": ["lost"]}}
    assert before[0] == before[1]
    assert not list(tmp_path.glob("corpusforge-*"))


def test_rows_of_which_nothing_can_be_read_are_left_to_the_reader(tasks: Path, tmp_path: Path) -> None:
    """A Parquet file in the row format, damaged behind its schema."""
    whole = tmp_path / "rows.parquet"
    parquet.write(cf.read(tasks), whole)
    text = bytearray(whole.read_bytes())
    text[4:600] = bytes(596)
    whole.write_bytes(text)
    with pytest.raises(SourceError, match=r"rows\.parquet"):
        cf.verify_tasks(whole)


@pytest.mark.parametrize("option", ["--seconds", "--repeats", "--mutants", "--limit"])
@pytest.mark.parametrize("value", ["-1", "nan", "x", "0"])
def test_a_number_that_makes_no_sense_is_wrong_usage(
    option: str, value: str, tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and the option is named; no faults at all are a choice."""
    assert main(["verify", str(tasks), option, value]) == (0 if (option, value) == ("--mutants", "0") else 2)
    assert (option in capsys.readouterr().err) == ((option, value) != ("--mutants", "0"))


@pytest.mark.parametrize("seconds", ["inf", "-inf", "1e309"])
def test_endless_seconds_are_wrong_usage(seconds: str, tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tasks), "--seconds", seconds]) == 2
    assert "--seconds" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="seconds"):
        cf.verify_tasks(tasks, seconds=float(seconds))


def test_undecided_tasks_are_named_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was found out, so nothing is called healthy; a misspelt kind is told."""
    kinds = {"typo": "numerc", "own": "palindrome", "asked": "judge"}
    lines = [{"id": name, "prompt": name, "verifier": {"kind": kind, "rubric": "?"}} for name, kind in kinds.items()]
    write_jsonl(tmp_path / "odd.jsonl", lines)
    assert main(["verify", str(tmp_path / "odd.jsonl")]) == 1
    said = capsys.readouterr().out
    assert "did you mean 'numeric'?" in said
    assert "register it" in said
    assert "None unhealthy. 3 undecided" in said
    assert cf.verify_tasks(tmp_path / "odd.jsonl").to_dict()["undecided"] == {
        "judge.not_tried": {"judge": ["asked"]},
        "verify.unknown_kind": {"numerc": ["typo"], "palindrome": ["own"]},
    }
    assert "verify.unknown_kind" in cf.verify_tasks(tmp_path / "odd.jsonl", undecided="drop").undecided


@pytest.mark.parametrize("name", ["my tasks (1).jsonl", "aufgaben-ä.jsonl", "*.jsonl", "?asks*.jsonl", "ä.jsonl"])
def test_a_file_may_have_any_name(name: str, tmp_path: Path) -> None:
    """Globs too; rows are called by what of the name can be in an id."""
    write_jsonl(tmp_path / ("tasks-1.jsonl" if "*" in name else name), SOUND)
    assert cf.verify_tasks([tmp_path / name, tmp_path / name]).tasks == 8


def test_rows_in_memory(tasks: Path) -> None:
    """Dicts and tables, as for `check`."""
    assert cf.verify_tasks(SOUND).tasks == cf.verify_tasks(cf.read(tasks)).tasks == 4


def test_no_tasks_and_wrong_options_are_told(tmp_path: Path) -> None:
    """What to do about it, too."""
    write_jsonl(tmp_path / "chats.jsonl", [chat(1)])
    with pytest.raises(SourceError, match="no tasks found; rows of other kinds: sft 1") as told:
        cf.verify_tasks(tmp_path / "chats.jsonl")
    assert '{"kind": "numeric", "answer": "42"}' in told.value.hint
    (tmp_path / "none.jsonl").touch()
    with pytest.raises(SourceError, match="no records either"):
        cf.verify_tasks(tmp_path / "none.jsonl")
    with pytest.raises(ConfigError, match="did you mean 'repeats'"):
        cf.verify_tasks(SOUND, repeat=2)


def test_one_completion() -> None:
    """The notebook's verb."""
    task = {"verifier": {"kind": "numeric", "spec": {"answer": "72"}}}
    assert [cf.verify(task, said).outcome for said in ("So 72.", "So 73.")] == ["pass", "fail"]


def test_stored_answers_that_are_missing_are_caught(shared: Path) -> None:
    """50 of 1,040 rows of Reasoning Gym."""
    found = cf.verify_tasks(shared / "data" / "reasoning_gym", mutants=0, repeats=1)
    assert {check: {kind: len(ids) for kind, ids in kinds.items()} for check, kinds in found.unhealthy.items()} == {
        "unverifiable_gold": {"reasoning_gym": 50}
    }


def test_bfcl_is_read_with_its_answers(shared: Path) -> None:
    """They lie in a folder of their own."""
    assert cf.verify_tasks(shared / "data" / "bfcl_v4", mutants=0, repeats=1).verifiers["tool_call"]["healthy"] == 1340


def test_texts_that_a_killed_run_left_are_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    code = """
import time
from corpusforge.verify_tasks import _folder
with _folder() as folder:
    (folder / "part-00000.parquet").write_text("a text")
    print(folder, flush=True)
    time.sleep(600)
"""
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as killed:
        assert killed.stdout is not None
        left = Path(killed.stdout.readline().decode().strip())
        assert list(left.iterdir())
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        write_jsonl(tmp_path / "one.jsonl", [{"prompt": "6 x 7?", "verifier": {"kind": "numeric", "answer": "42"}}])
        swept.cache_clear()
        assert cf.verify_tasks(tmp_path / "one.jsonl").healthy
        assert left.exists()  # its owner lives
        killed.kill()
        killed.wait()
    swept.cache_clear()
    assert cf.verify_tasks(tmp_path / "one.jsonl").healthy
    assert list(temporary.iterdir()) == []
