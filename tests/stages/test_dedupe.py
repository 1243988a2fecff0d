"""Dedupe: what goes, for whom, and what never goes."""

from __future__ import annotations

import io
import itertools
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import message, row, table

from corpusforge.errors import ConfigError
from corpusforge.sample import dumps
from corpusforge.stages._stage import Held, concat
from corpusforge.stages.dedupe import STAGE, DedupeConfig, dedupe

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.result import StageResult

WORDS = [f"word{i}" for i in range(60)]
LONG = " ".join(WORDS)
NEAR = " ".join([*WORDS[:-1], "other"])  # one shingle of 56 differs: similarity 55/57


def ids(result: StageResult) -> list[str]:
    """Row ids that stay."""
    return result.kept["row_id"].to_pylist()


def details(result: StageResult) -> dict[str, dict[str, Any]]:
    """Ledger detail by row id."""
    return {line["row_id"]: json.loads(line["detail"]) for line in result.dropped.to_pylist()}


def notes(result: StageResult) -> list[tuple[str, str, dict[str, Any]]]:
    """Lines about rows that stay: row id, reason, detail."""
    return [(line["row_id"], line["reason"], json.loads(line["detail"])) for line in result.changes.to_pylist()]


def task(record: int, prompt: str, answer: str, **more: Any) -> dict[str, Any]:
    """A task with a numeric gold."""
    return row(record, prompt, kind="task", verifier={"kind": "numeric", "spec": dumps({"answer": answer})}, **more)


def pair(record: int, prompt: str, chosen: str, rejected: str) -> dict[str, Any]:
    """A preference row."""
    answers = {"chosen": [message("assistant", chosen)], "rejected": [message("assistant", rejected)]}
    return row(record, prompt, kind="preference", **answers)


def test_exact_duplicate_names_the_kept_row() -> None:
    """Same content from two sources: one stays, the ledger says for which the other went."""
    result = dedupe(table([row(1, LONG, "yes", source="b"), row(1, LONG, "yes", source="a")]))
    assert ids(result) == ["a#1"]
    assert details(result) == {"b#1": {"kept": "a#1", "method": "exact", "similarity": 1.0}}
    assert result.reasons() == {"exact_duplicate": 1}


def test_near_duplicate_has_its_exact_similarity() -> None:
    """One word of sixty changed: 55 of 57 shingles."""
    result = dedupe(table([row(1, LONG), row(2, NEAR)]))
    assert details(result) == {"test#2": {"kept": "test#1", "method": "minhash", "similarity": round(55 / 57, 6)}}


def test_exact_only_leaves_near_duplicates() -> None:
    """With exact_only the near one stays, the equal one goes."""
    assert ids(dedupe(table([row(1, LONG), row(2, NEAR), row(3, LONG)]), exact_only=True)) == ["test#1", "test#2"]


def test_a_chain_does_not_remove_its_ends() -> None:
    """A~B~C with A and C apart: B goes for A, C stays."""
    a, b, c = (" ".join(f"w{i}" for i in range(start, start + 60)) for start in (0, 4, 8))
    result = dedupe(table([row(1, a), row(2, b), row(3, c)]))
    assert ids(result) == ["test#1", "test#3"]
    assert details(result)["test#2"]["kept"] == "test#1"


def test_copies_of_a_removed_row_name_the_row_that_stays() -> None:
    """The leader of three equal rows went as a near duplicate: its copies are told of the row that is kept."""
    rows = [row(1, LONG), row(2, NEAR, origin="synthetic"), row(3, NEAR, origin="synthetic")]
    found = details(dedupe(table(rows)))
    assert found["test#2"] == found["test#3"] == {"kept": "test#1", "method": "minhash", "similarity": 0.964912}


def test_human_stays_before_synthetic_whatever_the_order() -> None:
    """Origin decides first, then length, then the earliest record."""
    rows = [row(1, LONG, origin="synthetic"), row(3, NEAR), row(2, NEAR)]
    assert ids(dedupe(table(rows))) == ["test#2"]
    assert ids(dedupe(table([row(1, LONG), row(2, LONG + " more")]))) == ["test#2"]


def test_prefer_sorts_by_unknown_fields_and_sources() -> None:
    """Rules are tried in order; numbers sort as numbers, absent ones last."""
    scores = ["9", "10", None, "10"]
    rows = [
        row(i, LONG, source=source, extra=dumps({"score": score} if score else {}))
        for i, (source, score) in enumerate(zip("abcd", scores, strict=True))
    ]
    assert ids(dedupe(table(rows), prefer=("extra.score desc", "source in [d, b]"))) == ["d#3"]
    assert ids(dedupe(table(rows), prefer=("extra.score asc",))) == ["a#0"]
    assert ids(dedupe(table(rows), prefer=("id desc",))) == ["d#3"]


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("orgin desc", "did you mean 'origin'"),
        ("score desc", r"extra\.score"),
        ("best", "not a rule"),
        ("id", "FIELD asc"),
    ],
)
def test_a_wrong_rule_says_what_would_be_right(rule: str, says: str) -> None:
    """A mistyped field is no silent no-op."""
    with pytest.raises(ConfigError, match=says):
        dedupe(table([row(1, LONG)]), prefer=(rule,))


