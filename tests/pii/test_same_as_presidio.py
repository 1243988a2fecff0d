"""The fast path finds what Presidio's AnalyzerEngine finds with the same recognisers: same kind, span and score."""

from __future__ import annotations

import gzip
import json
import logging

import phonenumbers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusforge.pii import phones, presidio, recognisers
from corpusforge.pii.context import View
from corpusforge.pii.presidio import MODULES, REGEX_FLAGS, recogniser
from corpusforge.pii.recognisers import BY_NAME, PRESIDIO, find, raw

SEVEN = phones.python(phones.SEVEN_DIGITS)
LINES = [
    "gsm8k/train.jsonl",
    "mbpp/mbpp.jsonl",
    "ifeval/input_data.jsonl",
    "oasst_sample/en_100_message.jsonl",
    "hh_rlhf/harmless-base_test.jsonl.gz",
    "humaneval/HumanEval.jsonl.gz",
    "bfcl_v4/BFCL_v4_simple_python.json",
    "longchat_longeval/*.jsonl",
    "tau_bench/*.jsonl",
]
PIECES = [
    *("zoe@corp.com", "a.b+c@x-y.co.uk", "@", "谢a@b.de谢", "ſ@ſ.com", "(212) 456-7890", "+49 171 2345678", "12", "7"),
    *(
        "1 800 555 0199 x 12",
        "212-456-7890 ext. 5",
        "4111 1111 1111 1111",
        "219-09-9998",
        "DE89 3704 0044 0532 0130 00",
    ),
    *("de89370400440532013000", "5.61.32.77", "2a02:908:1a4::77", "::", "a::b", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4/96"),
    *("3c:22:fb:7a:10:9e", "0012.3456.789A", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", "943 476 5919", "912-70-1234"),
    *(
        "\n",
        "\t",
        " ",
        "  ",
        "     ",
        "/",
        "-",
        ".",
        ",",
        "x",
        "٣٤٥",
        "１２",
        "\u200b",
        "\u00ad",
        "(",
        ")",
        "[",
        "#",
        "%",
        "€",
    ),
    *(
        "2012-01-02 08",
        ":00",
        "3/10/2011",
        "211-227 (2003)",
        "order",
        "call",
        "0",
        "00",
        "011",
        "30123",
        "ext",
        ";ext=",
    ),
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(alphabet="0123456789 -.()+/@:ax\n", max_size=12), max_size=14)


@pytest.fixture(scope="module")
def engine():
    """AnalyzerEngine with a blank English model, and our recognisers as its registry would hold them."""
    spacy = pytest.importorskip("spacy")
    import presidio_analyzer as presidio
    import tldextract
    from presidio_analyzer import predefined_recognizers as predefined
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    made = [getattr(predefined, name)() for name in MODULES]
    for one in made:
        if hasattr(one, "global_regex_flags"):
            one.global_regex_flags = REGEX_FLAGS
    nlp = SpacyNlpEngine()
    nlp.nlp = {"en": spacy.blank("en")}
    nlp.nlp["en"].max_length = 10**8
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.getLogger("presidio-analyzer"), "level", logging.CRITICAL)
        offline = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=(), fallback_to_snapshot=True)
        patch.setattr(tldextract, "extract", offline)
        registry = presidio.RecognizerRegistry(recognizers=made)
        yield presidio.AnalyzerEngine(registry=registry, nlp_engine=nlp, supported_languages=["en"])


def theirs(engine, text):
    """Findings of AnalyzerEngine; a phone number of fewer than seven digits is none to us."""
    found = [(one.entity_type, one.start, one.end, one.score) for one in engine.analyze(text, "en")]
    return sorted(one for one in found if one[0] != "PHONE_NUMBER" or SEVEN.search(text, one[1], one[2]))


def ours(text):
    return sorted((entity, *one) for entity in PRESIDIO for one in raw(text, entity))


def texts_at_hand(shared):
    for pattern in LINES:
        for file in sorted((shared / "data").glob(pattern)):
            data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            for line in data.splitlines():
                yield from strings(json.loads(line))
    for line in json.loads((shared / "data/presidio_synth_pii/generated_large.json").read_text()):
        yield line["full_text"]


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def test_on_all_texts_at_hand(shared, engine):
    """Every text that pulls a trigger, and one in fifty of the others."""
    compiled = [phones.python(BY_NAME[name].trigger) for name in PRESIDIO]
    checked = found = 0
    for number, text in enumerate(texts_at_hand(shared)):
        if number % 50 == 0 or (len(text) < 20_000 and any(trigger.search(text) for trigger in compiled)):
            expected = theirs(engine, text)
            assert ours(text) == expected, number  # the number alone: a text may be somebody's
            checked += 1
            found += len(expected)
    assert checked > 1_000
    assert found > 500


@settings(max_examples=300)
@given(TEXTS.map("".join) | TEXTS.map(" ".join))
def test_on_made_up_texts(engine, text):
    assert ours(text) == theirs(engine, text)


