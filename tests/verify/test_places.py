"""Where code runs: what the setting means, that nothing runs where the walls are not to be had, and no walls at all."""

from __future__ import annotations

import json
import marshal
import os
import resource
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corpusforge.cli import main
from corpusforge.doctor import doctor
from corpusforge.errors import ConfigError
from corpusforge.verify import assert_tests, sandbox, verify
from corpusforge.verify._verdict import Task
from corpusforge.verify.sandbox import Limits, _child, _container, _containers, _engines, _filters, _place
from corpusforge.verify.sandbox._unconfined import Unconfined

if TYPE_CHECKING:
    from collections.abc import Iterator

ADD = Task("assert_tests", {"tests": ["assert add(2, 3) == 5"]})
GOOD = "```python\ndef add(a, b):\n    return a + b\n```"
SHORT = Limits(seconds=1, patience=1.5)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No setting, and no memory of one."""
    monkeypatch.delenv(_place.SETTING, raising=False)
    monkeypatch.delenv(_engines.SETTING, raising=False)
    _place._place.cache_clear()
    _place.SAID.clear()
    yield
    _place._place.cache_clear()
    _place.SAID.clear()


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("", _place.Kernel),
        ("confined", _place.Kernel),
        (" confined ", _place.Kernel),
        ("container", _place.Boxes),
        ("container:registry.example:5000/python:3.12", _place.Boxes),
        ("unconfined", _place.Unwalled),
    ],
)
def test_the_setting_says_where(told: str, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_place.SETTING, told)
    assert type(_place.place()) is kind


@pytest.mark.parametrize(
    "told",
    [
        *("none", "off", "0", "container:", "unconfined:", "Unconfined", "confined,unconfined"),
        *(
            "container:-v=/:/host",
            "container:--privileged",
            "container: python",
            "container:a b",
            "container:a\x1b[31m",
        ),
    ],
)
def test_a_setting_that_is_none_stops_the_run(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_place.SETTING, told)
    with pytest.raises(ConfigError, match=_place.SETTING):
        assert_tests.check(ADD, GOOD)


def test_the_image_is_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_place.SETTING, "container:registry.example:5000/python@sha256:12")
    where = _place.place()
    assert isinstance(where, _place.Boxes)
    assert where.containers.image == "registry.example:5000/python@sha256:12"
    monkeypatch.setenv(_place.SETTING, "container")
    where = _place.place()
    assert isinstance(where, _place.Boxes)
    assert where.containers.image == "python:{}.{}-slim".format(*sys.version_info)


@pytest.mark.parametrize("told", ["", "container:python:3.11-slim"])
def test_code_is_not_run_where_its_walls_are_not_to_be_had(
    told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(_place.SETTING, told)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("corpusforge.verify.sandbox._kernel.available", lambda: "the kernel is too old")
    code = f"```python\ndef add(a, b):\n    return a + b\nopen({str(tmp_path / 'ran')!r}, 'w').close()\n```"
    reason = "no container engine is installed" if told else "the kernel is too old"
    with pytest.warns(RuntimeWarning, match=reason):
        verdict = assert_tests.check(ADD, code)
    assert (verdict.outcome, verdict.rule) == ("undecided", "code.unconfined")
    assert not (tmp_path / "ran").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert assert_tests.check_many([ADD], [code])[0].rule == "code.unconfined"


def test_an_engine_that_fails_is_named_with_what_it_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "engine"
    said = "echo starting >&2\necho Error: no such image here >&2\necho Try \\`engine help\\` >&2"
    script.write_text(f"#!/bin/sh\n{said}\nexit 125\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv(_place.SETTING, "container:some:image")
    monkeypatch.setenv(_engines.SETTING, str(script))
    assert _place.place().fault() == "a container of some:image does not start: Error: no such image here"


def engine_that(says: str, folder: Path) -> str:
    script = folder / "engine"
    script.write_text(f"#!/bin/sh\n{says}\n", encoding="utf-8")
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (
            "echo docker: no such image >&2; echo >&2; echo \"Run 'docker run --help' for more information\" >&2",
            "no such",
        ),
        ("echo Unknown option: -P >&2; echo usage: python3 >&2; echo 'Try `python -h'\\'' for more' >&2", "option: -P"),
        ("exec yes", "it says what it was not asked"),
        ("yes 'a long line of errors' | head -c 9000000 >&2", "a long line"),
        ("printf '\\033[31mred\\n' >&2", r"\[31mred"),
        ("sleep 1000", "it says nothing"),
        ("exit 0", "it says nothing"),
    ],
)
def test_an_engine_that_talks_nonsense_or_hangs_is_left_alone(
    says: str, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("_PATIENCE", "_LEAVING"):
        monkeypatch.setattr(_container, name, 0.5)
    monkeypatch.setenv(_place.SETTING, "container:some:image")
    monkeypatch.setenv(_engines.SETTING, engine_that(says, tmp_path))
    start = time.monotonic()
    with pytest.warns(RuntimeWarning, match=f"some:image does not start: .*{reason}"):
        assert assert_tests.check(ADD, GOOD).rule == "code.unconfined"
    assert time.monotonic() - start < 20


def test_an_engine_that_fails_again_and_again_is_given_a_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    walls = _containers.Containers((engine_that("echo x >> $0.asked; exit 1", tmp_path),), "some:image")
    for _ in range(3 * _containers._FAILURES):
        with pytest.raises(RuntimeError):
            sandbox.run_in(walls.child, "print(1)")
    asked = (tmp_path / "engine.asked").read_text(encoding="utf-8").count("x")
    assert asked == _containers._FAILURES
    monkeypatch.setattr(_containers, "_REST", 0.0)
    with pytest.raises(RuntimeError, match="it says nothing"):
        sandbox.run_in(walls.child, "print(1)")


def test_an_engine_that_is_no_command_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_place.SETTING, "container:some:image")
    monkeypatch.setenv(_engines.SETTING, "podman --runtime 'crun")
    with pytest.raises(ConfigError, match=f"{_engines.SETTING}.*is no command"):
        assert_tests.check(ADD, GOOD)


@pytest.mark.parametrize("told", ["confined", "unconfined"])
@pytest.mark.filterwarnings("ignore:CORPUSFORGE_SANDBOX")
def test_a_process_may_have_more_files_open_than_select_knows(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if told == "confined" and sandbox.available() is not None:
        pytest.skip("code cannot be confined here")
    monkeypatch.setenv(_place.SETTING, told)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < 1300:
        pytest.skip("so many cannot be opened here")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1300, most))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        rolls = GOOD.replace("def", "import random\ndef", 1)
        assert {one.rule for one in assert_tests.check_many([ADD] * 2, [GOOD, rolls])} == {"code.tests"}
    finally:
        for one in held:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.filterwarnings("ignore:CORPUSFORGE_SANDBOX")
def test_tests_that_ask_without_end_are_ended(unwalled: Path) -> None:
    floods = """
