"""The papers of the house: links lead somewhere, pins cover what is declared, targets are what CI calls."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "pipelines/**/*.md")
    for path in ROOT.glob(pattern)
    if "node_modules" not in path.parts
)


def script(name):
    """A module of scripts/, loaded from its path."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(requirement):
    """Normalised distribution name of a requirement."""
    return re.sub(r"[-_.]+", "-", re.match(r"[A-Za-z0-9._-]+", requirement)[0]).lower()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [t.partition("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in t]
    assert [t for t in targets if t and not (page.parent / t).exists()] == []


def test_every_decision_is_in_the_index():
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    found = sorted(path.name for path in folder.glob("0*.md"))
    assert found
    assert [name for name in found if f"({name})" not in index] == []
    assert [int(name[:4]) for name in found] == list(range(1, len(found) + 1))


def test_the_readme_is_short_and_shows_a_command_early():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    assert any(line.startswith("$ make demo") for line in lines[:20])


def test_every_declared_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = [
        *project["dependencies"],
        *(r for name, rs in extras.items() if name not in ("ray", "remote") for r in rs),
    ]
    pinned = {plain(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if line[0] != "#"}
    assert [one for one in map(plain, declared) if one not in {*pinned, "corpusforge"}] == []


def test_pins_are_exact_public_versions():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line[0] != "#"]
    assert len(lines) > 100
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9A-Za-z.]+", line)] == []


def test_pinning_drops_local_versions_and_pip():
    assert script("pin").pins("torch==2.1.0+cpu\npip==23.0\nAttrs==1.0\n") == ["Attrs==1.0", "torch==2.1.0"]


def test_pinning_refuses_what_no_index_has():
    with pytest.raises(SystemExit, match="thing was not installed from an index"):
        script("pin").pins("thing @ file:///somewhere/thing.whl\n")


def test_large_files_are_refused(tmp_path):
    (tmp_path / "small").write_bytes(b"x")
    (tmp_path / "large").write_bytes(b"x" * 500_001)
    found = script("no_large_files").too_large([str(tmp_path / name) for name in ("small", "large", "absent")])
    assert found == [f"{tmp_path / 'large'}: 500,001 bytes, at most 500,000"]


def test_a_page_is_filled_between_its_markers_and_nowhere_else():
    page = "a\n<!-- x:begin -->\nold\n<!-- x:end -->\nz\n"
    once = script("fill").filled(page, "x", "new  \n\\1\n")
    assert once == "a\n<!-- x:begin -->\n```text\nnew\n\\1\n```\n<!-- x:end -->\nz\n"
    assert script("fill").filled(once, "x", "new\n\\1") == once


def test_a_page_without_markers_is_refused():
    with pytest.raises(SystemExit, match="x:begin"):
        script("fill").filled("nothing here", "x", "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs make")
def test_bare_make_lists_every_target():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split())
    shown = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in shown.splitlines()} == phony


def test_ci_calls_only_make():
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    commands = re.findall(r"run: (.*)$", text, re.MULTILINE)
    assert commands
    assert all(command.startswith("make ") for command in commands)
