"""Tokens per second of our training stages beside plain TRL, on the same rows, model and settings.

    python benchmarks/gpu_training.py                         a GPU: 0.5 billion parameters, a few minutes on one H200
    python benchmarks/gpu_training.py --shards data/shard     the same on shards of your own (sft, preference, task)
    python benchmarks/gpu_training.py --dry-run               a CPU: a tiny model and three steps, to see that it runs
                                                              (what happens without a GPU in any case)

Both sides get the rows that preflight kept and one and the same config of TRL's, built by `fit.arguments`; ours is
`train_sft`, `train_dpo`, `train_grpo`, the other TRL's trainer called directly. The model is made from a config (a
Qwen2 of 32 layers, random weights, float32 under bf16 autocast, gradient checkpointing on), with a tokenizer trained on
the corpus, so nothing is downloaded. Seconds are those of `train()`; each side writes the weights once at the end, and
ours also syncs them to disk. GRPO's seconds are mostly generation: random weights hardly ever stop by themselves, so
every answer has its full length. A first run of SFT is thrown away, because it pays for what CUDA loads once. Tokens
are those that TRL counts. The speeds of a dry run mean nothing: three steps are shorter than what surrounds them.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corpusforge.io import shard_rows
from corpusforge.io.shards import write_shards
from corpusforge.present import Block, Shown, plain
from corpusforge.sample import MESSAGE_FIELDS, SCHEMA, canonical_json
from corpusforge.sample import content_id as content_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = {"sft": "sft", "dpo": "preference", "grpo": "task"}
CHARACTERS = 1_000_000  # characters that the tokenizer is trained on


@dataclass(frozen=True)
class Size:
    """How large everything is."""

    length: int  # tokens of a sample at most
    words: int  # of a made-up answer
    steps: dict[str, int]
    batch: dict[str, int]
    answer: int  # tokens of a sampled answer
    generations: int

    def options(self, stage: str, on_gpu: bool) -> dict[str, Any]:
        """The `trl:` block of a stage."""
        steps = self.steps[stage]
        options: dict[str, Any] = {
            "max_steps": steps,
            "per_device_train_batch_size": self.batch[stage],
            "logging_steps": steps if steps < 5 else 5,
            "save_steps": 100_000,
            "bf16": on_gpu,
            "gradient_checkpointing": on_gpu,
        }
        if stage == "grpo":
            options |= {"num_generations": self.generations, "max_completion_length": self.answer, "temperature": 1.0}
        return options


GPU = Size(1024, 700, {"sft": 60, "dpo": 40, "grpo": 10}, {"sft": 16, "dpo": 8, "grpo": 64}, 128, 8)
CPU = Size(256, 60, {"sft": 3, "dpo": 3, "grpo": 3}, {"sft": 2, "dpo": 2, "grpo": 4}, 6, 2)


def made_up(count: int, words: int) -> pa.Table:
    """Conversations, pairs and sums, `count` of each, in the row format."""
    draw = random.Random(11)
    vocabulary = ["".join(draw.choices("aeioubdfgklmnprst", k=draw.randrange(3, 9))) for _ in range(20_000)]

    def text(length: int) -> str:
        return " ".join(draw.choices(vocabulary, k=length))

    rows = []
    for number in range(count):
        a, b = draw.randrange(100), draw.randrange(100)
        verifier = {"kind": "numeric", "spec": canonical_json({"answer": str(a + b)})}
        rows.append(row(number, "sft", [said("user", text(12)), said("assistant", text(words))]))
        answers = {name: [said("assistant", text(words // 2))] for name in ("chosen", "rejected")}
        rows.append(row(count + number, "preference", [said("user", text(12))], **answers))
        rows.append(row(2 * count + number, "task", [said("user", f"What is {a} + {b}?")], verifier=verifier))
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def said(role: str, content: str) -> dict[str, Any]:
    """A message with every field."""
    return {**dict.fromkeys(MESSAGE_FIELDS), "role": role, "content": content}


def row(number: int, kind: str, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A row with every column."""
    source = {"name": "made_up", "record": number, "license": "CC0-1.0", "origin": "synthetic"}
    found = {**dict.fromkeys(SCHEMA.names), "row_id": f"made_up-{number}", "kind": kind, "messages": messages}
    found |= {"source": source, **more}
    return found | {"content_id": content_hash(found)}


