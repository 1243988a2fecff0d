"""National numbers: found with a checksum and a word or a form of their own. Every value is made up or a textbook's."""

from __future__ import annotations

import pytest

from corpusforge.pii import ids
from corpusforge.pii.context import View
from corpusforge.pii.recognisers import find
from corpusforge.pii.standins import Standins

FOUND = [
    ("codice fiscale RCCMNL83S18D969H, grazie", "IT_FISCAL_CODE", "RCCMNL83S18D969H"),
    ("CURP BOXW310820HNERXN09", "MX_CURP", "BOXW310820HNERXN09"),
    ("her number is 756.9217.0769.85", "CH_AHV", "756.9217.0769.85"),
    ("nummer 85.07.30-033.28", "BE_NATIONAL_NUMBER", "85.07.30-033.28"),
    ("CPF 529.982.247-25", "BR_CPF", "529.982.247-25"),
    ("cpf: 52998224725", "BR_CPF", "52998224725"),
    ("his code is 131052-308T", "FI_PERSONAL_IDENTITY_CODE", "131052-308T"),
    ("NIR 2 95 10 99 126 111 93", "FR_NIR", "2 95 10 99 126 111 93"),
    ("mi DNI es 54362315K", "ES_NIF", "54362315K"),
    ("NIE: X-2482300W", "ES_NIE", "X-2482300W"),
    ("Steuer-ID 36 574 261 809", "DE_TAX_ID", "36 574 261 809"),
    ("PESEL 44051401359", "PL_PESEL", "44051401359"),
    ("personnummer 880320-0016", "SE_PERSONNUMMER", "880320-0016"),
    ("my BSN is 111222333", "NL_BSN", "111222333"),
    ("Aadhaar 2341 2341 2346", "IN_AADHAAR", "2341 2341 2346"),
    ("tax file number 123 456 782", "AU_TFN", "123 456 782"),
    ("social insurance number 123-456-782", "CA_SIN", "123-456-782"),
]


@pytest.mark.parametrize(("text", "entity", "value"), FOUND)
def test_found(text, entity, value):
    assert [(one.entity, text[one.start : one.end]) for one in find(View(text))] == [(entity, value)]


@pytest.mark.parametrize(("text", "entity", "value"), FOUND)
def test_a_stand_in_has_the_form_and_fails_its_checksum(text, entity, value):
    made = Standins(b"key", "", text).of(entity, value)
    assert made != value
    assert [(c.isdigit(), c.isalpha()) for c in made] == [(c.isdigit(), c.isalpha()) for c in value]
    assert not ids.is_valid(entity, made)
    assert not [one for one in find(View(text.replace(value, made))) if one.entity == entity]


@pytest.mark.parametrize(
    "text",
    [
        "order 111222333 and 44051401359",
        "my BSN is 111222334",
        "CPF 529.982.247-24",
        "sin 123456782",
        "$sin: 123456782 = x^2$",
        "the dinner is 54362315K",
        "BSN values: 1112223335",
        "880320-0016 to 880320-0017",
    ],
)
def test_only_looks_like_it(text):
    assert find(View(text)) == []


def test_every_kind_has_a_case():
    assert {entity for _, entity, _ in FOUND} >= set(ids.ENTITIES) - {"CN_RESIDENT_ID"}


def test_a_key_of_json_names_its_value():
    assert [one.entity for one in find(View("111222333", "bsn: "))] == ["NL_BSN"]
