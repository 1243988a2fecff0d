"""README.md beside the shards: a dataset card, so that `load_dataset(folder, "sft")` finds kinds and splits."""

from __future__ import annotations

import io
from typing import Any, Final

from ruamel.yaml import YAML

from corpusforge.licences import components

_SIZES: Final = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_TASKS: Final = {
    "sft": ["text-generation"],
    "preference": ["text-generation", "reinforcement-learning"],
    "task": ["reinforcement-learning"],
    "rated": ["text-generation"],
}


def render(manifest: dict[str, Any], stages: dict[str, dict[str, Any]]) -> str:
    """The card as text: YAML front matter, how to load, sources, rows through the stages, what was not checked."""
    sections = [
        f"---\n{_front_matter(manifest)}---\n",
        f"# Corpus {manifest['build']}\n\n"
        "Written by CorpusForge in the form that TRL's trainers read. `manifest.json` has a hash of every file, every "
        "parameter and every method version; `corpusforge inspect` shows what is inside.\n",
        _loading(manifest),
        _kinds(manifest),
        _sources(manifest),
        _stages(stages) if stages else "",
        _unchecked(manifest),
    ]
    return "\n".join(section for section in sections if section)


def _front_matter(manifest: dict[str, Any]) -> str:
    stated = {name for source in manifest["sources"].values() for name in source["licenses"]}
    licences = sorted({part for name in stated for part in components(name)})
    languages = sorted({name for source in manifest["sources"].values() for name in source["languages"]})
    held = {name: entry for name, entry in manifest["kinds"].items() if any(entry["rows"].values())}
    lines = sum(shard["rows"] for shard in manifest["shards"])
    kinds = {entry["kind"] for entry in held.values()}
    matter = {
        "license": _licences(licences),
        "language": [name for name in languages if name not in {"und", "unknown"}],
        "size_categories": [next((name for limit, name in _SIZES if lines < limit), "1M<n<10M")],
        "task_categories": sorted({task for kind in kinds for task in _TASKS[kind]}),
        "tags": ["corpusforge", "trl", *sorted(kinds)],
        "configs": [
            {
                "config_name": name,
                # `datasets` caches by the card, not by the files: without this, it would go on serving an old build.
                "description": f"build {manifest['build']}",
                "data_files": [
                    {"split": split, "path": f"{name}/{split}-*.parquet"} for split, n in entry["rows"].items() if n
                ],
            }
            for name, entry in held.items()
        ],
    }
    buffer = io.StringIO()
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.dump({key: value for key, value in matter.items() if value}, buffer)
    return buffer.getvalue()


def _licences(names: list[str]) -> str | list[str]:
    """Licences as the hub writes them: lower case; `other` for what has no name there."""
    known = {
        name.lower() if " " not in name and not name.startswith(("LicenseRef", "unknown")) else "other"
        for name in names
    }
    return sorted(known) if len(known) > 1 else next(iter(known), "other")


def _loading(manifest: dict[str, Any]) -> str:
    filled = [shard for shard in manifest["shards"] if shard["rows"]]
    first = next((shard for shard in filled if shard["split"] == "train"), filled[0] if filled else None)
    if first is None:
        return "No row was left: there is no shard.\n"
    folder = first["path"].split("/")[0]
    return (
        "```python\n"
        "from datasets import load_dataset\n\n"
        f'rows = load_dataset("path/to/this/folder", "{folder}", split="{first["split"]}")\n'
        "```\n"
    )


def _kinds(manifest: dict[str, Any]) -> str:
    lines = [
        f"| {name} | {entry['rows']['train']:,} | {entry['rows']['heldout']:,} | {_shards(manifest, name)} |"
        for name, entry in manifest["kinds"].items()
    ]
    return "\n".join(
        ["## Kinds\n", "| kind | train rows | held-out rows | shards |", "| --- | ---: | ---: | ---: |", *lines, ""]
    )


def _shards(manifest: dict[str, Any], folder: str) -> int:
    return sum(shard["path"].startswith(f"{folder}/") for shard in manifest["shards"])


def _sources(manifest: dict[str, Any]) -> str:
    lines = []
    for name, source in manifest["sources"].items():
        cells = [", ".join(source[what]) or "none" for what in ("licenses", "restrictions", "origins")]
        lines.append(
            f"| {name} | {sum(source['rows'].values()):,} | {source['copies']:,} | {' | '.join(cells)} | "
            f"{', '.join(source['revisions'])} |"
        )
    head = ["| source | rows | with copies | licences | restrictions | origins | revision |"]
    head.append("| --- | ---: | ---: | --- | --- | --- | --- |")
    return "\n".join(["## Sources\n", *head, *lines, ""])


def _stages(stages: dict[str, dict[str, Any]]) -> str:
    lines = []
    for name, figures in stages.items():
        if {"in", "kept", "dropped"} <= figures.keys():
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in figures.get("reasons", {}).items())
            lines.append(f"| {name} | {figures['in']:,} | {figures['kept']:,} | {figures['dropped']:,} | {reasons} |")
    head = ["| stage | rows in | kept | dropped | reasons |", "| --- | ---: | ---: | ---: | --- |"]
    return "\n".join(["## Rows through the stages\n", *head, *lines, ""])


def _unchecked(manifest: dict[str, Any]) -> str:
    """What a reader might take for granted and must not."""
    params, said = manifest["params"], []
    if "scrub" not in params:
        said.append("These rows were written without a project: which checks they went through is not known here.")
    if params.get("scrub", {}).get("names") == "off":
        said.append("Names of people and places were not looked for; patterns (e-mail, phone, keys, …) were.")
    if "decontaminate" in params and not params["decontaminate"].get("benchmarks"):
        said.append("No benchmark was given, so rows were not compared with any.")
    unknown = sum(source["licenses"].get("unknown", 0) for source in manifest["sources"].values())
    if unknown:
        said.append(f"{unknown:,} rows have an unknown licence.")
    if manifest["inexact_in_datasets"]:
        said.append(
            f"{len(manifest['inexact_in_datasets']):,} numbers are too large or too fine for `datasets`; the manifest "
            "lists them."
        )
    said.append("Whether answers are true was not checked, except where a verifier says so.")
    return "\n".join(["## What was not checked\n", *(f"- {line}" for line in said), ""])