def make_tokenizer(shards: Path, cache: Path, size: Size, vocabulary: int) -> Any:
    """A tokenizer trained on the answers of the conversations."""
    from corpusforge.train.scratch import train_tokenizer

    def texts() -> Iterator[str]:
        left = CHARACTERS
        for line in read(shards, "sft", cache):
            for message in line["messages"]:
                content = message.get("content")
                if isinstance(content, str):
                    left -= len(content)
                    yield content
            if left < 0:
                return

    return train_tokenizer(texts(), vocabulary, size.length)


def read(shards: Path, kind: str, cache: Path) -> Any:
    """The training lines of a kind. Ends the program when there are none."""
    lines = shard_rows.lines(shards, kind, "train", {}, cache)
    if lines is None:
        sys.exit(f"{shards} holds no training rows of kind {kind}")
    return lines


def make_model(tokenizer: Any, size: Size, on_gpu: bool) -> Any:
    """Half a billion random weights, or a few ten thousand; the same ones every time."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    wide = {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 32, "num_attention_heads": 14}
    tiny = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    shape = Qwen2Config(
        **(wide if on_gpu else tiny),
        num_key_value_heads=2,
        vocab_size=max(len(tokenizer) + 64, 32_768 if on_gpu else 0),  # Qwen2 brings tokens of its own
        max_position_embeddings=2 * size.length,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Qwen2ForCausalLM(shape)


class Bench:
    """One model shape, one set of shards, both sides."""

    def __init__(self, shards: Path, scratch: Path, size: Size, on_gpu: bool, stages: list[str]) -> None:
        from corpusforge.train.model import save

        self.shards, self.scratch, self.size, self.on_gpu = shards, scratch, size, on_gpu
        self.tokenizer = make_tokenizer(shards, scratch / "cache", size, 32_768 if on_gpu else 400)
        model = make_model(self.tokenizer, size, on_gpu)
        self.parameters = model.num_parameters()
        save(model, self.tokenizer, scratch / "model")
        self.rows = {stage: self._rows(stage) for stage in {"sft": None, **dict.fromkeys(stages)}}

    def _rows(self, stage: str) -> Any:
        """As many lines as the steps need, those that preflight keeps, in the columns of the trainer."""
        from corpusforge.train import preflight

        lines = read(self.shards, KINDS[stage], self.scratch / "cache")
        need = 2 * self.size.steps[stage] * self.size.batch[stage]
        lines = lines.select(range(min(len(lines), max(need, 500))))
        look = {"sft": preflight.sft, "dpo": preflight.preference, "grpo": preflight.tasks}[stage]
        seen = look(lines, self.tokenizer, f"train_{stage}", self.config(stage), self.size.length)
        if not len(seen.keep):
            sys.exit(f"preflight leaves no row for {stage}: {seen.reasons()}")
        return lines.select(seen.keep[:need]).select_columns(list(shard_rows.FORM[KINDS[stage]]))

    def config(self, stage: str) -> Any:
        """The stage's block of params; rows that are cut are trained on, so that every sample has its full length."""
        from corpusforge.train.train_dpo import TrainDpoConfig
        from corpusforge.train.train_grpo import TrainGrpoConfig
        from corpusforge.train.train_sft import TrainSftConfig

        kind = {"sft": TrainSftConfig, "dpo": TrainDpoConfig, "grpo": TrainGrpoConfig}[stage]
        return kind(trl=self.size.options(stage, self.on_gpu), cut="keep")

    def run(self, stage: str, ours: bool) -> dict[str, Any]:
        """Train once; what it took."""
        import torch

        from corpusforge.train.fit import Start, Workplace
        from corpusforge.train.model import load

        model, tokenizer = load(str(self.scratch / "model"))  # DPO's trainer reads the reference model from there
        start = Start(model, tokenizer, self.size.length)
        place = Workplace(f"train_{stage}", self.scratch / stage)
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()
        tokens, speed = (self._ours if ours else self._plain)(stage, start, place)
        place.clear()
        found = {
            "stage": stage,
            "side": "corpusforge" if ours else "trl",
            "steps": self.size.steps[stage],
            "tokens": tokens,
            "seconds": round(tokens / speed, 2),
            "tokens_per_second": round(speed),
            "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 1) if self.on_gpu else None,
        }
        del model, start
        gc.collect()
        if self.on_gpu:
            torch.cuda.empty_cache()
        return found

    def _ours(self, stage: str, start: Any, place: Any) -> tuple[int, float]:
        """Our stage: tokens, and tokens per second."""
        from corpusforge.train.train_dpo import train_dpo
        from corpusforge.train.train_grpo import train_grpo
        from corpusforge.train.train_sft import train_sft

        train = {"sft": train_sft, "dpo": train_dpo, "grpo": train_grpo}[stage]
        done = train(self.rows[stage], start, self.config(stage), place)
        return int(done.speed["tokens"]), done.speed["tokens_per_second"]

    def _plain(self, stage: str, start: Any, place: Any) -> tuple[int, float]:
        """TRL's trainer with the same config: tokens, and tokens per second."""
        import trl
        from transformers.trainer_callback import PrinterCallback

        from corpusforge.train import fit, preflight
        from corpusforge.train.model import quiet
        from corpusforge.verify.reward import reward

        kinds = {
            "sft": (trl.SFTConfig, trl.SFTTrainer),
            "dpo": (trl.DPOConfig, trl.DPOTrainer),
            "grpo": (trl.GRPOConfig, trl.GRPOTrainer),
        }
        config, trainer = kinds[stage]
        options = dict(self.config(stage).trl)
        if stage == "sft":
            options["assistant_only_loss"] = preflight.assistant_only(start.tokenizer, options)
        more = {"reward_funcs": [reward]} if stage == "grpo" else {}
        args = fit.arguments(config, options, start, place)
        with quiet():
            built = trainer(
                model=start.model,
                args=args,
                train_dataset=self.rows[stage],
                processing_class=start.tokenizer,
                **more,
            )
            built.remove_callback(PrinterCallback)
            began = time.monotonic()
            built.train()
            seconds = time.monotonic() - began
        tokens = int(max(entry.get("num_tokens", 0) for entry in built.state.log_history))
        return tokens, tokens / seconds


