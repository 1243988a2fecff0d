"""Steps of worked maths: how many right ones the process layer accepts, and how many spoilt ones it rejects.

    python benchmarks/process_steps.py                 # 1,000 solutions of GSM8K
    python benchmarks/process_steps.py --rows 0        # all 8,792

Every annotation of the calculator (`<<48/2=24>>`) is judged as it stands, and as plain text (`48/2 = 24`); then with
one digit changed in its left side, and with one changed in its result. A change that leaves the equation true (a
leading zero, 0*3 for 0*4) is counted apart; what is true is worked out here, by other code than the layer's. Counted
apart, too, are identities (5=5), which earn nothing. Then the worked solutions, annotations taken out, each beside its
question: what is read in prose. Exit code 1 where less than 99 % of the steps are accepted or less than 99 % of the
spoilt ones rejected. Data: `--data`, or CORPUSFORGE_SHARED.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import sys
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from corpusforge.verify.layers.arithmetic import steps

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED = Path(os.environ.get("CORPUSFORGE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
ANNOTATION = re.compile(r"<<([^<>]*)>>")
FORMS = {"annotated": "<<{}={}>>", "plain": "So it is {} = {} in all."}
AIM = 0.99
SHOWN = 12
_SIGNS = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
}


def solutions(folder: Path, rows: int) -> list[tuple[str, str]]:
    """Question and worked answer, evenly spread over both parts; all of them where `rows` is 0."""
    lines = [line for part in ("train", "test") for line in (folder / f"{part}.jsonl").read_text().split("\n") if line]
    step = max(1, len(lines) // rows) if rows else 1
    return [(one["question"], one["answer"]) for one in map(json.loads, lines[::step])]


def annotations(worked: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Left side and result of every annotation."""
    return [tuple(found.split("=")) for _, answer in worked for found in ANNOTATION.findall(answer)]


def exact(expression: str) -> Fraction | None:
    """The value of digits and + - * / // ( ); None where there is none. Shares no code with the layer."""
    bare = re.sub(r"(?<![\d.])0+(?=\d)", "", expression)
    try:
        return _value(ast.parse(bare, mode="eval").body, bare)
    except (SyntaxError, ZeroDivisionError):
        return None


def _value(node: ast.expr, text: str) -> Fraction:
    if isinstance(node, ast.BinOp):
        return _SIGNS[type(node.op)](_value(node.left, text), _value(node.right, text))
    if isinstance(node, ast.UnaryOp):
        return _value(node.operand, text) * (-1 if isinstance(node.op, ast.USub) else 1)
    return Fraction(text[node.col_offset : node.end_col_offset])


def spoilt(left: str, right: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    """The step with one digit changed in its left side, then with one changed in its result."""
    yield _changed(left, draw), right
    yield left, _changed(right, draw)


def _changed(text: str, draw: random.Random) -> str:
    at = draw.choice([place for place, sign in enumerate(text) if sign.isdigit()])
    return text[:at] + draw.choice([digit for digit in "0123456789" if digit != text[at]]) + text[at + 1 :]


def held(form: str, left: str, right: str) -> str:
    """What the layer holds of one step; `unread` where it sees none."""
    found = steps(FORMS[form].format(left, right))
    return found[0].state if len(found) == 1 else "unread"


def measured(form: str, asked: list[tuple[str, str]]) -> tuple[Counter[str], Counter[str], dict[str, list[str]]]:
    """What is held of the steps, of the spoilt ones, and the failures by cause."""
    draw = random.Random(7)
    whole, broken = Counter(), Counter()
    failures: dict[str, list[str]] = {}
    for left, right in asked:
        state = held(form, left, right)
        true = exact(left) == exact(right) is not None
        whole["false in the data" if not true else state] += 1
        if true and state not in ("right", "identity"):
            failures.setdefault(f"{form}, not accepted: {state}", []).append(f"{left}={right}")
        if form == "plain" and exact(left) is not None and re.fullmatch(r"[\d.]+", left):
            continue  # two numbers in prose, "17 = 12", are not read as a step
        for one, other in spoilt(left, right, draw):
            if exact(one) == exact(other) is not None:
                broken["still true"] += 1
                continue
            state = held(form, one, other)
            broken[state] += 1
            if state != "wrong":
                failures.setdefault(f"{form}, not rejected: {state}", []).append(f"{one}={other}")
    return whole, broken, failures


def share(found: Counter[str], good: str, apart: str) -> float:
    """Of the steps that are not `apart`, those that are `good`."""
    return found[good] / max(1, sum(found.values()) - found[apart] - found["false in the data"])


def prose(worked: list[tuple[str, str]]) -> Counter[str]:
    """What is held of the equations of worked solutions without their annotations, each beside its question."""
    return Counter(step.state for question, answer in worked for step in steps(ANNOTATION.sub("", answer), question))


def in_solutions(worked: list[tuple[str, str]]) -> Counter[str]:
    """What is held of the annotations of each solution together, beside its question."""
    texts = ((question, "\n".join(f"<<{one}>>" for one in ANNOTATION.findall(answer))) for question, answer in worked)
    return Counter(step.state for question, text in texts for step in steps(text, question))


def main() -> int:
    """Measure, print, and say whether the aim is met."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--rows", type=int, default=1_000, help="solutions, evenly spread; 0 for all")
    ask.add_argument("--data", type=Path, default=SHARED / "data", help="folder of the public data sets")
    given = ask.parse_args()
    if not (given.data / "gsm8k").is_dir():
        print(f"no gsm8k in {given.data}: set CORPUSFORGE_SHARED, or --data")
        return 0
    worked = solutions(given.data / "gsm8k", given.rows)
    asked = annotations(worked)
    print(f"{len(worked):,} solutions, {len(asked):,} annotated steps")
    met = True
    for form in FORMS:
        whole, broken, failures = measured(form, asked)
        accepted, rejected = share(whole, "right", "identity"), share(broken, "wrong", "still true")
        met = met and min(accepted, rejected) >= AIM
        print(
            f"{form}: accepted {accepted:.2%} {dict(whole)}; one digit changed, rejected {rejected:.2%} {dict(broken)}"
        )
        for cause, listed in failures.items():
            print(f"  {cause}: {len(listed):,}, such as {', '.join(dict.fromkeys(listed[:SHOWN]))}")
    print(f"annotations beside their question: {dict(in_solutions(worked))}")
    began = time.process_time()
    print(f"equations in prose: {dict(prose(worked))}")
    print(f"{(time.process_time() - began) / len(worked) * 1000:.2f} ms of processor time a solution")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
