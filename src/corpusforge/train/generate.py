"""Let a model answer prompts: batches of like length, padded on the left, sampled by lots that no other row can change.

A token is drawn by inverting the cumulative distribution at a uniform number (Devroye 1986, II.2.1), and the numbers
of an answer come from its task and its own number alone (Philox, Salmon et al. 2011), not from a generator that all
rows of a batch share. A task therefore gets the same answers whichever tasks are asked beside it, in whatever order
(where the model computes alike: batches of another shape may round otherwise). The model's own generation config is
laid aside: its penalties, and transformers' top_k of 50, would sample from another distribution than GRPO does.

    sample(model, tokenizer, [{"content_id": "9f0c…", "prompt": [{"role": "user", "content": "7+5"}], "tools": None}],
           Sampling(attempts=4, max_new_tokens=8))  ->  [Sampled(("12", "12", "2", "13"), …, tokens=11)]

Answers keep the special tokens that the model wrote, because they may carry meaning (`<tool_call>`, `<think>`, Llama's
`<|python_tag|>`); only what ends an answer, and padding, is taken off.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from corpusforge.errors import TrainingError
from corpusforge.train.model import quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Task = Mapping[str, Any]
    """A line of a task shard: `content_id`, `prompt` (messages), `tools` (JSON text, or None)."""
    Tell = Callable[[int], None]

_BITS: Final = 50  # of a uniform number: below 53, so that its product with a sum of probabilities stays below the sum


@dataclass(frozen=True)
class Sampling:
    """How answers are drawn."""

    attempts: int = 1
    """Answers per prompt."""
    temperature: float = 1.0
    """What logits are divided by; 0 takes the likeliest token, and all attempts are one answer."""
    top_p: float = 1.0
    """Nucleus sampling (Holtzman et al. 2020): draw from the likeliest tokens that together have this probability."""
    max_new_tokens: int = 256
    """Tokens of an answer at most; less where the prompt leaves less room."""
    seed: int = 0
    """Other numbers for all draws."""
    batch_tokens: int = 16_384
    """Tokens (prompts, padding and room for the answers) computed together at most; a batch has at least one row."""
    max_length: int | None = None
    """Tokens of prompt and answer together at most, where that is less than the model can hold."""


@dataclass(frozen=True)
class Sampled:
    """The answers to one prompt."""

    texts: tuple[str, ...] = ()
    """One per attempt; empty when the prompt could not be asked."""
    finished: tuple[bool, ...] = ()
    """Whether each ended by itself, not at the limit."""
    tokens: int = 0
    """Tokens written, ends included."""
    refused: str | None = None
    """Why it was not asked: `prompt_too_long` (no token is left for an answer) or `template_error`."""


def answers(model: Any, tokenizer: Any, tasks: Sequence[Task], sampling: Sampling) -> list[list[str] | None]:
    """The texts of `sample`, a list per task; None where a task could not be asked."""
    return [list(one.texts) or None for one in sample(model, tokenizer, tasks, sampling)]


def sample(
    model: Any, tokenizer: Any, tasks: Sequence[Task], sampling: Sampling, tell: Tell | None = None
) -> list[Sampled]:
    """`sampling.attempts` answers to every task, in the order of the tasks.

    `tell` is called with the number of tries that were done since the last call. Torch's random state is neither read
    nor changed. Raises TrainingError when the model's output is not finite.
    """
    context = _context(model, tokenizer, sampling)
    different = sampling.attempts if sampling.temperature else 1
    with quiet():
        asked = [_encoded(tokenizer, task) for task in tasks]
    rows = [
        _Row(len(ids), str(task["content_id"]), attempt, number, ids, min(sampling.max_new_tokens, context - len(ids)))
        for number, (task, ids) in enumerate(zip(tasks, asked, strict=True))
        if ids and len(ids) < context
        for attempt in range(different)
    ]
    if tell:
        tell((len(tasks) - len(rows) // different) * sampling.attempts)
    written: dict[int, list[_Written]] = {}
    writer = _Writer.of(model, tokenizer, sampling)
    with _plain(model):
        for batch in _batches(rows, sampling.batch_tokens):
            for row, one in zip(batch, writer.write(batch), strict=True):
                written.setdefault(row.number, []).append(one)
            if tell:
                tell(len(batch) * sampling.attempts // different)
    return [
        _joined(written[number], sampling.attempts)
        if number in written
        else Sampled(refused="prompt_too_long" if ids else "template_error")
        for number, ids in enumerate(asked)
    ]


def to_device(model: Any) -> Any:
    """The model, on the GPU if there is one."""
    import torch

    return model.to("cuda") if torch.cuda.is_available() else model


def teller(label: str, total: int) -> Tell | None:
    """Tells on standard error how many of `total` answers there are; None where that is no terminal."""
    if not sys.stderr.isatty():
        return None
    done = 0

    def tell(more: int) -> None:
        nonlocal done
        done += more
        sys.stderr.write(f"\r{label}: {done:,}/{total:,} answers" + ("\n" if done >= total else ""))
        sys.stderr.flush()

    return tell


@dataclass(frozen=True, order=True)
class _Row:
    """One attempt at one task, in the order in which rows are put into batches."""

    length: int
    content_id: str
    attempt: int
    number: int  # of the task
    ids: tuple[int, ...]
    room: int  # tokens of the answer at most


@dataclass(frozen=True)
class _Written:
    text: str
    finished: bool
    tokens: int


def _joined(written: list[_Written], attempts: int) -> Sampled:
    """What was written, in the order of attempts; one greedy answer stands for all attempts."""
    all_of_them = written if len(written) == attempts else written * attempts
    return Sampled(
        tuple(one.text for one in all_of_them),
        tuple(one.finished for one in all_of_them),
        sum(one.tokens for one in written),
    )


def _encoded(tokenizer: Any, task: Task) -> tuple[int, ...] | None:
    """The prompt as the model reads it, up to where its answer begins; None when the template cannot write it."""
    tools = task.get("tools")
    try:
        tools = json.loads(tools) if isinstance(tools, str) else tools
        encoded = tokenizer.apply_chat_template(
            list(task["prompt"]), tools=tools or None, add_generation_prompt=True, tokenize=True, return_dict=True
        )
    except Exception:  # noqa: BLE001 - a template is a program of somebody else's and raises what it likes
        return None
    return tuple(encoded["input_ids"])


def _context(model: Any, tokenizer: Any, sampling: Sampling) -> int:
    """Tokens that prompt and answer may have together."""
    shape = model.config.get_text_config()
    limits = [getattr(shape, "max_position_embeddings", None), tokenizer.model_max_length, sampling.max_length]
    return int(min(limit for limit in limits if limit))


def _batches(rows: list[_Row], batch_tokens: int) -> Iterator[list[_Row]]:
    """Rows of like length together. Rows whose room the context cuts stand with those of their own length."""
    batch: list[_Row] = []
    for row in sorted(rows):
        if batch and (row.room != batch[0].room or (len(batch) + 1) * (row.length + row.room) > batch_tokens):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


@dataclass(frozen=True)
class _Writer:
    """A model, and the tokens that end what it writes."""

    model: Any
    tokenizer: Any
    sampling: Sampling
    ends: frozenset[int]
    pad: int

    @classmethod
    def of(cls, model: Any, tokenizer: Any, sampling: Sampling) -> _Writer:
        """Answers end with the tokenizer's end, and with those that the model's makers name."""
        named = model.generation_config.eos_token_id
        listed = named if isinstance(named, (list, tuple)) else [named]
        ends = frozenset(int(one) for one in (*listed, tokenizer.eos_token_id) if one is not None)
        pad = tokenizer.pad_token_id
        return cls(model, tokenizer, sampling, ends, min(ends, default=0) if pad is None else pad)

    def write(self, batch: list[_Row]) -> list[_Written]:
        """One answer per row."""
        import torch
        from transformers import GenerationConfig, LogitsProcessorList

        width, device = batch[-1].length, self.model.device
        padded = [[self.pad] * (width - row.length) + list(row.ids) for row in batch]
        mask = [[0] * (width - row.length) + [1] * row.length for row in batch]
        config = GenerationConfig(
            do_sample=False,  # the processor below leaves one token to choose from
            max_new_tokens=batch[0].room,
            eos_token_id=sorted(self.ends) or None,
            pad_token_id=self.pad,
            use_cache=True,
        )
        draws = LogitsProcessorList([_drawing(batch, width, self.sampling)] if self.sampling.temperature else [])
        with torch.inference_mode():
            made = self.model.generate(
                torch.tensor(padded, device=device),
                attention_mask=torch.tensor(mask, device=device),
                generation_config=config,
                logits_processor=draws,
            )
        return [self.read(answer) for answer in made[:, width:].tolist()]

    def read(self, ids: list[int]) -> _Written:
        """The text of an answer up to its end."""
        end = next((place for place, token in enumerate(ids) if token in self.ends), None)
        said = [token for token in ids[:end] if token != self.pad]
        text = self.tokenizer.decode(said, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return _Written(text, end is not None, len(ids) if end is None else end + 1)


def _drawing(batch: list[_Row], width: int, sampling: Sampling) -> Any:
    """A logits processor that draws each row's next token, and leaves no other."""
    import torch
    from transformers import LogitsProcessor

    chances = torch.tensor(np.stack([_uniform(row, sampling.seed) for row in batch]))

    class Drawing(LogitsProcessor):  # type: ignore[misc]
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            order, likely = _nucleus(torch.softmax(scores.double() / sampling.temperature, dim=-1), sampling.top_p)
            below = likely.cumsum(dim=-1)
            whole = below[:, -1:]
            if not bool(torch.isfinite(whole).all()):
                raise TrainingError("the model's output is not finite", hint="train it with a lower learning_rate")
            chance = chances[:, input_ids.shape[1] - width].to(scores.device)[:, None]
            place = torch.searchsorted(below, chance * whole, right=True)
            token = place if order is None else order.gather(1, place)
            return torch.full_like(scores, -torch.inf).scatter_(1, token, 0.0)

    return Drawing()