@pytest.mark.parametrize("text", ["", "   ", "?!", "🙂", None])
def test_rows_that_say_nothing_are_left_to_filter(text: str | None) -> None:
    """Empty and punctuation-only rows are never duplicates of each other; they are noted and counted."""
    result = dedupe(table([row(1, text), row(2, text)]))  # type: ignore[arg-type]
    assert (result.kept.num_rows, result.metrics["empty"]) == (2, 2)
    assert notes(result) == [("test#1", "empty", {}), ("test#2", "empty", {})]


def test_short_texts_are_compared_as_a_whole() -> None:
    """Case and blanks aside; "C" is not "C++", "Yes" is not "No"."""
    texts = ["cat", " Cat ", "dog", "What is C?", "What is C++?", "是", "Yes", "No"]
    assert ids(dedupe(table([row(i, text) for i, text in enumerate(texts)]))) == [
        f"test#{i}" for i in (0, 2, 3, 4, 5, 6, 7)
    ]


def test_system_prompts_do_not_count() -> None:
    """A long shared system prompt does not make two conversations alike; another one does not part two equal ones."""
    rows = [row(i, f"{WORDS[i]} a b c d e f", f"{WORDS[-i]} g h i j k") for i in (1, 2)] + [row(3, LONG), row(4, LONG)]
    for one, system in zip(rows, [LONG, LONG, "Be kind.", "Be brief."], strict=True):
        one["messages"].insert(0, message("system", system))
        one["content_id"] = one["row_id"]
    assert ids(dedupe(table(rows))) == ["test#1", "test#2", "test#3"]


def test_labels_are_not_merged() -> None:
    """Nearly equal long prompts with another short answer are two examples; with the same answer, one."""
    assert dedupe(table([row(1, LONG, "positive"), row(2, NEAR, "negative")])).kept.num_rows == 2
    assert dedupe(table([row(1, LONG, "positive"), row(2, NEAR, "Positive")])).kept.num_rows == 1
    assert dedupe(table([row(1, LONG), row(2, "Say", LONG)])).kept.num_rows == 2


def test_tasks_differ_by_numbers_and_gold() -> None:
    """Other numbers or another gold: another task; only blanks differ: the same."""
    text = LONG + " has {} litres"
    numbers = table([task(1, text.format(120), "15"), task(2, text.format(150), "15")])
    assert dedupe(numbers).kept.num_rows == 2
    assert dedupe(numbers, numbers_matter=False).kept.num_rows == 1
    assert dedupe(table([task(1, LONG, "15"), task(2, NEAR, "16")])).kept.num_rows == 2
    assert dedupe(table([task(1, LONG, "15"), task(2, LONG.replace(" ", "  "), "15")])).kept.num_rows == 1


def test_conflicting_gold_is_reported_for_both() -> None:
    """Same prompt, different answers: both stay, each names the other, one cluster."""
    result = dedupe(table([task(1, LONG, "8"), task(2, LONG.upper(), "9"), task(3, "another question", "9")]))
    assert notes(result) == [
        (f"test#{i}", "conflicting_gold", {"other_gold": [f"test#{j}"], "same_prompt": 2}) for i, j in ((1, 2), (2, 1))
    ]
    assert len(set(result.kept["cluster"].to_pylist())) == 2


def test_other_tools_or_images_ask_something_else() -> None:
    """With another tool at hand another call is right: no conflict."""
    tools = [dumps([{"type": "function", "function": {"name": name}}]) for name in ("add", "subtract")]
    rows = [task(n, LONG, gold) | {"tools": tool} for n, gold, tool in ((1, "8", tools[0]), (2, "9", tools[1]))]
    assert notes(dedupe(table(rows))) == []
    pictures = [task(n, LONG, str(n)) | {"images": [{"bytes": bytes([n]), "path": None}]} for n in (1, 2)]
    assert notes(dedupe(table(pictures))) == []
    assert len(notes(dedupe(table([row | {"tools": tools[0]} for row in rows])))) == 2


def test_swapped_and_differing_answers_of_a_pair_stay() -> None:
    """A long shared prompt does not make other answers, or swapped ones, a duplicate."""
    good, bad, new = " ".join(WORDS[:12]), " ".join(WORDS[20:32]), " ".join(WORDS[40:52])
    rows = [pair(1, LONG, good, bad), pair(2, LONG, bad, good), pair(3, LONG, good, new), pair(4, NEAR, good, bad)]
    assert ids(dedupe(table(rows))) == ["test#1", "test#2", "test#3"]


