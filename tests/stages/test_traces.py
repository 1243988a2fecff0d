"""Dedupe on agents' traces: steps decide, not what many traces were shown by the same tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import message, row, table

import corpusforge as cf
from corpusforge.sample import content_id, dumps
from corpusforge.stages.dedupe import dedupe
from corpusforge.text.views import RESULT_HEAD, compare_text

if TYPE_CHECKING:
    from pathlib import Path

README = " ".join(f"line {i} of the read-me tells about part {i * 7 % 1000} of the works" for i in range(400))
LISTING = "\n".join(f"-rw-r--r-- 1 me me {i * 13} src/salt/part_{i}.py" for i in range(300))


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """An assistant's turn that calls a tool, under an id that is drawn anew each time."""
    call.drawn = getattr(call, "drawn", 0) + 1  # type: ignore[attr-defined]
    function = {"name": name, "arguments": arguments}
    made = {"id": f"call_{call.drawn:06}", "type": "function", "function": function}  # type: ignore[attr-defined]
    return message("assistant", None, tool_calls=json.dumps([made], separators=(",", ":")))


def trace(record: int, ask: str, edit: str, done: str, seen: str = LISTING, **more: Any) -> dict[str, Any]:
    """A coding agent looks around in a repository, edits a file and says what it did."""
    turns = [message("user", ask)]
    for path, result in ((".", seen), ("README.md", README)):
        turns += [call("show", path=path), message("tool", result)]
    turns += [call("edit", path="src/salt/part_3.py", text=edit), message("tool", "ok"), message("assistant", done)]
    made = row(record, **more) | {"messages": turns}
    return made | {"content_id": content_id(made)}


LEAK = (
    "The pump of the north basin stops too early. Find out why and mend it.",
    "def stop(level): return level > HIGH and not raining() and age(level) < 60",
    "The level was an hour old when the pump stopped, so I look at its age before I trust it.",
)
DOOR = (
    "Print labels for sacks in the order in which the carts arrive at the gate.",
    "labels = sorted(sacks, key=arrival); printer.write(label.text for label in labels)",
    "Labels come out by time of arrival now; sacks without a cart come last, as the old list had them.",
)


def left(*rows: dict[str, Any], **options: Any) -> list[str]:
    """Ids of the rows that stay."""
    return dedupe(table(list(rows)), **options).kept["row_id"].to_pylist()


def share_in_common(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Share of the bytes of two traces that are messages of both."""
    texts = [[dumps({k: v for k, v in m.items() if k == "content"}) for m in r["messages"]] for r in (one, other)]
    both = set(texts[0]) & set(texts[1])
    return sum(len(t) for t in texts[0] if t in both) / sum(len(t) for t in texts[0])


def test_two_tasks_over_one_repository_stay() -> None:
    """Ninety-five of a hundred bytes are equal, and nobody has done the same."""
    one, other = trace(1, *LEAK), trace(2, *DOOR)
    assert share_in_common(one, other) > 0.95
    assert left(one, other) == ["test#1", "test#2"]
    assert left(one, other, threshold=0.5) == ["test#1", "test#2"]


def test_a_long_introduction_by_the_user_does_not_make_two_tasks_one() -> None:
    """The read-me in the user's turn is as little of the task as the one that a tool shows."""
    ask = f"{README}\n\nYou work in the repository above. "
    assert left(trace(1, ask + LEAK[0], *LEAK[1:]), trace(2, ask + DOOR[0], *DOOR[1:])) == ["test#1", "test#2"]


def test_the_same_steps_are_a_duplicate_whatever_the_clock_says() -> None:
    """Another time in a tool's output and other ids of calls: the same trace."""
    one, other = trace(1, *LEAK, seen=f"10:31:07\n{LISTING}"), trace(2, *LEAK, seen=f"22:04:59\n{LISTING}")
    result = dedupe(table([one, other]))
    detail = json.loads(result.dropped["detail"][0].as_py())
    assert (detail["kept"], detail["method"]) == ("test#1", "minhash")
    assert detail["similarity"] > 0.9
    assert left(one, trace(3, *LEAK, seen=LISTING[::-1])) == ["test#1", "test#3"]  # another listing altogether


def test_other_steps_for_the_same_request_stay() -> None:
    """Two ways to mend one fault are two traces."""
    assert left(trace(1, *LEAK), trace(2, LEAK[0], *DOOR[1:])) == ["test#1", "test#2"]


def test_a_result_that_repeats_counts_once() -> None:
    """An agent that looks at the same listing thrice has done little more than one that looks once."""
    once, thrice = trace(1, *LEAK), trace(2, *LEAK)
    thrice["messages"][3:3] = [call("show", path="."), message("tool", LISTING)] * 2
    thrice["content_id"] = content_id(thrice)
    assert len(left(once, thrice)) == 1


def test_what_a_tool_shows_first_can_part_two_traces() -> None:
    """Same words and same steps about another document: the head of the result is seen."""
    texts = [" ".join(f"{name}{i}" for i in range(200)) for name in ("ferry", "mill")]
    rows = [trace(i, "Sum up what is there.", "x", "Nothing to do.", seen=text) for i, text in enumerate(texts)]
    assert len(left(*rows)) == 2


def test_a_task_keeps_all_that_its_tools_gave() -> None:
    """The gold may hang on the last line: results of tasks are compared whole, and apart from what is asked."""
    gold = {"kind": "task", "verifier": {"kind": "exact", "spec": dumps({"answer": "yes"})}}
    long = " ".join(f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(300))
    ask = "Does the document say that the ferry leaves before the tide turns? Answer with one word."

    def asked(record: int, document: str, question: str = ask) -> dict[str, Any]:
        made = row(record, **gold) | {"messages": [message("user", question), message("tool", document)]}
        return made | {"content_id": content_id(made)}

    assert len(left(asked(1, long), asked(2, long + " " + " ".join(f"more{i}" for i in range(90))))) == 2
    assert len(left(asked(1, long), asked(2, long + " last"))) == 1
    assert len(left(asked(1, long), asked(2, long, "Is the mill named? Say so in a word."))) == 2


def test_answers_of_a_pair_are_traces_too() -> None:
    """Both answers look at the same files; what they do there decides."""
    rows = [trace(1, *LEAK), trace(2, *LEAK), trace(3, *DOOR)]
    for made in rows:
        made |= {"kind": "preference", "chosen": made["messages"][1:], "messages": [message("user", LEAK[0])]}
        made |= {"rejected": [message("assistant", "I do not know how to do that, ask somebody else please.")]}
        made["content_id"] = content_id(made)
    assert left(*rows) == ["test#1", "test#3"]


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["user", "assistant", "tool", "system"]), max_size=6), st.text(max_size=600))
def test_what_is_compared_depends_on_the_row_alone(roles: list[str], text: str) -> None:
    """Whatever rows are around, in whichever order and slice, a row's compared text is the same."""
    rows = [row(i, kind=kind) for i, kind in enumerate(("sft", "task", "preference", "rated", "sft"))]
    for i, one in enumerate(rows):
        one["messages"] = [message(role, text[i:] + role) for role in roles] if i % 2 == 0 else [message("user", "a")]
    whole = compare_text(table(rows)).to_pylist()
    assert [compare_text(table([one]))[0].as_py() for one in rows] == whole
    assert compare_text(table(rows[::-1])).to_pylist() == whole[::-1]
    assert compare_text(table(rows).slice(2, 2)).to_pylist() == whole[2:4]


