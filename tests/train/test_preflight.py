"""Preflight against the real trainers: TRL must see what we say it sees, and keep every row that we leave it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusforge.errors import ConfigError
from corpusforge.result import LEDGER
from corpusforge.train import preflight, scratch
from corpusforge.train._config import ScratchConfig, TrainConfig
from corpusforge.train._lost import Finder
from corpusforge.train._render import Fault, Renderer, Talk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

os.environ["HF_HUB_OFFLINE"] = "1"
pytest.importorskip("trl")
# TRL deprecates an option that users may still set; jit in torch is deprecated on new Pythons.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The `'keep_end'` truncation mode is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
]

TEMPLATES = sorted(Path(str(importlib.util.find_spec("trl").origin)).parent.glob("chat_templates/*.jinja"))
LIMIT = 24
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
TOOLS = json.dumps(
    [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {}}}}}]
)
CALL = {"type": "function", "id": "abcdefghi", "function": {"name": "add", "arguments": {"a": 1}}}
ASKED = {"role": "user", "content": "one two"}
CALLED = {"role": "assistant", "content": "", "tool_calls": [CALL]}
TOLD = {"role": "tool", "content": "three", "name": "add", "tool_call_id": "abcdefghi"}
SAID = {"role": "assistant", "content": "it is three"}


def words(count: int, start: int = 0) -> str:
    return " ".join(WORDS[(start + n) % len(WORDS)] for n in range(count))


def user(count: int) -> dict[str, str]:
    return {"role": "user", "content": words(count)}


def said(count: int, start: int = 0) -> dict[str, str]:
    return {"role": "assistant", "content": words(count, start)}


def trl_template(name: str) -> str:
    return next(path for path in TEMPLATES if path.stem == name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """One token per word, but for the spaces before them."""
    return scratch.train_tokenizer([words(10, n) for n in range(10)] * 20, 400, LIMIT)


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Callable[[], Any]:
    size = ScratchConfig(vocab_size=400, hidden_size=16, layers=1, heads=2)
    return lambda: scratch.make_model(size, tokenizer, LIMIT, 0)


def chats(*conversations: Sequence[Mapping[str, Any]] | tuple[Sequence[Mapping[str, Any]], str]) -> Any:
    """Conversations, each alone or with its tools, in the form of the shards."""
    pairs = [one if isinstance(one, tuple) else (one, None) for one in conversations]
    return lines(("messages",), [{"messages": list(messages), "tools": tools} for messages, tools in pairs])


def lines(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Any:
    import datasets

    text = datasets.Value("string")
    form = dict.fromkeys(("row_id", "record_id", "source", "content_id", "tools"), text)
    form |= {name: datasets.List(datasets.Json()) for name in columns}
    named = [
        {"row_id": f"r{n}", "record_id": None, "source": "s", "content_id": f"c{n}", "tools": None, **row}
        for n, row in enumerate(rows)
    ]
    return datasets.Dataset.from_list(named, features=datasets.Features(form))


def pairs(*rows: tuple[int, int, int]) -> Any:
    """Pairs from words in the prompt, in the chosen and in the rejected answer."""
    made = [{"prompt": [user(p)], "chosen": [said(c)], "rejected": [said(r, 5)]} for p, c, r in rows]
    return lines(("prompt", "chosen", "rejected"), made)


def reasons(seen: preflight.Seen, table: str = "dropped") -> dict[str, str]:
    found = getattr(seen, table)
    return dict(zip(found["row_id"].to_pylist(), found["reason"].to_pylist(), strict=True))


def sft_trainer(rows: Any, tokenizer: Any, model: Any, out: Path, **options: Any) -> Any:
    from trl import SFTConfig, SFTTrainer

    args = SFTConfig(output_dir=str(out), **_plain(options))
    return SFTTrainer(model=model, args=args, train_dataset=rows, processing_class=tokenizer)


def dpo_trainer(rows: Any, tokenizer: Any, model: Callable[[], Any], out: Path, **options: Any) -> Any:
    from trl import DPOConfig, DPOTrainer

    args = DPOConfig(output_dir=str(out), **_plain(options))
    return DPOTrainer(model=model(), ref_model=model(), args=args, train_dataset=rows, processing_class=tokenizer)


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    import datasets

    datasets.disable_progress_bars()
    quiet = {"report_to": "none", "use_cpu": True, "bf16": False, "activation_checkpointing": False}
    return {"max_length": LIMIT, **quiet, **options}


def sft_figures(trainer: Any) -> tuple[set[str], int, int]:
    """What SFTTrainer kept: row ids, tokens, and tokens whose prediction is learned."""
    data = trainer.train_dataset
    labels = [np.array(one[1:]) for one in data["labels"]]
    return set(data["row_id"]), sum(map(len, data["input_ids"])), sum(int((one != -100).sum()) for one in labels)


def dpo_figures(trainer: Any) -> tuple[set[str], int, int]:
    """What DPOTrainer and its collator keep: row ids, tokens of both sides, tokens whose prediction is learned."""
    data, tokens, trained = trainer.train_dataset, 0, 0
    for row in data:
        batch = trainer.data_collator([row])
        tokens += int(batch["attention_mask"].sum())
        trained += int(batch["completion_mask"][:, 1:].sum())
    return set(data["row_id"]), tokens, trained


KEEP = TrainConfig(cut="keep", lost_field="keep")
PLANTED = (
    [user(3), said(3)],
    [user(30), said(3)],  # the question fills the limit
    [user(3), said(30)],  # the answer is cut
    [user(3)],  # nobody answers
    [user(2), said(2), user(14), said(9)],  # the second answer is cut away
)


@pytest.mark.parametrize("mode", ["keep_start", "keep_end"])
@pytest.mark.parametrize("only", [True, False])
def test_sft_sees_the_rows_and_tokens_that_we_say(tokenizer, model, tmp_path, mode, only):
    trl = {"truncation_mode": mode, "assistant_only_loss": only}
    seen = preflight.sft(chats(*PLANTED), tokenizer, "train_sft", KEEP.model_copy(update={"trl": trl}), LIMIT)
    told = chats(*(PLANTED[:3] + PLANTED[4:] if only else PLANTED))  # TRL stops at a row that nobody answers
    _, tokens, trained = sft_figures(sft_trainer(told, tokenizer, model(), tmp_path, **trl))
    assert seen.metrics["trained_tokens"] == trained
    kept = sft_figures(sft_trainer(chats(*PLANTED).select(seen.keep), tokenizer, model(), tmp_path, **trl))
    assert kept == ({f"r{n}" for n in seen.keep}, seen.metrics["tokens"], seen.metrics["trained_tokens"])
    assert kept[1] == tokens


def test_rows_that_teach_nothing_or_are_cut_are_named(tokenizer):
    seen = preflight.sft(chats(*PLANTED), tokenizer, "train_sft", TrainConfig(), LIMIT)
    assert reasons(seen) == {"r1": "no_trained_token", "r2": "cut", "r3": "no_trained_token", "r4": "cut"}
    assert list(seen.keep) == [0]


def test_a_cut_row_stays_and_is_noted_when_cut_is_keep(tokenizer):
    seen = preflight.sft(chats(*PLANTED), tokenizer, "train_sft", TrainConfig(cut="keep"), LIMIT)
    assert reasons(seen) == {"r1": "no_trained_token", "r3": "no_trained_token"}
    assert reasons(seen, "changes") == {"r2": "cut", "r4": "cut"}


def test_the_ledger_states_tokens_and_limit_and_nothing_of_the_row(tokenizer):
    seen = preflight.sft(chats(PLANTED[2]), tokenizer, "train_sft", TrainConfig(), LIMIT)
    (line,) = seen.dropped.to_pylist()
    length = len(tokenizer.apply_chat_template(PLANTED[2])["input_ids"])
    facts = {"tokens": length, "limit": LIMIT, "trained_tokens": json.loads(line["detail"])["trained_tokens"]}
    assert (line["stage"], json.loads(line["detail"])) == ("train_sft", facts)
    assert seen.dropped.schema == LEDGER


def test_every_row_is_kept_or_dropped_and_counted_per_source(tokenizer):
    seen = preflight.sft(chats(*PLANTED), tokenizer, "train_sft", TrainConfig(), LIMIT)
    figures = seen.metrics
    assert (figures["in"], figures["kept"], figures["dropped"]) == (5, len(seen.keep), seen.dropped.num_rows)
    assert figures["by_source"] == {"s": {"in": 5, "kept": 1, "dropped": 4}}


def test_the_digest_is_of_the_content_that_is_kept_in_order(tokenizer):
    def digest(*rows: Any) -> str:
        return preflight.sft(chats(*rows), tokenizer, "train_sft", TrainConfig(), LIMIT).digest

    fine = [user(3), said(3)]
    assert digest(fine, fine) == digest(fine, fine, PLANTED[1])
    assert len({digest(fine), digest(fine, fine), digest(PLANTED[1], fine)}) == 3


def test_batches_change_nothing(tokenizer, monkeypatch):
    whole = preflight.sft(chats(*PLANTED), tokenizer, "train_sft", TrainConfig(), LIMIT)
    monkeypatch.setattr(preflight, "_BATCH", 2)
    parts = preflight.sft(chats(*PLANTED), tokenizer, "train_sft", TrainConfig(), LIMIT)
    assert (parts.metrics, parts.digest, parts.dropped) == (whole.metrics, whole.digest, whole.dropped)
    assert list(parts.keep) == list(whole.keep)


def test_a_token_that_nothing_is_left_before_is_not_learned(tokenizer, model, tmp_path):
    rows = chats([user(2), said(2), user(5)])
    limit = 1 + len(tokenizer.apply_chat_template([user(5)])["input_ids"])  # the end of the answer, then the question
    trl = {"truncation_mode": "keep_end", "assistant_only_loss": True}
    seen = preflight.sft(rows, tokenizer, "train_sft", KEEP.model_copy(update={"trl": trl}), limit)
    kept = sft_trainer(rows, tokenizer, model(), tmp_path, max_length=limit, **trl).train_dataset
    (labels,) = kept["labels"]
    assert (labels[0] == -100, set(labels[1:])) == (False, {-100})
    assert reasons(seen) == {"r0": "no_trained_token"}


LENGTHS = st.lists(st.lists(st.tuples(st.integers(1, 15), st.integers(0, 15)), min_size=1, max_size=3), min_size=1)


@settings(max_examples=6)
@given(LENGTHS.map(lambda rows: rows[:8]), st.sampled_from(["keep_start", "keep_end"]), st.booleans())
def test_sft_keeps_what_is_left_to_it_whatever_the_lengths(tokenizer, model, tmp_path_factory, lengths, mode, only):
    trl = {"truncation_mode": mode, "assistant_only_loss": only}
    rows = chats(*([turn for asked, answered in row for turn in (user(asked), said(answered))] for row in lengths))
    seen = preflight.sft(rows, tokenizer, "train_sft", KEEP.model_copy(update={"trl": trl}), LIMIT)
    found = sft_figures(sft_trainer(rows, tokenizer, model(), tmp_path_factory.mktemp("out"), **trl))
    assert found == ({f"r{n}" for n in seen.keep}, seen.metrics["tokens"], seen.metrics["trained_tokens"])


def test_best_fit_packing_cuts_long_rows_and_split_packing_does_not(tokenizer, model, tmp_path):
    rows = chats(PLANTED[2])
    for strategy in ("bfd", "bfd_split"):
        trl = {"packing": True, "packing_strategy": strategy, "assistant_only_loss": False}
        seen = preflight.sft(rows, tokenizer, "train_sft", KEEP.model_copy(update={"trl": trl}), LIMIT)
        packed = sft_trainer(rows, tokenizer, model(), tmp_path, **trl).train_dataset
        assert seen.metrics["tokens"] == sum(map(len, packed["input_ids"]))
        assert reasons(seen, "changes") == ({"r0": "cut"} if strategy == "bfd" else {})


PAIRS = (
    (3, 4, 5),
    (30, 3, 4),  # the prompt fills the limit
    (3, 40, 4),  # one side is cut
    (4, 0, 3),
)


@pytest.mark.parametrize("mode", ["keep_start", "keep_end"])
def test_dpo_sees_the_pairs_and_tokens_that_we_say(tokenizer, model, tmp_path, mode):
    trl = {"truncation_mode": mode}
    rows = pairs(*PAIRS)
    seen = preflight.preference(rows, tokenizer, "train_dpo", KEEP.model_copy(update={"trl": trl}), LIMIT)
    found = dpo_figures(dpo_trainer(rows, tokenizer, model, tmp_path, **trl))
    assert found == ({f"r{n}" for n in seen.keep}, seen.metrics["tokens"], seen.metrics["trained_tokens"])
    assert reasons(seen) == ({"r1": "prompt_at_limit"} if mode == "keep_start" else {})


@settings(max_examples=6)
@given(
    st.lists(st.tuples(*[st.integers(0, 14)] * 3), min_size=1, max_size=6),
    st.sampled_from(["keep_start", "keep_end"]),
)
def test_dpo_keeps_what_is_left_to_it_whatever_the_lengths(tokenizer, model, tmp_path_factory, lengths, mode):
    config = TrainConfig(cut="keep", trl={"truncation_mode": mode})
    rows = pairs((0, 3, 4), *lengths)
    seen = preflight.preference(rows, tokenizer, "train_dpo", config, LIMIT)
    kept = rows.select(seen.keep)
    found = dpo_figures(dpo_trainer(kept, tokenizer, model, tmp_path_factory.mktemp("out"), truncation_mode=mode))
    assert found == (set(kept["row_id"]), seen.metrics["tokens"], seen.metrics["trained_tokens"])


@pytest.mark.parametrize(("room", "expected"), [(0, {"r0": "prompt_at_limit"}), (1, {"r0": "cut"}), (5, {})])
def test_the_limits_hold_to_the_token(tokenizer, model, tmp_path, room, expected):
    rows = pairs((3, 2, 2))
    prompt = len(tokenizer.apply_chat_template([user(3)], add_generation_prompt=True)["input_ids"])
    seen = preflight.preference(rows, tokenizer, "train_dpo", TrainConfig(), prompt + room)
    assert reasons(seen) == expected
    left = dpo_trainer(rows, tokenizer, model, tmp_path, max_length=prompt + room).train_dataset
    assert len(left) == (room > 0)


def test_answers_that_are_equal_after_the_cut_teach_nothing(tokenizer):
    same, longer = said(30), {"role": "assistant", "content": words(30) + " two"}
    rows = lines(
        ("prompt", "chosen", "rejected"),
        [
            {"prompt": [user(3)], "chosen": [same], "rejected": [longer]},  # they differ after the limit only
            {"prompt": [user(3)], "chosen": [said(3)], "rejected": [said(3)]},
            {"prompt": [user(3)], "chosen": [said(3)], "rejected": [said(3, 1)]},
        ],
    )
    seen = preflight.preference(rows, tokenizer, "train_dpo", TrainConfig(cut="keep"), LIMIT)
    assert reasons(seen) == {"r0": "equal_after_cut", "r1": "equal_after_cut"}


def test_the_same_tokens_are_no_equal_answers_where_more_of_them_are_answer(tokenizer):
    asked, answered = user(3), said(3)
    rows = lines(
        ("prompt", "chosen", "rejected"),
        [{"prompt": [asked], "chosen": [said(5), asked, answered], "rejected": [answered]}],
    )
    limit = len(tokenizer.apply_chat_template([asked, answered])["input_ids"])
    config = TrainConfig(trl={"truncation_mode": "keep_end"})
    assert reasons(preflight.preference(rows, tokenizer, "train_dpo", config, limit)) == {"r0": "cut"}


def test_a_pair_without_an_answer_is_dropped(tokenizer):
    rows = lines(("prompt", "chosen", "rejected"), [{"prompt": [user(3)], "chosen": [], "rejected": [said(3)]}])
    seen = preflight.preference(rows, tokenizer, "train_dpo", TrainConfig(), LIMIT)
    assert reasons(seen) == {"r0": "no_trained_token"}


def test_a_task_needs_room_for_its_answer(tokenizer):
    rows = lines(("prompt",), [{"prompt": [user(2)]}, {"prompt": [user(9)]}])
    room = len(tokenizer.apply_chat_template([user(2)], add_generation_prompt=True)["input_ids"])
    config = TrainConfig(trl={"max_completion_length": LIMIT - room})
    seen = preflight.tasks(rows, tokenizer, "train_grpo", config, LIMIT)
    assert reasons(seen) == {"r1": "prompt_at_limit"}
    assert (seen.metrics["tokens"], seen.metrics["kept"]) == (room, 1)


def test_trl_leaves_512_tokens_for_an_answer_where_params_say_nothing(tokenizer):
    rows = lines(("prompt",), [{"prompt": [user(2)]}])
    assert len(preflight.tasks(rows, tokenizer, "train_grpo", TrainConfig(), 600).keep) == 1
    assert reasons(preflight.tasks(rows, tokenizer, "train_grpo", TrainConfig(), 512)) == {"r0": "prompt_at_limit"}


def test_grpo_never_shows_the_tools_of_a_row(tokenizer, model, tmp_path):
    from trl import GRPOConfig, GRPOTrainer

    rows = lines(("prompt",), [{"prompt": [ASKED], "tools": TOOLS}])
    trl = {"max_completion_length": 4}
    seen = preflight.tasks(rows, tokenizer, "train_grpo", TrainConfig(trl=trl), LIMIT)
    assert (reasons(seen), json.loads(seen.dropped["detail"][0].as_py())) == ({"r0": "lost_field"}, {"field": "tools"})
    options = {name: value for name, value in _plain(trl).items() if name != "max_length"}
    args = GRPOConfig(output_dir=str(tmp_path), num_generations=2, per_device_train_batch_size=2, **options)
    trainer = GRPOTrainer(
        model=model(), args=args, train_dataset=rows, processing_class=tokenizer, reward_funcs=[lambda **_: [0.0]]
    )
    (ids,), *_ = trainer._tokenize_prompts([rows[0]["prompt"]])
    kept = preflight.tasks(rows, tokenizer, "train_grpo", TrainConfig(lost_field="keep", trl=trl), LIMIT)
    assert (list(kept.keep), kept.metrics["tokens"]) == ([0], len(ids))
    assert reasons(kept, "changes") == {"r0": "lost_field"}


def with_template(tokenizer: Any, template: str) -> Any:
    from copy import deepcopy

    copy = deepcopy(tokenizer)
    copy.chat_template, copy.bos_token = template, scratch.END
    copy.add_tokens("<|im_end|>")
    return copy


RICH = (
    ([ASKED, CALLED, TOLD, SAID], TOOLS),
    ([ASKED, {**SAID, "reasoning_content": "one more than two"}],),
    ([ASKED, {**CALLED, "tool_calls": [CALL, CALL]}, TOLD, SAID], TOOLS),
    ([ASKED, SAID],),
)
LOST = {
    "qwen2_5": {"r1": "reasoning_content"},
    "qwen3": {},
    "llama3": {"r0": "tools", "r1": "reasoning_content", "r2": "tools"},
    "llama3_2": {"r1": "reasoning_content"},  # r2 is refused: one call per turn
}


@pytest.mark.parametrize("name", LOST)
def test_what_a_template_leaves_out_is_named(tokenizer, name):
    rows = chats(*(one if len(one) == 2 else one[0] for one in RICH))
    seen = preflight.sft(rows, with_template(tokenizer, trl_template(name)), "train_sft", TrainConfig(), 10_000)
    fields = {line["row_id"]: json.loads(line["detail"]).get("field") for line in seen.dropped.to_pylist()}
    expected = LOST[name] | ({"r2": None} if name == "llama3_2" else {})
    assert fields == expected
    assert "r3" not in reasons(seen)


@pytest.mark.parametrize("name", LOST)
def test_sft_sees_what_we_say_with_the_templates_of_others(tokenizer, model, tmp_path, name):
    rows = chats(*(one if len(one) == 2 else one[0] for one in RICH))
    other = with_template(tokenizer, trl_template(name))
    seen = preflight.sft(rows, other, "train_sft", TrainConfig(lost_field="keep"), 10_000)
    only = preflight.assistant_only(other, {})
    kept = rows.select(seen.keep)
    found = sft_figures(sft_trainer(kept, other, model(), tmp_path, assistant_only_loss=only, max_length=10_000))
    assert found == (set(kept["row_id"]), seen.metrics["tokens"], seen.metrics["trained_tokens"])


def test_a_template_that_refuses_a_row_does_not_end_the_run(tokenizer):
    rows = chats(RICH[2], [ASKED, SAID])
    seen = preflight.sft(rows, with_template(tokenizer, trl_template("llama3_2")), "train_sft", TrainConfig(), 10_000)
    assert (reasons(seen), list(seen.keep)) == ({"r0": "template_error"}, [1])
    assert json.loads(seen.dropped["detail"][0].as_py())["error"] == "TemplateError"


def test_what_a_template_says_of_a_row_is_repeated_only_where_it_is_its_own_text(tokenizer):
    template = (
        "{{ raise_exception('no such role: ' + messages[0].content) if messages[1:] else raise_exception('one') }}"
    )
    seen = preflight.sft(chats([ASKED, SAID], [ASKED]), with_template(tokenizer, template), "t", TrainConfig(), 99)
    assert [json.loads(detail) for detail in seen.dropped["detail"].to_pylist()] == [
        {"error": "TemplateError"},
        {"error": "TemplateError", "says": "one"},
    ]


def test_the_name_that_a_template_misses_is_told(tokenizer):
    other = with_template(tokenizer, "{{ nothing + messages[0].content }}")
    seen = preflight.sft(chats([ASKED]), other, "train_sft", TrainConfig(), 99)
    assert json.loads(seen.dropped["detail"][0].as_py())["says"] == "'nothing' is undefined"


def test_a_template_that_is_not_jinja_is_the_configs_fault(tokenizer):
    with pytest.raises(ConfigError, match="not valid Jinja"):
        preflight.sft(chats([ASKED]), with_template(tokenizer, "{% for %}"), "train_sft", TrainConfig(), 99)


@pytest.mark.parametrize("name", [path.stem for path in TEMPLATES])
def test_we_find_lost_calls_and_results_where_trls_own_probe_does(tokenizer, name):
    from trl.chat_template_utils import supports_tool_calling

    other = with_template(tokenizer, trl_template(name))
    renderer = Renderer(other)
    # Where a template cannot take arguments as an object, the probe writes them as JSON text.
    written = {**CALL, "function": {"name": "add", "arguments": "{}"}}
    talks = [Talk([ASKED, {**CALLED, "tool_calls": [call]}, TOLD]) for call in (CALL, written)]
    texts = [renderer.text(talk) for talk in talks]
    at = 1 if isinstance(texts[0], Fault) and texts[0].error == "TypeError" else 0
    whole = isinstance(texts[at], str) and Finder(renderer).lost(talks[at], texts[at]) is None
    assert whole == supports_tool_calling(other)


@pytest.mark.parametrize(
    ("talk", "field"),
    [
        ([ASKED, {**SAID, "reasoning_content": "so"}], "reasoning_content"),
        ([ASKED, CALLED], "tool_calls"),
        ([{"role": "system", "content": "two"}, ASKED, SAID], "content"),  # stands in the question, too
        ([ASKED, {"role": "tool", "content": "two"}, SAID], "tool_result"),
    ],
)
def test_a_lost_value_is_found_though_it_stands_elsewhere(tokenizer, talk, field):
    template = "{% for m in messages if m.role in ('user', 'assistant') %}{{ m.role + m.content }} add a so{% endfor %}"
    seen = preflight.sft(chats(talk), with_template(tokenizer, template), "train_sft", TrainConfig(), 99)
    assert [json.loads(detail)["field"] for detail in seen.dropped["detail"].to_pylist()] == [field]


def test_text_that_a_template_trims_or_escapes_is_not_lost(tokenizer):
    template = "{% for m in messages %}{{ m.role }}{{ m.content | trim | tojson }}{% endfor %}"
    rows = chats([{"role": "user", "content": ' say "é"\n\n'}, SAID])
    assert len(preflight.sft(rows, with_template(tokenizer, template), "t", TrainConfig(), 99).keep) == 1


def test_text_that_a_template_shortens_is_lost(tokenizer):
    row = [ASKED, {"role": "assistant", "content": "<think>two</think>three"}, ASKED, SAID]
    other = with_template(tokenizer, trl_template("qwen3"))
    config = TrainConfig(trl={"assistant_only_loss": False})
    seen = preflight.sft(chats(row), other, "train_sft", config, 10_000)
    assert json.loads(seen.dropped["detail"][0].as_py()) == {"field": "content", "message": 1}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (scratch.chat_template(), True),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", False),
        ("{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}<|end|>{% endfor %}", False),
        (trl_template("qwen3"), True),
        (trl_template("llama3_2"), False),
    ],
    ids=["own", "no marks", "end not marked", "trl has one", "trl has none"],
)
def test_the_assistants_turns_alone_are_trained_where_they_can_be_told(tokenizer, template, expected):
    other = with_template(tokenizer, template)
    assert preflight.assistant_only(other, {}) is expected
    assert preflight.assistant_only(other, {"assistant_only_loss": not expected}) is not expected


def test_a_template_that_cannot_mark_turns_is_refused_when_it_must(tokenizer):
    other = with_template(tokenizer, "{% for m in messages %}{{ m.content }}{% endfor %}")
    with pytest.raises(ConfigError, match="does not mark the assistant's turns"):
        preflight.sft(chats([ASKED]), other, "train_sft", TrainConfig(trl={"assistant_only_loss": True}), 99)


def test_shards_are_read_as_they_are(tokenizer, tmp_path):
    import corpusforge as cf
    from corpusforge.io import shard_rows

    source = tmp_path / "rows.jsonl"
    rows = [{"messages": [ASKED, CALLED, TOLD, SAID], "tools": json.loads(TOOLS)}, {"messages": PLANTED[1]}]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    table = cf.read(str(source), source={"name": "faq", "origin": "human", "license": "CC-BY-4.0"})
    cf.write_shards(table, tmp_path / "shards")
    found = shard_rows.lines(tmp_path / "shards", "sft", "train", {}, tmp_path / "cache")
    seen = preflight.sft(found, tokenizer, "train_sft", TrainConfig(cut="keep"), 40)
    assert (list(reasons(seen).values()), len(seen.keep)) == (["no_trained_token"], 1)
    assert seen.metrics["by_source"] == {"faq": {"in": 2, "kept": 1, "dropped": 1}}


PAGE = Path(__file__).parents[2] / "docs" / "preflight.md"


def test_every_reason_is_on_the_page_in_its_order():
    listed = re.findall(r"^\| `(\w+)` \| .* (?:always|drop`) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(listed) == preflight.REASONS


def test_the_snippet_of_the_page_runs(tokenizer, tmp_path, monkeypatch, capsys):
    import corpusforge as cf

    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps({"messages": row}) + "\n" for row in PLANTED[:2]), encoding="utf-8")
    table = cf.read(str(source), source={"name": "faq", "origin": "human", "license": "CC-BY-4.0"})
    cf.write_shards(table, tmp_path / "shards")
    tokenizer.save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    snippet = PAGE.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(snippet.replace("1024", str(LIMIT)), names)
    assert capsys.readouterr().out.startswith("{'no_trained_token': 1} ")
    assert len(names["kept"]) == 1


@pytest.mark.parametrize(
    "template", ["{% for i in range(10 ** 9) %}a{% endfor %}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"]
)
def test_a_template_that_never_ends_is_a_reason_of_every_row_and_stops_nothing(template):
    tokenizer = scratch.train_tokenizer(WORDS, 330, LIMIT)
    tokenizer.chat_template = template
    assert not preflight.assistant_only(tokenizer, {})
    assert isinstance(Renderer(tokenizer).text(Talk([ASKED])), Fault)
