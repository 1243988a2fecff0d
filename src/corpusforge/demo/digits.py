"""A family of problems that a model of 0.3 million parameters learns in half a minute: put digits in order.

Its records are what a heap of generated data looks like: conversations, tasks with a verifier and preference pairs,
with faults. Some of the faults curation can see, and finds; their numbers are FAULTS:

    stuck     a generator that got stuck: the same sample again and again
    refusal   an answer that only refuses
    blank     an answer of nothing, or of white space

One it cannot see: of the conversations with a digit twice, a fifth writes it once. Only who checks the answer knows, so
this is left for preference pairs and verified rewards to mend (Ouyang et al. 2022, arXiv 2203.02155; Lambert et al.
2024, arXiv 2411.15124): pairs set the right answer against this slip or another near miss, tasks are checked.

    {"id": "sort-0", "messages": [… "Sort the digits of 88161." …, … "11688" …]}
    {"id": "sort-task-0", "prompt": "… 49766469.", "verifier": {"kind": "numeric", "answer": "44666799"}}
    {"id": "sort-pair-0", "prompt": "… 54173341.", "chosen": "11334457", "rejected": "13457"}

An older, easier skill is mixed in, the largest digit; `legacy` gives tasks for it that no record shares, so that an
evaluation can tell whether what is trained later costs it. No number occurs twice.
"""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNTS: Final = {"sort": 1_500, "largest": 300, "task": 1_050, "pair": 1_050, "legacy": 150}
"""Sound records of each kind: conversations of both skills, tasks, pairs, and tasks of `legacy`."""
FAULTS: Final = {"stuck": 320, "refusal": 280, "blank": 80}
"""Faulty conversations that come on top: 27 % of all."""
SLIPS: Final = 0.2
"""Share of the sound-looking conversations whose answer writes a repeated digit once."""
_LENGTHS: Final = range(4, 9)  # digits of a number
_STUCK_ON: Final = 8  # samples that the stuck generator repeats
_REFUSALS: Final = (
    "I'm sorry, but I can't help with that.",
    "I cannot assist with this request.",
    "Unfortunately, I am unable to answer that.",
    "As an AI language model, I can't do that.",
)
_BLANKS: Final = ("", " ", "\n")


def records() -> Iterator[dict[str, Any]]:
    """All records of the source, each with its `id`; the same ones on every machine."""
    yield from _sound()
    yield from _tasks("task", "sort-task", _sorting)
    yield from _pairs()
    for record, _ in _faulty():
        yield record


def legacy() -> Iterator[dict[str, Any]]:
    """Tasks of the older skill."""
    yield from _tasks("legacy", "largest-task", _largest)


def truth() -> dict[str, list[dict[str, Any]]]:
    """Per fault what was put in: dicts with `id`, and `original` for a repeated sample."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in FAULTS}
    for record, fact in _faulty():
        found[fact["fault"]].append({"id": record["id"], **fact})
    return found


@cache
def _numbers() -> dict[str, list[str]]:
    """Different numbers for every use, by lot: no problem is asked twice, nor in training and in `legacy`."""
    lots = random.Random("digits")  # noqa: S311 (variety, not secrecy)
    needed = {**COUNTS, **{name: FAULTS[name] for name in ("refusal", "blank")}}
    drawn: dict[str, None] = {}
    while len(drawn) < sum(needed.values()):
        drawn["".join(lots.choice("123456789") for _ in range(lots.choice(_LENGTHS)))] = None
    left = iter(drawn)
    return {use: [next(left) for _ in range(count)] for use, count in needed.items()}


def _sorting(number: str) -> tuple[str, str]:
    return f"Sort the digits of {number}.", "".join(sorted(number))


def _largest(number: str) -> tuple[str, str]:
    return f"What is the largest digit of {number}?", max(number)


def _chat(identifier: str, question: str, answer: str) -> dict[str, Any]:
    asked, said = {"role": "user", "content": question}, {"role": "assistant", "content": answer}
    return {"id": identifier, "messages": [asked, said]}


def _sound() -> Iterator[dict[str, Any]]:
    """Conversations of both skills, slips included."""
    for place, number in enumerate(_numbers()["sort"]):
        question, answer = _sorting(number)
        slips = random.Random(f"slip {number}").random() < SLIPS  # noqa: S311
        yield _chat(f"sort-{place}", question, _each_once(answer) if slips else answer)
    for place, number in enumerate(_numbers()["largest"]):
        yield _chat(f"largest-{place}", *_largest(number))


def _tasks(use: str, name: str, skill: Any) -> Iterator[dict[str, Any]]:
    for place, number in enumerate(_numbers()[use]):
        question, answer = skill(number)
        yield {"id": f"{name}-{place}", "prompt": question, "verifier": {"kind": "numeric", "answer": answer}}


def _pairs() -> Iterator[dict[str, Any]]:
    """The right answer against the slip, or, where no digit is repeated and in a third of the rest, a near miss."""
    for place, number in enumerate(_numbers()["pair"]):
        question, answer = _sorting(number)
        choice = random.Random(f"pair {number}")  # noqa: S311
        slip = _each_once(answer)
        wrong = _near_miss(answer, choice) if slip == answer or choice.random() < 1 / 3 else slip
        if wrong is not None:
            yield {"id": f"sort-pair-{place}", "prompt": question, "chosen": answer, "rejected": wrong}


def _each_once(answer: str) -> str:
    return "".join(sorted(set(answer)))


def _near_miss(answer: str, choice: random.Random) -> str | None:
    """The answer with one digit overwritten by its neighbour: still in order, as long, and wrong; None if all equal."""
    places = [place for place in range(len(answer) - 1) if answer[place] != answer[place + 1]]
    if not places:
        return None
    place = choice.choice(places)
    kept = answer[place + choice.randrange(2)]
    return answer[:place] + kept + kept + answer[place + 2 :]


def _faulty() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs of a faulty record and the fact about it."""
    for place in range(FAULTS["stuck"]):
        original = f"sort-{place % _STUCK_ON}"
        again = next(record for record in _originals() if record["id"] == original)
        yield {**again, "id": f"stuck-{place}"}, {"fault": "stuck", "original": original}
    for fault, answers in (("refusal", _REFUSALS), ("blank", _BLANKS)):
        for place, number in enumerate(_numbers()[fault]):
            question, _ = _sorting(number)
            yield _chat(f"{fault}-{place}", question, answers[place % len(answers)]), {"fault": fault}


@cache
def _originals() -> list[dict[str, Any]]:
    """The samples that the stuck generator repeats."""
    return [record for record, _ in zip(_sound(), range(_STUCK_ON), strict=False)]