import os, threading, time
threading.Thread(target=add, args=(1, 1), daemon=True).start()
time.sleep(0.3)
frame = (65536).to_bytes(4, "big") + bytes(65536)
while True:
    for at in (3, 4):
        try:
            os.write(at, frame)
        except OSError:
            pass
assert add(1, 1) == 2"""
    deaf = "```python\nimport time\ndef add(a, b):\n    time.sleep(60)\n```"
    limits = Limits(seconds=9, patience=3)
    assert assert_tests.check_many([Task("assert_tests", {"tests": [floods]})], [deaf], limits)[0].rule == "code.output"


def test_threads_say_it_once_together(unwalled: Path) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(lambda _: assert_tests.check(ADD, GOOD).outcome == "pass", range(8)))
    assert len([one for one in seen if _place.SETTING in str(one.message)]) == 1


def test_an_engine_is_asked_for_by_words_that_they_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _engines.found() is None
    (tmp_path / "podman").touch(mode=0o755)
    assert _engines.found() == ("podman",)
    monkeypatch.setenv(_engines.SETTING, "podman --runtime 'my crun'")
    assert _engines.found() == ("podman", "--runtime", "my crun")
    limits = Limits(memory_mib=100, scratch_mib=8)
    told = _engines.start(("podman", "--runtime=runc"), "python:3.11-slim", "corpusforge-1", limits, "obey()")
    head, image = told[: told.index("python:3.11-slim")], told[told.index("python:3.11-slim") :]
    assert head == [
        *("podman", "--runtime=runc", "run", "--rm", "--interactive", "--read-only", "--name=corpusforge-1"),
        *("--pull=never", "--log-driver=none", "--network=none", "--ipc=none", "--user=0:0", "--cap-drop=ALL"),
        *("--cap-add=SETUID", "--cap-add=SETGID", "--cap-add=KILL", "--security-opt=no-new-privileges"),
        *("--pids-limit=64", "--memory=236m", "--memory-swap=236m"),
        "--tmpfs=/scratch:rw,noexec,nosuid,nodev,size=8m,mode=1777",
        *("--tmpfs=/tmp:ro,size=4k", "--tmpfs=/run:ro,size=4k", "--tmpfs=/var/tmp:ro,size=4k"),
        *("--env=PYTHONHASHSEED=0", "--env=HOME=/scratch", "--env=TMPDIR=/scratch", "--env=LANG=C.UTF-8"),
        *("--workdir=/", "--entrypoint=python3"),
    ]
    assert image[1:-1] == ["-P", "-s", "-S", "-B", "-c"]
    assert image[-1].endswith("\nobey()")


def test_what_is_sent_to_a_container_suits_every_version_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_place.SETTING, "container:some:image")
    monkeypatch.setenv(_engines.SETTING, "sh")
    plan = {"code": "import random", "before": ["import math"]}
    sent = bytes(_place.place().child("_solver", plan, Limits()).outbox)
    code, names = marshal.loads(sent[8:])
    assert isinstance(code, str)
    assert code.startswith("import random; random.seed(0)\n")
    assert names == {"role": "corpusforge.verify.trial._solver", "plan": plan}
    assert isinstance(_child.MAIN, str)


def test_filters_for_containers_are_made_for_every_machine() -> None:
    alone, forking = _filters.boxed(), _filters.boxed(alone=False)
    assert set(alone) == set(forking) == {"x86_64", "aarch64"}
    assert all(len(alone[machine]) > len(forking[machine]) > len(_filters.narrow()) for machine in alone)


@pytest.mark.filterwarnings("default")
def test_the_command_line_says_why_code_is_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = tmp_path / "tasks.jsonl"
    verifier = {"kind": "assert_tests", "spec": {**ADD.spec, "reference": "def add(a, b):\n    return a + b"}}
    task.write_text(json.dumps({"prompt": "Write add(a, b).", "verifier": verifier}) + "\n", encoding="utf-8")
    monkeypatch.setenv("PATH", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("corpusforge.verify.sandbox._kernel.available", lambda: "the kernel is too old")
        assert main(["verify", str(task)]) == 1
        told = capsys.readouterr()
        assert "warning: code is not run: the kernel is too old\n" in told.err
        assert "code.unconfined" in told.out
    monkeypatch.setenv(_place.SETTING, "container:some:image")  # a place that is named has to do
    assert main(["verify", str(task)]) == 4
    reason = "no container engine is installed: docker, podman or nerdctl"
    assert f"error[config]: code of tasks cannot run where {_place.SETTING} says: {reason}\n" in capsys.readouterr().err
    monkeypatch.setenv(_place.SETTING, "nothing")
    assert main(["verify", str(task)]) == 4
    assert f"error[config]: {_place.SETTING}: 'nothing'" in capsys.readouterr().err


def test_an_engine_that_is_not_there_stops_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(_place.SETTING, "container:some:image")
    for told in ("dockr", str(tmp_path / "engine"), str(tmp_path)):
        monkeypatch.setenv(_engines.SETTING, told)
        with pytest.raises(ConfigError, match=f"{_engines.SETTING}.*is no command that is here"):
            assert_tests.check(ADD, GOOD)


def test_doctor_looks_at_where_code_would_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def told() -> tuple[str, str]:
        return next((look.status, look.found) for look in doctor(tmp_path).looks if look.what == "code of tasks")

    monkeypatch.setattr("corpusforge.verify.sandbox._kernel.available", lambda: "the kernel is too old")
    assert told() == ("note", "is not run: the kernel is too old")
    monkeypatch.setenv(_place.SETTING, "confined")
    assert told() == ("BAD", "is not run: the kernel is too old")
    monkeypatch.setenv(_place.SETTING, "rubbish")
    assert told() == ("BAD", f"{_place.SETTING}: 'rubbish' is no place to run code in")
    monkeypatch.setenv(_place.SETTING, "unconfined")
    assert told() == ("note", "runs without walls")


@pytest.fixture
def unwalled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No walls, because the environment says so; its scratch folders are in the folder that is returned."""
    monkeypatch.setenv(_place.SETTING, "unconfined")
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_without_walls_code_runs_and_it_is_said_once(unwalled: Path) -> None:
    with pytest.warns(RuntimeWarning, match="can do whatever you can"):
        assert assert_tests.check(ADD, GOOD).rule == "code.tests"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row = {"verifier": {"kind": "assert_tests", "spec": dict(ADD.spec)}}
        assert verify(row, "def add(a, b):\n    return a - b").rule == "code.tests"
        assert verify(row, "def add(a, b):\n    raise SystemExit(0)").outcome == "fail"
        assert verify(row, "import os; os._exit(0)").rule == "code.exited"
    assert list(unwalled.iterdir()) == []