def test_nulls_in_traces_are_nothing() -> None:
    """Missing messages, roles, contents and calls: no text, no failure."""
    odd = [message("tool", None), message(None, "word"), message("assistant", None, tool_calls="[1,")]  # type: ignore[arg-type]
    rows = [row(i) | {"messages": turns} for i, turns in enumerate([None, [], [None], odd])]
    assert compare_text(table(rows)).to_pylist() == ["", "", "", "word\x1e[1,"]
    assert dedupe(table(rows)).kept.num_rows == 4


@pytest.fixture(scope="module")
def retail(shared: Path) -> list[dict[str, Any]]:
    """Conversations of a shop's assistant: 69 traces whose tools show customers and orders."""
    source = {"name": "tau", "origin": "synthetic", "license": "MIT"}
    return cf.ingest(shared / "data/tau_bench/MockRetailDomainEnv-few_shot.jsonl", source).kept.to_pylist()


def test_conversations_of_one_shop_all_stay(retail: list[dict[str, Any]]) -> None:
    """The same shop, the same tools, other customers."""
    result = dedupe(table(retail))
    assert (result.kept.num_rows, result.metrics["comparisons_cut"]) == (69, 0)


def test_copies_whose_tools_answered_otherwise_are_found(retail: list[dict[str, Any]]) -> None:
    """A field at the end of every long result, as a clock would put it there: all copies go, each for its own."""
    copies = json.loads(json.dumps(retail))
    for one in copies:
        one["row_id"] += "-copy"
        one["source"]["record"] += 1000
        for turn in one["messages"]:
            if turn["role"] == "tool" and len(turn["content"]) > RESULT_HEAD:
                turn["content"] += ' {"served": "2026-05-01T10:31:07Z", "by": "node 7"}'
        one["content_id"] = content_id(one)
    result = dedupe(table(retail + copies))
    partners = {line["row_id"]: json.loads(line["detail"])["kept"] for line in result.dropped.to_pylist()}
    assert partners == {f"{one['row_id']}-copy": one["row_id"] for one in retail}


def test_one_customer_with_another_wish_stays(retail: list[dict[str, Any]]) -> None:
    """Tool results of one conversation under the words of another: what was said and done decides."""
    long = sorted(retail, key=lambda one: -len(one["messages"]))[:2]
    mixed = json.loads(json.dumps(long[1]))
    results = [turn["content"] for turn in long[0]["messages"] if turn["role"] == "tool"] * 3
    spoken = [turn for turn in mixed["messages"] if turn["role"] != "tool"]
    mixed["messages"] = [*spoken[:2], *(message("tool", result) for result in results), *spoken[2:]]
    mixed |= {"row_id": "mixed", "content_id": content_id(mixed)}
    assert "mixed" in left(long[0], mixed)