@pytest.mark.parametrize(
    "more",
    [
        {"kind": "rated", "rating": {"value": 2.0, "scale": "1-5", "by": "me"}},
        {"tools": '[{"name":"f"}]'},
        {"images": [{"bytes": b"2", "path": None}]},
    ],
)
def test_equal_texts_of_other_kind_tools_or_images_stay(more: dict[str, Any]) -> None:
    """What the text does not show may still make it another row."""
    base = {"images": [{"bytes": b"1", "path": None}]} if "images" in more else {}
    assert dedupe(table([row(1, LONG, **base), row(2, LONG, **more)])).kept.num_rows == 2
    assert dedupe(table([row(1, LONG, **more), row(2, LONG, **more)])).kept.num_rows == 1


def test_images_without_words_are_exact_duplicates() -> None:
    """Equal images without text are the same row; no image and no text is not."""
    image = {"images": [{"bytes": b"png", "path": None}]}
    assert dedupe(table([row(1, "", **image), row(2, "", **image)])).kept.num_rows == 1


def test_the_stricter_twin_governs() -> None:
    """The kept row takes on restrictions of what went for it, also those that a licence's name implies."""
    rows = [row(1, LONG), row(2, LONG, restrictions=["no-train"], license="CC-BY-NC-4.0"), row(3, NEAR, "Unlike")]
    result = dedupe(table(rows))
    assert result.kept["source"][0].as_py()["restrictions"] == ["no-train", "non-commercial"]
    twin = {"license": ["CC-BY-NC-4.0"], "restrictions": ["no-train", "non-commercial"], "twin": ["test#2"]}
    twin["governs"] = "CC-BY-NC-4.0 AND MIT"
    assert notes(result) == [("test#1", "stricter_twin", twin)]
    assert result.kept["source"][1].as_py() == rows[2]["source"]


def test_reference_rows_are_protected() -> None:
    """New rows go for rows that are already there, however these rank; the reference is not part of the result."""
    reference = table([row(1, LONG, source="old", origin="synthetic"), row(2, LONG, source="old")])
    result = dedupe(table([row(1, LONG), row(2, NEAR), row(3, "quite another text")]), reference=reference)
    assert ids(result) == ["test#3"]
    assert {d["kept"] for d in details(result).values()} <= {"old#1", "old#2"}
    assert dedupe(table([row(1, LONG)]), reference=reference.slice(0, 0)).kept.num_rows == 1


def test_cluster_joins_prompts_and_removals_and_stays() -> None:
    """Same prompt or removed for one another: one name, the smallest content id; a second run keeps the name."""
    rows = table(
        [row(1, "same question", "one answer"), row(2, "Same question", LONG), row(3, "other", NEAR[:40]), row(4, LONG)]
    )
    result = dedupe(table([*rows.to_pylist(), row(5, NEAR)]))
    names = result.kept["cluster"].to_pylist()
    assert names[0] == names[1] == min(rows["content_id"].to_pylist()[:2])
    assert names[3] == min(row(i, text)["content_id"] for i, text in ((4, LONG), (5, NEAR)))
    assert len(set(names)) == 3
    assert dedupe(result.kept).kept.equals(result.kept)


def test_empty_table_gives_an_empty_result() -> None:
    """No rows, no trouble."""
    result = dedupe(table([]))
    assert (result.kept.num_rows, result.dropped.num_rows) == (0, 0)


def test_a_mistyped_option_is_named() -> None:
    """The nearest right name is offered; a threshold of 0 is refused."""
    with pytest.raises(ConfigError, match="did you mean 'threshold'"):
        dedupe(table([]), treshold=0.5)
    with pytest.raises(ConfigError, match="threshold"):
        dedupe(table([]), threshold=0)


@pytest.mark.parametrize("threshold", [0.01, 0.08, 0.5, 1.0])
def test_any_threshold_runs(threshold: float) -> None:
    """From almost everything to equal sets only."""
    result = dedupe(
        table([row(i, f"{LONG} {i}") for i in range(5)] + [row(9, LONG.upper() + " 4")]), threshold=threshold
    )
    assert result.kept.num_rows == (5 if threshold == 1 else 1)


# A small vocabulary and word edits make exact, near and far duplicates likely in every example.
EDITS = st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 59), max_size=4), st.booleans()), max_size=14)


def corpus(edits: list[tuple[int, list[int], bool]]) -> pa.Table:
    """Rows from three base texts with single words replaced."""
    rows = []
    for number, (base, places, human) in enumerate(edits):
        words = [f"{base}{word}" for word in WORDS]
        for place in places:
            words[place] = "edit"
        rows.append(row(number, " ".join(words), origin="human" if human else "synthetic"))
    return table(rows)


