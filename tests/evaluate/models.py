"""Tiny models for tests: made from nothing, knowing nothing."""

from __future__ import annotations

from typing import Any

from corpusforge.train import scratch
from corpusforge.train._config import ScratchConfig

TEXTS = [f"What is {a} plus {b}? It is {a + b}." for a in range(9) for b in range(9)]
SIZE = ScratchConfig(vocab_size=330, hidden_size=16, layers=1, heads=2)


def tokenizer(max_length: int = 64) -> Any:
    return scratch.train_tokenizer(TEXTS, SIZE.vocab_size, max_length)


def model(tokenizer: Any, seed: int = 0, max_length: int = 64) -> Any:
    return scratch.make_model(SIZE, tokenizer, max_length, seed)


def turns(*texts: str) -> list[dict[str, Any]]:
    """Messages that alternate between user and assistant."""
    return [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]
