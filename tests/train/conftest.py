"""A project built up to the data gate, with a model so small that training takes no time."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from corpusforge.project import Project
from corpusforge.shell import run_stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytest.importorskip("trl", reason="training needs the extra `train`")


@pytest.fixture(scope="session")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Built up to and with train_sft; a test that changes it takes a copy (`copied`)."""
    from tests.sums import make

    project = make(tmp_path_factory.mktemp("sums"))
    run_stage(project, "train_sft")
    return project


@pytest.fixture
def copied(sums: Project, tmp_path: Path) -> Project:
    """A copy of the built project."""
    shutil.copytree(sums.root, tmp_path / "project", symlinks=True)
    return Project(tmp_path / "project")


@pytest.fixture
def edited(copied: Project) -> Callable[..., Project]:
    """A copy whose params get other values: `edited(train_sft={"trl": {...}})` replaces keys of blocks."""
    from tests.test_pipeline import edit_params

    from corpusforge import methods

    def change(**blocks: dict) -> Project:
        def edit(params: dict) -> None:
            for name, values in blocks.items():
                params[name] = {**(params.get(name) or {}), **values}

        project = edit_params(copied, edit)
        methods.sync(project)
        return Project(project.root)

    return change
