"""Real files, damaged: bits flipped, parts cut out, bytes put in, packed, called something else, made into tables.

What comes of number n depends on n alone, so that a failure can be looked at: `python -m tests.io.mutants DATA n DIR`
writes that file.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from tests.io.readers.packing import PACKERS, TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

DATA: Final = (".jsonl", ".json", ".csv", ".gz", ".txt")
NAMES: Final = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".jsonl.gz", ".zst", ".bin", "")
ODD: Final = (
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\x1a", b"\x0b"),
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"'", b";", b"\t", b'\\ud83e', b"\\u0000", b"NaN", b"-Infinity"),
    *(b"1e999", b"null", b"9" * 5000, b"[" * 5000, b'{"a":' * 300, b'{"id":1,"id":2}', b"PAR1", b"ARROW1", b"\x1f\x8b"),
)  # fmt: skip
SMALL: Final = 60_000
TEXTS: Final = ("flip", "cut", "insert", "odd", "swap", "double", "truncate", "none")


@dataclass(frozen=True)
class Mutant:
    """A damaged file, and what was done."""

    name: str
    data: bytes
    how: str


def sources(folder: Path) -> list[Path]:
    """The files that mutants are made of, in a fixed order."""
    found = [path for path in sorted(folder.rglob("*")) if path.name.endswith(DATA) and path.is_file()]
    return [path for path in found if path.name not in ("LICENSE.txt", "requirements.txt")]


def mutant(files: Sequence[Path], number: int) -> Mutant:
    """Mutant number `number` of these files."""
    draw = random.Random(number)
    path = draw.choice(files)
    data = path.read_bytes()
    done = [path.name]
    if path.suffix == ".gz" and draw.random() < 0.5:
        import gzip

        data = gzip.decompress(data)
        done.append("unpacked")
    elif len(data) > SMALL and draw.random() < 0.9:
        data = data[: data.index(b"\n", SMALL) + 1] if b"\n" in data[SMALL : 3 * SMALL] else data[:SMALL]
        done.append("beginning")
    if draw.random() < 0.15:
        form = draw.choice(list(TABLES))
        data = TABLES[form](as_table(data))
        done.append(form)
    data = damaged(data, draw, done)
    if draw.random() < 0.3:
        packing = draw.choice(list(PACKERS))
        data = PACKERS[packing](data)
        done.append(packing)
        if draw.random() < 0.5:
            data = damaged(data, draw, done)
    suffix = "".join(path.suffixes[-2:]) if draw.random() < 0.6 else draw.choice(NAMES)
    return Mutant(f"m{suffix}", data, f"{number}: {' '.join(done)} as m{suffix}")


def damaged(data: bytes, draw: random.Random, done: list[str]) -> bytes:
    """Up to three injuries."""
    for _ in range(draw.randint(1, 3)):
        how = draw.choice(TEXTS)
        at = draw.randrange(len(data) + 1)
        end = min(len(data), at + draw.choice((1, 2, 10, 100, 5000)))
        done.append(how)
        if how == "flip":
            changed = bytearray(data)
            for place in [draw.randrange(len(data)) for _ in range(draw.choice((1, 3, 30)))] if data else []:
                changed[place] ^= 1 << draw.randrange(8)
            data = bytes(changed)
        elif how == "cut":
            data = data[:at] + data[end:]
        elif how == "insert":
            data = data[:at] + draw.randbytes(draw.choice((1, 5, 200))) + data[at:]
        elif how == "odd":
            data = data[:at] + draw.choice(ODD) + data[at:]
        elif how == "swap":
            data = data[end:] + data[:end]
        elif how == "double":
            data = data + data[at:end]
        elif how == "truncate":
            data = data[:at]
    return data


def as_table(data: bytes) -> pa.Table:
    """What lines of JSON make as columns of texts, or the text itself cut into rows."""
    rows = []
    for line in data.split(b"\n")[:200]:
        try:
            value = json.loads(line)
        except ValueError:
            value = {"text": line.decode("utf-8", "replace")}
        rows.append({str(key): json.dumps(inner) for key, inner in value.items()} if isinstance(value, dict) else {})
    return pa.Table.from_pylist(rows) if any(rows) else pa.table({"text": ["nothing"]})


if __name__ == "__main__":
    made = mutant(sources(Path(sys.argv[1])), int(sys.argv[2]))
    (Path(sys.argv[3]) / made.name).write_bytes(made.data)
    sys.stdout.write(f"{made.how}\n")
