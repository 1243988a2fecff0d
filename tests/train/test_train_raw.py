"""The comparison with rows as they came in: same start, same steps, nothing of what is held out."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from tests.sums import SOURCES, TINY, conversation, make

from corpusforge.io.training import raw_rows
from corpusforge.shell import run_stage
from corpusforge.train import model


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """Repeats of some conversations, held-out ones among them."""
    repeats = [{**conversation(n), "id": f"again{n}"} for n in range(30)]
    from tests import sums

    sources = {**SOURCES, "talk": [*SOURCES["talk"], *repeats]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "SOURCES", sources)
        project = make(tmp_path_factory.mktemp("noisy"))
    run_stage(project, "train_sft")
    return project


def ids(table):
    return set(table["source"].combine_chunks().field("record_id").to_pylist())


def test_it_sees_what_curation_dropped_but_nothing_that_is_held_out_nor_a_copy_of_it(noisy):
    raw, blended = raw_rows(noisy), noisy.rows("blend")
    held = ids(blended.filter(blended["split"].to_numpy(zero_copy_only=False) == "heldout"))
    assert any(name.startswith("s") for name in held)
    there = ids(raw)
    assert not held & there
    assert not {name.replace("s", "again") for name in held} & there
    assert any(name.startswith("again") for name in there)


def test_it_starts_from_the_same_weights_and_takes_the_same_steps(noisy):
    found, tuned = run_stage(noisy, "train_raw"), noisy.metrics("train_sft")
    assert found["steps"] == tuned["steps"]
    assert found["in"] > tuned["in"]
    folders = (noisy.data("train_raw") / "model", noisy.data("train_sft") / "base")
    raw, base = (model.load_tokenizer(str(folder)) for folder in folders)
    assert raw.get_vocab() == base.get_vocab()
    assert not (noisy.data("train_raw") / "shards").exists()


def test_its_ledger_has_the_rows_that_a_trainer_cannot_read(noisy):
    table = pq.read_table(noisy.data("train_raw") / "dropped.parquet")
    assert table.num_rows == noisy.metrics("train_raw")["dropped"]
    assert TINY["max_length"] == noisy.params.model.max_length
