"""A query is a source: exact, in a stated order, read-only, and it reaches nothing that the source does not name."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusforge.errors import ConfigError, MissingExtra, SourceError
from corpusforge.io import pieces
from corpusforge.io.ingest import read, source_rows
from corpusforge.methods import _paths
from corpusforge.stages.ingest import SourceConfig

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a database, a folder of tables, and a file outside of it."""
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.table({"id": ["b", "a"], "text": ["two", "one"]}), tmp_path / "raw/a.parquet")
    (tmp_path / "raw/b.csv").write_text("id,text\n7,seven\n")
    (tmp_path / "secret.csv").write_text("id,text\nx,hush\n")
    with duckdb.connect(str(tmp_path / "app.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS id, 'text ' || range AS text FROM range(5000)")
    return tmp_path


def run(root: Path, query: str, path: str | list[str] = "raw", **options: Any) -> list[dict[str, Any]]:
    """Rows of a query."""
    rows = read(path, reader="sql", name="s", options={"query": query, **options}, root=root).to_pylist()
    return [{"row": row["row_id"], "id": row["source"]["record_id"], **row} for row in rows]


def test_order_is_the_querys_or_the_contents(root: Path) -> None:
    """However the rows lie in the files."""
    plain = run(root, "SELECT id, text FROM 'raw/a.parquet'")
    assert [(row["row"], row["id"]) for row in plain] == [("s#1", "a"), ("s#2", "b")]
    ordered = run(root, "SELECT * FROM 'raw/*.parquet' ORDER BY text DESC; ")
    assert [row["id"] for row in ordered] == ["b", "a"]
    inner = run(root, "SELECT * FROM (FROM 'raw/a.parquet' ORDER BY id DESC) -- an order inside is none")
    assert [row["id"] for row in inner] == ["a", "b"]


def test_values_are_exact(root: Path) -> None:
    """Integers beyond 2^64, decimals, JSON, nothing."""
    query = """SELECT 'x' AS text, 170141183460469231731687303715884105727::HUGEINT AS huge,
        1.50::DECIMAL(10,2) AS money, MAP{'k': 1} AS map,
        {'a': 1, 'b': NULL} AS struct, NULL AS nothing, [1, NULL] AS list, 'NaN' AS word"""
    (row,) = run(root, query, [])
    assert json.loads(row["extra"]) == {
        "huge": 2**127 - 1, "money": "1.50", "map": {"k": 1}, "struct": {"a": 1},
        "nothing": None, "list": [1, None], "word": "NaN",
    }  # fmt: skip


def test_tables_of_a_database(root: Path) -> None:
    """More than a batch of them, and not one is written to."""
    before = (root / "app.duckdb").read_bytes()
    rows = run(root, "SELECT id, text FROM t WHERE id >= 100", [], database="app.duckdb")
    assert (len(rows), rows[0]["id"], rows[-1]["id"]) == (4900, "100", "4999")
    assert rows[0]["source"]["uri"] == "sql:app.duckdb"
    assert (root / "app.duckdb").read_bytes() == before
    assert sorted(path.name for path in root.iterdir()) == ["app.duckdb", "raw", "secret.csv"]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT * FROM 'secret.csv'", "reads what the source does not name"),
        ("SELECT * FROM 'raw/../secret.csv'", "reads what the source does not name"),
        ("SELECT * FROM read_text('/etc/hostname')", "reads what the source does not name"),
        ("SELECT * FROM 'https://127.0.0.1:9/a.parquet'", "reads what the source does not name|failed"),
        ("COPY (SELECT 1) TO 'raw/out.csv'", "not one SELECT"),
        ("SELECT 1 AS text; SELECT 2", "not one SELECT"),
        ("CREATE TABLE x AS SELECT 1", "not one SELECT"),
        ("ATTACH 'x.duckdb'", "not one SELECT"),
        ("SELEC 1", "is wrong: Parser Error"),
        ("SELECT nope FROM 'raw/a.parquet'", "is wrong: Binder Error"),
        ("SELECT * FROM nope", "is wrong: Catalog Error"),
        ("SELECT 1 AS a, 2 AS a", "two columns have one name"),
        ("", "needs options.query"),
    ],
)
def test_what_a_query_may_not(root: Path, query: str, says: str) -> None:
    """Neither read elsewhere, nor write, nor be something else."""
    with pytest.raises((SourceError, ConfigError), match=says):
        run(root, query)
    assert sorted(path.name for path in (root / "raw").iterdir()) == ["a.parquet", "b.csv"]


def test_a_failure_half_way_shows_no_value(root: Path) -> None:
    """DuckDB would quote the cell that it could not convert."""
    with pytest.raises(SourceError, match=r"the query failed \(\w+\)") as told:
        run(root, "SELECT text::INTEGER AS n, text FROM 'raw/b.csv'")
    assert "seven" not in str(told.value)


def test_the_revision_is_query_and_content(root: Path) -> None:
    """And `path` and database are what DVC watches."""

    def revision(query: str) -> Any:
        return run(root, query)[0]["source"]["revision"]

    first = revision("SELECT * FROM 'raw/b.csv'")
    assert first == revision("SELECT * FROM 'raw/b.csv'") != revision("SELECT id, text FROM 'raw/b.csv'")
    (root / "raw/b.csv").write_text("id,text\n7,eight\n")
    assert revision("SELECT * FROM 'raw/b.csv'") != first
    source = SourceConfig.model_validate(
        {"name": "s", "reader": "sql", "path": "raw", "options": {"query": "SELECT 1", "database": "app.duckdb"}}
    )
    assert _paths([source], root) == ["raw", "app.duckdb"]
    assert source.packages() == ["duckdb"]


def test_a_folder_that_changes_while_it_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "BATCH", 1)
    source = SourceConfig.model_validate(
        {"name": "s", "reader": "sql", "path": "raw", "options": {"query": "SELECT * FROM 'raw/a.parquet'"}}
    )
    rows = source_rows(source, root)
    next(rows)
    (root / "raw/b.csv").write_text("id,text\n")
    with pytest.raises(SourceError, match="raw changed while it was read"):
        list(rows)


def test_a_database_that_is_none(root: Path) -> None:
    (root / "app.duckdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(SourceError, match="the query failed"):
        run(root, "SELECT 1 AS text", [], database="app.duckdb")
    with pytest.raises(SourceError, match="does not exist"):
        run(root, "SELECT 1 AS text", [], database="none.duckdb")


def has_sqlite() -> bool:
    """Whether DuckDB's extension for SQLite is installed here."""
    try:
        duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"}).execute("LOAD sqlite")
    except duckdb.Error:
        return False
    return True


def test_sqlite(root: Path) -> None:
    """With DuckDB's extension; without, the command that installs it."""
    with sqlite3.connect(root / "app.db") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS id, 'one' AS text")
    connection.close()
    if has_sqlite():
        assert [row["id"] for row in run(root, "SELECT * FROM t", [], database="app.db")] == ["1"]
    else:
        with pytest.raises(MissingExtra, match=r"INSTALL sqlite"):
            run(root, "SELECT * FROM t", [], database="app.db")
