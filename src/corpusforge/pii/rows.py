"""One row: what is found in it, what becomes of each finding, and the row afterwards.

A value found once is replaced wherever it stands in the row (the prose names it, the tool call repeats it; a number in
other groups, a street without its town), by the same stand-in. Then the new texts are searched again; what a recogniser
still finds becomes a tag, until nothing is found: so a second pass over the output changes nothing.

A task's verifier is kept consistent rather than searched: what was replaced in the row is replaced in its spec by the
same stand-in, secrets go, and anything else found there is counted and left, because a checker whose data were changed
on one side only would judge every answer wrong.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final

from corpusforge.pii import recognisers, regions
from corpusforge.pii.context import View
from corpusforge.pii.leaves import Leaf, Steps, leaves
from corpusforge.pii.recognisers import ALL, BITS, SECRET, RecogniserFailed, Span, without_overlaps
from corpusforge.pii.same import SameValues
from corpusforge.pii.standins import Standins, tag, variants

STAND_IN: Final = "stand_in"
TAGGED: Final = "tag"
DROP: Final = "drop"
KEEP: Final = "keep"
ROUNDS: Final = 5
_SHORTEST: Final = 6  # characters: a shorter value is not looked for elsewhere in the row

Edits = dict[int, list[tuple[int, int, str]]]
Names = Mapping[int, list[Span]]
Namer = Callable[[list[tuple[int, Leaf]]], Names]


@dataclass(frozen=True)
class Policy:
    """What becomes of each entity, and how stand-ins are made."""

    actions: Mapping[str, str]
    documentation_is_real: bool = False
    language: str = ""  # of the row; tells which regions' phone numbers are looked for

    def action(self, entity: str) -> str:
        """The action for an entity; SECRET stands for every kind of secret, which are tagged unless told otherwise."""
        if entity in self.actions:
            return self.actions[entity]
        return self.actions.get(SECRET, TAGGED) if entity.startswith(SECRET) else STAND_IN


@dataclass(frozen=True)
class Found:
    """A finding in a row: the leaf's number and its span there. The value is stored nowhere."""

    leaf: int
    span: Span
    action: str


@dataclass(frozen=True)
class Outcome:
    """What scrubbing one row came to. `edits` are spans and replacements per leaf number."""

    edits: Edits = field(default_factory=dict)
    replaced: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    in_verifier: Counter[str] = field(default_factory=Counter)
    fields: tuple[str, ...] = ()
    places: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # kind of field -> entity -> replaced
    drop: str = ""
    detail: dict[str, Any] = field(default_factory=dict)


def search(parts: Sequence[Leaf], groups: int, policy: Policy, names: Names | None = None) -> list[Found]:
    """Findings of all leaves of a row, with the action for each. Raises RecogniserFailed with the leaf's path."""
    found = []
    for number, leaf in enumerate(parts):
        view = View(leaf.text, leaf.lead, "code" if leaf.column == "tools" else None)
        try:
            spans = recognisers.find(view, groups, documentation_is_real=policy.documentation_is_real)
            if policy.language in regions.REGIONS and groups & BITS["digits"]:
                spans = without_overlaps([*spans, *_at_home(view, policy.language)])
        except RecogniserFailed as error:
            raise RecogniserFailed(str(error), leaf.path) from None
        if names and number in names and leaf.column != "verifier":
            spans = without_overlaps([*spans, *_beside(names[number], spans)])
        for span in spans:
            action = policy.action(span.entity)
            if leaf.column == "verifier" and not span.entity.startswith(SECRET):
                action = KEEP
            found.append(Found(number, span, action))
    return found


def _at_home(view: View, language: str) -> list[Span]:
    """Phone numbers of the language's regions."""
    try:
        found = list(regions.find(view, language))
    except Exception:  # noqa: BLE001  # whatever it raises, the row cannot be called clean
        raise RecogniserFailed(regions.RECOGNISER) from None
    return [Span(*view.back(*span), "PHONE_NUMBER", regions.SCORE, regions.RECOGNISER) for span in found]


def _beside(names: Sequence[Span], spans: Sequence[Span]) -> Iterator[Span]:
    """Names without the part that another finding takes: `Ann Lee Apt. 7` is a person and an address."""
    for name in names:
        start, end = name.start, name.end
        for span in spans:
            if span.start <= start < span.end:
                start = span.end
            elif start < span.start < end:
                end = span.start
        if end - start > 1:
            yield replace(name, start=start, end=end)


