"""A damaged file is read or refused: every record it has is a row or a ledger line, or one coded error says why not.

`CORPUSFORGE_MUTANTS=5000 pytest tests/io/test_mutants.py --timeout 0` makes more of them.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.io.mutants import mutant, sources

from corpusforge.errors import SourceError
from corpusforge.io.ingest import source_rows
from corpusforge.io.readers import open_bytes, sniff
from corpusforge.stages._stage import concat
from corpusforge.stages.ingest import SourceConfig

if TYPE_CHECKING:
    from pathlib import Path

MUTANTS = int(os.environ.get("CORPUSFORGE_MUTANTS", "300"))
PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_file_is_read_or_refused(shared: Path, tmp_path: Path, part: int) -> None:
    """Every position from the first to the last is there once, as rows or as a ledger line."""
    files = sources(shared / "data")
    outcomes: Counter[str] = Counter()
    for number in range(part, MUTANTS, PARTS):
        made = mutant(files, number)
        path = tmp_path / made.name
        path.write_bytes(made.data)
        try:
            outcomes[conserved(path)] += 1
        except SourceError:
            outcomes["refused"] += 1
        except Exception as error:
            raise AssertionError(f"mutant {made.how}") from error
        path.unlink()
    print(dict(outcomes))  # noqa: T201 - shown with -s
    assert outcomes.total() == len(range(part, MUTANTS, PARTS))


def conserved(path: Path) -> str:
    """Whether records were put aside; asserts that none is missing and none is there twice."""
    source = SourceConfig(name="s", path=path.name)
    result = concat("ingest", list(source_rows(source, path.parent, detect_language=False)))
    figures = result.metrics
    assert figures["records"] == figures["with_rows"] + figures["quarantined"]
    rows = {row["record"] for row in result.kept["source"].to_pylist()}
    aside = [int(row.partition("#")[2]) for row in result.dropped["row_id"].to_pylist()]
    assert len(rows) == figures["with_rows"]
    assert sorted([*rows, *aside]) == list(range(1, figures["records"] + 1))
    if sniff(path, path.name) == "jsonl":
        with open_bytes(path) as file:
            lines = [line.removeprefix(b"\xef\xbb\xbf") if n == 0 else line for n, line in enumerate(file)]
        assert figures["records"] == sum(bool(line.strip(b" \t\r\n\x0b\x0c")) for line in lines)
    return "some put aside" if aside else "whole"