def table(runs: list[dict[str, Any]], machine: str, parameters: int) -> str:
    """The runs as text, each pair with ours as a share of TRL's speed."""
    lines = []
    for one in runs:
        plain_speed = next(r["tokens_per_second"] for r in runs if r["stage"] == one["stage"] and r["side"] == "trl")
        share = round(one["tokens_per_second"] / plain_speed, 3)
        lines.append((*(one[name] for name in COLUMNS), share))
    headline = f"{machine}, {parameters:,} parameters"
    return plain(Shown(headline, [Block("", (*COLUMNS, "of trl"), lines)]), 120)


COLUMNS = ("stage", "side", "steps", "tokens", "seconds", "tokens_per_second", "peak_gib")


def main() -> None:
    """Run both sides of every stage; print the table, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=Path, help="folder of shards; without it, rows are made up")
    parser.add_argument("--dry-run", action="store_true", help="a tiny model on the CPU, three steps")
    parser.add_argument("--stages", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--json", type=Path, help="write the JSON here too")
    given = parser.parse_args()
    import torch

    on_gpu = torch.cuda.is_available() and not given.dry_run
    if not (on_gpu or given.dry_run):
        print("no GPU here: a dry run", file=sys.stderr)
    size = GPU if on_gpu else CPU
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        if given.shards is None:
            write_shards(made_up(1_000 if on_gpu else 12, size.words), scratch / "shards")
        bench = Bench(given.shards or scratch / "shards", scratch, size, on_gpu, given.stages)
        if on_gpu:
            bench.run("sft", ours=False)  # thrown away
        runs = [bench.run(stage, ours) for stage in given.stages for ours in (False, True)]
    machine = torch.cuda.get_device_name() if on_gpu else "CPU"
    print(table(runs, machine, bench.parameters))
    import trl

    versions = {"torch": torch.__version__, "trl": trl.__version__}
    found = {"machine": machine, "parameters": bench.parameters, "versions": versions, "runs": runs}
    text = json.dumps(found)
    print(text)
    if given.json:
        given.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
