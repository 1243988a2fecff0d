"""datatrove: the four MinHash steps on this machine, with its own readers and writers; one row of each cluster stays.

Clusters are all rows linked by candidates, directly or through others. Words are those of its English tokenizer after
its own simplification, with numbers, weekdays and months left as they are. The corpus is cut into one file per worker,
since a file is what its tasks share out; the time for that is part of the whole. Workers are forked, which starts them
in half the time of its default.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from _common import arguments
from datatrove.executor.local import LocalPipelineExecutor
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.readers import ParquetReader
from datatrove.pipeline.writers import ParquetWriter
from datatrove.utils.text import TextNormConfig


def cut(corpus: Path, folder: Path, count: int) -> None:
    """Write the corpus as `count` files."""
    folder.mkdir()
    rows = pq.read_table(corpus)
    for number in range(count):
        start, end = (rows.num_rows * at // count for at in (number, number + 1))
        pq.write_table(rows.slice(start, end - start), folder / f"{number}.parquet")


def main() -> None:
    """The four steps one after the other, then the ledger."""
    chosen = arguments()
    out, workers = chosen.out, chosen.workers
    data, signatures, buckets, clusters, kept, gone = (
        str(out / name) for name in ("data", "signatures", "buckets", "clusters", "kept", "gone")
    )
    cut(chosen.corpus, Path(data), workers)
    words = TextNormConfig(norm_numbers=False, norm_weekdays=False, norm_monthnames=False)
    config = MinhashConfig(num_buckets=chosen.bands, hashes_per_bucket=chosen.height, norm_config=words)
    steps = [
        ([ParquetReader(data), MinhashDedupSignature(signatures, config=config)], workers),
        ([MinhashDedupBuckets(signatures, buckets, config=config)], chosen.bands),
        ([MinhashDedupCluster(buckets, clusters, config=config)], 1),
        (
            [
                ParquetReader(data),
                MinhashDedupFilter(clusters, exclusion_writer=ParquetWriter(gone)),
                ParquetWriter(kept),
            ],
            workers,
        ),
    ]
    for number, (step, tasks) in enumerate(steps):
        logs = str(out / "logs" / str(number))
        LocalPipelineExecutor(step, tasks=tasks, workers=workers, logging_dir=logs, start_method="fork").run()
    names = ds.dataset(gone, format="parquet").to_table(columns=["id"])["id"]
    same = pa.array(["near_duplicate"] * len(names), pa.string())
    ledger = {"record_id": names, "reason": same, "detail": pa.array(["{}"] * len(names), pa.string())}
    pq.write_table(pa.table(ledger), out / "dropped.parquet")
    for folder in (data, signatures, buckets, clusters, gone):
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
