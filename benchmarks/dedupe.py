"""Near duplicates: ours beside datasketch's MinHashLSH, on the same texts and with the same parameters.

    python benchmarks/dedupe.py                                     2,000 made-up rows
    python benchmarks/dedupe.py --corpus c.parquet --truth t.parquet --rows 20000

`--corpus` is a Parquet file with `id` and `text`; `--truth` one with `id`, `original_id`, `similarity` of planted
copies. datasketch gets the work that our kernels do: normalised words, 5-word shingles, signatures, an index queried
row by row, exact Jaccard on every candidate. Its time is that of a plain Python loop around its own fastest calls.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datasketch import MinHash, MinHashLSH

from corpusforge.sample import MESSAGE_FIELDS, SCHEMA
from corpusforge.stages.dedupe import dedupe
from corpusforge.text.minhash import parameters

WORD = re.compile(r"[^\W_]+")
THRESHOLD = 0.8


def made_up(count: int) -> pa.Table:
    """Texts of 60 to 120 words, three in ten of them copies with a few words replaced."""
    draw = random.Random(7)
    vocabulary = [f"w{i}" for i in range(20_000)]
    texts: list[list[str]] = []
    for number in range(count):
        if number % 10 >= 7:
            words = list(draw.choice(texts))
            for _ in range(draw.randrange(3)):
                words[draw.randrange(len(words))] = draw.choice(vocabulary)
        else:
            words = draw.choices(vocabulary, k=draw.randrange(60, 120))
        texts.append(words)
    return pa.table({"id": [f"r{i}" for i in range(count)], "text": [" ".join(words) for words in texts]})


def as_rows(corpus: pa.Table) -> pa.Table:
    """One-message rows of the row format."""
    rows = [
        {
            "row_id": name,
            "content_id": name,  # all distinct: both sides do the near pass over every row
            "kind": "sft",
            "messages": [dict.fromkeys(MESSAGE_FIELDS) | {"role": "user", "content": text}],
            "source": {"name": "corpus", "record": number, "license": "unknown", "origin": "human"},
        }
        for number, (name, text) in enumerate(zip(corpus["id"].to_pylist(), corpus["text"].to_pylist(), strict=True))
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def peer(corpus: pa.Table, bands: int, height: int) -> set[str]:
    """Ids that go, by datasketch: each row against the rows kept so far, longest first as ours."""
    names, texts = corpus["id"].to_pylist(), corpus["text"].to_pylist()
    words = [WORD.findall(text.lower()) for text in texts]
    shingles = [{" ".join(w[i : i + 5]).encode() for i in range(max(1, len(w) - 4))} for w in words]
    sketches = MinHash.bulk(shingles, num_perm=bands * height)
    index = MinHashLSH(num_perm=bands * height, params=(bands, height))
    gone = set()
    for i in sorted(range(len(names)), key=lambda i: (-len(words[i]), i)):
        for j in index.query(sketches[i]):
            if len(shingles[i] & shingles[j]) / len(shingles[i] | shingles[j]) >= THRESHOLD:
                gone.add(names[i])
                break
        else:
            index.insert(i, sketches[i])
    return gone


def main() -> None:
    """Run both and print rows, removals, seconds and the ratio."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--corpus", type=Path)
    ask.add_argument("--truth", type=Path)
    ask.add_argument("--rows", type=int, default=2_000)
    chosen = ask.parse_args()
    corpus = (pq.read_table(chosen.corpus) if chosen.corpus else made_up(chosen.rows)).slice(0, chosen.rows)
    rows = as_rows(corpus)
    dedupe(rows.slice(0, 2))  # compiles, or loads what an earlier run compiled

    start = time.perf_counter()
    ours = set(dedupe(rows, threshold=THRESHOLD).dropped["row_id"].to_pylist())
    own = time.perf_counter() - start
    start = time.perf_counter()
    theirs = peer(corpus, *parameters(THRESHOLD, 128, 0.99))
    other = time.perf_counter() - start

    print(f"{len(corpus):,} rows, {corpus['text'].nbytes / 1e6:.1f} MB")
    print(f"corpusforge  {own:8.2f} s   {len(ours):,} removed")
    print(f"datasketch   {other:8.2f} s   {len(theirs):,} removed, {len(ours & theirs):,} of them by both")
    print(f"ratio        {other / own:8.1f}")
    if chosen.truth:
        present = set(corpus["id"].to_pylist())
        planted = [
            (t["id"], t["original_id"])
            for t in pq.read_table(chosen.truth).to_pylist()
            if t["similarity"] >= THRESHOLD and {t["id"], t["original_id"]} <= present
        ]
        for name, gone in (("corpusforge", ours), ("datasketch", theirs)):
            found = sum(a in gone or b in gone for a, b in planted)
            print(f"{name}: of {len(planted):,} planted pairs at {THRESHOLD} or more, one row went in {found:,}")


if __name__ == "__main__":
    main()
