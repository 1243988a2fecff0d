"""Blend: which rows go into the corpus, in which shares, and which are held out.

First the held-out split: groups of rows that belong together (near-duplicate cluster, content, prompt, record,
lineage) go to one side, drawn by the prompt, so that the sides are the same in the next build. Then exact
quotas over the training rows, by source and by origin, in rows or tokens; what is over a quota is dropped, by lot.
A row that is kept gets `split` (train or heldout) and `copies` (how often `shard` writes it). Quotas run over all
kinds together: a corpus has one human/synthetic ratio. Replacing human data by synthetic makes error grow over
generations while accumulating bounds it (Gerstgrasser et al. 2024, arXiv 2404.01413), hence a ratio that is stated.

Before the quotas, tasks that the accepted model always or never solves go, where its rollouts are known (`rollouts`):
GRPO learns from tasks whose answers are mixed (DAPO, arXiv 2503.14476).

    mix: {human: 0.7, synthetic: 0.3}, 700 human and 1,000 synthetic rows
    kept     700 human, 300 synthetic
    dropped  gpteacher#12  over_quota  {"group": "synthetic", "has": 1000, "kind": "origin", "wanted": 300}
    dropped  sums#7        solved      {"attempts": 16, "mixed": 0.181, "passes": 16}
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from corpusforge.errors import ConfigError
from corpusforge.result import LEDGER, StageResult, ledger
from corpusforge.stages._measured import FACTS, RolloutsConfig
from corpusforge.stages._measured import measured as measured_facts
from corpusforge.stages._quotas import REST, Plan, Pool, Quotas, Want, allocate
from corpusforge.stages._sides import held_out, keys_of
from corpusforge.stages._stage import Decided, Decision, Fetch, Inputs, StageConfig, configure, in_memory
from corpusforge.text.draws import draw


class Quota(BaseModel):
    """How much of a group is wanted: exactly one unit."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", use_attribute_docstrings=True)

    share: float | None = Field(None, ge=0, le=1)
    """Share of the whole mixture, 0 to 1."""
    rows: int | None = Field(None, ge=0)
    """Rows."""
    tokens: int | None = Field(None, ge=0)
    """Tokens; needs `weigh: tokens`."""
    fraction: float | None = Field(None, ge=0, le=1)
    """Fraction of what the group has, 0 to 1."""

    @model_validator(mode="after")
    def _one_unit(self) -> Quota:
        if sum(value is not None for value in (self.share, self.rows, self.tokens, self.fraction)) != 1:
            raise ValueError("unit missing: give exactly one of share, rows, tokens, fraction")
        return self


class BlendConfig(StageConfig):
    """Quotas, what to do when there is too little, and the held-out share."""

    mix: dict[str, Quota | float] = Field({})
    """Quota per origin (`human`, `synthetic`, `mixed`). A bare number below 1 is a share of the mixture. Empty: all."""
    sources: dict[str, Quota | float] = Field({})
    """Quota per source, likewise; taken before the origins are filled up from the sources without a quota."""
    total: Annotated[int, Field(ge=1)] | None = None
    """Rows (or tokens) of the training split. Without it: the largest total that the shares allow."""
    weigh: Literal["rows", "tokens"] = "rows"
    """What quotas count. Rows are exact; tokens end within one row of the quota."""
    when_short: Literal["fail", "shrink", "repeat"] = "fail"
    """A group has fewer than its quota: stop, lower the total so that shares hold, or write rows more than once."""
    max_repeat: int = Field(4, ge=1)
    """How often a row is written at most, with `when_short: repeat`: more than four epochs of a text add little."""
    heldout: float = Field(0.02, ge=0, lt=1)
    """Share of prompts held out for evaluation, with all that belongs to them; the same in every build, no quotas."""
    together: list[str] = Field(["conversation_id"])
    """Fields of `extra` whose equal values keep rows of a source on one side of the held-out split."""
    seed: int = Field(0, ge=0)
    """Changes which rows fill a quota, never which are held out."""
    rollouts: RolloutsConfig | None = None
    """Leave out training tasks that the accepted model always, or never, solves. Tasks without a measurement stay."""

    @field_validator("mix", "sources")
    @classmethod
    def _has_units(cls, quotas: dict[str, Quota | float]) -> dict[str, Quota | float]:
        shares = Fraction(0)
        for name, quota in quotas.items():
            if isinstance(quota, (int, float)) and not 0 <= quota < 1:
                raise ValueError(f"{name!r}: unit missing: a share is below 1, else write {{share: …}} or {{rows: …}}")
            share = quota.share if isinstance(quota, Quota) else quota
            shares += Fraction(str(share)) if share is not None else 0
        if shares > 1:
            raise ValueError(f"shares sum to {float(shares):g}, expected at most 1")
        return quotas

    @model_validator(mode="after")
    def _counts_tokens(self) -> BlendConfig:
        for quota in (*self.mix.values(), *self.sources.values()):
            if isinstance(quota, Quota) and getattr(quota, "rows" if self.weigh == "tokens" else "tokens") is not None:
                raise ValueError(f"a quota has another unit than `weigh: {self.weigh}`")
        return self


