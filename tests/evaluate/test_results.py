"""Results of models: from tables, and to baseline.json and back."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluate.made import judged, results

from corpusforge.evaluate.results import ROWS, TASKS, Judged, Results, read

NAMES = st.text("0123456789abcdef", min_size=4, max_size=4)
COUNTS = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda c: (min(c), max(c)))
NUMBERS = st.integers(-9999, 9999).map(lambda n: n / 1000)
RESULTS = st.builds(
    Results,
    heldout=st.dictionaries(NAMES, COUNTS, max_size=5),
    legacy=st.dictionaries(NAMES, COUNTS, max_size=5),
    per_byte=st.dictionaries(NAMES, NUMBERS, max_size=5),
    margin=st.dictionaries(NAMES, NUMBERS, max_size=5),
)


@given(st.dictionaries(st.sampled_from(["sft", "dpo", "grpo"]), RESULTS, max_size=3))
def test_what_was_packed_comes_back(models):
    before = Judged("b", models, {"temperature": 1.0}, dict.fromkeys(models, "f"))
    assert Judged.unpack(json.loads(json.dumps(before.pack({})))) == before


def test_only_trained_models_are_packed():
    packed = judged(base=results(), raw=results(), sft=results()).pack({"base": {}, "sft": {"pass_rate": 0.5}})
    assert (set(packed["results"]), set(packed["figures"]), set(packed["fingerprints"])) == ({"sft"},) * 3


def test_five_hundred_items_of_three_models_fit_into_a_hundred_kibibytes():
    one = results(tasks=500)
    packed = judged(sft=one, dpo=one, grpo=one).pack({})
    assert len(json.dumps(packed)) < 110_000


def test_something_else_is_refused():
    with pytest.raises(KeyError):
        Judged.unpack({"build": "b"})
    packed = judged(sft=results(tasks=3)).pack({})
    packed["results"]["sft"]["heldout"] = "1/8 2/8"
    with pytest.raises(ValueError, match="zip"):
        Judged.unpack(packed)


def line(**values):
    return {"model": "sft", "source": "s", "row_id": "s#1", "content_id": "c1", **values}


def test_tables_are_read_by_model_set_and_measure():
    tasks = [
        line(set="heldout", passes=3, attempts=7, undecided=1, greedy=True),
        line(set="legacy", passes=0, attempts=0, undecided=8, greedy=None),
        line(model="base", set="heldout", passes=0, attempts=8, undecided=0, greedy=False),
    ]
    rows = [line(measure="loss", value=2.0, tokens=3, bytes=12), line(measure="margin", value=-0.5)]
    found = read(pa.Table.from_pylist(tasks, TASKS), pa.Table.from_pylist(rows, ROWS))
    assert found["base"] == Results(heldout={"c1": (0, 8)}, greedy={"c1": (0, 1)})
    assert found["sft"] == Results(
        heldout={"c1": (3, 7)},
        legacy={"c1": (0, 0)},
        greedy={"c1": (1, 1)},
        loss={"c1": 2.0},
        per_byte={"c1": 0.5},
        margin={"c1": -0.5},
        undecided=9,
    )


def test_values_leave_out_what_was_not_decided_and_halve_ties():
    one = Results(heldout={"a": (1, 4), "b": (0, 0)}, margin={"x": 0.1, "y": 0.0, "z": -0.1}, loss={"r": 1.5})
    one = replace(one, per_byte={"r": 0.5})
    assert one.values("pass_rate") == {"a": 0.25}
    assert one.values("preference_accuracy") == {"x": 1.0, "y": 0.5, "z": 0.0}
    assert (one.values("heldout_loss"), one.values("heldout_loss", per_byte=True)) == ({"r": 1.5}, {"r": 0.5})
