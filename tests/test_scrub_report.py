"""corpusforge scrub-report: what was replaced where, and what may be left, without a value."""

from __future__ import annotations

import json
import shutil

import pytest

import corpusforge as cf
from corpusforge.cli import main
from corpusforge.errors import ConfigError, ProjectError
from corpusforge.pii import lowest, phones
from corpusforge.project import Project
from corpusforge.shell import run_stage
from corpusforge.stages.scrub import scrub
from tests.projects import chat, make_project
from tests.rows import row, table

VALUES = ("zoe.quill@corp-mail.com", "(212) 456-7890", "044 713 22", "219-09-9998")
TEXTS = (
    "Mail zoe.quill@corp-mail.com, or call (212) 456-7890.",
    "The order 219-09-9998 was sent.",
    "My ssn is 219-09-9998.",
    "Der Hafen ist zu.",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    desk = [chat(i) for i in range(20)]
    for one, text in zip(desk, TEXTS, strict=False):
        one["messages"][0]["content"] += " " + text
    desk[0]["note"] = {"by": "zoe.quill@corp-mail.com"}
    made = make_project(tmp_path_factory.mktemp("scrub-report"), {"desk": desk, "line": [chat(50)]})
    for name in ("ingest", "dedupe", "filter", "scrub"):
        run_stage(made, name)
    return made


def test_counts_per_entity_source_and_field(project):
    found = cf.scrub_report(project).to_dict()
    assert found["findings"] == {"EMAIL_ADDRESS": 2, "PHONE_NUMBER": 1, "US_SSN": 1}
    assert found["by_source_and_entity"] == {"desk": found["findings"]}
    assert found["by_field"] == {
        "extra": {"EMAIL_ADDRESS": 1},
        "messages.content": {"EMAIL_ADDRESS": 1, "PHONE_NUMBER": 1, "US_SSN": 1},
    }
    assert sum(found["names_not_scanned"].values()) == 21


def test_own_ids_that_hold_personal_data_are_counted_and_not_shown(tmp_path):
    desk = [{**chat(1), "id": "zoe.quill@corp-mail.com"}, {**chat(2), "id": "c2"}]
    made = make_project(tmp_path, {"desk": desk})
    for name in ("ingest", "dedupe", "filter", "scrub"):
        run_stage(made, name)
    found = cf.scrub_report(made)
    assert found.to_dict()["in_own_ids"] == {"EMAIL_ADDRESS": 1}
    assert "ids that hold personal data" in str(found)
    assert "zoe.quill" not in str(found)


def test_what_may_be_left_is_counted_with_an_interval(project):
    leaks = cf.scrub_report(project).to_dict()["leaks"]
    assert (leaks["rows"], leaks["sampled"], leaks["by_rules"]) == (21, 21, {})
    ssn = leaks["entities"]["US_SSN"]  # the order number, which a rule takes for harmless
    assert (ssn["findings"], ssn["rows"]) == (1, 1)
    assert 0 < ssn["low"] < 1 / 21 < ssn["high"] < 0.3
    assert "EMAIL_ADDRESS" not in leaks["entities"]


def test_the_sample_is_the_same_every_time(project):
    some = [cf.scrub_report(project, rows=5).to_dict() for _ in range(2)]
    assert some[0] == some[1]
    assert some[0]["leaks"]["sampled"] == 5
    assert cf.scrub_report(project, rows=0).leaks["entities"] == {}


def test_the_command_prints_what_the_function_returns_and_no_value(project, capsys):
    assert main(["scrub-report", str(project.root), "--json"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out) == cf.scrub_report(project).to_dict()
    assert main(["scrub-report", str(project.root)]) == 0
    out += capsys.readouterr().out
    assert "what may be left" in out
    assert not [value for value in VALUES if value in out]


def test_before_scrub_has_run_it_says_so(tmp_path):
    with pytest.raises(ProjectError, match="scrub has not run here"):
        cf.scrub_report(make_project(tmp_path, {"desk": [chat(1)]}))


def test_less_than_no_rows_are_refused(project):
    with pytest.raises(ConfigError, match="rows: -1"):
        cf.scrub_report(project, rows=-1)


def test_stand_ins_and_tags_are_not_taken_for_leaks():
    texts = [
        "Mail zoe@corp.com, call (212) 456-7890 or +49 171 2345678, host 5.61.32.77, my ssn is 219-09-9998.",
        "Card 4111 1111 1111 1111, account DE89 3704 0044 0532 0130 00, key AKIAQ3EGRPJ7XK2M4TBD.",
        "I live at 44 Elm Street Apt. 7, Springfield OH 45501.",
        *(f"Call (212) 456-7890 or +49 30 {number} tomorrow." for number in range(6134901, 6134921)),
    ]
    kept = scrub(table([row(i, text) for i, text in enumerate(texts)]), key="public-demo").kept
    found = [name for one in lowest.of_rows(kept.to_pylist(), named=False) for name in one]
    assert found == []


def test_a_text_that_is_too_much_for_a_recogniser_counts(monkeypatch):
    """It ended the report: scrub passes over a table of numbers, the lowest threshold does not."""
    monkeypatch.setattr(phones, "TRIES", 50)
    rows = table([row(1, "\n".join(f"{n},{n + 1}" for n in range(2_345_000, 2_345_300)))])
    assert scrub(rows, key="public-demo").kept.num_rows == 1
    assert lowest.of_rows(rows.to_pylist(), named=False) == [{"PHONE_NUMBER": 1}]


@pytest.fixture
def damaged(project, tmp_path):
    shutil.copytree(project.root, tmp_path / "copy")
    return Project(tmp_path / "copy")


@pytest.mark.parametrize(
    "damage",
    [lambda _: b"", lambda data: data[:100], lambda data: data[:2000] + bytes(1000) + data[3000:], None],
    ids=["empty", "cut", "holed", "gone"],
)
def test_rows_that_cannot_be_read_are_told(damaged, damage):
    part = damaged.parts("scrub")[0]
    part.write_bytes(damage(part.read_bytes())) if damage else part.unlink()
    with pytest.raises(ProjectError, match="scrub"):
        cf.scrub_report(damaged)


@pytest.mark.parametrize("content", ["{", "[1]", '{"findings": [1]}', '{"findings": {"EMAIL_ADDRESS": "x"}}'])
def test_figures_that_are_none_are_told(damaged, content):
    damaged.figures_path("scrub").write_text(content)
    with pytest.raises(ProjectError, match=r"data/scrub/figures.json"):
        cf.scrub_report(damaged)
