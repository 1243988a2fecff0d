"""Kinds of users: registered by a decorator, or found as an entry point in whatever process asks."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.projects import make_project

from corpusforge import methods
from corpusforge.errors import ConfigError, MissingExtra, StaleLockError
from corpusforge.verify import KINDS, Verdict, _plugins, failed, kinds, passed, register, text_of, verify, verify_many

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODULE = """
from corpusforge.verify import failed, passed, register, text_of

def shout(task, completion):
    return passed("shout.loud") if text_of(completion).isupper() else failed("shout.quiet")

def many(tasks, completions):
    return [passed("both.many")] * len(tasks)

@register("both", many=many)
def both(task, completion):
    return passed("both.one")
"""
ASK = "from corpusforge.verify import verify; print(verify({'verifier': {'kind': 'shout', 'spec': {}}}, 'HEY').outcome)"


@pytest.fixture(autouse=True)
def no_traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_plugins, "_own", {})
    _plugins._points.cache_clear()
    yield
    _plugins._points.cache_clear()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an installed package that brings verifiers."""
    points = "shout = loud_checks:shout\nboth = loud_checks:both\nbroken = loud_checks:absent\n"
    package(tmp_path, "loud-checks", points)
    (tmp_path / "loud_checks.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "loud_checks", raising=False)
    return tmp_path


def package(folder: Path, name: str, points: str, version: str = "1.0") -> None:
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[corpusforge.verifiers]\n{points}", encoding="utf-8")


def task(kind: str, **spec: Any) -> dict[str, Any]:
    return {"verifier": {"kind": kind, "spec": spec}}


def test_a_registered_kind_is_checked_and_listed() -> None:
    @register("longer")
    def longer(task: Any, completion: Any) -> Verdict:
        return (passed if len(text_of(completion)) > task.spec["than"] else failed)("longer.length")

    verdicts = verify_many([task("longer", than=2)] * 2, ["abc", "a"])
    assert [verdict.outcome for verdict in verdicts] == ["pass", "fail"]
    assert all(verdict.seconds > 0 for verdict in verdicts)
    assert kinds() == (*KINDS, "longer")


def test_a_function_for_many_gets_all_at_once() -> None:
    seen = []

    def many(tasks: list[Any], completions: list[Any]) -> list[Verdict]:
        seen.append(completions)
        return [passed("lot.all")] * len(tasks)

    register("lot", many=many)(lambda task, completion: failed("lot.one"))
    assert {verdict.rule for verdict in verify_many([task("lot")] * 3, ["a", "b", "c"])} == {"lot.all"}
    assert seen == [["a", "b", "c"]]
    assert verify(task("lot"), "a").rule == "lot.one"


@pytest.mark.parametrize(
    "answer",
    [
        None,
        True,
        "pass",
        Verdict("maybe", 1.0, "odd.rule"),
        Verdict("pass", 2.0, "odd.rule"),
        Verdict("pass", float("nan"), "odd.rule"),
        Verdict("fail", 0.0, "the row said: my secret"),
        ZeroDivisionError("my secret"),
    ],
)
def test_what_is_no_verdict_is_undecided(answer: Any) -> None:
    def odd(task: Any, completion: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    register("odd", many=lambda tasks, completions: [odd(None, None)] * len(tasks))(odd)
    found = [verify(task("odd"), "x"), *verify_many([task("odd")] * 2, ["x", "y"])]
    assert {(verdict.outcome, verdict.rule, verdict.score) for verdict in found} == {("undecided", "odd.error", None)}


def test_a_batch_function_that_loses_one_is_not_believed() -> None:
    register("short", many=lambda tasks, completions: [passed("short.many")])(lambda task, said: failed("short.one"))
    assert [verdict.rule for verdict in verify_many([task("short")] * 2, ["x", "y"])] == ["short.one"] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_built_in_kind_cannot_be_replaced(kind: str) -> None:
    with pytest.raises(ConfigError, match="is built in"):
        register(kind)(lambda task, completion: passed("mine.all"))


@pytest.mark.parametrize("name", ["", "My Kind", "a.b", "verify", "unreadable", "x" * 61, 5, None])
def test_a_name_has_to_be_one(name: Any) -> None:
    with pytest.raises(ConfigError, match="the name of a verifier"):
        register(name)(lambda task, completion: passed("mine.all"))


def test_a_cell_may_run_again_but_a_name_belongs_to_one_function() -> None:
    def first(task: Any, completion: Any) -> Verdict:
        return passed("twice.first")

    def second(task: Any, completion: Any) -> Verdict:
        return passed("twice.second")

    assert register("twice")(register("twice")(first)) is first
    with pytest.raises(ConfigError, match="registered already"):
        register("twice")(second)


def test_an_entry_point_is_loaded_when_it_is_asked_for(installed: Path) -> None:
    assert "shout" in kinds()
    assert "loud_checks" not in sys.modules
    assert verify(task("numeric", answer="5"), "5").outcome == "pass"
    assert "loud_checks" not in sys.modules
    assert [verdict.outcome for verdict in verify_many([task("shout")] * 2, ["HEY", "hey"])] == ["pass", "fail"]
    assert {verdict.rule for verdict in verify_many([task("both")] * 2, ["x", "y"])} == {"both.many"}


def test_an_entry_point_works_in_another_process(installed: Path) -> None:
    paths = [str(installed), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    ran = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout == "pass\n"


def test_an_entry_point_that_cannot_be_loaded_is_a_fault_of_the_installation(installed: Path) -> None:
    with pytest.raises(MissingExtra, match=r"the verifier `broken` cannot be loaded \(AttributeError\)"):
        verify(task("broken"), "x")


def test_two_packages_with_one_name_are_refused(installed: Path) -> None:
    package(installed, "other-checks", "shout = other_checks:shout\n")
    with pytest.raises(ConfigError, match="two packages bring the verifier `shout`"):
        verify(task("shout"), "x")


def test_the_methods_lock_names_the_packages_that_bring_kinds(installed: Path, tmp_path: Path) -> None:
    """In the entries of stages that verify; another version makes the lock stale."""
    (tmp_path / "project").mkdir()
    project = make_project(tmp_path / "project", {})
    entries = methods.current(project)
    named = [stage for stage, entry in entries.items() if "loud-checks" in entry.get("libraries", {})]
    assert (named, entries["health"]["libraries"]["loud-checks"]) == (["health"], "1.0")
    methods.check(project, "health")
    (installed / "loud_checks-1.0.dist-info").rename(tmp_path / "gone")
    package(installed, "loud-checks", "shout = loud_checks:shout\n", version="1.1")
    with pytest.raises(StaleLockError, match=r"health was recorded with loud-checks 1\.0, here it is 1\.1"):
        methods.check(project, "health")
    methods.sync(project)
    methods.check(project, "health")
