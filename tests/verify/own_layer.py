"""A layer of one's own, in a module."""

from __future__ import annotations

from typing import Any


def shouts(task: Any, completion: Any) -> float:
    """Whether there is an exclamation mark."""
    return float("!" in str(completion))
