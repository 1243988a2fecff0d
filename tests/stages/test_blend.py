"""Quotas are exact, sampling knows no order, and the held-out split stays what it was."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import row, table

from corpusforge.errors import ConfigError
from corpusforge.sample import ADDED, check_schema
from corpusforge.stages._quotas import largest_remainder
from corpusforge.stages._stage import concat
from corpusforge.stages.blend import STAGE, BlendConfig, blend


@cache
def corpus(**sources: int) -> pa.Table:
    """Rows per `origin_source`, for example `human_forum=3`."""
    rows = []
    for name, count in sources.items():
        origin, _, source = name.partition("_")
        source = source or origin
        rows += [row(i, f"{source} asks {i}", f"answer {i}", source=source, origin=origin) for i in range(1, count + 1)]
    return table(rows)


def copies_by(kept: pa.Table, field: str) -> dict[str, int]:
    """Copies in the training split per source name or origin."""
    train = kept.filter(pc.equal(kept["split"], "train"))
    sums: dict[str, int] = {}
    names = pc.struct_field(train["source"], field).to_pylist()
    for name, copies in zip(names, train["copies"].to_pylist(), strict=True):
        sums[name] = sums.get(name, 0) + copies
    return sums


def test_without_quotas_every_row_is_kept():
    result = blend(corpus(human=50, synthetic=50))
    assert result.kept.num_rows == 100
    assert result.dropped.num_rows == 0
    check_schema(result.kept, "blend")
    assert set(result.kept["copies"].to_pylist()) == {1}


@pytest.mark.parametrize(
    ("mix", "want"),
    [
        ({"human": {"rows": 1}, "synthetic": {"rows": 1}}, {"human": 1, "synthetic": 1}),
        ({"human": {"fraction": 0.5}, "synthetic": {"fraction": 0.5}}, {"human": 50, "synthetic": 500}),
        ({"human": {"share": 0.5}, "synthetic": {"share": 0.5}}, {"human": 100, "synthetic": 100}),
        ({"human": 0.75, "synthetic": 0.25}, {"human": 100, "synthetic": 33}),
        ({"human": 0.5}, {"human": 100, "synthetic": 100}),
        ({"synthetic": 0.0}, {"human": 100}),
    ],
)
def test_a_quota_has_a_unit_and_means_it(mix, want):
    assert copies_by(blend(corpus(human=100, synthetic=1000), mix=mix, heldout=0).kept, "origin") == want


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        ({"human": 1, "synthetic": 1}, "unit missing"),
        ({"human": {"share": 0.5}, "synthetic": {"share": 0.6}}, r"shares sum to 1\.1"),
        ({"human": {"share": 0.5, "rows": 3}}, "unit missing"),
        ({"human": {"tokens": 5}}, "another unit"),
    ],
)
def test_an_unclear_quota_is_refused(mix, message):
    with pytest.raises(ConfigError, match=message):
        blend(corpus(human=2, synthetic=2), mix=mix)


SHORT = {"mix": {"human": 0.5, "synthetic": 0.5}, "total": 20, "heldout": 0}


def test_too_few_rows_stop_and_name_need_and_stock():
    with pytest.raises(ConfigError, match="'human' needs 10 rows, has 4"):
        blend(corpus(human=4, synthetic=40), **SHORT)


def test_shrink_lowers_the_total_and_says_so():
    result = blend(corpus(human=4, synthetic=40), when_short="shrink", **SHORT)
    assert copies_by(result.kept, "origin") == {"human": 4, "synthetic": 4}
    assert result.metrics["total"] == {"asked": 20, "planned": 8}


def test_repeat_fills_up_with_copies_and_says_so():
    result = blend(corpus(human=4, synthetic=40), when_short="repeat", max_repeat=3, **SHORT)
    assert copies_by(result.kept, "origin") == {"human": 10, "synthetic": 10}
    assert sorted(result.kept["copies"].to_pylist()) == [1] * 10 + [2, 2, 3, 3]
    assert result.metrics["repeated"] == 4
    assert set(result.changes["reason"].to_pylist()) == {"repeated"}
    assert len(set(result.kept["row_id"].to_pylist())) == result.kept.num_rows


def test_repeat_has_a_limit():
    with pytest.raises(ConfigError, match=r"needs 10 rows, has 8 \(each row up to 2 times\)"):
        blend(corpus(human=4, synthetic=40), when_short="repeat", max_repeat=2, **SHORT)


@pytest.mark.parametrize("when_short", ["fail", "shrink", "repeat"])
def test_a_quota_for_nothing_is_a_mistake_in_every_mode(when_short):
    with pytest.raises(ConfigError, match=r"source 'empty' needs 3 rows, has 0"):
        blend(corpus(human=9), sources={"empty": 0.33, "human": 0.33}, total=10, heldout=0, when_short=when_short)


def test_a_misspelt_source_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'forum'"):
        blend(corpus(human_forum=9), sources={"forun": 0.5})


def test_a_dropped_row_says_which_quota_was_full():
    result = blend(corpus(human=10, synthetic=30), mix={"human": 0.5, "synthetic": 0.5}, heldout=0)
    assert result.reasons() == {"over_quota": 20}
    detail = result.explain(result.dropped["row_id"][0].as_py()).detail
    assert detail == {"group": "synthetic", "has": 30, "kind": "origin", "wanted": 10}


def test_an_origin_outside_a_full_mix_is_dropped_by_name():
    result = blend(corpus(human=5, synthetic=5, mixed=3), mix={"human": 0.5, "synthetic": 0.5}, heldout=0)
    assert result.reasons() == {"not_in_mix": 3}


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 99),
    st.sampled_from(["shrink", "repeat"]),
)
def test_totals_by_origin_are_exact(human, synthetic, total, percent, mode):
    rows = corpus(human=human, synthetic=synthetic)
    mix = {"human": percent / 100, "synthetic": {"share": (100 - percent) / 100}}
    result = blend(rows, mix=mix, total=total, heldout=0, when_short=mode, max_repeat=1000)
    got = copies_by(result.kept, "origin")
    planned = result.metrics["total"]["planned"]
    assert sum(got.values()) == planned
    assert abs(got.get("human", 0) - Fraction(percent * planned, 100)) < 1
    assert planned == total or mode == "shrink"
    assert result.kept.num_rows + result.dropped.num_rows == rows.num_rows


@given(st.integers(8, 30), st.integers(8, 30), st.integers(8, 30), st.integers(1, 16))
def test_source_and_origin_quotas_hold_together(forum, wiki, model, total):
    rows = corpus(human_forum=forum, human_wiki=wiki, synthetic_model=model)
    sources = {"forum": 0.25, "wiki": 0.25, "model": 0.5}
    result = blend(rows, sources=sources, mix={"human": 0.5, "synthetic": 0.5}, total=total, heldout=0)
    got = copies_by(result.kept, "name")
    assert sum(got.values()) == total
    assert all(abs(got.get(name, 0) - share * total) < 1 for name, share in sources.items())


def test_origins_are_filled_up_beside_a_source_quota():
    rows = corpus(human_forum=50, human_wiki=50, synthetic_model=50)
    result = blend(rows, sources={"forum": {"rows": 10}}, mix={"human": 0.6, "synthetic": 0.4}, total=50, heldout=0)
    assert copies_by(result.kept, "name") == {"forum": 10, "wiki": 20, "model": 20}


def test_source_quotas_that_overrun_an_origin_are_refused():
    with pytest.raises(ConfigError, match=r"give origin 'human' 40 rows, blend\.mix allows 10"):
        blend(corpus(human=50, synthetic=50), sources={"human": {"rows": 40}}, mix={"human": 0.1}, total=100, heldout=0)


def test_token_quotas_end_within_one_row():
    rows = corpus(human=200, synthetic=200)
    tokens = pa.array(np.random.default_rng(7).integers(5, 60, 400), ADDED["tokens"])
    rows = rows.append_column("tokens", tokens)
    result = blend(rows, mix={"human": 0.7, "synthetic": 0.3}, total=3000, weigh="tokens", heldout=0)
    found = {name: group["tokens"] for name, group in result.metrics["origins"].items()}
    assert 2100 - 60 <= found["human"] <= 2100
    assert 900 - 60 <= found["synthetic"] <= 900


def test_token_quotas_need_lengths():
    with pytest.raises(ConfigError, match="run `grade` before"):
        blend(corpus(human=3), weigh="tokens", total=5)


@given(st.permutations(range(20)), st.integers(1, 19))
def test_what_is_kept_does_not_depend_on_order_or_cuts(order, cut):
    rows = corpus(human=12, synthetic=8)
    config = BlendConfig(mix={"human": 0.5, "synthetic": 0.5}, total=10, seed=7, heldout=0.2, when_short="shrink")
    whole = blend(rows, config)
    mixed = blend(rows.take(pa.array(order)), config)
    assert set(mixed.kept["row_id"].to_pylist()) == set(whole.kept["row_id"].to_pylist())
    pieces = [rows.slice(0, cut), rows.slice(cut)]
    summary = pa.concat_tables([STAGE.summarise(piece, config, {}) for piece in pieces])
    verdicts = STAGE.decide(summary, config, {}, lambda positions, columns: rows.select(columns)).verdicts
    parts = [verdicts.slice(0, cut), verdicts.slice(cut)]
    joined = concat("blend", [STAGE.apply(p, v, config, {}) for p, v in zip(pieces, parts, strict=True)])
    assert joined.kept.equals(whole.kept)
    assert joined.dropped.equals(whole.dropped)


def test_another_seed_keeps_other_rows_but_holds_out_the_same():
    rows = corpus(human=300)
    first, second = (blend(rows, total=100, seed=seed, heldout=0.1) for seed in (0, 1))
    assert set(first.kept["row_id"].to_pylist()) != set(second.kept["row_id"].to_pylist())
    assert held(first.kept) == held(second.kept)
    assert held(first.kept)


def held(kept: pa.Table) -> set[str]:
    return set(kept.filter(pc.equal(kept["split"], "heldout"))["row_id"].to_pylist())


@given(st.integers(20, 120), st.integers(0, 60))
def test_held_out_rows_stay_so_when_rows_are_added(before, added):
    old = corpus(human=before)
    new = corpus(human=before + added, synthetic=added)
    first, second = (held(blend(rows, heldout=0.3).kept) for rows in (old, new))
    assert first <= second
    assert not (second - first) & set(old["row_id"].to_pylist())


def test_a_cluster_that_gets_another_name_stays_on_its_side():
    rows = [row(i, f"question {i // 2}", f"answer {i}", cluster=f"c{i // 2}") for i in range(100)]
    renamed = [{**one, "cluster": f"another-{one['cluster']}"} for one in rows]
    first, second = (held(blend(table(which), heldout=0.3).kept) for which in (rows, renamed))
    assert first == second
    assert 0 < len(first) < 100


def test_about_the_stated_share_is_held_out():
    share = blend(corpus(human=2000), heldout=0.1).metrics["heldout"]["share"]
    assert 0.08 < share < 0.12


@given(st.lists(st.tuples(st.integers(0, 8), st.none() | st.integers(0, 39)), min_size=2, max_size=40))
def test_no_cluster_and_no_lineage_is_on_both_sides(drawn):
    rows = [
        row(i, f"question {i}", "a", cluster=f"c{cluster}", parents=[] if parent is None else [f"test#{parent}"])
        for i, (cluster, parent) in enumerate(drawn)
    ]
    kept = blend(table(rows), heldout=0.4).kept.select(["row_id", "cluster", "source", "split"]).to_pylist()
    side = {one["row_id"]: one["split"] for one in kept}
    for key in ("cluster",):
        assert len({(one[key], one["split"]) for one in kept}) == len({one[key] for one in kept})
    for one in kept:
        assert all(side.get(parent, one["split"]) == one["split"] for parent in one["source"]["parents"])


@pytest.mark.parametrize("where", ["talk", "made"], ids=["another source", "their own source"])
def test_a_parent_named_by_the_users_own_id_is_on_the_side_of_its_children(where):
    """`made` names `talk`'s records; where it has one of that id itself, it means its own."""
    talk = [row(i, f"question {i}", "a", source="talk", record_id=f"u{i}") for i in range(40)]
    made = [row(i, f"answer {i}", "b", source="made", record_id=f"m{i}", parents=[f"u{i}"]) for i in range(40)]
    own = (
        [row(100 + i, f"other {i}", "c", source="made", record_id=f"u{i}") for i in range(40)]
        if where == "made"
        else []
    )
    kept = blend(table([*talk, *made, *own]), heldout=0.3).kept
    side = dict(zip(kept["row_id"].to_pylist(), kept["split"].to_pylist(), strict=True))
    assert set(side.values()) == {"train", "heldout"}
    parents = [f"made#{100 + i}" if own else f"talk#{i}" for i in range(40)]
    assert [side[f"made#{i}"] for i in range(40)] == [side[parent] for parent in parents]


