"""rensa: `RMinHash.from_token_sets`, `RMinHashLSH.insert_many` and `query_all`; a row with an earlier candidate goes.

Three calls for all rows: the fastest of its ways that tell which row was met. `query_duplicate_flags_matrix_one_shot`
marks both rows of a pair, so it cannot say which of them stays; `RMinHashDeduplicator.add_pairs` takes longer than the
three. The sketches that sample the shingles (`…_rho`) do not have the recall that is asked for here.
"""

from __future__ import annotations

import pyarrow.parquet as pq
from _common import arguments, shingles, write
from rensa import RMinHash, RMinHashLSH


def main() -> None:
    """Signatures, index, files."""
    chosen = arguments()
    corpus = pq.read_table(chosen.corpus)
    names = corpus["id"].to_pylist()
    length = chosen.bands * chosen.height
    sketches = RMinHash.from_token_sets(map(shingles, corpus["text"].to_pylist()), length, 1)
    index = RMinHashLSH(0.8, length, chosen.bands)
    index.insert_many(sketches)
    first = [min(found) for found in index.query_all(sketches)]
    stays = [twin >= at for at, twin in enumerate(first)]
    write(chosen.out, corpus, stays, [names[twin] for at, twin in enumerate(first) if twin < at])


if __name__ == "__main__":
    main()