def _nucleus(likely: Any, top_p: float) -> tuple[Any, Any]:
    """Tokens from the likeliest on (None: as they stand) and their probabilities, 0 for those outside the nucleus."""
    if top_p >= 1:
        return None, likely
    likely, order = likely.sort(dim=-1, descending=True, stable=True)
    return order, likely.where(likely.cumsum(dim=-1) - likely < top_p, 0.0)


def _uniform(row: _Row, seed: int) -> npt.NDArray[np.float64]:
    """A number in [0, 1) for every token of a row's answer."""
    name = f"{row.content_id}\0{row.attempt}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(name, digest_size=16, key=f"sample {seed}".encode()).digest()
    raw = np.random.Philox(key=int.from_bytes(digest, "little")).random_raw(row.room)
    numbers: npt.NDArray[np.float64] = (raw >> np.uint64(64 - _BITS)) / float(2**_BITS)
    return numbers


@contextlib.contextmanager
def _plain(model: Any) -> Iterator[None]:
    """The model without dropout and without its own generation config; transformers fills what we leave out from it."""
    from transformers import GenerationConfig

    own, trains = model.generation_config, model.training
    model.generation_config = GenerationConfig()
    model.eval()
    try:
        yield
    finally:
        model.generation_config = own
        model.train(trains)
