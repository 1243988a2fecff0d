"""Forgetting a person: 37 rows and 112 descendants among 50,000, from the request to the next release.

    python benchmarks/erasure.py                 2,000 rows
    python benchmarks/erasure.py --rows 50000

Builds a corpus, publishes it, asks to forget everybody called by a made-up name, builds and publishes again. Fails
when a row of theirs, something made from one, or a copy of either is in the new release, or when the old release is
not named. A copy and a near copy of a row, and a copy of a descendant, lie in another source, where dedupe had dropped
them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
from ruamel.yaml import YAML

import corpusforge as cf
from corpusforge import graph, methods
from corpusforge.io import atomic, releases
from corpusforge.project import Project
from corpusforge.shell import run_stage

NAME = "Zora Exampleová"
PERSON, DESCENDANTS = 37, 112
WORDS = ["harbour", "lantern", "meadow", "copper", "violin", "thunder", "orchard", "ribbon", "glacier", "pepper"]


def record(number: int, about: str, **more: object) -> dict:
    """A conversation unlike the others."""
    random = Random(number)
    words = [random.choice(WORDS) + str(random.randrange(10_000)) for _ in range(40)]
    turns = (f"{about} asks about {' '.join(words[:12])}, please.", f"It is known that {' '.join(words[12:])}.")
    messages = [{"role": role, "content": text} for role, text in zip(("user", "assistant"), turns, strict=True)]
    return {"id": f"r{number}", "messages": messages, **more}


def make(root: Path, rows: int) -> Project:
    """The project: a forum, what was made from it over three generations, and a crawl with copies."""
    people = rows - DESCENDANTS - 3
    forum = [record(n, NAME if n < PERSON else f"Person {n}") for n in range(people)]
    made, parents = [], [f"r{n}" for n in range(PERSON)]
    for n in range(DESCENDANTS):
        made.append(record(10_000_000 + n, "Somebody", id=f"made{n}", parents=[parents[n]]))
        parents.append(f"made{n}")
    near = record(1, "Somebody else")
    crawl = [{**forum[0], "id": "copy"}, {**near, "id": "near"}, {**made[0], "id": "copy-of-made", "parents": []}]
    sources = []
    for name, records in {"forum": forum, "made": made, "web": crawl}.items():
        path = root / "raw" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(one) + "\n" for one in records))
        sources.append({"name": name, "path": f"raw/{name}.jsonl", "license": "MIT", "origin": "human"})
    params = {
        "ingest": {"sources": sources},
        "scrub": {"key": "public-demo"},
        "gate_data": {"max_source_loss": 1.0, "max_loss": {"filter": 1.0}},
    }
    with (root / "params.yaml").open("w") as file:
        YAML().dump(params, file)
    atomic.write_text(root / "baseline.json", "{}\n")
    methods.sync(Project(root))
    return Project(root)


def build(project: Project) -> str:
    """Every data stage, and a release."""
    for name in graph.DATA:
        run_stage(project, name)
    return releases.publish(project).build


def shipped(project: Project) -> list[str]:
    """Row ids in the current release."""
    paths = (project.root / "releases" / "current" / "shards").rglob("*.parquet")
    return [row for path in paths for row in pq.read_table(path, columns=["row_id"])["row_id"].to_pylist()]


def main() -> None:
    """Run it and print one line per step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        project = make(Path(folder), rows)
        started = time.perf_counter()
        first = build(project)
        before = shipped(project)
        print(f"{rows:,} rows read, {len(before):,} released as {first}: {time.perf_counter() - started:.1f} s")
        started = time.perf_counter()
        found = cf.forget(project, match=NAME, why="benchmark")
        print(found)
        print(f"forget: {time.perf_counter() - started:.1f} s")
        started = time.perf_counter()
        second = build(project)
        after = shipped(project)
        print(f"{len(after):,} rows released as {second}: {time.perf_counter() - started:.1f} s")
        figures = project.metrics("ingest")
        print(f"ingest quarantined {figures['quarantine']} of {figures['records']:,} records")
        left = sorted(set(found.rows) & set(after)) + [row for row in after if row.startswith("web#")]
        assert (found.named, found.descendants, found.copies) == (PERSON + 1, DESCENDANTS, 1), "not all were found"
        assert [one["action"] for one in found.near] == ["hold"], "the near copy is not held"
        assert not left, f"still there: {left}"
        assert len(before) - len(after) == PERSON + DESCENDANTS, "others went too"
        assert first in {one.build for one in found.holders}, "the release that held them is not named"
        assert figures["records"] == figures["with_rows"] + figures["quarantined"], "records vanished"


if __name__ == "__main__":
    main()
