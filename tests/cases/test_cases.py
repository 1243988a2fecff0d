"""Every case of a folder of cases holds: the right answers to faults that people have met in other tools."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest
from tests.cases._words import check

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cases._case import Case


def test_case(case: Case, tmp_path: Path, record_property: pytest.RecordProperty) -> None:
    record_property("case", case.id)
    for stage in case.stages:
        record_property("stage", stage)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check(case, tmp_path)
    for should in found.shoulds:
        record_property("should", should)
    for word in found.unknown:
        record_property("unknown", word)
    if found.failures:
        pytest.fail("\n".join(found.failures), pytrace=False)
