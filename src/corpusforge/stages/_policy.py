"""Which terms a build accepts: per source before anything runs, and per row, because a row may state its own.

    source support, MIT            row states restrictions: [no-train]    -> restricted
    source support, MIT            row states license: CC-BY-NC-4.0       -> restricted: the source did not say so
    policy: {deny: ["*-NC-*"]}     any row under CC-BY-NC-4.0             -> denied_by_policy
    policy: {unknown: drop}        a row whose licence nobody states      -> unknown_licence

A restriction is accepted when `allow` names it (in the source or for all of them), or when the source declares it
itself and it is none of those that need allowing. A source whose licence is not declared is as strict as its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field, field_validator

from corpusforge.errors import SourceError
from corpusforge.licences import NEEDS_ALLOWING, RESTRICTIONS, UNKNOWN, check_pattern, denied_by, implied
from corpusforge.stages._stage import StageConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from corpusforge.stages._source import SourceConfig

RESTRICTED: Final = "restricted"
DENIED: Final = "denied_by_policy"
NO_LICENCE: Final = "unknown_licence"


class Policy(StageConfig):
    """Which licences and restrictions rows may have."""

    deny: list[str] = Field([])
    """Licences (`*` and `?` stand for anything: `*-NC-*`), restrictions, or `unknown`, that no row may have."""
    allow: list[str] = Field([])
    """Where it is not empty: the only licences that rows may have; of `A AND B` both must be here."""
    unknown: Literal["keep", "drop", "fail"] = "keep"
    """What becomes of rows whose licence neither params nor the record state."""

    @field_validator("deny")
    @classmethod
    def _check_deny(cls, value: list[str]) -> list[str]:
        known = (*RESTRICTIONS, UNKNOWN)
        return [one if one in known else check_pattern(one) for one in value]

    @field_validator("allow")
    @classmethod
    def _check_allow(cls, value: list[str]) -> list[str]:
        for one in value:
            if one in RESTRICTIONS:
                raise ValueError(f"{one!r} is a restriction: allow it under the source, or in ingest.allow")
        return [check_pattern(one) for one in value]

    @property
    def drops_unknown(self) -> bool:
        """Whether rows of unknown licence are left out."""
        return self.unknown == "drop" or UNKNOWN in self.deny


@dataclass(frozen=True)
class Refusal:
    """Why terms are refused: a reason code, and the restrictions or the licence pattern that did it."""

    reason: str
    because: tuple[str, ...]


@dataclass(frozen=True)
class Terms:
    """What a build accepts, source by source."""

    sources: Mapping[str, SourceConfig]
    allow: Sequence[str] = ()
    policy: Policy = field(default_factory=Policy)

    def refusal(self, source: str, licence: str, restrictions: Iterable[str]) -> Refusal | None:
        """Why a row of `source` under these terms is refused; None where it is accepted."""
        declared = self.sources.get(source)
        allowed = {*self.allow, *(declared.allow if declared else ())}
        said = {*declared.restrictions, *implied(declared.license)} if declared else set()
        stated = declared is not None and declared.license != UNKNOWN
        left = sorted(set(restrictions) - allowed)
        bad = [one for one in left if one in NEEDS_ALLOWING or (stated and one not in said)]
        if bad:
            return Refusal(RESTRICTED, tuple(bad))
        denied = [one for one in left if one in self.policy.deny]
        if denied:
            return Refusal(DENIED, tuple(denied))
        if licence == UNKNOWN:
            return Refusal(NO_LICENCE, ()) if self.policy.drops_unknown else None
        patterns = [one for one in self.policy.deny if one not in RESTRICTIONS]
        pattern = denied_by(licence, patterns, self.policy.allow)
        return Refusal(DENIED, (pattern,)) if pattern else None

    def check(self) -> None:
        """Raise SourceError for a source whose own declaration is refused, saying how to allow it on purpose."""
        for name, source in self.sources.items():
            restrictions = {*source.restrictions, *implied(source.license)}
            found = self.refusal(name, source.license, restrictions)
            if found and found.reason != NO_LICENCE:
                raise SourceError(f"source {name!r} {_says(source, found)}", hint=_way_out(found))

    def check_stated(self, source: str, licence: str, rows: int) -> None:
        """Raise SourceError where rows of `source` have no licence and that is to fail."""
        if licence == UNKNOWN and self.policy.unknown == "fail":
            raise SourceError(
                f"source {source!r}: {rows:,} rows have no licence that is known, which ingest.policy.unknown refuses",
                hint="state `license` under the source, or set ingest.policy.unknown to drop or keep",
            )


def check_allowed(sources: Iterable[SourceConfig], allow: Iterable[str] = (), policy: Policy | None = None) -> Terms:
    """What a build of these sources accepts, checked before anything runs.

    Raises SourceError for two sources of one name, and for a source whose declared terms nobody allowed.
    """
    known: dict[str, SourceConfig] = {}
    for source in sources:
        if source.name in known:
            raise SourceError(
                f"two sources are called {source.name!r}", hint="row ids begin with the name: give each its own"
            )
        known[source.name] = source
    terms = Terms(known, tuple(allow), policy or Policy())
    terms.check()
    return terms


def _says(source: SourceConfig, found: Refusal) -> str:
    if found.reason == RESTRICTED or found.because[0] in RESTRICTIONS:
        return "is restricted: " + ", ".join(f"{one} ({RESTRICTIONS[one]})" for one in found.because)
    pattern = found.because[0]
    why = "allow does not name" if pattern == "not allowed" else f"deny refuses ({pattern})"
    return f"is under {source.license}, which ingest.policy.{why}"


def _way_out(found: Refusal) -> str:
    if found.reason == RESTRICTED or found.because[0] in RESTRICTIONS:
        return f"to use it on purpose, add to this source in params.yaml:  allow: [{', '.join(found.because)}]"
    return "take the source out, or change ingest.policy in params.yaml"
