"""Own ids that hold personal data are counted; ids of the usual kinds are none."""

from __future__ import annotations

import pyarrow as pa
import pytest

from corpusforge.pii import own_ids


def counted(*ids):
    return dict(own_ids.count(pa.chunked_array([ids], pa.string())))


@pytest.mark.parametrize(
    ("value", "entity"),
    [
        ("zoe@corp.com", "EMAIL_ADDRESS"),
        ("user:zoe@corp.com/17", "EMAIL_ADDRESS"),
        ("+12124567890", "PHONE_NUMBER"),
        ("(212) 456-7890", "PHONE_NUMBER"),
        ("key:AKIAQ3EGRPJ7XK2M4TBD", "SECRET_AWS_KEY"),
        ("5.61.32.77", "IP_ADDRESS"),
    ],
)
def test_an_id_that_is_personal_data_is_counted(value, entity):
    assert counted(value, "c1", None) == {entity: 1}


@pytest.mark.parametrize(
    "value",
    [
        "1042",
        "2124567890",
        "conv-20240101-000123",
        "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
        "123e4567-e89b-12d3-a456-426614174000",
        "1590000000000000123",
        "",
    ],
)
def test_an_id_of_the_usual_kinds_is_not(value):
    assert counted(value) == {}


def test_no_ids_are_no_fault():
    assert counted() == counted(None) == {}
