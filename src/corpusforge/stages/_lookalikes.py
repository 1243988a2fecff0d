"""Near copies of a few rows among many: the texts are compared as `dedupe` compares them, whatever else differs.

MinHash bands find candidates, the exact Jaccard similarity of the shingle sets decides (see dedupe.py). Kind, gold and
numbers need not be equal here: a person looks at what is found.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from corpusforge.text.minhash import band_hashes, parameters, signatures
from corpusforge.text.pairs import jaccard, sets
from corpusforge.text.shingles import Shingles, shingle
from corpusforge.text.views import compare_text

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from corpusforge.stages.dedupe import DedupeConfig

_MOST: Final = 1_000  # candidates compared per row, those met most often first


class Lookalikes:
    """An index over the rows whose near copies are looked for."""

    def __init__(self, rows: pa.Table, config: DedupeConfig) -> None:
        self.config = config
        self.bands, self.height = parameters(config.threshold, config.num_perm, config.recall)
        found = shingle(compare_text(rows), config.shingle)
        self.sets = sets(found)
        self.buckets: list[dict[int, list[int]]] = [{} for _ in range(self.bands)]
        for place, hashed in enumerate(self._bands(found)):
            if found.units[place]:
                for band, value in enumerate(hashed.tolist()):
                    self.buckets[band].setdefault(value, []).append(place)
        self.values = [np.array(sorted(bucket), np.uint64) for bucket in self.buckets]

    def _bands(self, found: Shingles) -> npt.NDArray[np.uint64]:
        signature = signatures(found.hashes, found.starts, self.bands * self.height, self.config.seed)
        return band_hashes(signature, self.bands, self.height, np.zeros(len(found.units), np.uint64))

    def find(self, rows: pa.Table) -> list[tuple[int, int, float]]:
        """Near copies: position in `rows`, position of the indexed row that it is most like, their similarity."""
        found = shingle(compare_text(rows), self.config.shingle)
        hashed = self._bands(found)
        meets = np.zeros(len(hashed), bool)
        for band, values in enumerate(self.values):
            meets |= np.isin(hashed[:, band], values)
        own, near = sets(found), []
        for at in np.flatnonzero(meets & (found.units > 0)):
            met = Counter(
                place for band, value in enumerate(hashed[at].tolist()) for place in self.buckets[band].get(value, ())
            )
            scored = [(jaccard(own, int(at), self.sets, place), -place) for place, _ in met.most_common(_MOST)]
            similarity, place = max(scored)
            if similarity >= self.config.threshold:
                near.append((int(at), -place, round(similarity, 6)))
        return near
