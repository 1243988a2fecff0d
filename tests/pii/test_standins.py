"""Stand-ins: of the same form, nobody's, consistent, and known as ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.pii.context import View
from corpusforge.pii.keys import PUBLIC_DEMO_KEY, digest, fingerprint
from corpusforge.pii.recognisers import find
from corpusforge.pii.standins import Standins

VALUES = {
    "EMAIL_ADDRESS": ["zoe.quill@corp.com", "ZQ@CORP.COM", "a_b-c.42@x.org", "müller@firma.de"],
    "PHONE_NUMBER": [
        "(212) 456-7890",
        "+1 917-444-6321",
        "+49 171 2345678",
        "0171 2345678",
        "25-62-29-72",
        "001-748-088-2851x818",
    ],
    "CREDIT_CARD": ["4111 1111 1111 1111", "378282246310005", "5555-5555-5555-4444"],
    "IBAN_CODE": ["DE89 3704 0044 0532 0130 00", "gb50mvfc38361978683032"],
    "CRYPTO": ["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"],
    "US_SSN": ["219-09-9998", "219 09 9998"],
    "IP_ADDRESS": ["5.61.32.77", "5.61.32.0/24", "2a02:908:1a4::77"],
    "MAC_ADDRESS": ["3C:22:FB:7A:10:9E", "3c22.fb7a.109e"],
}
CASES = [(entity, value) for entity, values in VALUES.items() for value in values]
LEAD = {
    "PHONE_NUMBER": "call me at ",
    "US_SSN": "my ssn is ",
    "CREDIT_CARD": "card ",
    "IP_ADDRESS": "host ",
    "MAC_ADDRESS": "mac ",
}


def make(key=PUBLIC_DEMO_KEY, scope="s#1", occupied="", **options):
    return Standins(key, scope, occupied, **options)


@pytest.mark.parametrize(("entity", "value"), CASES)
@given(scope=st.text(max_size=5), real=st.booleans())
def test_a_stand_in_is_not_found_again(entity, value, scope, real):
    made = make(scope=scope, documentation_is_real=real).of(entity, value)
    assert made != value
    assert not made.startswith("<")
    text = f"Well, {LEAD.get(entity, '')}{made} it is."
    assert [s for s in find(View(text), documentation_is_real=real) if s.entity == entity] == []


@pytest.mark.parametrize(
    ("entity", "value"), [c for c in CASES if c[0] not in ("EMAIL_ADDRESS", "IP_ADDRESS", "CRYPTO")]
)
def test_a_stand_in_keeps_the_form(entity, value):
    def form(text):
        return "".join("9" if c.isdigit() else "a" if c.isalpha() else c for c in text)

    made = make().of(entity, value)
    assert form(made) == form(value) or (entity == "MAC_ADDRESS" and len(made) == len(value))


def test_spellings_of_one_value_agree_within_a_scope_and_differ_between_scopes():
    one, other = make(), make(scope="s#2")
    digits = [one.of("PHONE_NUMBER", value)[-8:] for value in ("212-456-7890", "(212) 456-7890", "+1 (212) 456-7890")]
    assert len(set(digits)) == 1
    assert one.of("EMAIL_ADDRESS", "Zoe@Corp.com").lower() == one.of("EMAIL_ADDRESS", "zoe@corp.com")
    assert one.of("EMAIL_ADDRESS", "zoe@corp.com") != other.of("EMAIL_ADDRESS", "zoe@corp.com")


def test_another_key_gives_another_stand_in():
    assert make().of("EMAIL_ADDRESS", "zoe@corp.com") != make(key=b"0" * 32).of("EMAIL_ADDRESS", "zoe@corp.com")


def test_a_value_that_stands_in_the_row_is_never_a_stand_in():
    first = make().of("EMAIL_ADDRESS", "zoe@corp.com")
    assert make(occupied=f"known: {first}").of("EMAIL_ADDRESS", "zoe@corp.com") != first


@given(st.integers(20, 300))
def test_different_values_get_different_stand_ins_even_in_a_small_range(count):
    standins = make()
    made = [standins.of("MAC_ADDRESS", f"3c:22:fb:7a:{i // 256:02x}:{i % 256:02x}") for i in range(count)]
    proper = [one for one in made if not one.startswith("<")]
    assert len(set(proper)) == len(proper) > 10


def test_what_has_no_stand_in_becomes_a_tag():
    assert make().of("SECRET_JWT", "eyJ") == "<SECRET_JWT>"


def test_fingerprints_tell_keys_apart_and_parts_do_not_run_together():
    assert fingerprint(b"a" * 16) != fingerprint(b"b" * 16)
    assert len(fingerprint(PUBLIC_DEMO_KEY)) == 16
    assert digest(b"k", "ab", "c") != digest(b"k", "a", "bc")
