"""Faults of the labelled sentences, counted from the files themselves: listed here, and nothing is tuned to them.

A label is a span with a kind; a sentence is a template whose placeholders were filled. What a placeholder's labels are
called is compared within a file and between the two; a span must hold the value that the label states. A phone number
is impossible when `phonenumbers` takes it for valid in none of the regions that it knows. No value is printed.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import phonenumbers

if TYPE_CHECKING:
    from pathlib import Path

FILES = ("generated_large.json", "generated_small.json")  # the first is the one that is scored
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_UNFILLED = re.compile(r"\{\w+\}")

Lines = list[dict[str, Any]]


@dataclass(frozen=True)
class Fault:
    """One line of the table: how many of how many, and where."""

    name: str
    count: int
    of: int
    where: str = ""


def faults(lines: Lines) -> list[Fault]:
    """The faults of one file."""
    spans = [(line, span) for line in lines for span in line["spans"]]
    wrong = [line for line, span in spans if _text(line, span) != span["entity_value"]]
    unfilled = Counter(line["template_id"] for line in lines if _UNFILLED.search(line["full_text"]))
    cut = [1 for line, span in spans if _in_a_word(line["full_text"], span)]
    over = sum(map(_overlapping, lines))
    numbers = [span["entity_value"] for _, span in spans if span["entity_type"] == "PHONE_NUMBER"]
    impossible = sum(not _valid(number) for number in numbers)
    addresses = [one for one in (_addresses(line) for line in lines) if one]
    parts = addresses.count("parts")
    share = f"{100 * impossible / len(numbers):.1f} %" if numbers else ""
    return [
        Fault("texts that occurred before", len(lines) - len({line["full_text"] for line in lines}), len(lines)),
        Fault("spans that do not hold their value", len(wrong), len(spans), _templates(wrong)),
        Fault("spans that begin or end in a word", len(cut), len(spans)),
        Fault("spans that overlap another", over, len(spans)),
        Fault("texts with placeholders left", sum(unfilled.values()), len(lines), _named(unfilled)),
        Fault("texts whose address is a label a part", parts, len(addresses), "the others: one label"),
        Fault("impossible phone numbers", impossible, len(numbers), share),
    ]


def kinds(lines: Lines) -> dict[str, Counter[str]]:
    """Per placeholder, the kinds that its labels have; the n-th label of a text is its n-th placeholder's."""
    found: dict[str, Counter[str]] = {}
    for line in lines:
        names = _PLACEHOLDER.findall(line["masked"])
        spans = sorted(line["spans"], key=lambda span: span["start_position"])
        if len(names) == len(spans):
            for name, span in zip(names, spans, strict=True):
                found.setdefault(name, Counter())[span["entity_type"]] += 1
    return found


def told(data: Path) -> str:
    """Both tables: faults per file, and placeholders whose labels are not called the same throughout."""
    files = [json.loads((data / "presidio_synth_pii" / name).read_text(encoding="utf-8")) for name in FILES]
    out = []
    for name, lines in zip(FILES, files, strict=True):
        out.append(f"{name}: {len(lines):,} texts, {sum(len(line['spans']) for line in lines):,} labels")
        out += [f"    {one.name:40} {one.count:5,} of {one.of:5,}  {one.where}".rstrip() for one in faults(lines)]
    first, second = map(kinds, files)
    out.append(f"placeholders whose labels have more than one name: {FILES[0]} | {FILES[1]}")
    for name in sorted(first.keys() | second.keys()):
        if len(first.get(name, Counter()).keys() | second.get(name, Counter()).keys()) > 1:
            out.append(f"    {name:16} {_said(first.get(name))} | {_said(second.get(name))}")
    meant = _meanings(first, second)
    out.append("names that mean other placeholders in the other file")
    out += [f"    {kind:16} {' '.join(sorted(one))} | {' '.join(sorted(other))}" for kind, one, other in meant]
    return "\n".join(out)


def _meanings(first: dict[str, Counter[str]], second: dict[str, Counter[str]]) -> list[tuple[str, set[str], set[str]]]:
    """Kinds that both files have, with no placeholder in common."""
    sides = [
        {kind: {n for n, c in side.items() if kind in c} for c in side.values() for kind in c}
        for side in (first, second)
    ]
    both = sorted(sides[0].keys() & sides[1].keys())
    return [(kind, sides[0][kind], sides[1][kind]) for kind in both if not sides[0][kind] & sides[1][kind]]


def _said(counts: Counter[str] | None) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())) if counts else "-"


def _named(templates: Counter[int]) -> str:
    return ", ".join(f"template {number}: {count}" for number, count in sorted(templates.items()))


def _templates(lines: Lines) -> str:
    return _named(Counter(line["template_id"] for line in lines))


def _text(line: dict[str, Any], span: dict[str, Any]) -> str:
    return str(line["full_text"][span["start_position"] : span["end_position"]])


def _in_a_word(text: str, span: dict[str, Any]) -> bool:
    edges = (span["start_position"], span["end_position"])
    return any(re.fullmatch(r"\w\w", text[max(0, edge - 1) : edge + 1]) for edge in edges)


def _overlapping(line: dict[str, Any]) -> int:
    spans = sorted((span["start_position"], span["end_position"]) for span in line["spans"])
    return sum(one[1] > other[0] for one, other in itertools.pairwise(spans))


def _addresses(line: dict[str, Any]) -> str:
    """`whole` where a text has an address as one label, `parts` where several labels make one, else nothing."""
    names = _PLACEHOLDER.findall(line["masked"])
    if "address" in names:
        return "whole"
    return "parts" if sum(span["entity_type"] == "ADDRESS" for span in line["spans"]) > 1 else ""


def _valid(number: str) -> bool:
    """Whether any region could have given the number out."""
    for region in phonenumbers.SUPPORTED_REGIONS:
        try:
            if phonenumbers.is_valid_number(phonenumbers.parse(number, region)):
                return True
        except phonenumbers.NumberParseException:
            continue
    return False
