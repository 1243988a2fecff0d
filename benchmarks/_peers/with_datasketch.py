"""datasketch: `MinHash.generator`, its bulk way, and `MinHashLSH` asked row by row; a row with a candidate goes.

The index is in memory and holds the kept rows. xxhash takes the place of SHA-1, which is slower, where it is there.
"""

from __future__ import annotations

import pyarrow.parquet as pq
from _common import arguments, shingles, write
from datasketch import MinHash, MinHashLSH

try:
    from xxhash import xxh32_intdigest as hashed
except ImportError:
    hashed = None


def main() -> None:
    """Signatures, index, files."""
    chosen = arguments()
    corpus = pq.read_table(chosen.corpus)
    names = corpus["id"].to_pylist()
    length = chosen.bands * chosen.height
    sets = ({piece.encode() for piece in shingles(text)} for text in corpus["text"].to_pylist())
    index = MinHashLSH(num_perm=length, params=(chosen.bands, chosen.height))
    stays, twins = [], []
    for at, sketch in enumerate(MinHash.generator(sets, num_perm=length, hashfunc=hashed)):
        found = index.query(sketch)
        stays.append(not found)
        if found:
            twins.append(names[min(found)])
        else:
            index.insert(at, sketch, check_duplication=False)
    write(chosen.out, corpus, stays, twins)


if __name__ == "__main__":
    main()