def blend(
    rows: pa.Table, config: BlendConfig | None = None, *, measured: pa.Table | None = None, **options: Any
) -> StageResult:
    """Choose rows by quota and by split; kept rows get `split` and `copies`.

    Options are the fields of BlendConfig; `measured` is what the file of `rollouts` holds (content_id, passes,
    attempts: each content once). Raises ConfigError when a quota names what has no rows, or cannot be met, and when
    `rollouts` comes without the table.
    """
    return in_memory(STAGE, rows, configure(BlendConfig, config, options), {"rollouts": measured})


def _summarise(rows: pa.Table, config: BlendConfig, inputs: Inputs) -> pa.Table:
    if config.weigh == "tokens" and "tokens" not in rows.column_names:
        raise ConfigError("blend: weigh: tokens needs the column `tokens`", hint="run `grade` before `blend`")
    tokens = rows["tokens"] if "tokens" in rows.column_names else pa.nulls(rows.num_rows, pa.int32())
    summary = (
        keys_of(rows, config.together)
        .append_column("source", pc.fill_null(pc.struct_field(rows["source"], "name"), "unknown"))
        .append_column("origin", pc.fill_null(pc.struct_field(rows["source"], "origin"), "unknown"))
        .append_column("tokens", pc.cast(pc.fill_null(tokens, 0), pa.int64()))
    )
    facts = measured_facts(rows, config.rollouts, inputs.get("rollouts"))
    for name in FACTS:
        summary = summary.append_column(name, facts[name])
    return summary


def _decide(summary: pa.Table, config: BlendConfig, inputs: Inputs, fetch: Fetch) -> Decision:  # noqa: ARG001
    out = held_out(summary, config.heldout)
    gone = ~out & pc.is_valid(summary["reason"]).to_numpy()  # tasks that are solved, or hopeless
    order = _order(summary, config.seed)
    order = order[~(out | gone)[order]]  # the training rows, by lot
    chosen = summary.select(["source", "origin", "tokens"]).take(pa.array(order))
    tokens = chosen["tokens"].to_numpy().astype(np.int64)
    pool = Pool(
        chosen["source"].to_numpy(),
        chosen["origin"].to_numpy(),
        tokens if config.weigh == "tokens" else np.ones(len(order), np.int64),
        config.max_repeat if config.when_short == "repeat" else 1,
    )
    quotas = Quotas(_wants(config.sources), _wants(config.mix), config.total, config.weigh)
    plan = allocate(pool, quotas, shrink=config.when_short == "shrink")
    copies = np.where(gone, 0, 1)
    copies[order] = plan.copies
    group = np.full(summary.num_rows, -1, np.int64)
    facts, group[order] = _groups(pool, plan)
    verdicts = pa.table(
        {
            "split": pa.array(np.where(out, "heldout", "train"), pa.string()),
            "copies": pa.array(copies, pa.int32()),
            "group": pa.DictionaryArray.from_arrays(
                pa.array(group, pa.int64(), mask=group < 0), pa.array(facts, pa.string())
            ).cast(pa.string()),
            **{name: pc.if_else(pa.array(gone), summary[name], pa.scalar(None, kind)) for name, kind in FACTS.items()},
        }
    )
    figures = _figures(config, plan, pool, tokens, out)
    return Decision(verdicts, figures | ({"measured": _measured(summary, out)} if config.rollouts else {}))


def _order(summary: pa.Table, seed: int) -> npt.NDArray[np.int64]:
    """Row numbers by lot: by the draw of the content, equal contents by row id."""
    lots = pa.table({"draw": pa.array(draw(summary["content_id"], f"blend {seed}")), "row_id": summary["row_id"]})
    indices = pc.sort_indices(lots, sort_keys=[("draw", "ascending"), ("row_id", "ascending")])
    return np.asarray(indices.to_numpy(), np.int64)