@settings(max_examples=100)
@given(TEXTS.map(" ".join), TEXTS.map(" ".join))
def test_on_texts_longer_than_one_window(engine, one, other):
    text = f"{one}\n{'Words and words. ' * 40}\n{other} {'more words, ' * 50}{one}"
    assert ours(text) == theirs(engine, text)


@settings(max_examples=150)
@given(TEXTS.map(" ".join))
def test_what_is_passed_over_would_have_been_refused(engine, text):
    """Our rules over AnalyzerEngine's findings give what `find` gives, which leaves out searches of no use."""
    view = View(text)
    found = theirs(engine, view.text)

    def all_of_one(_text, entity):
        return [one[1:] for one in found if one[0] == entity.name]

    def all_phones(_text, _wanted):
        return [one[1:] for one in found if one[0] == "PHONE_NUMBER"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recognisers, "_presidio", all_of_one)
        patch.setattr(phones, "find", all_phones)
        slow = find(View(text))
    assert find(View(text)) == slow


def _example(region):
    """A number of the region without the prefix that it is dialled with at home."""
    return phonenumbers.national_significant_number(phonenumbers.example_number(region))


def test_no_number_is_shorter_than_what_is_passed_over():
    shortest = min(
        len(str(phonenumbers.country_code_for_region(region)))
        + min(n for n in phonenumbers.PhoneMetadata.metadata_for_region(region).general_desc.possible_length if n > 0)
        for region in phonenumbers.SUPPORTED_REGIONS
    )
    assert shortest >= phones._ABROAD


@settings(max_examples=400)
@given(
    st.sampled_from(recogniser("PhoneRecognizer").supported_regions),
    st.text(alphabet="0123456789 -.()+x", min_size=4, max_size=18)
    | st.from_regex(r"(?:\+|00|0|1)?[1-9][0-9]{5,11}(?:x[0-9]{0,6})?", fullmatch=True)
    | st.sampled_from(sorted(phonenumbers.SUPPORTED_REGIONS)).map(_example),
)
def test_what_is_not_parsed_is_no_number_of_the_region(region, candidate):
    if phones._region(region).hopeless(phones._read(candidate)):
        matcher = phones._library.PhoneNumberMatcher(candidate, region, recogniser("PhoneRecognizer").leniency)
        assert matcher._parse_and_verify(candidate, 0) is None


@given(
    st.sampled_from(recogniser("PhoneRecognizer").supported_regions),
    st.sampled_from(sorted(phonenumbers.SUPPORTED_REGIONS)),
)
def test_examples_of_every_country_are_parsed(region, country):
    """Of the region's own as they are dialled at home, of all others with their country's code."""
    number = phonenumbers.example_number(country)
    form = (
        phonenumbers.PhoneNumberFormat.NATIONAL if region == country else phonenumbers.PhoneNumberFormat.INTERNATIONAL
    )
    assert not phones._region(region).hopeless(phones._read(phonenumbers.format_number(number, form)))


@settings(max_examples=200)
@given(
    st.sampled_from(sorted(phonenumbers.SUPPORTED_REGIONS)),
    st.from_regex(r"(?:00|001|011|0014|0012|015)[0-9]{5,12}(?:x[0-9]{0,4})?", fullmatch=True),
)
def test_a_number_dialled_to_another_country_is_the_same_for_all_regions_that_dial_so(country, candidate):
    abroad = f"00{phonenumbers.country_code_for_region(country)}{_example(country)}"
    for one in (candidate, abroad):
        results = {}
        for region in recogniser("PhoneRecognizer").supported_regions:
            way = phones._region(region).way_out(phones._read(one))
            matcher = phones._library.PhoneNumberMatcher(one, region, recogniser("PhoneRecognizer").leniency)
            results.setdefault(way or region, set()).add(matcher._parse_and_verify(one, 0) is None)
        assert all(len(found) == 1 for found in results.values())


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4), st.sampled_from([0.05, 0.5, 1.0])), max_size=6))
def test_duplicates_go_as_they_do_in_presidio(found):
    from presidio_analyzer import EntityRecognizer, RecognizerResult

    spans = [(start, start + size, score) for start, size, score in found]
    theirs = EntityRecognizer.remove_duplicates([RecognizerResult("US_SSN", *span) for span in spans])
    assert presidio._distinct(spans) == [(one.start, one.end, one.score) for one in theirs]


@given(st.from_regex(r"[3456][0-9]{3}[- ]?[0-9]{3,4}[- ]?[0-9]{3,4}[- ]?[0-9٣]{3,5}", fullmatch=True))
def test_a_card_is_checked_as_in_presidio(value):
    from presidio_analyzer.predefined_recognizers import CreditCardRecognizer

    assert presidio._luhn_check(value) == CreditCardRecognizer().validate_result(value)