@pytest.mark.filterwarnings("ignore:CORPUSFORGE_SANDBOX")
@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("raise SystemExit(7)", "error"),
        ("import ctypes; ctypes.string_at(0)", "crashed"),
        ("while True: pass", "timeout"),
        ("import time; time.sleep(60)", "timeout"),
        ("while True: print('x' * 1000)", "output"),
        ("x = bytearray(2**30)", "error"),
        ("import time\nfor n in range(40):\n    open(f'f{n}', 'wb').write(b'x' * 2**20)\ntime.sleep(9)", "disk"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed"),
        ("print(6 * 7)", "ok"),
    ],
)
def test_limits_hold_without_walls(code: str, outcome: str, unwalled: Path) -> None:
    limits = Limits(seconds=1, patience=1.5 if outcome == "timeout" else 30)
    assert sandbox.run_in(Unconfined, code, limits=limits).outcome == outcome
    assert list(unwalled.iterdir()) == []


@pytest.mark.parametrize(("code", "outcome"), [("raise SystemExit(7)", "error"), ("while True: pass", "timeout")])
def test_limits_hold_where_a_system_cannot_wait_without_reaping(
    code: str, outcome: str, unwalled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "waitid")
    assert sandbox.run_in(Unconfined, code, limits=SHORT).outcome == outcome
    assert list(unwalled.iterdir()) == []


