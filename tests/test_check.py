"""`check`: what it finds in files with planted faults, and that it survives any file."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corpusforge as cf
from corpusforge.check import CheckConfig, Checked, check, load_check
from corpusforge.errors import ConfigError, CorpusForgeError, SourceError
from tests.projects import chat, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "content", "a"]), inner, max_size=3)
    ),
    max_leaves=8,
)
_FIELDS = st.sampled_from(["messages", "prompt", "completion", "chosen", "rejected", "text", "id", "answer", "tools"])
JSON_LINES = st.dictionaries(_FIELDS, _VALUES, max_size=4).map(lambda record: json.dumps(record).encode())
SECRET = "AKIA" + "Z7XQ2MNBV4KLP9RT"
MAIL = "zoe.hartmann@farben-hartmann.de"


def turns(prompt: str, answer: str, **more: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}], **more}


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """Ten sound rows, then a row per fault; line 18 is broken."""
    records = [chat(number) for number in range(10)]
    records.append(chat(3))  # 11: exact copy of line 4
    words = records[5]["messages"][1]["content"].replace("They say", "They do say")
    records.append(turns(records[5]["messages"][0]["content"], words))  # 12: near copy of line 6
    records.append(turns("Where do I send it?", f"Write to {MAIL} before the end of the week."))  # 13
    records.append(turns("How do I log in?", f"export AWS_ACCESS_KEY_ID={SECRET} and then call the tool."))  # 14
    records.append(turns("Say nothing at all to me, please.", "  "))  # 15
    records.append(turns("word " * 5000, "An answer that no trainer will ever see, it is too far away."))  # 16
    records.append({"prompt": "Which is better?", "chosen": "The blue one is.", "rejected": "The blue one is."})  # 17
    write_jsonl(tmp_path / "faulty.jsonl", records)
    with (tmp_path / "faulty.jsonl").open("a") as file:
        file.write('{"messages": [\n')  # 18
    return tmp_path / "faulty.jsonl"


def found(checked: Checked) -> dict[str, list[str]]:
    return {one.code: list(one.where) for one in checked.findings}


def test_every_planted_fault_is_found_with_its_row(faulty: Path) -> None:
    codes = found(check(faulty))
    assert codes["exact_duplicates"] == ["11"]
    assert codes["near_duplicates"] in (["12"], ["6"])
    assert codes["personal_data"] == ["13"]
    assert codes["secrets"] == ["14"]
    assert codes["empty_answer"] == ["15"]
    assert codes["trainer_drops"] == ["16"]
    assert codes["equal_answers"] == ["17"]
    assert codes["broken_lines"] == ["line 18"]
    assert "unknown_license" in codes


def test_sound_rows_are_named_in_no_finding_but_the_licence(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "sound.jsonl", [chat(number) for number in range(10)])
    checked = check(tmp_path / "sound.jsonl")
    assert list(found(checked)) == ["unknown_license"]
    assert checked.passed


def test_a_declared_licence_is_not_missing(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "sound.jsonl", [chat(number) for number in range(10)])
    assert found(check(tmp_path / "sound.jsonl", source={"license": "MIT"})) == {}


def test_no_form_of_the_result_holds_a_found_value(faulty: Path) -> None:
    checked = check(faulty)
    for form in (str(checked), json.dumps(checked.to_dict()), checked._repr_html_(), repr(checked)):
        assert SECRET not in form
        assert MAIL not in form


def test_texts_are_shown_only_when_asked_for(faulty: Path) -> None:
    start = "Tell me about"
    assert start not in json.dumps(check(faulty).to_dict())
    assert start in json.dumps(check(faulty, show=True).to_dict())


def test_worst_pairs_carry_both_rows_and_the_similarity(faulty: Path) -> None:
    near = next(one for one in check(faulty).findings if one.code == "near_duplicates")
    assert {near.facts[0]["row"], near.facts[0]["like"]} == {6, 12}
    assert 0.8 <= near.facts[0]["similarity"] < 1


def test_secrets_and_broken_lines_are_fatal_by_default(faulty: Path) -> None:
    checked = check(faulty)
    assert set(checked.fatal) == {"secrets", "broken_lines"}
    assert not checked.passed


def test_params_say_what_is_fatal(faulty: Path, tmp_path: Path) -> None:
    params = tmp_path / "params.yaml"
    params.write_text("check:\n  fatal: [near_duplicates]\n")
    assert check(faulty, config=load_check(params)).fatal == ["near_duplicates"]
    assert check(faulty, fatal=[]).passed


@pytest.mark.parametrize("text", ["check: {fatal: [nonsense]}", "check: {treshold: 1}", "check: 3", "check: [", ""])
def test_a_wrong_check_block_is_a_config_error_and_an_absent_one_is_not(tmp_path: Path, text: str) -> None:
    params = tmp_path / "params.yaml"
    params.write_text(text)
    if not text:
        assert load_check(params) == CheckConfig()
        return
    with pytest.raises(ConfigError):
        load_check(params)


def test_benchmark_items_are_found_with_benchmark_item_and_side(tmp_path: Path) -> None:
    question = (
        "A baker sells forty loaves before noon and half as many after noon, how many loaves does he sell in all?"
    )
    records = [chat(number) for number in range(5)] + [turns(question, "He sells sixty loaves.")]
    write_jsonl(tmp_path / "rows.jsonl", records)
    write_jsonl(tmp_path / "bench" / "bakery.jsonl", [{"id": "b1", "question": question, "answer": "#### 60"}])
    checked = check(tmp_path / "rows.jsonl", benchmarks=tmp_path / "bench")
    hits = next(iter(checked.findings))
    assert checked.benchmarks == {"bakery": 1}
    assert "Benchmarks looked for: bakery (1 items)" in str(checked)
    assert (hits.code, hits.where) == ("benchmark_hits", ("6",))
    assert {"row": 6, "benchmark": "bakery", "item": "b1", "side": "question"}.items() <= hits.facts[-1].items()


def test_rows_longer_than_the_trainer_looks_are_cut_or_dropped(tmp_path: Path) -> None:
    prompt, answer = "prompt " * 20, "answer " * 40  # 35 and 70 tokens of four characters
    write_jsonl(tmp_path / "long.jsonl", [turns(prompt, answer)])
    assert "trainer_cuts" in found(check(tmp_path / "long.jsonl", max_length=100))
    assert "trainer_drops" in found(check(tmp_path / "long.jsonl", max_length=35))
    assert not {"trainer_cuts", "trainer_drops"} & set(found(check(tmp_path / "long.jsonl", max_length=106)))


def test_fields_of_an_unknown_shape_are_named_and_can_be_mapped(tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text("frage,antwort\nWie spät ist es?,Es ist genau halb neun am Abend.\n")
    odd = check(tmp_path / "odd.csv")
    assert odd.fields == ["frage", "antwort"]
    assert "unknown_shape" in odd.fatal
    mapped = check(tmp_path / "odd.csv", source={"fields": {"prompt": "frage", "completion": "antwort"}})
    assert mapped.rows == 1


def test_keys_that_are_data_are_not_named(tmp_path: Path) -> None:
    (tmp_path / "users.json").write_text(json.dumps([{"zoe hartmann 1971": {"a": 1}}]))
    assert check(tmp_path / "users.json").fields == []


FOREIGN = {
    "empty.jsonl": b"",
    "blank.jsonl": b"\n\n \n",
    "junk.bin": bytes(range(256)) * 40,
    "junk.jsonl": bytes(range(256)) * 40,
    "array.json": json.dumps([turns("Hello there", "Good day to you")]).encode(),
    "one.json": json.dumps(turns("Hello there", "Good day to you")).encode(),
    "numbers.jsonl": b"1\n2\nnull\n",
    "table.csv": b"prompt,completion\nhow,so\n",
    "half.csv": b'prompt,completion\n"how,so\n',
    "text.jsonl.gz": gzip.compress(b'{"id": "a", "text": "plain words"}\n', mtime=0),
    "half.jsonl.gz": gzip.compress(b'{"id": "a", "text": "plain words"}\n' * 500, mtime=0)[:60],
    "pair.jsonl": json.dumps(
        {"chosen": "\n\nHuman: a\n\nAssistant: b", "rejected": "\n\nHuman: a\n\nAssistant: c"}
    ).encode(),
    "half.parquet": b"PAR1 and then nothing",
    "notes.md": b"# Notes\n\nwords\n",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_no_file_makes_it_fail_otherwise_than_on_purpose(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FOREIGN[name])
    try:
        checked = check(tmp_path / name)
    except CorpusForgeError as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert name in said
        return
    assert checked.rows or "nothing_readable" in checked.fatal
    assert str(checked)
    json.dumps(checked.to_dict(), allow_nan=False)


def test_a_foreign_parquet_file_is_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"instruction": ["Add two and two"], "output": ["That is four"]}), tmp_path / "a.parquet")
    assert check(tmp_path / "a.parquet").holds["kind"] == {"sft": 1}


def test_of_several_files_rows_and_lines_are_named_with_their_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_jsonl(tmp_path / "many" / f"{name}.jsonl", [chat(n) for n in range(4)])
    with (tmp_path / "many" / "b.jsonl").open("a") as file:
        file.write("{\n")
    codes = found(check(tmp_path / "many"))
    assert codes["exact_duplicates"] == ["b.jsonl#1", "b.jsonl#2", "b.jsonl#3", "b.jsonl#4"]
    assert codes["broken_lines"][0].endswith("b.jsonl:5")


def test_our_own_shards_are_read_without_their_manifest(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [chat(n) for n in range(4)])
    cf.write_shards(cf.read(tmp_path / "a.jsonl"), tmp_path / "shards")
    assert check(tmp_path / "shards").passed


@settings(max_examples=40)
@given(lines=st.lists(st.one_of(JSON_LINES, st.binary(max_size=60)), max_size=6))
def test_any_bytes_are_answered(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("any") / "any.jsonl"
    path.write_bytes(b"\n".join(lines))
    with suppress(CorpusForgeError):
        checked = check(path)
        assert checked.records >= 0
        json.dumps(checked.to_dict(), allow_nan=False)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"absent\.jsonl"):
        check(tmp_path / "absent.jsonl")


def test_real_files_of_other_shapes(shared: Path) -> None:
    """HH-RLHF's five pairs whose prompts differ are broken, and two of its prompts come twice."""
    checked = check(shared / "data" / "hh_rlhf" / "harmless-base_test.jsonl.gz")
    codes = {one.code: one.rows for one in checked.findings}
    assert (checked.records, checked.rows, codes["broken_lines"]) == (2312, 2307, 5)
