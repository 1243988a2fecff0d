"""gate_data: limits that a build must keep before anybody trains on it.

It reads the report, the manifest, the accepted baseline and what it looked up itself (shard hashes, benchmark
questions found in the finished shards), and answers with a verdict: every check with what was found and what was
allowed. One failed check fails the build. The checks do not trust the stage they watch: a leak is looked for again in
the shards with the gate's own settings, so that a misconfigured or flag-only `decontaminate` is caught.

    check                 found  limit  passed
    loss.dedupe           0.912  0.3    no      dedupe dropped 4,560 of 5,000 rows
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, field_validator

from corpusforge.licences import NEEDS_ALLOWING, UNKNOWN, denied_by
from corpusforge.stages._source import Restrictions
from corpusforge.stages._stage import StageConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_LOSS: Final = {
    "ingest": 0.1,  # records that could not be read or represented; `where` is a choice and does not count
    "dedupe": 0.3,
    "filter": 0.4,
    "scrub": 0.1,
    "health": 0.1,
    "grade": 0.0,
    "decontaminate": 0.2,
    "blend": 1.0,  # quotas drop rows on purpose
}
# ingest: left out because params say so
CHOSEN: Final = frozenset(
    {
        *("excluded_by_where", "denied_by_policy", "unknown_licence", "forgotten", "near_copy_of_forgotten"),
        *("replaced_by_later", "deleted_by_later", "repeated_id"),
    }
)
SMALL_SOURCE: Final = 10  # a share of fewer rows says nothing
Share = Annotated[float, Field(ge=0, le=1)]


class LicenceLimits(StageConfig):
    """Which licences and restrictions may be in the shards."""

    deny: list[str] = Field(default_factory=list)
    """Patterns (`*` and `?`) over licences, e.g. `*-NC-*`; one row under such a licence fails the build."""
    forbid: Restrictions = Field(default_factory=lambda: ["no-train"])
    """Restrictions that may not be in the shards even where `ingest` was told to allow them."""
    refuse_unknown: bool = False
    """Fail when rows of unknown licence are in the shards; otherwise the report warns."""


class BaselineLimits(StageConfig):
    """How far a build may be from the accepted one (baseline.json); unused while nothing was accepted."""

    max_source_loss: float = Field(0.3, ge=0, le=1)
    """Share of its accepted rows that one source may lose."""
    max_total_loss: float = Field(0.2, ge=0, le=1)
    """Share of all accepted rows that may be gone."""
    max_origin_drift: float = Field(0.15, ge=0, le=1)
    """Change of the synthetic share of the rows, in either direction."""
    max_diversity_drop: float = Field(0.2, ge=0, le=1)
    """Relative fall of distinct-2, over all rows and per origin."""
    removed_sources: list[str] = Field(default_factory=list)
    """Accepted sources that were taken out on purpose: their rows are not missed, in `max_total_loss` neither."""


class GateDataConfig(StageConfig):
    """Limits of the data gate."""

    max_loss: dict[str, Share] = Field(default_factory=dict)
    """Share of rows that a stage may drop, by stage; stages not named keep the defaults in docs/stages/gate_data.md."""
    max_source_loss: float = Field(0.6, ge=0, le=1)
    """Share of one source's rows that one stage may drop (not `blend`, and not sources under 10 rows)."""
    source_loss: dict[str, Share] = Field(default_factory=dict)
    """Other values of `max_source_loss`, by source."""
    min_rows: int = Field(1, ge=0)
    """Rows that the shards must hold at least."""
    max_synthetic: float = Field(1.0, ge=0, le=1)
    """Share of synthetic rows in the shards."""
    max_contaminated: int = Field(0, ge=0)
    """Shard rows that may hold a benchmark question, or a worked answer, when the gate looks itself."""
    licences: LicenceLimits = LicenceLimits()
    """Licences that may not be in the shards."""
    baseline: BaselineLimits = BaselineLimits()
    """Limits against the accepted build."""

    @field_validator("max_loss")
    @classmethod
    def _known_stages(cls, limits: dict[str, float]) -> dict[str, float]:
        unknown = sorted(set(limits) - set(MAX_LOSS))
        if unknown:
            raise ValueError(f"no such stage: {', '.join(unknown)}; stages are {', '.join(MAX_LOSS)}")
        return limits


@dataclass(frozen=True)
class Check:
    """One limit: what was found, what is allowed, and a sentence for people."""

    name: str
    found: float
    limit: float
    passed: bool
    says: str


