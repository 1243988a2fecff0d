"""Fixtures that every test folder may use."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpusforge.project import Project

ROOT = Path(__file__).resolve().parent.parent

# Deterministic examples: a failure that CI shows is the failure that a person gets.
settings.register_profile(
    "default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
# Other examples every time, and many: `make deep`.
EXAMPLES = int(os.environ.get("CORPUSFORGE_EXAMPLES", "20000"))
settings.register_profile("deep", settings.get_profile("default"), derandomize=False, max_examples=EXAMPLES)
settings.load_profile("default")


def shared_folder() -> Path | None:
    """The folder with public data sets, if this machine has it."""
    place = Path(os.environ.get("CORPUSFORGE_SHARED", ROOT.parent / "shared"))
    return place if (place / "data").is_dir() else None


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of public data sets (`data/`) and cases (`cases/`); the test is skipped where it is absent."""
    place = shared_folder()
    if place is None:
        pytest.skip("no folder of public data sets: set CORPUSFORGE_SHARED")
    return place


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A small finished build, made once (see tests/corpus.py); a test that changes it takes a copy."""
    from tests.corpus import build

    return build(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where the tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