def scrub_row(
    row: Mapping[str, Any], groups: int, policy: Policy, key: bytes, scope: str, namer: Namer | None = None
) -> Outcome:
    """Find, decide and replace in one row (a dict of the schema); the row itself is not changed.

    `namer` maps leaves to the names in them (leaf number to spans); it is asked again after each round.
    """
    parts = leaves(row)
    try:
        found = search(parts, groups, policy, namer(list(enumerate(parts))) if namer else None)
        dropped = [one for one in found if one.action == DROP]
        if dropped:
            counts = Counter(one.span.entity for one in dropped)
            return Outcome(drop=f"pii_{dropped[0].span.entity.lower()}", detail=dict(sorted(counts.items())))
        occupied = "\n".join(leaf.text for leaf in parts)
        standins = Standins(key, scope, occupied, documentation_is_real=policy.documentation_is_real)
        return _settle(parts, found, policy, standins, namer)
    except RecogniserFailed as error:
        return Outcome(drop="recogniser_failed", detail=dict(zip(("recogniser", "field"), error.args, strict=False)))


def _settle(parts: list[Leaf], found: list[Found], policy: Policy, standins: Standins, namer: Namer | None) -> Outcome:
    """Replace, search what came out, and replace again, until a search finds nothing that should go."""
    wanted = [one for one in found if one.action in (STAND_IN, TAGGED)]
    wanted += _elsewhere(parts, wanted)
    edits = _edits(parts, wanted, standins)
    for _ in range(ROUNDS):
        again = _left_over(parts, edits, policy, namer) if edits else []
        if not again:
            return _outcome(parts, found, wanted, edits)
        back = {leaf: _Back(spans) for leaf, spans in edits.items()}
        wanted = _merged(wanted, [back[one.leaf].original(one) for one in again])
        edits = _edits(parts, wanted, standins)
    return Outcome(drop="scrub_not_settled", detail={"rounds": ROUNDS})


def _left_over(parts: Sequence[Leaf], edits: Edits, policy: Policy, namer: Namer | None) -> list[Found]:
    """What is found in the edited leaves, in their new texts, and should not be there."""
    after = [_edited(leaf, edits.get(number, [])) for number, leaf in enumerate(parts)]
    named = namer([(number, after[number]) for number in edits]) if namer else {}
    found = []
    for number in edits:
        names = {0: named[number]} if number in named else None
        found += [replace(one, leaf=number) for one in search([after[number]], ALL, policy, names)]
    return [one for one in found if one.action != KEEP]


def _outcome(parts: Sequence[Leaf], found: Sequence[Found], wanted: Sequence[Found], edits: Edits) -> Outcome:
    touched = {(one.leaf, one.span.start) for one in wanted}
    left = [one for one in found if one.action == KEEP and (one.leaf, one.span.start) not in touched]
    in_verifier = [one for one in left if parts[one.leaf].column == "verifier"]
    places: dict[str, Counter[str]] = {}
    for one in wanted:
        leaf = parts[one.leaf]
        places.setdefault(f"{leaf.column}.{leaf.field}".rstrip("."), Counter())[one.span.entity] += 1
    return Outcome(
        edits,
        replaced=Counter(one.span.entity for one in wanted),
        kept=Counter(one.span.entity for one in left) - Counter(one.span.entity for one in in_verifier),
        in_verifier=Counter(one.span.entity for one in in_verifier),
        fields=tuple(sorted({parts[one.leaf].path.split("#")[0] for one in wanted})),
        places=places,
    )


def _elsewhere(parts: Sequence[Leaf], wanted: Sequence[Found]) -> list[Found]:
    """The same values at other places in the row, as findings of their own."""
    values: dict[str, tuple[bool, Found]] = {}
    for one in wanted:
        value = _text(parts, one)
        if len(value) >= _SHORTEST:
            for form, spaced in variants(one.span.entity, value).items():
                values.setdefault(form, (spaced, one))
    if not values:
        return []
    taken: dict[int, list[tuple[int, int]]] = {}
    for one in wanted:
        taken.setdefault(one.leaf, []).append((one.span.start, one.span.end))
    same = SameValues({form: spaced for form, (spaced, _) in values.items()})
    found = []
    for number, leaf in enumerate(parts):
        spans = sorted(taken.get(number, ()))
        for start, end, form in same.find(leaf.text):
            at = bisect_left(spans, (end, 0))
            if (at and spans[at - 1][1] > start) or _glued(leaf.text, start, end):
                continue
            first = values[form][1]
            found.append(Found(number, replace(first.span, start=start, end=end, recogniser="SameValue"), first.action))
    return found


