"""The command line: exit codes, streams, JSON on every command, and no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from corpusforge.cli import main
from corpusforge.cli.commands import app
from corpusforge.cli.output import counts
from tests.projects import chat, environment, make_project, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.project import Project


def commands() -> dict[str, Any]:
    """Every command by its name, subcommands as `key new`."""
    found = {command.name or command.callback.__name__: command for command in app.registered_commands}
    for group in app.registered_groups:
        found |= {f"{group.name} {command.name}": command for command in group.typer_instance.registered_commands}
    return found


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = make_project(tmp_path / "p", {"a": [chat(n) for n in range(20)] + [chat(3)]})
    monkeypatch.chdir(made.root)
    return made


@pytest.mark.parametrize("name", commands())
def test_every_command_has_json_and_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--json" in shown
    assert (commands()[name].help or commands()[name].callback.__doc__).split()[0] in shown


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    from importlib.metadata import version

    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == version("corpusforge")


@pytest.mark.parametrize(
    "arguments", [["stag"], ["stage"], ["stage", "nonsense"], ["check"], ["check", "x", "--field", "a"]]
)
def test_wrong_usage_exits_with_2_and_says_so_on_stderr(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err


def test_an_error_names_its_code_message_and_hint_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sync"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("error[project]: ")
    assert "\n  `corpusforge init DIR` makes one" in said
    assert "Traceback" not in said


def test_a_wrong_parameter_exits_with_4_and_names_file_and_line(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project.root / "params.yaml"
    path.write_text(path.read_text() + "dedup:\n  threshold: 0.8\n")
    assert main(["stage", "ingest"]) == 4
    assert "params.yaml:" in capsys.readouterr().err


def test_an_unforeseen_fault_exits_with_70_and_tells_no_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_args: object, **_options: object) -> None:
        raise ValueError("the text of a row")

    monkeypatch.delenv("CORPUSFORGE_DEBUG", raising=False)
    monkeypatch.setattr("corpusforge.io.releases.publish", broken)
    monkeypatch.setattr("corpusforge.cli.commands._find", lambda _start: None)
    assert main(["publish"]) == 70
    said = capsys.readouterr().err
    assert "error[internal]: ValueError in" in said
    assert "the text of a row" not in said


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(28, "No space left on device"), "the disk is full"),
        (OSError(30, "Read-only file system", "data"), "Read-only file system: data"),
        (PermissionError(13, "Permission denied", "data"), "Permission denied: data"),
    ],
)
def test_what_the_disk_refuses_is_an_error_of_the_family_with_a_next_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: OSError, says: str
) -> None:
    def refused(_start: object) -> None:
        raise error

    monkeypatch.setattr("corpusforge.cli.commands._find", refused)
    assert main(["publish"]) == 3
    message, hint, *rest = capsys.readouterr().err.splitlines()
    assert (message, rest) == (f"error[storage]: {says}", [])
    assert hint.strip()


def test_an_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_start: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("corpusforge.cli.commands._find", interrupted)
    assert main(["publish"]) == 130


def test_stages_run_and_count_in_one_line(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stage", "ingest"]) == 0
    assert main(["stage", "dedupe"]) == 0
    ingest, dedupe = capsys.readouterr().out.splitlines()
    assert ingest == "ingest: 21 records = 21 with rows + 0 quarantined; 21 rows"
    assert dedupe == "dedupe: 21 in = 20 kept + 1 dropped (exact_duplicate 1)"


def test_the_line_of_a_stage_says_how_many_rows_it_changed() -> None:
    metrics = {"in": 3, "kept": 3, "dropped": 0, "changed": 2, "reasons": {}}
    assert counts("scrub", metrics) == "scrub: 3 in = 3 kept + 0 dropped; 2 changed"


def test_a_gate_without_checks_says_why_in_its_line() -> None:
    assert counts("gate_models", {"passed": 0, "failed": 0, "notes": ["why"]}).endswith("(why)")
    assert counts("gate_models", {"passed": 2, "failed": 0, "notes": ["why"]}) == "gate_models: 2 passed, 0 failed"


def test_trace_tells_the_kept_row_and_exits_with_1_for_an_unknown_id(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [main(["stage", name]) for name in ("ingest", "dedupe")] == [0, 0]
    capsys.readouterr()
    assert main(["trace", "a#21", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"][0]["kept_row"]["row_id"] == "a#4"
    assert main(["trace", "nobody"]) == 1


def test_check_exits_with_1_only_when_something_is_fatal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_jsonl(tmp_path / "good.jsonl", [chat(n) for n in range(5)])
    (tmp_path / "bad.jsonl").write_text('{"messages": [\n')
    assert main(["check", str(tmp_path / "good.jsonl")]) == 0
    assert "Nothing fatal" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "bad.jsonl"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["passed"] is False


def test_check_takes_fields_from_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "odd.csv").write_text("frage,antwort\nWie spät ist es?,Es ist genau halb neun am Abend.\n")
    fields = ["--field", "prompt=frage", "--field", "completion=antwort"]
    assert main(["check", str(tmp_path / "odd.csv"), *fields, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 1


def test_sync_says_what_changed_and_then_nothing(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    (project.root / "methods.lock.json").unlink()
    assert main(["sync"]) == 0
    assert main(["sync", "--json"]) == 0
    first, second = capsys.readouterr().out.split("\n", 1)
    assert first == "methods.lock.json written"
    assert json.loads(second) == {"changed": []}


def test_a_key_is_made_once_and_told_only_by_its_fingerprint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "deep" / "key"
    assert main(["key", "new", str(place), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert place.stat().st_mode & 0o077 == 0
    assert place.read_text().strip() not in json.dumps(made)
    assert main(["key", "fingerprint", f"file:{place}"]) == 0
    assert capsys.readouterr().out.strip() == made["fingerprint"]
    assert main(["key", "new", str(place)]) == 4


def test_the_line_that_a_new_key_gives_fits_under_scrub(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["key", "new", "key"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    path = project.root / "params.yaml"
    path.write_text(path.read_text().replace("scrub:\n", f"scrub:\n{line}\n").replace("  key: public-demo\n", ""))
    assert main(["key", "fingerprint", "--project", str(project.root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["key"] == f"file:{tmp_path / 'key'}"


def test_params_that_are_no_yaml_are_told_with_their_line_by_sync(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project.root / "params.yaml"
    path.write_text(path.read_text() + "params.yaml: scrub: {key: public-demo}\n")
    assert main(["sync"]) == 4
    assert "params.yaml:" in (said := capsys.readouterr().err)
    assert "not YAML" in said


def test_doctor_exits_with_1_when_the_key_is_missing(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    path = project.root / "params.yaml"
    path.write_text(path.read_text().replace("public-demo", "env:NO_SUCH_KEY_HERE"))
    assert main(["doctor", "--json"]) == 1
    looks = {look["what"]: look for look in json.loads(capsys.readouterr().out)["looks"]}
    assert looks["key"]["status"] == "BAD"
    assert "corpusforge key new" in looks["key"]["todo"]


@pytest.mark.parametrize(
    ("layer", "status", "said"),
    [
        ("my_rewards:polite", "OK", "outcome, process, my_rewards:polite"),
        ("my_rewards:rude", "BAD", "no function 'rude'"),
        ("no_such_rewards:f", "BAD", "cannot be imported"),
        ("polite", "BAD", "not known to a stage"),
        ("my_rewards:bare", "BAD", "cannot be called"),
    ],
)
def test_doctor_says_whether_the_layers_of_the_reward_can_be_had(
    layer: str, status: str, said: str, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before a training, not in it."""
    code = "def polite(task, completion, *, words=()):\n    return 1\n\n\ndef bare(task, completion):\n    return 1\n"
    (project.root / "my_rewards.py").write_text(code)
    own = f'{{process: {{}}, own: {{"{layer}": {{params: {{words: [please]}}}}}}}}'
    with (project.root / "params.yaml").open("a") as file:
        file.write(f"\nmodel: {{name: some/model}}\ntrain_sft: {{}}\nrollout: {{}}\ntrain_grpo: {{rewards: {own}}}\n")
    main(["doctor", "--json"])
    looks = {look["what"]: look for look in json.loads(capsys.readouterr().out)["looks"]}
    assert looks["rewards"]["status"].upper() == status
    assert said in looks["rewards"]["found"]


def test_releases_of_a_project_without_any_is_an_empty_list(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["releases", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_the_command_itself_loads_nothing_heavy_for_help() -> None:
    code = "import sys; from corpusforge.cli import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert not loaded & {"polars", "pyarrow", "numba", "datasets", "dvc", "presidio_analyzer", "torch", "duckdb"}


def test_a_pipe_that_closes_early_is_no_fault(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [chat(n) for n in range(3)])
    line = f"{sys.executable} -m corpusforge inspect a.jsonl | true"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, env=environment(), check=False
    )
    assert "Traceback" not in done.stderr
    assert "error[" not in done.stderr


def test_no_colour_codes_reach_a_pipe(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [chat(n) for n in range(3)])
    command = [sys.executable, "-m", "corpusforge", "inspect", "a.jsonl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, env={**os.environ, "TERM": "xterm"})
    assert b"\x1b" not in done.stdout
