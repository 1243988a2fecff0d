"""How fast: characters per second of ours and of AnalyzerEngine on the same texts, in turn, and their ratio."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from _scrub_peers import Engine
from _scrub_texts import SPEED, as_rows, rows_of, sentences

from corpusforge.stages.scrub import scan, scrub

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Speed:
    """One comparison: characters per second."""

    texts: str
    count: int
    characters: int
    ours: float
    scrubbed: float
    peer: float
    peer_count: int
    middle: float  # of the ratios of the pairs, by processor time

    @property
    def ratio(self) -> float:
        """How many times as fast finding is."""
        return self.ours / self.peer


def texts_of(data: Path, name: str) -> list[str]:
    """Every message of a data set as one text; the sentences that have a label, for `pii`."""
    if name == "pii":
        return [one.text for one in sentences(data) if one.spans]
    rows = rows_of(data, name)
    found: list[str] = []
    for column in ("messages", "chosen", "rejected"):
        flat = pc.list_flatten(rows[column].combine_chunks())
        found += [text for text in pc.struct_field(flat, "content").to_pylist() if text]
    return found


def compare(data: Path, names: str, sample: int, most: int, times: int) -> list[Speed]:
    """One line for each set of texts. `sample` texts for the peer, at most `most` of each set for ours."""
    engine = Engine("blank" if names == "off" else "same_model")
    lines = []
    for name in (*SPEED, "pii"):
        texts = _every(texts_of(data, name), most)
        few = _every(texts, sample)
        rows = as_rows(texts)
        scan(rows.slice(0, 20), names=names)
        engine.find(few[0])
        # In turn, and the better of each: other work on the machine must not decide.
        ours, peer = [], []
        for _ in range(times):
            ours.append(_seconds(lambda rows=rows: scan(rows, names=names)))
            peer.append(_seconds(lambda few=few: [engine.find(text) for text in few]))
        whole, _ = _seconds(lambda rows=rows: scrub(rows, key="public-demo", names=names))
        size, part = sum(map(len, texts)), sum(map(len, few))
        middle = median((size / own[1]) / (part / other[1]) for own, other in zip(ours, peer, strict=True))
        own, other = size / min(ours)[0], part / min(peer)[0]
        lines.append(Speed(name, len(texts), size, own, size / whole, other, len(few), middle))
    return lines


def _every(texts: list[str], wanted: int) -> list[str]:
    """At most `wanted` of the texts, spread evenly."""
    step = max(1, -(-len(texts) // wanted))
    return texts[::step]


def _seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds that pass, and seconds of the processor."""
    start, own = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - own


def table(lines: list[Speed], title: str) -> str:
    """All comparisons, and the ratio over all clean texts together."""
    rates = f"{'ours MB/s':>10} {'scrub MB/s':>10} {'peer MB/s':>10}"
    told = [f"{title:24} {'texts':>7} {'MB':>6} {rates} {'ratio':>7} {'by CPU':>7}"]
    for line in lines:
        figures = f"{line.characters / 1e6:6.2f} {line.ours / 1e6:10.3f} {line.scrubbed / 1e6:10.3f}"
        told.append(
            f"{line.texts:24} {line.count:7,} {figures} {line.peer / 1e6:10.4f} {line.ratio:6.1f}x {line.middle:6.1f}x"
        )
    clean = [line for line in lines if line.texts != "pii"]
    size = sum(line.characters for line in clean)
    ratio = sum(line.characters / line.peer for line in clean) / sum(line.characters / line.ours for line in clean)
    told.append(f"{'all but pii':24} {sum(line.count for line in clean):7,} {size / 1e6:6.2f} {'':32} {ratio:6.1f}x")
    return "\n".join(told)