def _glued(text: str, start: int, end: int) -> bool:
    """Whether the span is part of a longer ASCII word or number."""
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    inner = text[start].isalnum() and before.isascii() and before.isalnum()
    return inner or (text[end - 1].isalnum() and after.isascii() and after.isalnum())


def _edits(parts: Sequence[Leaf], wanted: Sequence[Found], standins: Standins) -> Edits:
    standins.know(_text(parts, one) for one in wanted if one.span.entity == "PERSON")
    edits: Edits = {}
    for one in sorted(wanted, key=lambda f: (f.leaf, f.span)):
        entity, value = one.span.entity, _text(parts, one)
        new = tag(entity) if one.action != STAND_IN else standins.of(entity, value)
        if parts[one.leaf].key and new == tag(entity):
            new = standins.numbered(entity, value)
        edits.setdefault(one.leaf, []).append((one.span.start, one.span.end, new))
    return edits


def _text(parts: Sequence[Leaf], one: Found) -> str:
    return parts[one.leaf].text[one.span.start : one.span.end]


def splice(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """The text with ordered, disjoint spans replaced."""
    pieces, last = [], 0
    for start, end, new in edits:
        pieces += [text[last:start], new]
        last = end
    return "".join([*pieces, text[last:]])


def _edited(leaf: Leaf, edits: Sequence[tuple[int, int, str]]) -> Leaf:
    return replace(leaf, text=splice(leaf.text, edits)) if edits else leaf


class _Back:
    """The way back from an edited text: what a span of it stands for in the original."""

    def __init__(self, edits: Sequence[tuple[int, int, str]]) -> None:
        self._edits = edits
        self._shifts = [0, *accumulate(len(new) - (end - start) for start, end, new in edits)]
        self._lasts = [end + shift for (_, end, _), shift in zip(edits, self._shifts[1:], strict=True)]

    def original(self, one: Found) -> Found:
        """A finding in the edited text, as the span of the original text that it stands for; it becomes a tag."""
        start, end = self._position(one.span.start, low=True), self._position(one.span.end, low=False)
        return Found(one.leaf, replace(one.span, start=start, end=end), TAGGED)

    def _position(self, position: int, *, low: bool) -> int:
        at = bisect_right(self._lasts, position) if low else bisect_left(self._lasts, position)
        if at < len(self._edits):
            start, end, _ = self._edits[at]
            first = start + self._shifts[at]
            if position > first or (low and position == first):
                return start if low else end
        return position - self._shifts[at]


def _merged(wanted: Sequence[Found], added: Sequence[Found]) -> list[Found]:
    """`wanted` with `added`; what overlaps becomes one finding, tagged with the added entity."""
    every = sorted([*((one, False) for one in wanted), *((one, True) for one in added)], key=lambda pair: _at(pair[0]))
    result: list[Found] = []
    isnew = False
    for one, new in every:
        last = result[-1] if result else None
        if last is None or last.leaf != one.leaf or one.span.start >= last.span.end:
            result.append(replace(one, action=TAGGED) if new else one)
            isnew = new
            continue
        named = one if new or not isnew else last
        span = replace(named.span, start=last.span.start, end=max(last.span.end, one.span.end))
        result[-1], isnew = Found(one.leaf, span, TAGGED), True
    return result


def _at(one: Found) -> tuple[int, int, int]:
    return one.leaf, one.span.start, one.span.end


def texts_after(
    parts: Sequence[Leaf], edits: Mapping[int, Sequence[tuple[int, int, str]]]
) -> dict[tuple[str, int, str], dict[Steps, str]]:
    """The new texts per address and steps, as leaves.replace takes them."""
    changed: dict[tuple[str, int, str], dict[Steps, str]] = {}
    for number, spans in edits.items():
        leaf = parts[number]
        changed.setdefault(leaf.address, {})[leaf.steps] = splice(leaf.text, spans)
    return changed