@dataclass(frozen=True)
class Verdict:
    """The answer of the gate."""

    build: str
    checks: list[Check] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> list[Check]:
        """The checks that did not pass."""
        return [check for check in self.checks if not check.passed]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"build": self.build, "passed": self.passed, "checks": [asdict(check) for check in self.checks]}


@dataclass(frozen=True)
class Evidence:
    """What the gate looked up itself.

    damaged    shard files whose bytes are not what the manifest says
    leaks      benchmark -> ids of shard rows that hold one of its questions
    allowed    source -> restrictions that params allow by name
    stated     source -> restriction -> shard rows whose content that source (of this row or of a copy that went for
               it) put under the restriction; None: as the report counts them
    """

    damaged: Sequence[str] = ()
    leaks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    allowed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stated: Mapping[str, Mapping[str, int]] | None = None


def gate_data(
    report: Mapping[str, Any],
    manifest: Mapping[str, Any],
    baseline: Mapping[str, Any],
    config: GateDataConfig | None = None,
    evidence: Evidence | None = None,
) -> Verdict:
    """Judge a build. `baseline` is the content of baseline.json, `{}` while nothing was accepted."""
    config, evidence = config or GateDataConfig(), evidence or Evidence()
    checks = [
        *_whole(report, manifest, config, evidence),
        *_losses(report, config),
        *_source_losses(report, config),
        *_licences(report, config.licences, evidence),
        *_leaks(evidence, config),
        *_against(report, baseline, config.baseline),
    ]
    return Verdict(str(manifest["build"]), checks)


