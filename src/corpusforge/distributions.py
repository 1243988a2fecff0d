"""Which installed distribution an importable package comes from, and in which version.

The standard library's own map of all packages reads the file list of every distribution, which takes a second; a stage
asks for two or three packages, nearly always named as their distribution is, so the map is the last resort.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution, entry_points, packages_distributions, version


def installed(name: str) -> str:
    """Version of an installed distribution, or `absent`."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def bringing(group: str) -> list[str]:
    """Names of the installed distributions that have entry points in a group, sorted."""
    return sorted({point.dist.metadata["Name"] for point in entry_points(group=group) if point.dist is not None})


@lru_cache(maxsize=64)
def owner(package: str) -> str | None:
    """Name of the distribution that gives `package` (a dotted name will do); None for Python's own or unknown ones."""
    top = package.partition(".")[0]
    if top in sys.stdlib_module_names:
        return None
    try:
        name: str = distribution(top).metadata["Name"]
    except PackageNotFoundError:
        return next(iter(packages_distributions().get(top, [])), None)
    return name