def test_siblings_of_a_parent_that_is_gone_stay_together():
    rows = [row(i, f"question {i}", "a", parents=["gone#1"]) for i in range(40)]
    assert len(set(blend(table(rows), heldout=0.5).kept["split"].to_pylist())) == 1


@pytest.mark.parametrize(
    "rows",
    [
        [row(i, "Why do cats purr on a warm stove?", f"answer {i}") for i in range(30)],
        [row(i, f"question {i}", "a", extra='{"conversation_id":"c9"}') for i in range(30)],
        [{**row(7, f"question {i}", "a"), "row_id": f"test#7.{i}"} for i in range(30)],
        [row(i, f"question {i}", "a", cluster="same") for i in range(30)],
    ],
    ids=["prompt", "conversation", "record", "cluster"],
)
def test_rows_that_belong_together_are_on_one_side(rows):
    alone = [row(i, f"lonely {i}", "a") for i in range(100, 160)]
    kept = blend(table(rows + alone), heldout=0.5).kept["split"].to_pylist()
    assert len(set(kept[:30])) == 1
    assert len(set(kept[30:])) == 2


def test_records_of_one_number_in_several_files_are_strangers():
    rows = [{**row(1, f"question {i}", "a"), "row_id": f"test/file{i}#1"} for i in range(60)]
    assert len(set(blend(table(rows), heldout=0.5).kept["split"].to_pylist())) == 2


