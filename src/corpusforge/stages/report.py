"""report: one page and one JSON that prove the build.

It adds nothing to the rows and removes none. It puts side by side what the stages said of themselves (their figures),
what their ledgers hold, and what the finished rows are, and says whether the three agree: in every stage
in = kept + dropped, and what one stage kept is what the next one got. There is no clock and no path in the report, so
the same build gives the same bytes.

Diversity figures are counted as in Li et al. 2016, "A Diversity-Promoting Objective Function": distinct-n is the
number of different word n-grams over the number of all n-grams. It falls as a text grows, so it is always taken over
the first `DIVERSITY_WORDS` words of a fixed sample; figures over fewer words are not comparable with it.

    stage   in     kept   dropped  adds up  reasons
    dedupe  1,204  1,180  24       yes      exact_duplicate 15, near_duplicate 9
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from pydantic import Field

from corpusforge.licences import UNKNOWN
from corpusforge.stages._stage import StageConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

DIVERSITY_WORDS: Final = 100_000
BINS: Final = 10
_WARNED: Final = 10  # lines of overrides.csv that warnings name, of each sort
_OWN: Final = ("in", "kept", "dropped", "changed", "reasons", "by_source")
_TOLD: Final = ("duplicates", "overrides")  # of dedupe, in parts of their own
_OPEN: Final = "health: solutions ran without walls (CORPUSFORGE_SANDBOX=unconfined); a pass proves less"
_INGEST_OWN: Final = ("records", "with_rows", "quarantined", "rows", "sources", "quarantine")

Line = Mapping[str, Any]


class ReportConfig(StageConfig):
    """What the report shows."""

    samples: int = Field(3, ge=0)
    """Rows shown per kind, taken after scrubbing; 0 shows none."""
    sample_chars: int = Field(600, ge=20)
    """Characters of a message before it is cut."""
    examples: int = Field(3, ge=0)
    """Ledger lines shown per reason: ids and details, never text."""
    leak_rows: int = Field(500, ge=0)
    """Scrubbed rows that are searched again, at the lowest thresholds, for what may be left; 0 searches none."""
    diversity_rows: int = Field(2_000, ge=1)
    """Rows per origin whose text the diversity figures look at: bounds their time."""


@dataclass(frozen=True)
class Facts:
    """What a report is made from; every list holds small dicts, already counted.

    before       after ingest: source, license, restrictions, origin, kind, rows
    after        after blend: source, license, restrictions, origin, generator, kind, language, domain, split, rows,
                 copies, tokens (restrictions is a comma-separated list)
    drops        stage, source, reason, rows (from the ledgers)
    examples     stage, reason, row_id, record_id, detail
    difficulty   kind, method, bin (0 to 9, None where nothing could be measured), rows
    personal     source, entity, findings
    leaks        rows, sampled, entities, by_rules (see io.leaks)
    """

    metrics: Mapping[str, Mapping[str, Any]]
    manifest: Mapping[str, Any]
    before: Sequence[Line]
    after: Sequence[Line]
    drops: Sequence[Line]
    examples: Sequence[Line]
    difficulty: Sequence[Line]
    personal: Sequence[Line]
    tokens: Mapping[str, Any]
    clusters: Mapping[str, int]
    diversity: Mapping[str, Mapping[str, Any]]
    samples: Sequence[Line]
    leaks: Mapping[str, Any] = field(default_factory=dict)


def report(facts: Facts) -> dict[str, Any]:
    """The report as plain JSON values, keys in reading order; equal facts give an equal report."""
    stages = _stages(facts)
    whole: dict[str, Any] = {
        "build": facts.manifest.get("build"),
        "totals": _totals(facts, stages),
        "stages": stages,
        "sources": _sources(facts),
        "licenses": count(facts.after, "license"),
        "restrictions": _restrictions(facts.after),
        "origins": count(facts.after, "origin"),
        "generators": count([line for line in facts.after if line["generator"]], "generator"),
        "kinds": count(facts.after, "kind"),
        "languages": count(facts.after, "language"),
        "domains": count(facts.after, "domain"),
        "splits": _nested(facts.after, "split", "kind", "copies"),
        "difficulty": _difficulty(facts.difficulty),
        "tokens": dict(facts.tokens),
        "duplicates": _duplicates(facts),
        "personal_data": _personal(facts),
        "contamination": figures(facts.metrics["decontaminate"]),
        "diversity": {name: dict(values) for name, values in facts.diversity.items()},
        "samples": [dict(sample) for sample in facts.samples],
    }
    return whole | {"warnings": _warnings(whole, facts)}


def count(lines: Iterable[Line], key: str, what: str = "copies") -> dict[str, int]:
    """Sum `what` over the values of `key`, largest first."""
    total: Counter[str] = Counter()
    for line in lines:
        total[str(line[key] or "unknown")] += line[what]
    return _ordered(total)


def figures(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that a stage adds to those every stage has."""
    return {key: value for key, value in metrics.items() if key not in (*_OWN, *_INGEST_OWN, *_TOLD)}


