"""How right: recall, precision and F2 per kind on labelled sentences, by overlap and by exact span.

A label is found when a finding of its kind overlaps it (or has its very span); a finding is right when it overlaps a
label of its kind (or has its very span). F2 weighs recall over precision, as leaking is worse than masking too much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from _scrub_peers import Engine
from _scrub_texts import KINDS, NOT_SCORED, Sentence, as_rows

from corpusforge.stages.scrub import scan

SCORED = tuple(dict.fromkeys(KINDS.values()))
Spans = Sequence[tuple[int, int, str]]


@dataclass
class Counts:
    """Labels, findings, and how many of each are right."""

    labels: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)

    def figures(self, kinds: Sequence[str]) -> tuple[int, float, float, float]:
        """Labels, recall, precision and F2 over some kinds."""
        labels, found = (sum(c[kind] for kind in kinds) for c in (self.labels, self.findings))
        recall = sum(self.met[kind] for kind in kinds) / labels if labels else 0.0
        precision = sum(self.right[kind] for kind in kinds) / found if found else 0.0
        below = 4 * precision + recall
        return labels, recall, precision, 5 * precision * recall / below if below else 0.0


def overlaps(one: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    """Same kind, and at least one character in common."""
    return one[2] == other[2] and one[0] < other[1] and other[0] < one[1]


def count(sentences: Sequence[Sentence], found: Sequence[Spans], same: Callable[[Any, Any], bool]) -> Counts:
    """Labels and findings held against each other."""
    counts = Counts()
    for sentence, spans in zip(sentences, found, strict=True):
        for label in sentence.spans:
            counts.labels[label[2]] += 1
            counts.met[label[2]] += any(same(label, span) for span in spans)
        for span in spans:
            counts.findings[span[2]] += 1
            counts.right[span[2]] += any(same(label, span) for label in sentence.spans)
    return counts


def ours(texts: list[str], names: str) -> list[Spans]:
    """What scan finds in each text."""
    rows = as_rows(texts)
    where = {row_id: number for number, row_id in enumerate(rows["row_id"].to_pylist())}
    found: list[list[tuple[int, int, str]]] = [[] for _ in texts]
    for one in scan(rows, names=names).to_pylist():
        if one["field"] == "messages[0].content":
            kind = KINDS.get(one["entity"], one["entity"])
            found[where[one["row_id"]]].append((one["start"], one["end"], kind))
    return found


def defaults(texts: list[str]) -> list[Spans]:
    """What Presidio finds by default in each text."""
    engine = Engine("defaults")
    return [[(s, e, KINDS.get(kind, kind)) for s, e, kind, _ in engine.find(text)] for text in texts]


def tables(sentences: Sequence[Sentence]) -> dict[str, dict[str, Counts]]:
    """Per tool, both ways of counting."""
    texts = [one.text for one in sentences]
    found = {"patterns": ours(texts, "off"), "patterns + spaCy": ours(texts, "spacy"), "Presidio": defaults(texts)}
    return {
        name: {"overlap": count(sentences, spans, overlaps), "exact": count(sentences, spans, tuple.__eq__)}
        for name, spans in found.items()
    }


def told(found: dict[str, dict[str, Counts]], way: str) -> str:
    """One table: a line for each kind, three figures for each tool."""
    kinds = [*SCORED, "all of these", *NOT_SCORED]
    head = "".join(f"{name:>24}" for name in found)
    lines = [f"{way:18} {'labels':>6}{head}", f"{'':25}" + "  recall  prec.     F2 " * len(found)]
    for kind in kinds:
        some = SCORED if kind == "all of these" else (kind,)
        figures = [counts[way].figures(some) for counts in found.values()]
        if figures[0][0]:
            lines.append(
                f"{kind:18} {figures[0][0]:6,} " + " ".join(f" {r:7.3f} {p:6.3f} {f:6.3f}" for _, r, p, f in figures)
            )
    return "\n".join(lines)
