"""The same records as JSON Lines, CSV, Parquet and a saved data set: the same rows, content id for content id.

What a form cannot say is on docs/shapes.md, and left out here: a null inside a struct, an empty struct, columns of
mixed types. Cells of CSV hold lists and objects as JSON text; tool arguments are JSON text, as OpenAI stores them.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusforge.io.ingest import source_rows
from corpusforge.stages.ingest import SourceConfig

ODD = (
    "",
    " ",
    "null",
    "NA",
    "[1]",
    '{"a": 1}',
    "a\r\nb",
    "\0",
    "é",
    "e\u0301",
    "\u2028",
    '"',
    ",",
    "#### 4",
    "1e5",
    "-0",
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(ODD)
SAID = TEXT.filter(bool)
ARGUMENTS = st.dictionaries(st.sampled_from("ab"), st.none() | st.integers() | TEXT, max_size=2).map(json.dumps)
CALL = st.builds(lambda name, text: {"name": name, "arguments": text}, st.sampled_from(["f", "g"]), ARGUMENTS)
CALLED = st.lists(CALL.map(lambda f: {"id": "c", "type": "function", "function": f}), min_size=1, max_size=2)
TURN = st.one_of(
    st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant"]), TEXT),
    st.builds(lambda calls: {"role": "assistant", "content": None, "tool_calls": calls}, CALLED),
    st.builds(lambda text: {"role": "tool", "content": text, "tool_call_id": "c", "name": "f"}, TEXT),
)
TALK = st.lists(TURN, min_size=1, max_size=3)
TOOLS = st.none() | st.just([{"type": "function", "function": {"name": "f", "description": "d"}}])
LABEL = st.none() | st.booleans()
OPTIONS = st.lists(SAID, min_size=2, max_size=4, unique=True)
SHAPES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "chat": st.fixed_dictionaries({"messages": TALK, "tools": TOOLS, "system": st.none() | SAID}),
    "sharegpt": st.fixed_dictionaries(
        {"conversations": st.lists(st.builds(lambda t: {"from": "human", "value": t}, TEXT), min_size=1, max_size=2)}
    ),
    "prompt_completion": st.fixed_dictionaries(
        {"prompt": SAID, "completion": SAID, "label": st.none() | st.booleans()}
    ),
    "alpaca": st.fixed_dictionaries({"instruction": SAID, "input": st.none() | TEXT, "output": SAID}),
    "instances": st.fixed_dictionaries(
        {
            "instruction": SAID,
            "instances": st.lists(st.fixed_dictionaries({"input": TEXT, "output": TEXT}), min_size=1, max_size=2),
        }
    ),
    "text": st.fixed_dictionaries({"text": SAID, "rating": st.none() | st.floats(-1e6, 1e6)}),
    "preference": st.fixed_dictionaries({"prompt": SAID, "chosen": SAID, "rejected": SAID}),
    "question_answer": st.fixed_dictionaries({"question": SAID, "answer": SAID}),
    "numbers": st.fixed_dictionaries({"question": SAID, "answer": st.integers(-(2**62), 2**62)}),
    "multiple_choice": st.fixed_dictionaries({"question": SAID, "choices": OPTIONS, "answer": st.integers(0, 4)}),
    "mbpp": st.fixed_dictionaries({"text": SAID, "code": TEXT, "test_list": st.lists(SAID, min_size=1, max_size=2)}),
}


def write_csv(path: Path, records: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        for record in records:
            cells = {key: "" if value is None else value for key, value in record.items()}
            writer.writerow(
                {k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in cells.items()}
            )


def _cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def outcome(path: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Content ids in order, and which records were quarantined why."""
    source = SourceConfig(name="s", path=path.name)
    results = list(source_rows(source, path.parent, detect_language=False))
    dropped = [(line["row_id"], line["reason"]) for one in results for line in one.dropped.to_pylist()]
    return [content for one in results for content in one.kept["content_id"].to_pylist()], dropped


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=30)
@given(st.data())
def test_lines_cells_and_columns_say_the_same(shape: str, data: st.DataObject) -> None:
    records = data.draw(st.lists(SHAPES[shape], min_size=1, max_size=4))
    with TemporaryDirectory() as folder:
        place = Path(folder)
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (place / "a.jsonl").write_text(lines, encoding="utf-8", newline="")
        write_csv(place / "a.csv", records)
        pq.write_table(pa.Table.from_pylist(records), place / "a.parquet")
        expected = outcome(place / "a.jsonl")
        assert outcome(place / "a.parquet") == expected
        assert outcome(place / "a.csv") == expected


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=4)
@given(st.data())
def test_a_saved_data_set_says_the_same(shape: str, data: st.DataObject) -> None:
    import datasets

    records = data.draw(st.lists(SHAPES[shape], min_size=1, max_size=4))
    with TemporaryDirectory() as folder:
        place = Path(folder)
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (place / "a.jsonl").write_text(lines, encoding="utf-8", newline="")
        datasets.Dataset.from_list(records).save_to_disk(place / "saved")
        assert outcome(place / "saved") == outcome(place / "a.jsonl")


@settings(max_examples=40)
@given(st.data())
def test_rows_of_many_shapes_share_a_table(data: st.DataObject) -> None:
    """Each has the columns of all, empty where they are not its own; nothing about it changes."""
    names = ["chat", "preference", "alpaca", "text"]
    records = [data.draw(SHAPES[name]) for name in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))]
    columns = dict.fromkeys(key for record in records for key in record)
    with TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        whole = [{**columns, **record} for record in records]
        write_csv(place / "a.csv", whole)
        pq.write_table(pa.Table.from_pylist(whole), place / "a.parquet")
        expected = outcome(place / "a.jsonl")
        assert outcome(place / "a.parquet") == expected
        assert outcome(place / "a.csv") == expected