@pytest.mark.filterwarnings("ignore:CORPUSFORGE_SANDBOX")
def test_what_it_started_ends_with_it(unwalled: Path) -> None:
    program = "import os, time\npid = os.fork()\nif pid:\n    print(pid, flush=True)\ntime.sleep(60)"
    ran = sandbox.run_in(Unconfined, program, limits=SHORT)
    assert ran.outcome == "timeout"
    for _ in range(50):
        if not Path(f"/proc/{int(ran.stdout)}/cwd").exists():
            return
        time.sleep(0.1)
    pytest.fail("a process is left")


@pytest.mark.filterwarnings("ignore:CORPUSFORGE_SANDBOX")
def test_random_numbers_begin_the_same_without_walls(unwalled: Path) -> None:
    tests = ["import random\nassert f() == random.random()"]
    code = "```python\nimport random\ndef f():\n    return random.random()\n```"
    assert assert_tests.check(Task("assert_tests", {"tests": tests}), code).outcome == "pass"


def test_no_walls_are_asked_for_by_the_environment_alone(unwalled: Path) -> None:
    task = {"verifier": {"kind": "assert_tests", "spec": {**ADD.spec, "sandbox": "unconfined", "environ": {}}}}
    del os.environ[_place.SETTING]
    if sandbox.available() is not None:
        pytest.skip("code cannot be confined here")
    code = f"```python\ndef add(a, b):\n    return a + b\nopen({str(unwalled / 'ran')!r}, 'w')\n```"
    assert verify(task, code).outcome == "fail"
    assert not (unwalled / "ran").exists()
