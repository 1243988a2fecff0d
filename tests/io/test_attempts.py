"""rollouts.parquet: pass rates that outlive the build they were measured in."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import row, table
from tests.stages.test_gate_data import report

import corpusforge as cf
from corpusforge.config import parse_params
from corpusforge.errors import SchemaError, SourceError
from corpusforge.io import attempts, inputs, releases
from corpusforge.io.shards import write_shards
from corpusforge.project import Project

COUNTS = st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8))


@pytest.fixture
def project(tmp_path):
    """A published build."""
    project = Project(tmp_path)
    held = write_shards(table([row(1, "question", "answer")]), project.data("shard"))
    for stage, name, value in (
        ("report", "report.json", report() | {"build": held["build"]}),
        ("report", "index.html", ""),
        ("gate_data", "verdict.json", {"build": held["build"], "passed": True}),
    ):
        project.data(stage).mkdir(exist_ok=True)
        (project.data(stage) / name).write_text(json.dumps(value))
    releases.publish(project)
    return project


def measure(project, **counts):
    """Lay down what `rollout` leaves: passes, fails and undecided tries by content id."""
    lines = [
        {"content_id": name, "passes": p, "attempts": p + f, "undecided": u, "model": "m", "sampling": "{}"}
        for name, (p, f, u) in counts.items()
    ]
    project.data("rollout").mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(lines, attempts.ACCEPTED), project.data("rollout") / "attempts.parquet")


def accepted(project):
    build = releases.current(project)
    tried = attempts.accept(project, build)
    return tried, attempts.read(project.root / attempts.NAME).to_pylist()


def write(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_accept_writes_what_was_measured_and_says_of_how_many_tasks(project):
    measure(project, b=(3, 1, 4), a=(0, 8, 0), untried=(0, 0, 0))
    assert releases.accept(project)["rollouts"] == 2
    assert "rollouts" not in json.loads((project.root / "baseline.json").read_text())
    lines = pq.read_table(project.root / "rollouts.parquet").to_pylist()
    assert [(one["content_id"], one["passes"], one["attempts"], one["undecided"]) for one in lines] == [
        ("a", 0, 8, 0),
        ("b", 3, 4, 4),
    ]


def test_accept_without_rollouts_writes_no_file(project):
    assert "rollouts" not in releases.accept(project)
    assert not (project.root / "rollouts.parquet").exists()


def test_what_was_measured_on_another_build_is_not_accepted(project):
    measure(project, a=(1, 1, 0))
    write_shards(table([row(1, "another question", "answer")]), project.data("shard"))
    assert "rollouts" not in releases.accept(project)
    assert not (project.root / "rollouts.parquet").exists()


def test_a_new_measurement_replaces_the_old_one_and_other_tasks_keep_theirs(project):
    measure(project, a=(8, 0, 0), b=(8, 0, 0))
    accepted(project)
    measure(project, b=(1, 7, 0), a=(0, 0, 0))
    assert accepted(project) == (
        1,
        [{"content_id": "a", "passes": 8, "attempts": 8}, {"content_id": "b", "passes": 1, "attempts": 8}],
    )


def test_accepting_twice_changes_no_byte(project):
    measure(project, a=(8, 0, 0), b=(2, 0, 3))
    accepted(project)
    before = (project.root / attempts.NAME).read_bytes()
    accepted(project)
    assert (project.root / attempts.NAME).read_bytes() == before


@given(st.lists(st.tuples(st.sampled_from("abc"), COUNTS), max_size=8))
def test_lines_of_one_content_add_up(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("read") / "mine.parquet"
    names = pa.array([name for name, _ in lines], pa.string())
    passes = pa.array([p for _, (p, _, _) in lines], pa.int64())
    write(path, content_id=names, passes=passes, attempts=pa.array([p + f for _, (p, f, _) in lines], pa.int64()))
    expected = {name: [0, 0] for name, _ in lines}
    for name, (p, f, _) in lines:
        expected[name] = [expected[name][0] + p, expected[name][1] + p + f]
    found = attempts.read(path).to_pylist()
    assert {one["content_id"]: [one["passes"], one["attempts"]] for one in found} == expected
    assert len(found) == len(expected)


def test_a_file_that_is_not_there_is_answered_with_what_writes_it(tmp_path):
    with pytest.raises(SourceError, match=r"does not exist\n.*corpusforge accept"):
        attempts.read(tmp_path / "rollouts.parquet")


def test_a_file_that_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "rollouts.parquet").write_text("a,b\n")
    with pytest.raises(SourceError, match="not a Parquet file"):
        attempts.read(tmp_path / "rollouts.parquet")


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"content_id": ["a"], "passes": [1]}, "no column 'attempts'"),
        ({"content_id": ["a"], "passes": [0.5], "attempts": [1]}, "passes is double, expected whole numbers"),
        ({"content_id": [7], "passes": [1], "attempts": [1]}, "content_id is int64, expected text"),
        ({"content_id": ["a"], "passes": [2], "attempts": [1]}, "1 lines without 0 <= passes <= attempts"),
    ],
)
def test_another_table_is_refused(tmp_path, columns, says):
    with pytest.raises(SchemaError, match=says):
        attempts.read(write(tmp_path / "mine.parquet", **columns))


def test_blend_goes_by_the_file_that_accept_wrote(project):
    verifier = {"kind": "exact", "spec": '{"answer": "4"}'}
    rows = table([row(i, f"{i}?", kind="task") | {"verifier": verifier} for i in range(1, 4)])
    first, second, _ = rows["content_id"].to_pylist()
    measure(project, **{first: (8, 0, 0), second: (4, 4, 0)})
    attempts.accept(project, releases.current(project))
    options = {"path": str(project.root / attempts.NAME)}
    assert cf.blend(rows, rollouts=options, heldout=0).reasons() == {"solved": 1}
    params = parse_params(f"ingest: {{sources: []}}\nblend: {{rollouts: {json.dumps({'path': attempts.NAME})}}}\n")
    loaded = inputs.load(("rollouts",), params, project.root)["rollouts"]
    assert loaded.num_rows == 2
    assert inputs.load(("rollouts",), parse_params("ingest: {sources: []}\n"), project.root) == {"rollouts": None}
