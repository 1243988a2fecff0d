"""The nightly run: what it publishes, what it refuses, whom it tells, and that it leaves no process behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from corpusforge.errors import BusyError
from corpusforge.io import lock, releases
from corpusforge.io.dvc import forget_the_dead
from corpusforge.io.notify import notify
from corpusforge.nightly import exit_code, nightly
from corpusforge.project import Project
from tests.projects import chat, environment, init_dvc, make_project, write_jsonl
from tests.test_pipeline import edit_params


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    made = make_project(tmp_path_factory.mktemp("nightly"), {"forum": [chat(i) for i in range(40)]})
    init_dvc(made.root)
    return made


def processes(root: Path) -> list[int]:
    """Processes that work in the project's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink() == root and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


def start(project: Project) -> subprocess.Popen[bytes]:
    """A nightly run in another process, once its first stage is running."""
    code = (
        "import json, pathlib, sys; from corpusforge.nightly import *; from corpusforge.project import Project; "
        "result = nightly(Project(pathlib.Path(sys.argv[1]))); print(json.dumps(result)); sys.exit(exit_code(result))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(project.root)], stdout=subprocess.PIPE, env=environment()
    )
    for _ in range(6000):
        if any(project.root.glob("data/.*.unfinished-*")):
            return process
        time.sleep(0.01)
    pytest.fail("no stage began")


def test_the_first_run_publishes_and_the_second_says_same_corpus(project):
    first = nightly(project, accept=True)
    assert (first["status"], first["rows"], first["accepted"]) == ("published", 40, True), first
    assert first["ran"][0] == "ingest"
    second = nightly(Project(project.root))
    assert second["status"] == "same corpus"
    assert set(second["ran"]) <= {"gate_data"}  # the accepted baseline is new
    assert exit_code(first) == exit_code(second) == 0
    assert json.loads(json.dumps(second)) == second


def test_a_grown_source_is_published_with_what_changed(project):
    write_jsonl(project.root / "raw" / "forum.jsonl", [chat(i) for i in range(44)])
    result = nightly(Project(project.root))
    assert (result["status"], result["added"], result["removed"]) == ("published", 4, 0), result


def test_a_worse_corpus_is_refused_and_the_command_is_told(project, tmp_path):
    before = releases.current(project)
    write_jsonl(project.root / "raw" / "forum.jsonl", [chat(i) for i in range(9)])
    told = tmp_path / "told.json"
    save = f"{sys.executable} -c 'import sys, pathlib; pathlib.Path(\"{told}\").write_text(sys.stdin.read())'"
    result = nightly(Project(project.root), on_failure=save)
    assert (result["status"], exit_code(result), result["on_failure"]) == ("gate failed", 1, "done"), result
    assert "baseline.source.forum" in [check["name"] for check in result["failed_checks"]]
    assert json.loads(told.read_text())["failed_stage"] == "gate_data"
    assert releases.current(project) == before
    write_jsonl(project.root / "raw" / "forum.jsonl", [chat(i) for i in range(44)])


def test_a_failing_stage_is_named_with_its_message(project):
    text = (project.root / "params.yaml").read_text()
    edit_params(project, lambda p: p["ingest"].update(strict=True))
    (project.root / "raw" / "forum.jsonl").write_text('{"id": "x", "messages": "no list"}\n')
    result = nightly(Project(project.root))
    assert (result["status"], result["failed_stage"], exit_code(result)) == ("failed", "ingest", 3), result
    assert "raw/forum.jsonl, line 1" in result["message"]
    (project.root / "params.yaml").write_text(text)
    write_jsonl(project.root / "raw" / "forum.jsonl", [chat(i) for i in range(44)])


def test_wrong_params_are_a_failed_run_not_an_exception(project):
    text = (project.root / "params.yaml").read_text()
    (project.root / "params.yaml").write_text(text.replace("dedupe:", "dedup:"))
    result = nightly(Project(project.root), on_failure="no-such-command")
    assert (result["status"], result["on_failure"]) == ("failed", "failed: FileNotFoundError")
    assert "dedup" in result["message"]
    (project.root / "params.yaml").write_text(text)


def test_a_second_run_at_once_is_refused(project):
    with lock.hold(project.root, "nightly"), pytest.raises(BusyError, match="nightly is already running"):
        nightly(project)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_run_leaves_no_process_and_the_release(project, number):
    before = releases.current(project)
    write_jsonl(project.root / "raw" / "forum.jsonl", [chat(i) for i in range(50 + int(number))])
    process = start(project)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    if number == signal.SIGTERM:
        assert process.returncode == 130
        assert json.loads(output)["status"] == "stopped"
    for _ in range(500):
        if not processes(project.root):
            break
        time.sleep(0.01)
    assert processes(project.root) == []
    assert releases.current(project) == before
    if number == signal.SIGKILL:  # the last: what DVC and the stage left behind is in nobody's way
        again = nightly(Project(project.root))
        assert again["status"] == "published", again


@pytest.mark.skipif(sys.platform != "linux", reason="zombies")
def test_dvc_entries_of_a_process_that_nobody_waited_for_are_forgotten(tmp_path):
    path = tmp_path / ".dvc" / "tmp" / "rwlock"
    path.parent.mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", ""]) as zombie:
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        held = {"read": {}, "write": {"data/ingest": {"pid": zombie.pid, "cmd": "dvc repro"}}}
        path.write_text(json.dumps(held))
        forget_the_dead(tmp_path)
        assert not path.exists()
        held["read"]["raw"] = [{"pid": os.getpid(), "cmd": "dvc repro"}]
        path.write_text(json.dumps(held))
        forget_the_dead(tmp_path)
        assert path.exists()


class Hook(BaseHTTPRequestHandler):
    """Takes what is posted; answers 500 at /broken."""

    got: list[bytes] = []  # noqa: RUF012

    def do_POST(self) -> None:
        self.got.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(500 if self.path == "/broken" else 204)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def test_a_webhook_gets_the_result_and_its_failure_is_told():
    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        assert notify(address, {"status": "failed"}) == "done"
        assert json.loads(Hook.got[-1]) == {"status": "failed"}
        assert notify(f"{address}/broken", {}) == "failed: HTTP 500"
        server.shutdown()
    assert notify(address, {}).startswith("failed: ")
    assert notify("false", {}) == "failed: exit code 1"


@pytest.mark.parametrize(
    "target", ["http://[bad", "https://exa mple.org/x", "http://127.0.0.1:1/", " ", "'open", "no-such"]
)
def test_a_target_that_is_wrong_is_told_and_never_raised(target):
    assert notify(target, {}).startswith("failed: ")


def test_a_command_that_hangs_with_a_child_of_its_own_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr("corpusforge.io.notify.SECONDS", 0.5)
    monkeypatch.chdir(tmp_path)
    began = time.monotonic()
    assert notify("sh -c 'sleep 60 & sleep 60'", {}) == "failed: TimeoutExpired"
    assert time.monotonic() - began < 20
    if sys.platform == "linux":
        time.sleep(0.2)
        assert processes(tmp_path) == []
