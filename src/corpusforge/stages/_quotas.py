"""Exact quotas: how often each row is written, given what each source and origin may have.

Sources with a quota take theirs first. The origins are then filled up from the sources without a quota, so that both
hold. Amounts are whole numbers by the largest remainder, shares are read as the decimals that were written (0.1 is a
tenth), and rows are taken in the order of their draws: by lot, not by their place in the input.

    100 human and 1,000 synthetic rows, each half of the mixture  ->  100 + 100
    the same with 3/4 human                                       ->  100 +  33  (133 is the largest total that fits)
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from corpusforge.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

Ints = npt.NDArray[np.int64]
Names = npt.NDArray[np.object_]
REST: Final = ""  # the group of everything that has no quota of its own
_PASSES: Final = 16  # tokens: how often rows too long for what is left are stepped over


@dataclass(frozen=True)
class Want:
    """One group's quota: a share of the total, a fraction of what it has, or an amount of rows or tokens."""

    unit: str
    value: Fraction


@dataclass(frozen=True)
class Pool:
    """The rows that quotas choose from, in the order of their draws."""

    source: npt.NDArray[np.object_]
    origin: npt.NDArray[np.object_]
    weight: Ints  # 1, or tokens
    repeats: int = 1  # how often a row may be taken

    def capacity(self, index: Ints) -> int:
        """What the rows at `index` can give at most."""
        return int(self.weight[index].sum()) * self.repeats


@dataclass(frozen=True)
class Quotas:
    """What sources and origins are to have, and the total (None: as much as there is)."""

    sources: Mapping[str, Want]
    mix: Mapping[str, Want]
    total: int | None
    unit: str = "rows"


@dataclass
class Plan:
    """Copies per row of the pool, and what each group was to have and had."""

    copies: Ints
    wanted: dict[str, dict[str, int]] = field(default_factory=lambda: {"source": {}, "origin": {}})
    total: int | None = None


class Short(Exception):  # an answer, not an error: the caller may lower the total
    """A group has less than its quota."""

    def __init__(self, kind: str, name: str, needs: int, has: int) -> None:
        super().__init__(kind, name, needs, has)
        self.kind, self.name, self.needs, self.has = kind, name, needs, has


def allocate(pool: Pool, quotas: Quotas, *, shrink: bool = False) -> Plan:
    """Copies for every row. Raises ConfigError when a quota cannot be met, naming group, need and what is there.

    With `shrink`, and where no total was asked for, the largest total that fits is searched for.
    """
    _check_names(pool, quotas)
    if shrink:
        quotas = _clipped(pool, quotas)
    upper = _bound(pool, quotas) if quotas.total is None else quotas.total
    try:
        return _plan(pool, quotas, upper)
    except Short as short:
        best = _largest(pool, quotas, upper) if upper and (shrink or quotas.total is None) else None
        if best is None:
            raise _error(short, quotas, pool) from None
        return best


def _largest(pool: Pool, quotas: Quotas, upper: int) -> Plan | None:
    """The plan with the largest total below `upper` that can be met."""
    low, high, best = 0, upper, None
    while high - low > 1:
        middle = (low + high) // 2
        try:
            low, best = middle, _plan(pool, quotas, middle)
        except Short:
            high = middle
        except ConfigError:  # fixed quotas leave the shares no room: too low
            low = middle
    return best


def _clipped(pool: Pool, quotas: Quotas) -> Quotas:
    """The same quotas, amounts of rows or tokens lowered to what their groups can give."""

    def clip(wants: Mapping[str, Want], column: npt.NDArray[np.object_]) -> dict[str, Want]:
        return {
            name: want
            if want.unit in {"share", "fraction"}
            else Want(want.unit, min(want.value, Fraction(pool.capacity(np.flatnonzero(column == name)))))
            for name, want in wants.items()
        }

    return replace(quotas, sources=clip(quotas.sources, pool.source), mix=clip(quotas.mix, pool.origin))


def _check_names(pool: Pool, quotas: Quotas) -> None:
    for kind, wants, column in (("source", quotas.sources, pool.source), ("origin", quotas.mix, pool.origin)):
        there = sorted(set(column.tolist()))
        for name, want in wants.items():
            if want.value and name not in there:
                near = difflib.get_close_matches(name, there, 1)
                needs = f"{want.value} {want.unit}" if want.unit in {"rows", "tokens"} else f"a {want.unit} of it"
                if want.unit == "share" and quotas.total is not None:
                    needs = f"{floor(want.value * quotas.total)} {quotas.unit}"
                raise ConfigError(
                    f"blend: {kind} {name!r} needs {needs}, has 0 rows",
                    hint=f"did you mean {near[0]!r}?" if near else f"{kind}s with rows: {', '.join(there) or 'none'}",
                )


def _bound(pool: Pool, quotas: Quotas) -> int | None:
    """The largest total that no share alone forbids, each row once; None where there is no share."""
    bounds = []
    for wants, column in ((quotas.sources, pool.source), (quotas.mix, pool.origin)):
        shared = {name: want.value for name, want in wants.items() if want.unit == "share"}
        for name, share in shared.items():
            if share:
                bounds.append(floor(int(pool.weight[column == name].sum()) / share))
        left = 1 - sum(shared.values(), Fraction(0))
        if shared and left > 0:
            bounds.append(floor(int(pool.weight[~np.isin(column, list(shared))].sum()) / left))
    return min(bounds, default=None)


