"""Where packages come from."""

from __future__ import annotations

from importlib.metadata import packages_distributions

import pytest

from corpusforge.distributions import installed, owner


@pytest.mark.parametrize("package", ["polars", "yaml", "dateutil", "msgspec", "reasoning_gym", "ruamel"])
def test_the_short_way_gives_what_the_map_of_all_packages_gives(package):
    names = packages_distributions()[package]
    assert owner(f"{package}.part") in names
    assert installed(owner(package)) != "absent"


def test_pythons_own_and_unknown_packages_have_no_owner():
    assert owner("statistics") is None
    assert owner("no_such_package_at_all") is None
    assert installed("no-such-distribution") == "absent"
