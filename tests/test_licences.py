"""Licences become SPDX expressions, or are said to be unknown."""

from __future__ import annotations

import pytest

from corpusforge.licences import implied, normalise, of_record


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("mit", "MIT"),
        ("MIT License", "MIT"),
        ("Apache 2.0", "Apache-2.0"),
        ("cc-by-nc-4.0", "CC-BY-NC-4.0"),
        ("CC BY-SA 3.0", "CC-BY-SA-3.0"),
        ("MIT or Apache-2.0", "MIT OR Apache-2.0"),
        ("LicenseRef-internal", "LicenseRef-internal"),
        ("MIT AND LicenseRef-our.terms", "MIT AND LicenseRef-our.terms"),
        ("", "unknown"),
        ("other", "unknown"),
        ("mitt", None),
        ("LicenseRef-two words", None),
        ("MIT AND", None),
    ],
)
def test_normalise(said: str, means: str | None) -> None:
    """What people write becomes what SPDX writes; what means nothing is None."""
    assert normalise(said) == means


@pytest.mark.parametrize(
    ("said", "means"),
    [
        (None, "unknown"),
        (["mit", "cc-by-nc-4.0"], "MIT AND CC-BY-NC-4.0"),
        (["mit", "MIT"], "MIT"),
        (["mit", "who knows"], "unknown"),
        ([], "unknown"),
        (7, "unknown"),
    ],
)
def test_a_record_may_say_several(said: object, means: str) -> None:
    """All licences of a list apply; one unknown makes the whole unknown."""
    assert of_record(said) == means


@pytest.mark.parametrize(
    ("expression", "restrictions"),
    [
        ("CC-BY-NC-SA-4.0", ["non-commercial", "share-alike"]),
        ("MIT AND CC-BY-ND-4.0", ["no-derivatives"]),
        ("MIT OR CC-BY-NC-4.0", []),
        ("CC-BY-4.0", []),
        ("MIT", []),
    ],
)
def test_restrictions_follow_from_the_licence(expression: str, restrictions: list[str]) -> None:
    """Creative Commons says its restrictions in its name; a choice imposes none."""
    assert implied(expression) == restrictions
