"""benchmarks/scrub.py: faults of labels are counted, and each is seen."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def labels():
    scripts = str(Path(__file__).resolve().parent.parent / "benchmarks")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(scripts)
        yield importlib.import_module("_scrub_labels")
    sys.modules.pop("_scrub_labels", None)


def line(text, masked, *spans):
    labelled = [
        dict(zip(("entity_type", "entity_value", "start_position", "end_position"), one, strict=True)) for one in spans
    ]
    return {"full_text": text, "masked": masked, "spans": labelled, "template_id": 7}


RIGHT = line("Call Ann.", "Call {{first_name}}.", ("PERSON", "Ann", 5, 8))
FAULTY = {
    "texts that occurred before": [RIGHT, RIGHT],
    "spans that do not hold their value": [line("Hi Ann.", "Hi {{name}}.", ("PERSON", "Ann", 0, 2))],
    "spans that begin or end in a word": [line("Hi Ann.", "Hi {{name}}.", ("PERSON", "An", 3, 5))],
    "spans that overlap another": [line("Ann Lee", "{{name}}", ("PERSON", "Ann", 0, 3), ("PERSON", "nn", 1, 3))],
    "texts with placeholders left": [line("At {street_name}", "At {street_name}")],
    "texts whose address is a label a part": [
        line("3 Elm", "{{building_number}} {{street_name}}", ("ADDRESS", "3", 0, 1), ("ADDRESS", "Elm", 2, 5))
    ],
    "impossible phone numbers": [line("1", "{{phone_number}}", ("PHONE_NUMBER", "1", 0, 1))],
}


@pytest.mark.parametrize("name", FAULTY)
def test_each_fault_is_counted(labels, name):
    counts = {one.name: one.count for one in labels.faults(FAULTY[name])}
    assert counts[name] == 1
    assert {one.count for one in labels.faults([RIGHT])} == {0}


def test_labels_are_called_by_their_placeholders(labels):
    found = labels.kinds(
        [RIGHT, line("Dr. Ann", "{{prefix}} {{name}}", ("TITLE", "Dr.", 0, 3), ("PERSON", "Ann", 4, 7))]
    )
    assert {name: dict(kinds) for name, kinds in found.items()} == {
        "first_name": {"PERSON": 1},
        "prefix": {"TITLE": 1},
        "name": {"PERSON": 1},
    }
