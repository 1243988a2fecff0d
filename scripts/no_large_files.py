"""Refuse files above 500 kB: data belongs to DVC, not to git. File names are the arguments."""

from __future__ import annotations

import sys
from pathlib import Path

LIMIT = 500_000


def too_large(names: list[str]) -> list[str]:
    """One line per file that is larger than the limit."""
    sizes = {name: Path(name).stat().st_size for name in names if Path(name).is_file()}
    return [f"{name}: {size:,} bytes, at most {LIMIT:,}" for name, size in sizes.items() if size > LIMIT]


if __name__ == "__main__":
    sys.exit("\n".join(too_large(sys.argv[1:])) or None)