def diversity(texts: pa.Array) -> dict[str, Any]:
    """How varied `texts` (strings) are: distinct-1, distinct-2, and the share that the top 1 % of bigrams take.

    Words are lower-cased runs of letters, digits and marks; bigrams do not cross texts. Only the first
    `DIVERSITY_WORDS` words are looked at; `words` says how many there were.
    """
    column: pl.Series = pl.Series("text", texts, dtype=pl.String)
    words = (
        pl.DataFrame({"text": column})
        .with_row_index("row")
        .with_columns(pl.col("text").str.to_lowercase().str.extract_all(r"[\p{L}\p{N}\p{M}_]+").alias("word"))
        .select("row", "word")
        .explode("word", empty_as_null=True)
        .drop_nulls()
        .head(DIVERSITY_WORDS)
    )
    pairs = words.select(
        pl.concat_str("word", pl.col("word").shift(-1).over("row"), separator=" ", ignore_nulls=False).alias("pair")
    ).drop_nulls()
    counts = pairs.group_by("pair").len().sort("len", "pair", descending=[True, False])["len"]
    top = counts.head(-(-len(counts) // 100))
    return {
        "rows": len(column),
        "words": words.height,
        "distinct_1": _share(words["word"].n_unique(), words.height),
        "distinct_2": _share(len(counts), pairs.height),
        "top_1_percent_of_bigrams": _share(int(top.sum()), pairs.height),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def _ordered(total: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def _stages(facts: Facts) -> list[dict[str, Any]]:
    """One entry per stage in the order of the metrics, with the check that the counting holds."""
    entries: list[dict[str, Any]] = []
    for name, metrics in facts.metrics.items():
        reasons = count([line for line in facts.drops if line["stage"] == name], "reason", "rows")
        if name == "ingest":
            entry = _ingest_entry(metrics)
        elif name == "shard":
            entry = _shard_entry(facts)
        else:
            entry = {
                "stage": name,
                "unit": "rows",
                **{key: metrics[key] for key in ("in", "kept", "dropped", "changed")},
            }
        previous = entries[-1].get("rows", entries[-1]["kept"]) if entries else entry["in"]
        entry["adds_up"] = (
            entry["in"] == entry["kept"] + entry["dropped"]
            and entry["in"] == previous
            and sum(reasons.values()) == entry["dropped"]
        )
        entry["reasons"] = reasons
        entry["examples"] = [
            {key: line[key] for key in ("reason", "row_id", "record_id", "detail")}
            for line in facts.examples
            if line["stage"] == name
        ]
        entry["figures"] = {} if name in {"shard", "decontaminate"} else figures(metrics)
        entries.append(entry)
    return entries


def _ingest_entry(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "stage": "ingest",
        "unit": "records",
        "in": metrics["records"],
        "kept": metrics["with_rows"],
        "dropped": metrics["quarantined"],
        "changed": metrics.get("changed", 0),
        "rows": metrics["rows"],
    }


def _shard_entry(facts: Facts) -> dict[str, Any]:
    """Rows in are the rows that blend kept; `rows` are those written, where copies count."""
    rows = sum(line["rows"] for line in facts.after)
    return {
        "stage": "shard",
        "unit": "rows",
        "in": rows,
        "kept": rows,
        "dropped": 0,
        "changed": 0,
        "rows": sum(shard["rows"] for shard in facts.manifest.get("shards", [])),
        "copies": sum(line["copies"] for line in facts.after),
    }


def _totals(facts: Facts, stages: list[dict[str, Any]]) -> dict[str, Any]:
    last = stages[-1]
    return {
        "records": stages[0]["in"],
        "rows_ingested": stages[0].get("rows", stages[0]["in"]),
        "rows_in_shards": last.get("rows", last["kept"]),
        "tokens_in_shards": sum(line["tokens"] for line in facts.after),
        "adds_up": all(entry["adds_up"] for entry in stages)
        and ("copies" not in last or last["copies"] == last["rows"]),
    }


def _sources(facts: Facts) -> dict[str, dict[str, Any]]:
    """What each source gave, what was lost where and why, and what of it is in the shards."""
    names = {line["source"] for line in (*facts.before, *facts.drops, *facts.after)}
    per_source = facts.metrics["ingest"]["sources"]
    return {name: _source(name, facts, per_source.get(name, {})) for name in sorted(names | set(per_source))}


def _source(name: str, facts: Facts, ingest: Mapping[str, Any]) -> dict[str, Any]:
    before = [line for line in facts.before if line["source"] == name]
    after = [line for line in facts.after if line["source"] == name]
    drops = [line for line in facts.drops if line["source"] == name]
    loss: dict[str, dict[str, Any]] = {}
    for stage in facts.metrics:
        reasons = count([line for line in drops if line["stage"] == stage], "reason", "rows")
        inside = facts.metrics[stage].get("by_source", {}).get(name, {})
        came = ingest.get("records") if stage == "ingest" else inside.get("in")
        if reasons:
            loss[stage] = {"in": came, "dropped": sum(reasons.values()), "reasons": reasons}
    return {
        "records": ingest.get("records"),
        "rows": sum(line["rows"] for line in before),
        "rows_in_shards": sum(line["copies"] for line in after),
        "tokens_in_shards": sum(line["tokens"] for line in after),
        "licenses": count(before, "license", "rows"),
        "restrictions": _restrictions(after),
        "origins": count(before, "origin", "rows"),
        "kinds": count(before, "kind", "rows"),
        "loss": loss,
    }


def _restrictions(lines: Iterable[Line]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for line in lines:
        for name in filter(None, str(line["restrictions"] or "").split(",")):
            total[name] += line["copies"]
    return _ordered(total)


def _nested(lines: Iterable[Line], outer: str, inner: str, what: str) -> dict[str, dict[str, int]]:
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(str(line[outer] or "unknown"), []).append(line)
    return {name: count(group, inner, what) for name, group in sorted(groups.items())}


def _difficulty(lines: Sequence[Line]) -> dict[str, Any]:
    """Ten bins from easy to hard per kind, rows without a grade apart, and what measured the grades."""
    bins: dict[str, list[int]] = {}
    for line in lines:
        row = bins.setdefault(line["kind"], [0] * BINS)
        if line["bin"] is not None:
            row[line["bin"]] += line["rows"]
    return {
        "bins": dict(sorted(bins.items())),
        "not_graded": count([line for line in lines if line["bin"] is None], "kind", "rows"),
        "methods": count(lines, "method", "rows"),
    }


def _duplicates(facts: Facts) -> dict[str, Any]:
    by_source = facts.metrics["dedupe"].get("by_source", {})
    share = {
        name: _share(counts["dropped"], counts["in"]) for name, counts in sorted(by_source.items()) if counts["in"]
    }
    metrics = facts.metrics["dedupe"]
    found = metrics.get("duplicates", {})
    return {
        "removed": metrics["dropped"],
        "share_by_source": share,
        "clusters": dict(facts.clusters),
        "sources": dict(found.get("sources", {})),
        "pairs": list(found.get("pairs", [])),
        "other_pairs": dict(found.get("other_pairs", {})),
        "overrides": dict(metrics.get("overrides", {})),
    }


def _overridden(overrides: Mapping[str, Any]) -> Iterator[str]:
    """Lines of overrides.csv that did not do what somebody may think they did."""
    sorts = {
        "stale": "no row has the id",
        "without_effect": "keeps what would have stayed anyway:",
        "restricted": "cannot keep a copy of a row that was refused for its terms:",
    }
    for sort, says in sorts.items():
        told = overrides.get(sort, {"lines": 0, "first": []})
        for one in told["first"][:_WARNED]:
            yield f"overrides.csv:{one['line']}: {says} {one['row']}"
        if told["lines"] > _WARNED:
            yield f"overrides.csv: {told['lines'] - _WARNED:,} further lines: {says.rstrip(':')}"


def _personal(facts: Facts) -> dict[str, Any]:
    """Findings replaced in the finished rows; what the scrub stage says of itself stands beside it."""
    return {
        "entities": count(facts.personal, "entity", "findings"),
        "by_source": _nested(facts.personal, "source", "entity", "findings"),
        "scrub": figures(facts.metrics["scrub"]),
        "leaks": dict(facts.leaks),
    }


def _untried(health: Mapping[str, Any]) -> list[str]:
    """Tasks of which the stage health could not tell whether their verifier works."""
    rules: dict[str, int] = {}
    for kind in health.get("verifiers", {}).values():
        for rule, tasks in kind["undecided"].items():
            rules[rule] = rules.get(rule, 0) + tasks
    each = ", ".join(f"{rule} {tasks:,}" for rule, tasks in _ordered(rules).items())
    said = [f"verifiers of {sum(rules.values()):,} tasks could not be tried ({each}): see health"] if rules else []
    return [*said, *([_OPEN] if health.get("code_ran") == "unconfined" else [])]


def _warnings(report: Mapping[str, Any], facts: Facts) -> list[str]:
    said = []
    for name, source in report["sources"].items():
        unknown = source["licenses"].get(UNKNOWN, 0)
        if unknown:
            said.append(f"source {name}: licence unknown for {unknown:,} rows; state it in params.yaml")
        if not source["rows_in_shards"]:
            said.append(f"source {name}: none of its rows is in the shards")
    said += [f"stage {entry['stage']}: the counts do not add up" for entry in report["stages"] if not entry["adds_up"]]
    said += _overridden(report["duplicates"]["overrides"])
    unscanned = facts.metrics["scrub"].get("names_not_scanned", {})
    if unscanned:
        each = ", ".join(f"{language} {rows:,}" for language, rows in _ordered(unscanned).items())
        said.append(
            f"names of people were not looked for in {sum(unscanned.values()):,} rows ({each}): see scrub.names"
        )
    named = facts.metrics["scrub"].get("in_own_ids", {})
    if named:
        each = ", ".join(f"{entity} in {rows:,}" for entity, rows in _ordered(named).items())
        said.append(f"own ids of rows hold personal data ({each}), and stay: docs/stages/scrub.md, own ids")
    said += _untried(facts.metrics.get("health", {}))
    if not report["contamination"].get("benchmarks"):
        said.append("no benchmark is declared: contamination was not looked for")
    ungraded = sum(report["difficulty"]["not_graded"].values())
    if ungraded:
        said.append(f"{ungraded:,} rows have no difficulty: nothing in them could be measured")
    if not any(line["split"] == "heldout" for line in facts.after):
        said.append("no rows are held out")
    return said
