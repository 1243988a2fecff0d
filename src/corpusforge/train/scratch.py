"""A small model from nothing: a byte-level BPE tokenizer trained on the corpus, a chat template, a small Llama.

It exists so that a corpus can be trained on, tried and judged in minutes without a GPU or a hub. Digits are tokens of
their own (numbers cut into pieces of uneven length make arithmetic hard), and each role marker is one token. The
template writes tools, tool calls and reasoning, and marks what the assistant said.

    4 layers of width 128, 1,024 tokens: 0.9 million parameters
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpusforge.train._config import ScratchConfig

PAD: Final = "<|pad|>"
END: Final = "<|end|>"
SPECIAL: Final = (PAD, END, "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|tools|>")
WRITTEN: Final = ("<think>", "</think>", "<tool_call>", "</tool_call>")
"""Tokens of their own that are part of an answer: TRL leaves special tokens out of what verifiers see, not these."""
LARGEST: Final = 2_000_000  # parameters; what is larger is better started from trained weights
_TEMPLATE: Final = Path(__file__).with_name("chat.jinja")


def chat_template() -> str:
    """The chat template of models made from nothing (Jinja, with `generation` marks)."""
    return _TEMPLATE.read_text(encoding="utf-8").rstrip("\n")


def train_tokenizer(texts: Iterable[str], vocab_size: int, max_length: int) -> Any:
    """A byte-level BPE tokenizer (Sennrich et al. 2016; Radford et al. 2019) of `vocab_size` entries at most.

    Returns a transformers.PreTrainedTokenizerFast with the chat template. The same texts in the same order give the
    same tokenizer.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(WRITTEN),
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(word, special=False, normalized=False) for word in WRITTEN])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        model_max_length=max_length,
        chat_template=chat_template(),
        clean_up_tokenization_spaces=False,
    )


def make_model(config: ScratchConfig, tokenizer: Any, max_length: int, seed: int) -> Any:
    """A Llama of the stated size with random weights. Raises ConfigError above two million parameters."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.hidden_size,
        intermediate_size=4 * config.hidden_size,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        max_position_embeddings=max_length,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        dtype="float32",
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LlamaForCausalLM(shape)
    size = sum(weights.numel() for weights in model.parameters())
    if size > LARGEST:
        raise ConfigError(
            f"model.from_scratch: {size:,} parameters, at most {LARGEST:,}", hint="lower layers or hidden_size"
        )
    return model