def test_no_rows_is_an_answer_too():
    result = blend(corpus())
    assert result.kept.num_rows == 0
    assert "copies" in result.kept.column_names


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8), st.integers(1, 100))
def test_largest_remainder_is_whole_exact_and_near(parts, total):
    exact = {str(i): Fraction(part * total, sum(parts) or 1) for i, part in enumerate(parts)}
    whole = largest_remainder(exact)
    assert sum(whole.values()) == (total if sum(parts) else 0)
    assert all(abs(whole[name] - value) < 1 for name, value in exact.items())


def sums(count: int, **more) -> pa.Table:
    """Rows of tasks."""
    verifier = {"kind": "numeric", "spec": '{"answer": "4"}'}
    made = [row(i, f"{i} and {i}?", kind="task", source="sums", **more) for i in range(1, count + 1)]
    return table([one | {"verifier": verifier} for one in made])


def pass_rates(rows: pa.Table, counts: list[tuple[int, int]]) -> pa.Table:
    """Passes and attempts of the first rows."""
    names = rows["content_id"].to_pylist()[: len(counts)]
    columns = {"passes": [p for p, _ in counts], "attempts": [n for _, n in counts]}
    return pa.table({"content_id": names} | {name: pa.array(values, pa.int64()) for name, values in columns.items()})


