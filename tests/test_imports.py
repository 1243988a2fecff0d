"""Optional weight stays optional: what importing the package loads."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

HEAVY = {
    "torch",
    "trl",
    "transformers",
    "ray",
    "spacy",
    "presidio_analyzer",
    "dvc",
    "numba",
    "datasets",
    "duckdb",
    "pandas",
}


def modules(statement):
    """Names in sys.modules after a statement, in a fresh interpreter."""
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout))


@pytest.mark.parametrize(
    "statement",
    [
        "import corpusforge",
        "import corpusforge; dir(corpusforge)",
        "import corpusforge.config",
        "import corpusforge.project",
        "import corpusforge.cli",
    ],
)
def test_loads_nothing_heavy(statement):
    assert modules(statement) & HEAVY == set()


def test_the_heavy_packages_are_there_to_be_loaded():
    """Otherwise the test above would pass for the wrong reason."""
    from importlib.util import find_spec

    assert [name for name in sorted(HEAVY - {"ray"}) if find_spec(name) is None] == []


def test_import_brings_at_most_twice_the_modules_of_polars_and_pyarrow():
    """A stand-in for time, which varies; benchmarks/import_time.py measures it."""
    assert len(modules("import corpusforge")) <= 2 * len(modules("import polars, pyarrow"))


@pytest.mark.parametrize("stage", ["dedupe", "filter", "scrub", "health", "grade", "decontaminate", "blend", "shard"])
def test_a_stage_loads_nothing_heavy(stage):
    """Kernels and recognisers are imported when a stage runs."""
    assert modules(f"import corpusforge.stages.{stage}") & HEAVY == set()


def test_plain_files_are_deduped_without_pandas(tmp_path):
    """pyarrow imports it where it can, at a third of a second a process."""
    rows = pa.table({"id": ["a", "b", "c", "d"], "text": ["one two three four five"] * 2 + ["fünf und sechs", ""]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    file, out, index = (str(tmp_path / name) for name in ("rows.parquet", "out", "index"))
    verbs = "from corpusforge import dedupe_files, index_files"
    for then in (f"index_files({file!r}, {index!r})", f"dedupe_files({file!r}, {out!r}, against={index!r})"):
        assert "pandas" not in modules(f"{verbs}; {then}")


@pytest.mark.parametrize("first", ["pass", "cf.verify", "import corpusforge.verify.exact", "cf.exec = cf.health"])
def test_verify_is_a_function_and_a_package_whichever_is_used_first(first):
    task = {"verifier": {"kind": "exact", "spec": {"answer": "Rome"}}}
    code = (
        f"import corpusforge as cf\n{first}\n"
        "import corpusforge.verify.reward as r\nfrom corpusforge.verify import verify\n"
        f"print(cf.verify({task!r}, 'Rome').outcome, verify({task!r}, 'Oslo').outcome, callable(r.reward))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "pass fail True\n"