def _wants(quotas: dict[str, Quota | float]) -> dict[str, Want]:
    wants = {}
    for name, quota in quotas.items():
        given = quota.model_dump(exclude_none=True) if isinstance(quota, Quota) else {"share": quota}
        unit, value = next(iter(given.items()))
        wants[name] = Want(unit, Fraction(str(value)))
    return wants


def _groups(pool: Pool, plan: Plan) -> tuple[list[str], npt.NDArray[np.int64]]:
    """What a dropped row's ledger line says, as JSON per group, and each row's group."""
    facts: list[str] = []
    group = np.full(len(pool.weight), -1, np.int64)
    for kind, column in (("source", pool.source), ("origin", pool.origin)):
        named = [name for name in plan.wanted[kind] if name != REST]
        for name in plan.wanted[kind]:
            mask = (~np.isin(column, named) if name == REST else column == name) & (group < 0)
            has, wanted = int(pool.weight[mask].sum()), plan.wanted[kind][name]
            facts.append(
                json.dumps({"group": name or "others", "has": has, "kind": kind, "wanted": wanted}, ensure_ascii=False)
            )
            group[mask] = len(facts) - 1
    return facts, group


def _figures(
    config: BlendConfig, plan: Plan, pool: Pool, tokens: npt.NDArray[np.int64], out: npt.NDArray[np.bool_]
) -> dict[str, Any]:
    """What each group was to have and has, of the whole."""
    kept = plan.copies > 0

    def count(mask: npt.NDArray[np.bool_]) -> dict[str, int]:
        return {
            "rows": int((kept & mask).sum()),
            "copies": int(plan.copies[mask].sum()),
            "tokens": int((plan.copies * tokens)[mask].sum()),
        }

    figures: dict[str, Any] = {
        "train": count(np.ones(len(kept), bool)),
        "heldout": {"rows": int(out.sum()), "share": round(float(out.mean()), 6) if len(out) else 0.0},
        "repeated": int((plan.copies > 1).sum()),
        "total": {"asked": config.total, "planned": plan.total},
    }
    for kind, column in (("source", pool.source), ("origin", pool.origin)):
        groups = figures[f"{kind}s"] = {}
        for name in sorted(set(column.tolist())):
            groups[name] = count(column == name)
            if name in plan.wanted[kind]:
                groups[name]["wanted"] = plan.wanted[kind][name]
    return figures


def _measured(summary: pa.Table, out: npt.NDArray[np.bool_]) -> dict[str, int]:
    """How many training tasks have a measurement, and what became of them."""
    facts = summary.select(["mixed", "reason"]).filter(pa.array(~out))
    reasons = facts["reason"].to_pylist()
    tasks = facts.num_rows - facts["mixed"].null_count
    return {"tasks": tasks, "solved": reasons.count("solved"), "unsolved": reasons.count("unsolved")}


def _apply(rows: pa.Table, verdicts: pa.Table, config: BlendConfig, inputs: Inputs) -> StageResult:  # noqa: ARG001
    copies = verdicts["copies"].to_numpy()
    kept, dropped, repeated = np.flatnonzero(copies > 0), np.flatnonzero(copies == 0), np.flatnonzero(copies > 1)
    why = [_why(verdict) for verdict in verdicts.take(pa.array(dropped)).to_pylist()]
    reasons, details = [reason for reason, _ in why], [detail for _, detail in why]
    table = rows.drop_columns([name for name in ("split", "copies") if name in rows.column_names])
    for name in ("split", "copies"):
        table = table.append_column(name, verdicts[name])
    changes = [{"copies": int(copies[index])} for index in repeated]
    return StageResult(
        STAGE.name,
        table.take(pa.array(kept)),
        ledger(rows, dropped, STAGE.name, reasons, details) if len(dropped) else LEDGER.empty_table(),
        ledger(rows, repeated, STAGE.name, ["repeated"] * len(changes), changes) if changes else LEDGER.empty_table(),
    )


def _why(verdict: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Reason and detail of a row that goes."""
    if verdict["reason"]:
        said = {"passes": verdict["passes"], "attempts": verdict["attempts"], "mixed": round(verdict["mixed"], 4)}
        return verdict["reason"], said
    detail = json.loads(verdict["group"])
    return "over_quota" if detail["wanted"] else "not_in_mix", detail


STAGE = Decided("blend", BlendConfig, _summarise, _decide, _apply, needs=("rollouts",), columns=("split", "copies"))
