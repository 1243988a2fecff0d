"""Preference pairs from tasks that check themselves: the verified answer against a corrupted one.

A reasoning-gym task brings its own scorer. `chosen` states the answer that scores 1, `rejected` the same sentence with
one digit changed, taken only when the scorer says that it is wrong.

    {"id": "pair-gcd-3", "prompt": "Find the Greatest Common …", "chosen": "… is 12.", "rejected": "… is 17."}
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_TASKS: Final = ("basic_arithmetic", "gcd", "lcm", "leg_counting", "letter_counting", "products", "simple_equations")
_SEED: Final = 2_026
_OPENINGS: Final = ("The answer is {}.", "That makes {}.", "It comes to {}.", "I get {}.")


def records(per_task: int = 60) -> Iterator[dict[str, Any]]:
    """Preference records, `per_task` for each task family at most. Needs the `demo` extra."""
    import reasoning_gym

    for name in _TASKS:
        dataset = reasoning_gym.create_dataset(name, size=per_task, seed=_SEED)
        for number in range(per_task):
            entry = dataset[number]
            choice = random.Random(f"{name}-{number}")  # noqa: S311 (variety, not secrecy)
            wrong = _corrupted(str(entry["answer"]), choice)
            if wrong is None or dataset.score_answer(wrong, entry) >= 1.0:
                continue
            opening = choice.choice(_OPENINGS)
            yield {
                "id": f"pair-{name}-{number}",
                "prompt": entry["question"],
                "chosen": opening.format(entry["answer"]),
                "rejected": opening.format(wrong),
            }


def _corrupted(answer: str, choice: random.Random) -> str | None:
    """The answer with one of its digits changed; None when it has none."""
    places = [place for place, sign in enumerate(answer) if sign.isdigit()]
    if not places:
        return None
    place = choice.choice(places)
    other = choice.choice([digit for digit in "123456789" if digit != answer[place]])
    return answer[:place] + other + answer[place + 1 :]