def baseline_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a build that later builds are compared with: the content of baseline.json."""
    return {
        "build": report["build"],
        "rows": report["totals"]["rows_in_shards"],
        "tokens": report["totals"]["tokens_in_shards"],
        "sources": {name: source["rows_in_shards"] for name, source in report["sources"].items()},
        "origins": report["origins"],
        "kinds": report["kinds"],
        "benchmarks": benchmarks_of(report),
        "diversity": {
            name: {key: values[key] for key in ("words", "distinct_2")} for name, values in report["diversity"].items()
        },
    }


def benchmarks_of(report: Mapping[str, Any]) -> list[str]:
    """Names of the benchmarks that `decontaminate` looked for."""
    return sorted(report["contamination"].get("benchmarks", {}))


def _most(name: str, found: float, limit: float, says: str) -> Check:
    """A check that `found` is at most `limit`; both are stored to six digits, the comparison is exact."""
    return Check(name, round(found, 6), limit, found <= limit, says)


def _whole(
    report: Mapping[str, Any], manifest: Mapping[str, Any], config: GateDataConfig, evidence: Evidence
) -> Iterator[Check]:
    wrong = [entry["stage"] for entry in report["stages"] if not entry["adds_up"]]
    says = f"counts do not add up in {', '.join(wrong)}" if wrong else "in = kept + dropped in every stage"
    if not wrong and not report["totals"]["adds_up"]:
        wrong, says = ["shard"], "the shards do not hold as many rows as blend asked for"
    yield _most("counts", len(wrong), 0, says)
    other = int(report["build"] != manifest["build"])
    yield _most("same_build", other, 0, "report and manifest are of one build" if not other else "report is stale")
    damaged = len(evidence.damaged)
    says = f"{damaged} shard files are not what the manifest says" if damaged else "shards are what the manifest says"
    yield _most("shards_intact", damaged, 0, says)
    rows = report["totals"]["rows_in_shards"]
    yield Check("min_rows", rows, config.min_rows, rows >= config.min_rows, f"{rows:,} rows in the shards")
    synthetic = _share(report["origins"].get("synthetic", 0), sum(report["origins"].values()))
    yield _most("synthetic_share", synthetic, config.max_synthetic, f"{synthetic:.1%} of the rows are synthetic")


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _losses(report: Mapping[str, Any], config: GateDataConfig) -> Iterator[Check]:
    limits = MAX_LOSS | config.max_loss
    for entry in report["stages"]:
        name = entry["stage"]
        if name not in limits:
            continue
        chosen = sum(entry["reasons"].get(reason, 0) for reason in CHOSEN) if name == "ingest" else 0
        came, lost = entry["in"] - chosen, entry["dropped"] - chosen
        says = f"{name} dropped {lost:,} of {came:,} {entry['unit']}"
        yield _most(f"loss.{name}", _share(lost, came), limits[name], says)


def _source_losses(report: Mapping[str, Any], config: GateDataConfig) -> Iterator[Check]:
    """The worst stage of each source."""
    for name, source in report["sources"].items():
        limit = config.source_loss.get(name, config.max_source_loss)
        worst, says = 0.0, "no stage dropped any"
        for stage, loss in source["loss"].items():
            chosen = sum(loss["reasons"].get(reason, 0) for reason in CHOSEN) if stage == "ingest" else 0
            came, lost = (loss["in"] or loss["dropped"]) - chosen, loss["dropped"] - chosen
            if stage != "blend" and came >= SMALL_SOURCE and _share(lost, came) > worst:
                worst, says = _share(lost, came), f"{stage} dropped {lost:,} of its {came:,}"
        yield _most(f"source_loss.{name}", worst, limit, f"source {name}: {says}")


def _licences(report: Mapping[str, Any], limits: LicenceLimits, evidence: Evidence) -> Iterator[Check]:
    used = report["licenses"]
    denied = {name: rows for name, rows in used.items() if denied_by(name, limits.deny)}
    says = f"denied licences in the shards: {', '.join(sorted(denied))}" if denied else "no denied licence"
    yield _most("licence_denied", sum(denied.values()), 0, says)
    if limits.refuse_unknown:
        unknown = used.get(UNKNOWN, 0)
        yield _most("licence_unknown", unknown, 0, f"{unknown:,} rows of unknown licence are in the shards")
    stated = evidence.stated
    if stated is None:
        stated = {name: source["restrictions"] for name, source in report["sources"].items()}
    for name, restrictions in stated.items():
        allowed = set(evidence.allowed.get(name, ()))
        for restriction, rows in restrictions.items():
            if restriction in limits.forbid:
                says = f"source {name}: {rows:,} rows are {restriction}, which gate_data.licences.forbid names"
            elif restriction in allowed or restriction not in NEEDS_ALLOWING:
                continue
            else:
                says = f"source {name}: {rows:,} rows are {restriction}, and params do not allow that by name"
            yield _most(f"restriction.{name}.{restriction}", rows, 0, says)


def _leaks(evidence: Evidence, config: GateDataConfig) -> Iterator[Check]:
    rows = sum(len(ids) for ids in evidence.leaks.values())
    hit = "; ".join(f"{name} in {', '.join(ids[:3])}" for name, ids in sorted(evidence.leaks.items()) if ids)
    looked = ", ".join(sorted(evidence.leaks)) or "no benchmark is declared: nothing was looked for"
    says = f"{rows:,} shard rows hold a benchmark item: {hit}" if rows else f"looked for items of: {looked}"
    yield _most("contamination", rows, config.max_contaminated, says)


def _against(report: Mapping[str, Any], baseline: Mapping[str, Any], limits: BaselineLimits) -> Iterator[Check]:
    if not baseline:
        return
    now = baseline_of(report)
    here, accepted = (
        b["rows"] - sum(b["sources"].get(name, 0) for name in limits.removed_sources) for b in (now, baseline)
    )
    lost = max(0.0, 1 - _share(here, accepted)) if accepted else 0.0
    says = f"{here:,} rows, {accepted:,} were accepted" + (
        " (without removed_sources)" if limits.removed_sources else ""
    )
    yield _most("baseline.rows", lost, limits.max_total_loss, says)
    for name, rows in baseline["sources"].items():
        if not rows or name in limits.removed_sources:
            continue
        here = now["sources"].get(name, 0)
        says = f"source {name}: {here:,} rows, {rows:,} were accepted"
        yield _most(f"baseline.source.{name}", max(0.0, 1 - here / rows), limits.max_source_loss, says)
    before, after = (_share(b["origins"].get("synthetic", 0), sum(b["origins"].values())) for b in (baseline, now))
    says = f"{after:.1%} of the rows are synthetic, {before:.1%} were accepted"
    yield _most("baseline.synthetic_share", abs(after - before), limits.max_origin_drift, says)
    gone = sorted(set(baseline["benchmarks"]) - set(now["benchmarks"]))
    says = f"benchmarks no longer looked for: {', '.join(gone)}" if gone else "all accepted benchmarks are looked for"
    yield _most("baseline.benchmarks", len(gone), 0, says)
    yield from _diversity(now["diversity"], baseline["diversity"], limits.max_diversity_drop)


def _diversity(now: Mapping[str, Any], before: Mapping[str, Any], limit: float) -> Iterator[Check]:
    """Only over equally many words: distinct-2 falls with length, so other comparisons would say nothing."""
    for name, old in before.items():
        new = now.get(name)
        if new is None or new["words"] != old["words"] or not old["distinct_2"]:
            continue
        drop = max(0.0, 1 - new["distinct_2"] / old["distinct_2"])
        says = f"distinct-2 of {name} is {new['distinct_2']:.3f}, {old['distinct_2']:.3f} was accepted"
        yield _most(f"baseline.diversity.{name}", drop, limit, says)