def plain_similarity(a: str, b: str) -> float:
    """Jaccard over word 5-grams, in plain Python."""
    one, two = (
        {tuple(words[i : i + 5]) for i in range(len(words) - 4)} for words in (re.findall(r"\w+", t) for t in (a, b))
    )
    return len(one & two) / len(one | two)


@settings(max_examples=40)
@given(EDITS)
def test_every_removal_is_right_and_none_is_missing(edits: list[tuple[int, list[int], bool]]) -> None:
    """By brute force: each removed row has its kept partner at that similarity; no two kept rows are at 0.8."""
    rows = corpus(edits)
    texts = dict(zip(rows["row_id"].to_pylist(), (m[0]["content"] for m in rows["messages"].to_pylist()), strict=True))
    result = dedupe(rows, recall=0.9999, num_perm=512)
    kept = set(ids(result))
    for name, detail in details(result).items():
        assert name not in kept
        assert detail["kept"] in kept
        assert detail["similarity"] == round(plain_similarity(texts[name], texts[detail["kept"]]), 6) >= 0.8
    assert not [(a, b) for a in kept for b in kept if a < b and plain_similarity(texts[a], texts[b]) >= 0.8]


@settings(max_examples=40)
@given(EDITS, st.randoms(use_true_random=False))
def test_row_order_does_not_matter(edits: list[tuple[int, list[int], bool]], random: Any) -> None:
    """Shuffled rows give the same kept rows, clusters and ledger; kept rows stay in their order."""
    rows = corpus(edits)
    order = list(range(rows.num_rows))
    random.shuffle(order)
    plain, mixed = dedupe(rows), dedupe(rows.take(pa.array(order, pa.int64())))
    assert ids(mixed) == [
        name for name in rows["row_id"].take(pa.array(order, pa.int64())).to_pylist() if name in ids(plain)
    ]
    assert plain.kept.sort_by("row_id").equals(mixed.kept.sort_by("row_id"))
    assert plain.dropped.sort_by("row_id").equals(mixed.dropped.sort_by("row_id"))
    assert plain.metrics == mixed.metrics


@settings(max_examples=30)
@given(EDITS, st.lists(st.integers(0, 14), max_size=3))
def test_partitions_do_not_matter(edits: list[tuple[int, list[int], bool]], cuts: list[int]) -> None:
    """Summaries per partition, through Parquet, and verdicts applied per partition give the whole table's result."""
    rows, config = corpus(edits), DedupeConfig()
    ends = [0, *sorted(min(cut, rows.num_rows) for cut in cuts), rows.num_rows]
    parts = [rows.slice(a, b - a) for a, b in itertools.pairwise(ends)]
    summaries = []
    for part in parts:
        file = io.BytesIO()
        pq.write_table(STAGE.summarise(part, config, {}), file)
        summaries.append(pq.read_table(file))
    verdicts = STAGE.decide(pa.concat_tables(summaries), config, {}, Held(rows)).verdicts
    results = [
        STAGE.apply(part, verdicts.slice(at, part.num_rows), config, {})
        for at, part in zip(ends[:-1], parts, strict=True)
    ]
    whole, joined = dedupe(rows), concat("dedupe", results)
    assert joined.kept.equals(whole.kept)
    assert joined.dropped.equals(whole.dropped)
    assert joined.changes.equals(whole.changes)


@settings(max_examples=40)
@given(EDITS)
def test_a_second_run_changes_nothing(edits: list[tuple[int, list[int], bool]]) -> None:
    """Kept rows are kept again, with their clusters; every row is accounted for."""
    rows = corpus(edits)
    once = dedupe(rows)
    assert once.kept.num_rows + once.dropped.num_rows == rows.num_rows
    assert dedupe(once.kept).kept.equals(once.kept)


def test_planted_copies_are_found(shared: Path) -> None:
    """On GSM8K with one word in fifty replaced: of copies at 0.8 or more at most one in a hundred stays."""
    lines = (shared / "data/gsm8k/train.jsonl").read_bytes().splitlines()[:1500]
    texts = [f"{r['question']} {r['answer']}" for r in map(json.loads, lines)]
    draw = np.random.default_rng(3)
    copies = [" ".join("edit" if draw.random() < 0.02 else word for word in text.split()) for text in texts]
    rows = table([row(i, text) for i, text in enumerate(texts + copies)])
    gone = set(details(dedupe(rows)))
    found = [text for text in zip(texts, copies, strict=True) if plain_similarity(*(t.lower() for t in text)) >= 0.8]
    left = [i for i in range(1500) if f"test#{i}" not in gone and f"test#{i + 1500}" not in gone]
    missed = [i for i in left if plain_similarity(texts[i].lower(), copies[i].lower()) >= 0.8]
    assert len(found) > 500
    assert len(missed) <= len(found) // 100