GO_BY = {"rollouts": {"path": "rollouts.parquet"}, "heldout": 0}


def test_tasks_that_are_always_or_never_solved_go_and_others_stay():
    rows = sums(6)
    result = blend(rows, measured=pass_rates(rows, [(8, 8), (0, 8), (4, 8), (2, 2), (0, 0)]), **GO_BY)
    gone = zip(result.dropped["row_id"].to_pylist(), result.dropped["reason"].to_pylist(), strict=True)
    assert list(gone) == [("sums#1", "solved"), ("sums#2", "unsolved")]
    assert json.loads(result.dropped["detail"][1].as_py()) == {"attempts": 8, "mixed": 0.2873, "passes": 0}
    assert result.metrics["measured"] == {"tasks": 4, "solved": 1, "unsolved": 1}


def test_pass_rates_are_of_tasks_only():
    rows = corpus(human=3)
    assert blend(rows, measured=pass_rates(rows, [(8, 8)] * 3), **GO_BY).kept.num_rows == 3


def test_held_out_tasks_stay_however_well_they_are_solved():
    rows = sums(40)
    known = pass_rates(rows, [(8, 8)] * 40)
    before = blend(rows, heldout=0.3)
    after = blend(rows, measured=known, **(GO_BY | {"heldout": 0.3}))
    assert (
        after.kept["row_id"].to_pylist()
        == before.kept.filter(pc.equal(before.kept["split"], "heldout"))["row_id"].to_pylist()
    )
    assert set(after.dropped["reason"].to_pylist()) == {"solved"}


def test_quotas_run_over_what_the_pass_rates_leave():
    rows = sums(30)
    known = pass_rates(rows, [(8, 8)] * 10)
    result = blend(rows, measured=known, sources={"sums": {"rows": 20}}, **GO_BY)
    assert result.reasons() == {"solved": 10}
    assert set(result.kept["row_id"].to_pylist()) == {f"sums#{i}" for i in range(11, 31)}


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8), st.floats(0, 1), st.integers(2, 16))
def test_a_task_is_dropped_exactly_when_its_group_would_hardly_be_mixed(counts, min_mixed, group):
    from corpusforge.evaluate.statistics import mixed_probability

    rows, counts = sums(8), [(p, p + fails) for p, fails in counts]
    options = {"path": "x", "min_mixed": min_mixed, "group": group}
    result = blend(rows, measured=pass_rates(rows, counts), rollouts=options, heldout=0)
    mixed = mixed_probability([p for p, _ in counts], [n for _, n in counts], group)
    gone = [i for i, (_, n) in enumerate(counts) if n and mixed[i] < min_mixed]
    assert result.dropped["row_id"].to_pylist() == [rows["row_id"][i].as_py() for i in gone]


def test_without_rollouts_a_table_of_pass_rates_changes_nothing():
    rows = sums(3)
    result = blend(rows, measured=pass_rates(rows, [(8, 8)] * 3), heldout=0)
    assert result.kept.num_rows == 3
    assert "measured" not in result.metrics


def test_pass_rates_that_were_not_handed_over_are_asked_for():
    with pytest.raises(ConfigError, match="measured=table"):
        blend(sums(1), **GO_BY)
