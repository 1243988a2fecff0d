"""Planted tasks are as unhealthy as they are said to be."""

from __future__ import annotations

import pytest

import corpusforge as cf
from corpusforge.demo import plant
from corpusforge.verify import sandbox


@pytest.mark.skipif(sandbox.available() is not None, reason="programs cannot be confined here")
def test_every_unhealthy_task_goes_for_its_reason() -> None:
    """A sixth each; code of three kinds."""
    planted = [record for record, _ in plant._unhealthy()]
    result = cf.health(cf.read(planted))
    assert len(planted) == plant.COUNTS["unhealthy"] == result.dropped.num_rows
    assert result.reasons() == {"unverifiable_gold": 12, "gold_fails": 4, "no_tests": 4, "noop_passes": 4}
    assert cf.dedupe(cf.read(planted)).dropped.num_rows == 0
