"""What must be forgotten: rows that somebody named, what was made from them, and exact copies of all of these.

Entries come from `forget.csv` (io/forgotten.py). A record is named by the content of its rows, by a hash of the user's
own id, or by its row id in a stated revision of its source: whichever of them survives the next delivery. From there
it spreads until nothing is added: to rows that name one that goes among their parents (by row id, by the own id of a
record of their source, or of another source where theirs has none), and to rows of equal content.

    forget.csv names forum#17; made#4 states the parent forum#17; web#9 says the same as made#4
    -> forum#17 {because: named}, made#4 {because: descendant, of: forum#17}, web#9 {because: copy, of: made#4}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from corpusforge.stages._settle import base, none_gone

if TYPE_CHECKING:
    from collections.abc import Iterable

FORGOTTEN: Final = "forgotten"
HELD: Final = "near_copy_of_forgotten"
ACTIONS: Final = ("forget", "hold", "ask", "keep")
"""`hold` and `ask` wait for a person: a near copy that is out stays out, one that is in stays in, until then."""
FACTS: Final = ("base", "row_id", "content_id", "name", "revision", "own", "parents")
"""Columns of the frames: ids of rows, and of their records; `own` is the user's id, `parents` a list of texts."""

Frames = Callable[[], Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class Entry:
    """One line of forget.csv: a row, or (with `source` alone) all rows of a source."""

    action: str
    row: str = ""
    source: str = ""
    revision: str = ""
    own: str = ""
    """Hash of the user's own id, see `own_hash`."""
    content: str = ""
    because: str = ""
    why: str = ""
    by: str = ""
    when: str = ""

    @property
    def whole_source(self) -> bool:
        """Whether it names a source rather than a row."""
        return bool(self.source) and not (self.row or self.own or self.content)


def own_hash(own: str) -> str:
    """128-bit hash of a user's own id: an id may be a name or an address, and the file is kept in git."""
    return hashlib.blake2b(b"corpusforge own id\0" + own.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass
class _Names:
    """What entries name."""

    sources: set[str] = field(default_factory=set)
    contents: set[str] = field(default_factory=set)
    rows: set[tuple[str, str]] = field(default_factory=set)  # row id, revision
    own: set[tuple[str, str]] = field(default_factory=set)  # source ("" for any), hash

    @classmethod
    def of(cls, entries: Iterable[Entry], action: str) -> _Names:
        """Those of the entries with this action."""
        names = cls()
        for entry in entries:
            if entry.action != action:
                continue
            if entry.whole_source:
                names.sources.add(entry.source)
            names.contents |= {entry.content} if entry.content else set()
            names.rows |= {(entry.row, entry.revision)} if entry.row else set()
            names.own |= {(entry.source, entry.own)} if entry.own else set()
        return names

    def __bool__(self) -> bool:
        return bool(self.sources or self.contents or self.rows or self.own)

    def hit(self, frame: pl.DataFrame) -> set[str]:
        """Bases of the records of which a row is named."""
        mask = pl.col("name").is_in(list(self.sources)) | pl.col("content_id").is_in(list(self.contents))
        places = pl.DataFrame(list(self.rows), schema={"row_id": pl.String, "revision": pl.String}, orient="row")
        found = {*frame.filter(mask)["base"], *frame.join(places, on=["row_id", "revision"], how="semi")["base"]}
        if self.own:
            known = frame.drop_nulls("own").select("base", "name", "own").unique()
            hashes = {own: own_hash(own) for own in known["own"].unique()}
            found |= {b for b, name, own in known.iter_rows() if {(name, hashes[own]), ("", hashes[own])} & self.own}
        return found


class _Spread:
    """What goes, and by which names other rows may call it."""

    def __init__(self, named: _Names) -> None:
        self.named = named
        self.gone: dict[str, tuple[str, str]] = {}  # base -> because, of
        self.contents: dict[str, str] = dict.fromkeys(named.contents, "")  # content -> base of a row that has it
        self.own: dict[str, dict[str, str]] = {}  # own id -> source -> base
        self.rows = {row.rpartition(".")[0] if _is_fan(row) else row for row, _ in named.rows}  # bases, of any revision
        self.hashed: set[str] = set()  # parents whose hash is named: the record may not be here any more

    def size(self) -> tuple[int, int, int]:
        """Grows as long as anything is added."""
        return len(self.gone), len(self.contents), sum(map(len, self.own.values()))

    def remember(self, frame: pl.DataFrame) -> None:
        """The names of the rows in `frame` that go."""
        rows = frame.filter(pl.col("base").is_in(list(self.gone)))
        for at, content, name, own in rows.select("base", "content_id", "name", "own").iter_rows():
            self.contents.setdefault(content, at)
            if own is not None:
                self.own.setdefault(own, {}).setdefault(name, at)

    def copies(self, left: pl.DataFrame) -> dict[str, tuple[str, str]]:
        """Records of which a row says what a row that goes says."""
        hit = left.filter(pl.col("content_id").is_in(list(self.contents))).select("base", "content_id")
        return {at: ("copy", self.contents[content]) for at, content in hit.iter_rows()}

    def edges(self, left: pl.DataFrame) -> pl.DataFrame:
        """Rows and those of their parents that may be the name of something that goes: base, name, parent, of."""
        edges = left.select("base", "name", pl.col("parents").alias("parent")).explode("parent").drop_nulls("parent")
        edges = edges.with_columns(base(pl.col("parent")).alias("of")).filter(pl.col("of") != pl.col("base"))
        called = pl.col("of").is_in([*self.gone, *self.rows]) | pl.col("parent").is_in([*self.own, *self.hashed])
        for start in self._starts():
            called |= pl.col("of").str.starts_with(start)
        return edges.filter(called).unique(maintain_order=True)

    def hash_parents(self, frame: pl.DataFrame) -> None:
        """Look which parents bear a named hash; once is enough, because names of hashes are not added to."""
        digests = {digest for _, digest in self.named.own}
        parents = frame["parents"].explode().drop_nulls().unique() if digests else ()
        self.hashed |= {parent for parent in parents if own_hash(parent) in digests}

    def child(self, name: str, parent: str, of: str) -> tuple[str, str] | None:
        """Why a row of source `name` with this parent goes; None where only another source's record has the id."""
        bearers = self.own.get(parent, {})
        if of in self.gone or of in self.rows or of.startswith(self._starts()):
            return "descendant", of
        if name in bearers:
            return "descendant", bearers[name]
        digest = own_hash(parent)
        return ("descendant", self.bearer(parent)) if {(name, digest), ("", digest)} & self.named.own else None

    def bearer(self, parent: str) -> str:
        """A record of any source that goes and has this own id."""
        return next(iter(self.own.get(parent, {}).values()), "")

    def _starts(self) -> tuple[str, ...]:
        """How row ids of forgotten sources begin, whether the sources are still declared or not."""
        return tuple(name + sign for name in sorted(self.named.sources) for sign in "#/")


def closure(frames: Frames, entries: Iterable[Entry]) -> pl.DataFrame:
    """Records that must go: base, reason, detail. `frames()` gives the FACTS of all rows, some at a time.

    Memory holds one frame, and the names of what goes. They are asked for once per generation, and a few times more.
    """
    entries = list(entries)
    named, held = _Names.of(entries, "forget"), _Names.of(entries, "hold")
    spread = _Spread(named)
    for frame in frames() if named else ():
        spread.gone |= dict.fromkeys(sorted(named.hit(frame)), ("named", ""))
        spread.remember(frame)
        spread.hash_parents(frame)
    while named and _step(frames, spread):
        pass
    out = {at: (FORGOTTEN, {"because": because, "of": of}) for at, (because, of) in spread.gone.items()}
    for frame in frames() if held else ():
        out |= {at: (HELD, {}) for at in held.hit(frame) if at not in spread.gone}
    lines = [(at, reason, json.dumps({k: v for k, v in detail.items() if v})) for at, (reason, detail) in out.items()]
    return pl.DataFrame(lines, schema=none_gone().schema, orient="row").sort("base")


def _step(frames: Frames, spread: _Spread) -> bool:
    """One generation further; False when nothing was added."""
    before = spread.size()
    unsure: list[tuple[str, str, str]] = []
    for frame in frames():
        spread.remember(frame)
        left = frame.filter(~pl.col("base").is_in(list(spread.gone)))
        found = spread.copies(left)
        for at, name, parent, of in spread.edges(left).iter_rows():
            why = spread.child(name, parent, of)
            if why is None:
                unsure.append((at, name, parent))
            else:
                found.setdefault(at, why)
        spread.gone |= found
        spread.remember(frame)
    _take_unsure(frames, spread, unsure)
    return spread.size() != before


def _take_unsure(frames: Frames, spread: _Spread, unsure: list[tuple[str, str, str]]) -> None:
    """Let go what names another source's record as its parent, where its own source has no record of that id."""
    if not unsure:
        return
    asked = pl.DataFrame([one[1:] for one in unsure], schema=["name", "own"], orient="row").unique()
    own: set[tuple[str, str]] = set()
    for frame in frames():
        own |= set(frame.join(asked, on=["name", "own"], how="semi").select("name", "own").unique().iter_rows())
    found = {at: ("descendant", spread.bearer(parent)) for at, name, parent in unsure if (name, parent) not in own}
    spread.gone |= {at: why for at, why in found.items() if at not in spread.gone}


def _is_fan(row: str) -> bool:
    head, dot, tail = row.rpartition(".")
    return bool(dot) and tail.isdigit() and "#" in head and head.rpartition("#")[2].isdigit()
