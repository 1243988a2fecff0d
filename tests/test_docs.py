"""Pages are executed: snippets run as they stand, the notebook runs, generated pages are up to date."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_the_snippets_of_coming_from_scripts_run_in_one_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "coming-from-scripts.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 8
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "coming-from-scripts.md", "exec"), names)
    assert (tmp_path / "shards" / "manifest.json").is_file()


def test_the_snippets_of_exchange_with_datasketch_run_in_one_go() -> None:
    page = (ROOT / "docs" / "stages" / "dedupe.md").read_text(encoding="utf-8")
    section = page.partition("## Exchange with datasketch")[2].partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 2
    exec(compile("".join(blocks), "dedupe.md", "exec"), {})


def test_the_example_of_a_verifier_of_ones_own_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from corpusforge.verify import _plugins

    monkeypatch.setattr(_plugins, "_own", {})
    page = (ROOT / "docs" / "verifiers.md").read_text(encoding="utf-8")
    section = page.partition("## Kinds of your own")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    exec(compile(block, "verifiers.md", "exec"), {"__name__": "verifiers"})
    assert list(_plugins._own) == ["palindrome"]


def test_the_examples_of_every_kind_are_healthy_tasks() -> None:
    """A line of docs/verifiers.md for each kind that is built in; a judge is not asked."""
    import corpusforge as cf
    from corpusforge.verify import KINDS

    page = (ROOT / "docs" / "verifiers.md").read_text(encoding="utf-8")
    lines = page.partition("<!-- kinds:begin -->")[2].partition("<!-- kinds:end -->")[0].strip().splitlines()[1:-1]
    tasks = [json.loads(line) for line in lines]
    assert [task["verifier"]["kind"] for task in tasks] == list(KINDS)
    found = cf.verify_tasks(tasks)
    assert found.unhealthy == {}
    assert set(found.undecided) <= {"judge.not_tried", "code.unconfined"}


@pytest.mark.parametrize(
    ("name", "section", "shown"),
    [
        ("verifiers.md", "# Verifiers", {}),
        ("rewards.md", "# Rewards in layers", {"found.total": "0.1"}),
        ("stages/health.md", "## Example", {"result.reasons()": '{"unverifiable_gold": 1}'}),
    ],
)
def test_the_first_example_of_a_page_runs_as_it_stands(name: str, section: str, shown: dict[str, str]) -> None:
    """What is shown of it is true."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    block = re.search(r"```python\n(.*?)```", page.partition(section)[2], re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block[1], name, "exec"), names)
    for what, says in shown.items():
        assert says in page
        assert eval(what, names) == json.loads(says)
    assert "task" in names or "rows" in names


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the notebook machinery, not of ours
def test_the_tutorial_runs_and_says_what_it_says(tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)
    said = [_text(cell) for cell in notebook.cells if cell.cell_type == "code"]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    now = [_text(cell) for cell in notebook.cells if cell.cell_type == "code"]
    assert any(said)
    assert now == said


def _text(cell: object) -> str:
    """What a cell printed, however the kernel cut it."""
    return "".join(output["text"] for output in cell["outputs"] if output["output_type"] == "stream")


def test_the_page_of_the_command_line_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("write_docs", ROOT / "scripts" / "write_docs.py")
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    assert writer.main(["--check"]) == 0, "run `make docs`"


def test_every_finding_and_option_of_check_is_on_its_page() -> None:
    from corpusforge.check import CheckConfig
    from corpusforge.findings import ADVICE

    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    assert [code for code in ADVICE if f"`{code}`" not in page] == []
    assert [name for name in CheckConfig.model_fields if f"{name}:" not in page] == []


def test_no_page_names_a_place_on_the_machine_it_was_written_on() -> None:
    for path in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/*.ipynb"), *ROOT.glob("*.md")]:
        assert not re.search(r"(?<![\w.])/(home|root|tmp|Users)/\w", path.read_text(encoding="utf-8")), path.name
