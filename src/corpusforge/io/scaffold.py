"""Laying down a project folder: files, a git repository, DVC. Never touches a file that is already there.

What a project needs from outside is found here too: recipes, inside an installed package or beside the sources.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from corpusforge.errors import ConfigError, ProjectError
from corpusforge.io import atomic

_PACKAGE = Path(__file__).resolve().parent.parent


def recipes() -> dict[str, Path]:
    """Folders of the recipes by name: packed into the wheel, or `pipelines/` of a source checkout."""
    for home in (_PACKAGE / "_recipes", _PACKAGE.parent.parent / "pipelines"):
        if home.is_dir():
            return {folder.name: folder for folder in sorted(home.iterdir()) if (folder / "params.yaml").is_file()}
    return {}


def recipe(name: str) -> Path:
    """The folder of a recipe. Raises ConfigError naming those that there are."""
    found = recipes()
    if name not in found:
        raise ConfigError(f"no recipe {name!r}", hint=f"there are: {', '.join(found) or 'none in this installation'}")
    return found[name]


def check_target(folder: Path, force: bool) -> None:
    """Refuse a folder with something in it (a bare git repository apart), and always one that is a project."""
    if folder.exists() and not folder.is_dir():
        raise ProjectError(f"{folder} is not a folder")
    if (folder / "params.yaml").exists():
        raise ProjectError(f"{folder} already is a project (it has params.yaml)", hint="choose another folder")
    inside = [path.name for path in folder.iterdir() if path.name != ".git"] if folder.is_dir() else []
    if inside and not force:
        raise ProjectError(f"{folder} is not empty ({len(inside)} entries)", hint="choose another folder, or --force")


def copy_recipe(source: Path, folder: Path) -> list[str]:
    """Copy a recipe's files; returns their names."""
    copied = []
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(source).as_posix()
            if write_new(folder / name, path.read_text(encoding="utf-8")):
                copied.append(name)
    return copied


def write_new(path: Path, text: str) -> bool:
    """Write a file that is not there yet; tell whether it was written."""
    if path.exists():
        return False
    atomic.write_text(path, text)
    return True


def start_git(folder: Path) -> str:
    """Make `folder` part of a git repository: the one it lies in, else a new one. Says what was done."""
    if shutil.which("git") is None:
        raise ConfigError("git is not installed", hint="DVC keeps versions in git: install it, then run this again")
    if _run(folder, "git", "rev-parse", "--show-toplevel").returncode == 0:
        return ""
    _must(_run(folder, "git", "init", "-q"), "git init")
    return "git repository"


def start_dvc(folder: Path) -> str:
    """Make `folder` a DVC project (a subproject inside a larger git repository). Says what was done."""
    if (folder / ".dvc").is_dir():
        return ""
    top = _run(folder, "git", "rev-parse", "--show-toplevel").stdout.strip()
    inner = ["--subdir"] if top and Path(top).resolve() != folder.resolve() else []
    dvc = (sys.executable, "-m", "dvc")
    _must(_run(folder, *dvc, "init", "-q", *inner), "dvc init")
    for option in ("core.analytics", "core.check_update"):
        _must(_run(folder, *dvc, "config", option, "false"), "dvc config")
    return "DVC project"


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    quiet = {**os.environ, "DVC_NO_ANALYTICS": "true"}  # the project says so too, but not before it is one
    return subprocess.run(command, cwd=folder, env=quiet, capture_output=True, text=True, check=False)  # noqa: S603 - our own words


def _must(done: subprocess.CompletedProcess[str], what: str) -> None:
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise ProjectError(f"{what} failed: {said[-1][:200] if said else f'exit code {done.returncode}'}")