def _plan(pool: Pool, quotas: Quotas, total: int | None) -> Plan:
    """Copies for one total; None: everything without a quota, once. Raises Short, or ConfigError for too full."""
    plan = Plan(np.zeros(len(pool.weight), np.int64), total=total)
    free = np.ones(len(pool.weight), bool)
    for name, amount in _amounts(pool, pool.source, quotas.sources, total).items():
        index = np.flatnonzero(pool.source == name)
        free[index] = False
        _take(plan, pool, index, ("source", name), amount)
    taken = plan.copies * pool.weight
    groups = {name: pool.origin == name for name in quotas.mix}
    groups[REST] = ~np.isin(pool.origin, list(quotas.mix))
    low = {name: int(taken[mask].sum()) for name, mask in groups.items()}
    wanted = _amounts(pool, pool.origin, quotas.mix, total)
    if total is None:
        wanted[REST] = low[REST] + int(pool.weight[groups[REST] & free].sum())
    else:
        wanted[REST] = max(total - sum(wanted.values()), 0)
    if quotas.sources and total is not None:
        high = {name: low[name] + pool.capacity(np.flatnonzero(mask & free)) for name, mask in groups.items()}
        _settle(wanted, low, high, slack=len(quotas.sources) * int(pool.weight.max(initial=1)))
    for name, mask in groups.items():
        if wanted[name] < low[name] or (total is not None and sum(wanted.values()) > total):
            raise _overfull(name, low[name], wanted, total, quotas)
        _take(plan, pool, np.flatnonzero(mask & free), ("origin", name), wanted[name] - low[name], low[name])
    return plan


def _amounts(pool: Pool, column: Names, wants: Mapping[str, Want], total: int | None) -> dict[str, int]:
    """Whole amounts per group: shares by the largest remainder (ties by name), fractions rounded half up."""
    amounts: dict[str, int] = {}
    exact: dict[str, Fraction] = {}
    for name in sorted(wants):
        want = wants[name]
        if want.unit == "share":
            exact[name] = want.value * (total or 0)
        elif want.unit == "fraction":
            has = int(pool.weight[column == name].sum())
            amounts[name] = floor(want.value * has + Fraction(1, 2))
        else:
            amounts[name] = int(want.value)
    return amounts | largest_remainder(exact)


def largest_remainder(exact: Mapping[str, Fraction]) -> dict[str, int]:
    """Whole numbers that add up to the rounded sum, each within one of its exact value; ties go by name."""
    whole = {name: floor(value) for name, value in exact.items()}
    spare = floor(sum(exact.values(), Fraction(0)) + Fraction(1, 2)) - sum(whole.values())
    for name in sorted(exact, key=lambda n: (whole[n] - exact[n], n))[:spare]:
        whole[name] += 1
    return whole


def _settle(wanted: dict[str, int], low: dict[str, int], high: dict[str, int], slack: int) -> None:
    """Let origins give way by what rounding the sources' quotas may have cost (`slack`), keeping the total."""
    total = sum(wanted.values())
    for name in wanted:
        fit = min(max(wanted[name], low[name]), high[name])
        if abs(fit - wanted[name]) <= slack:
            wanted[name] = fit
    spare = total - sum(wanted.values())
    for name in sorted(wanted, key=lambda n: (n == REST, n)):
        step = min(max(spare, low[name] - wanted[name]), high[name] - wanted[name])
        if step * spare > 0:
            wanted[name] += step
            spare -= step


def _take(plan: Plan, pool: Pool, index: Ints, group: tuple[str, str], amount: int, already: int = 0) -> None:
    """Give the rows at `index` copies, in order, until they weigh `amount`. Raises Short."""
    kind, name = group
    plan.wanted[kind][name] = amount + already
    weight = pool.weight[index]
    once, capacity = int(weight.sum()), pool.capacity(index)
    if amount > capacity:
        raise Short(kind, name, amount + already, capacity + already)
    rounds, left = divmod(amount, once) if once else (0, 0)
    plan.copies[index] = rounds
    chosen = np.zeros(len(index), bool)
    for _ in range(_PASSES):
        fits = np.flatnonzero(~chosen & (weight <= left))
        if not left or not len(fits):
            break
        ends = np.cumsum(weight[fits])
        first = fits[: int(np.searchsorted(ends, left, side="right"))]
        chosen[first] = True
        left -= int(weight[first].sum())
    plan.copies[index[chosen]] += 1


def _overfull(name: str, low: int, wanted: Mapping[str, int], total: int | None, quotas: Quotas) -> ConfigError:
    if wanted[name] >= low:
        asked = f"blend.mix asks for {sum(wanted.values())} {quotas.unit}"
        return ConfigError(f"blend: {asked}, the total is {total}", hint="lower a quota, or raise blend.total")
    what, allows = f"origin {name!r}", f"blend.mix allows {wanted[name]}"
    if name == REST:
        what, allows = "origins that blend.mix does not name", f"what is left of the total is {wanted[name]}"
    return ConfigError(
        f"blend: the quotas of sources give {what} {low} {quotas.unit}, {allows}",
        hint="lower the quota of such a source, or raise the share of its origin in blend.mix",
    )


def _error(short: Short, quotas: Quotas, pool: Pool) -> ConfigError:
    what = f"{short.kind} {short.name!r}"
    if short.name == REST:
        what = "what has no quota of its own" if quotas.mix or quotas.sources else "blend.total"
    has = f"{short.has} (each row up to {pool.repeats} times)" if pool.repeats > 1 else str(short.has)
    return ConfigError(
        f"blend: {what} needs {short.needs} {quotas.unit}, has {has}",
        hint="set blend.when_short to shrink or repeat, lower blend.total, or change the share",
    )
