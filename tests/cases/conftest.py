"""`pytest tests/cases --cases DIR` runs a folder of cases: those of shared/cases where nothing else is said.

A case must hold when the depth of all its stages is there (`_case.MUST`); else it is expected to fail, by stage. The
summary at the end counts both, and unexpected passes, per stage.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cases._case import load_cases
from tests.conftest import shared_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

_OUTCOMES = ("passed", "failed", "error", "xfailed", "xpassed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", metavar="DIR", help="folder of cases to run (default: shared/cases)")


def cases_folder(config: pytest.Config) -> Path | None:
    """The folder that was asked for, else the shared one; None where there is none."""
    asked = config.getoption("--cases", default=None)
    if asked:
        folder = Path(asked)
        if not list(folder.glob("*.expect.json")):
            raise pytest.UsageError(f"--cases {asked}: there are no cases (*.expect.json) in it")
        return folder.resolve()
    shared = shared_folder()
    return shared / "cases" if shared and (shared / "cases").is_dir() else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    folder = cases_folder(metafunc.config)
    if folder is None:
        reason = "no folder of cases: name one with --cases, or set CORPUSFORGE_SHARED"
        metafunc.parametrize("case", [pytest.param(None, id="none", marks=pytest.mark.skip(reason=reason))])
        return
    metafunc.parametrize("case", [_parameter(case) for case in load_cases(folder)])


def _parameter(case: Any) -> Any:
    later = case.later()
    marks = [pytest.mark.xfail(reason="; ".join(later), strict=False)] if later else []
    return pytest.param(case, id=case.id, marks=marks)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Cases per stage, what only should hold and does not, and words that nobody has mapped."""
    counts: dict[str, Counter[str]] = {}
    told: dict[str, list[str]] = {"should": [], "unknown": []}
    for outcome, report in _reports(terminalreporter):
        properties = list(report.user_properties)
        for name, value in properties:
            if name == "stage":
                counts.setdefault(value, Counter())[outcome] += 1
            elif name in told:
                told[name].append(f"{dict(properties)['case']}: {value}")
    if not counts:
        return
    terminalreporter.section("cases by stage")
    for stage, found in sorted(counts.items()):
        terminalreporter.line(f"{stage:24} " + ", ".join(f"{found[one]} {one}" for one in _OUTCOMES if found[one]))
    for name, title in (("should", "should hold, and does not"), ("unknown", "word that the runner does not know")):
        for line in told[name]:
            terminalreporter.line(f"{title}: {line}")


def _reports(terminalreporter: Any) -> Iterator[tuple[str, Any]]:
    for outcome in _OUTCOMES:
        for report in terminalreporter.stats.get(outcome, ()):
            if hasattr(report, "user_properties") and any(name == "case" for name, _ in report.user_properties):
                yield outcome, report
