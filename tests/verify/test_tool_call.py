"""tool_call: the calls made are the calls accepted, in BFCL's sense."""

from __future__ import annotations

import itertools
import json
import socket
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.shapes.tools import bfcl
from corpusforge.verify import verify
from corpusforge.verify.tool_call import same

if TYPE_CHECKING:
    from pathlib import Path

PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "unit": {"type": "string"}, "where": {"type": "object"}},
    "required": ["a"],
}
TOOLS = [{"type": "function", "function": {"name": "geo.f", "parameters": PARAMETERS}}]
ACCEPTED = [{"geo.f": {"a": [1, 2], "unit": ["m/s", ""]}}]


def judge(completion: Any, calls: Any = ACCEPTED, tools: Any = TOOLS) -> tuple[str, str]:
    verdict = verify({"verifier": {"kind": "tool_call", "spec": {"calls": calls}}, "tools": tools}, completion)
    return verdict.outcome, verdict.rule.removeprefix("tool_call.")


def said(*calls: tuple[str, Any]) -> list[dict[str, Any]]:
    made = [{"type": "function", "function": {"name": name, "arguments": arguments}} for name, arguments in calls]
    return [{"role": "assistant", "content": None, "tool_calls": made}]


@pytest.mark.parametrize(
    "completion",
    [
        said(("geo.f", {"a": 1})),
        said(("geo.f", '{"a": 2, "unit": "M S"}')),
        said(("geo.f", {"a": 1.0})),
        said(("geo_f", {"a": 1})),
        '<tool_call>\n{"name": "geo.f", "arguments": {"a": 1}}\n</tool_call>',
        'Let me see.\n```json\n[{"name": "geo.f", "arguments": {"a": 1}}]\n```',
        '{"name": "geo.f", "parameters": {"a": 1}}',
        "[geo.f(a=1)]",
        "geo.f(a=1, unit='m/s')",
        "<think>[geo.f(a=7)]</think>[geo.f(a=1)]",
        '<|python_tag|>{"name": "geo.f", "parameters": {"a": 1}}<|eom_id|>',
        '[TOOL_CALLS] [{"name": "geo.f", "arguments": {"a": 1}}]</s>',
        '<|tool_call|>[{"name": "geo.f", "arguments": {"a": 1}}]',
        '<function_call> {"name": "geo.f", "arguments": {"a": 1}} </function_call>',
        '<function=geo.f>{"a": 1}</function>',
        '<tool_call>{"name": "geo.f", "arguments": {"a": 1, "unit": "m/s"}}</tool_call>',
    ],
)
def test_an_accepted_call_passes_in_every_common_form(completion: Any) -> None:
    assert judge(completion) == ("pass", "calls")


def qwen(*calls: tuple[str, dict[str, str]]) -> str:
    written = [
        "\n".join(f"<parameter={key}>\n{value}\n</parameter>" for key, value in fields.items()) for _, fields in calls
    ]
    parts = zip(calls, written, strict=True)
    return "\n".join(f"<tool_call>\n<function={name}>\n{body}\n</function>\n</tool_call>" for (name, _), body in parts)


def glm(*calls: tuple[str, dict[str, str]]) -> str:
    written = [
        "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in fields.items())
        for _, fields in calls
    ]
    return "\n".join(f"<tool_call>{name}\n{body}</tool_call>" for (name, _), body in zip(calls, written, strict=True))


def minimax(*calls: tuple[str, dict[str, str]]) -> str:
    made = []
    for name, fields in calls:
        inside = "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in fields.items())
        made.append(f'<invoke name="{name}">\n{inside}</invoke>\n')
    return f"<minimax:tool_call>\n{''.join(made)}</minimax:tool_call>"


def objects(form: str, joint: str = "", around: str = "{}") -> Any:
    """A form whose arguments are JSON."""

    def write(*calls: tuple[str, dict[str, str]]) -> str:
        typed = [{key: json.loads(text) if key == "a" else text for key, text in fields.items()} for _, fields in calls]
        made = [
            form.replace("NAME", name).replace("JSON", json.dumps(one))
            for (name, _), one in zip(calls, typed, strict=True)
        ]
        return around.replace("{}", joint.join(made))

    return write


DEEPSEEK = "<｜tool▁calls▁begin｜>{}<｜tool▁calls▁end｜>"
FORMS = {
    "qwen": qwen,
    "glm": glm,
    "minimax": minimax,
    "deepseek_v3": objects(
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nJSON\n```<｜tool▁call▁end｜>", "\n", DEEPSEEK
    ),
    "deepseek_v31": objects("<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>JSON<｜tool▁call▁end｜>", "", DEEPSEEK),
    "kimi": objects(
        "<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>JSON<|tool_call_end|>",
        around="<|tool_calls_section_begin|>{}<|tool_calls_section_end|>",
    ),
    "mistral": objects("[TOOL_CALLS]NAME[ARGS]JSON", around="{}</s>"),
    "mistral_id": objects("[TOOL_CALLS]NAME[CALL_ID]a1B2c3D4e[ARGS]JSON"),
    "mistral_bare": objects("[TOOL_CALLS]NAMEJSON"),
    "gpt_oss": objects(
        "<|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>JSON<|call|>",
        around="<|channel|>analysis<|message|>Let me see.<|end|>{}",
    ),
    "gpt_oss_role": objects("<|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>JSON<|call|>"),
}
WRITERS = pytest.mark.parametrize("write", FORMS.values(), ids=FORMS)


@WRITERS
def test_calls_pass_in_the_tags_of_every_model_family(write: Any) -> None:
    right, other = ("geo_f", {"a": "1", "unit": "m/s"}), ("geo_f", {"a": "2"})
    assert judge(write(right)) == ("pass", "calls")
    assert judge(f"<think>{write(other)}</think>I look.\n{write(right)}") == ("pass", "calls")
    assert judge(write(("geo_f", {"a": "3"}))) == ("fail", "value")
    assert judge(write(right, other)) == ("fail", "count")
    assert judge(write(right, other), [*ACCEPTED, {"geo.f": {"a": [2]}}]) == ("pass", "calls")
    assert judge(write(("geo_g", {"a": "1"}))) == ("fail", "name")
    assert judge(write(("geo_f", {"b": "1"}))) == ("fail", "schema")


@WRITERS
def test_where_no_tool_fits_a_call_in_any_tags_fails(write: Any) -> None:
    text = write(("geo_f", {"a": "1"}))
    assert judge(f"Sure: {text}", calls=[]) == ("fail", "unwanted")
    assert {judge(text[:cut], calls=[])[0] for cut in range(text.index("geo_f") + 5, len(text))} == {"fail"}


@WRITERS
def test_half_a_call_and_calls_in_two_forms_fail(write: Any) -> None:
    text = write(("geo_f", {"a": "1"}))
    half = {judge(text[:cut])[0] for cut in range(len(text) // 3, text.rindex("1"))}
    assert half == {"fail"}
    for more in FORMS.values():
        assert judge(f"{text}\n{more(('geo_f', {'a': '2'}))}")[0] == "fail"
    assert judge(text + '\n<tool_call>{"name": "geo.f", "arguments": {"a": 2}}</tool_call>')[0] == "fail"


TYPES = {
    "s": {"type": "string"},
    "i": {"type": "integer"},
    "n": {"type": ["number", "null"]},
    "b": {"type": "boolean"},
    "l": {"type": "array"},
    "o": {"type": "object"},
    "e": {"enum": ["1", "2"]},
    "u": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    "x": {},
}


@pytest.mark.parametrize(
    ("argument", "text", "value"),
    [
        ("s", "5", "5"),
        ("s", "true", "true"),
        ("s", '{"a": 1}', '{"a": 1}'),
        ("s", "one\ntwo", "one\ntwo"),
        ("i", "5", 5),
        ("n", "5.5", 5.5),
        ("n", "null", None),
        ("b", "true", True),
        ("b", "True", True),
        ("l", '["a", 1]', ["a", 1]),
        ("l", "['a', 1]", ["a", 1]),
        ("o", '{"a": true}', {"a": True}),
        ("o", "{'a': True}", {"a": True}),
        ("e", "1", "1"),
        ("u", "5", 5),
        ("u", "five", "five"),
        ("x", "5", 5),
        ("x", "five", "five"),
    ],
)
@pytest.mark.parametrize("write", [qwen, glm, minimax])
def test_a_text_between_tags_is_read_by_the_type_in_the_schema(
    write: Any, argument: str, text: str, value: Any
) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": TYPES}}}]
    assert judge(write(("f", {argument: text})), [{"f": {argument: [value]}}], tools) == ("pass", "calls")
    wrong = 7 if isinstance(value, str) or value is None else str(value)
    assert judge(write(("f", {argument: text})), [{"f": {argument: [wrong]}}], tools)[0] == "fail"


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>\n<function=geo_f>\n<parameter=a>\n1\n</function>\n</tool_call>",
        "<tool_call>\n<function=geo_f>\n<parameter=a>1</parameter> and more</function>\n</tool_call>",
        "<function=geo_f><parameter=a>1</parameter><parameter=a>2</parameter></function>",
        "<function=geo_f>a=1</function>",
        "<tool_call>geo_f<arg_key>a</arg_key></tool_call>",
        "<tool_call>geo_f<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>a</arg_key><arg_value>2</arg_value></tool_call>",
        "<｜tool▁call▁begin｜>geo_f<｜tool▁sep｜>[1]<｜tool▁call▁end｜>",
        '<｜tool▁call▁begin｜>geo_f<｜tool▁sep｜>{"a": 7, "a": 1}<｜tool▁call▁end｜>',
        "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜><｜tool▁call▁begin｜>",
        "[TOOL_CALLS]geo_f[ARGS]a=1",
        '<|channel|>commentary to=functions.geo_f <|message|>{"a": 1',
    ],
)
def test_tags_that_cannot_be_read_are_malformed(text: str) -> None:
    assert judge(text) == ("fail", "malformed")


def test_a_call_of_nothing_is_a_name_alone() -> None:
    tools = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]
    for text in ("<tool_call>now</tool_call>", "<tool_call>\n<function=now>\n</function>\n</tool_call>"):
        assert judge(text, [{"now": {}}], tools) == ("pass", "calls")


@pytest.mark.parametrize(
    ("completion", "rule"),
    [
        (said(("geo.f", {"a": 3})), "value"),
        (said(("geo.f", {"a": 1, "unit": "km"})), "value"),
        (said(("geo.f", {"a": 1, "where": {}})), "value"),
        (said(("geo.f", {"a": True})), "schema"),
        (said(("geo.f", {"a": "1"})), "schema"),
        (said(("geo.f", {"unit": "m/s"})), "schema"),
        (said(("geo.f", {"a": 1, "b": 1})), "schema"),
        (said(("geo.g", {"a": 1})), "name"),
        (said(("geo.f", {"a": 1}), ("geo.f", {"a": 1})), "count"),
        (said(("geo.f", "{a: 1")), "malformed"),
        ("<tool_call>{oops</tool_call>", "malformed"),
        ("[geo.f(1)]", "malformed"),
        ("[geo.f(a=__import__('os').getpid())]", "malformed"),
        ("I would call geo.f with a=1.", "no_call"),
        ("", "no_call"),
    ],
)
def test_any_other_call_fails_and_the_rule_says_why(completion: Any, rule: str) -> None:
    assert judge(completion) == ("fail", rule)


def test_where_no_tool_fits_any_call_fails() -> None:
    assert judge("None of the tools can do that.", calls=[]) == ("pass", "none_fits")
    assert judge(said(("geo.f", {"a": 1})), calls=[]) == ("fail", "unwanted")


@pytest.mark.parametrize("calls", [None, "f", [1], [{}], [{"f": 1}], [{"f": {}, "g": {}}]])
def test_a_specification_that_is_none_is_undecided(calls: Any) -> None:
    assert judge("[f()]", calls=calls) == ("undecided", "unreadable_gold")


def test_parallel_calls_match_in_any_order_and_need_one_partner_each() -> None:
    accepted = [{"f": {"a": [1, 2]}}, {"f": {"a": [1]}}, {"f": {"a": [3]}}]
    for order in itertools.permutations([1, 2, 3]):
        assert judge(said(*(("f", {"a": a}) for a in order)), accepted, []) == ("pass", "calls")
    assert judge(said(("f", {"a": 2}), ("f", {"a": 2}), ("f", {"a": 3})), accepted, []) == ("fail", "value")


def test_fields_of_an_object_have_their_own_accepted_values() -> None:
    accepted = [{"f": {"where": [{"city": ["Rome", "Roma"], "zip": [1, ""]}]}}]
    assert judge(said(("f", {"where": {"city": "roma"}})), accepted, [])[0] == "pass"
    assert judge(said(("f", {"where": {"zip": 1}})), accepted, [])[0] == "fail"
    assert judge(said(("f", {"where": {"city": "Rome", "zip": 2}})), accepted, [])[0] == "fail"


def test_a_schema_that_the_accepted_call_breaks_is_not_applied() -> None:
    assert judge(said(("geo.f", {"unit": "m/s"})), [{"geo.f": {"a": [""], "unit": ["m/s"]}}]) == ("pass", "calls")


def test_a_reference_in_a_schema_is_never_fetched_and_the_schema_not_applied() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/schema"
        for schema in ({"properties": {"a": {"$ref": address}}}, {"$schema": address}, {"$ref": address}):
            tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", **schema}}}]
            assert judge(said(("f", {"a": 1})), [{"f": {"a": [1]}}], tools)[0] == "pass"
            assert judge(said(("f", {"a": 2})), [{"f": {"a": [1]}}], tools)[0] == "fail"
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_pattern_of_a_schema_cannot_run_away() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    assert judge(said(("f", {"a": "a" * 5000 + "b"})), [{"f": {"a": ["aa"]}}], tools) == ("fail", "schema")


@pytest.mark.parametrize("text", ["[f(a={1: 2})]", "[f(a='\\ud800')]", "[f(a=b'x')]", "[f(a=(1, 2))]", "[f(a=1j)]"])
def test_arguments_that_json_does_not_have_break_a_schema(text: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    assert judge(text, [{"f": {"a": [1]}}], tools)[0] == "fail"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(min_size=1, max_size=4),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(JSON, JSON)
def test_sameness_is_reflexive_and_symmetric(left: Any, right: Any) -> None:
    assert same(left, left)
    assert same(left, right) == same(right, left)


@pytest.mark.parametrize(
    "part", ["simple_python", "multiple", "parallel", "parallel_multiple", "simple_java", "irrelevance"]
)
def test_every_accepted_call_of_bfcl_passes_and_passes_where_no_tool_fits_only_unsaid(shared: Path, part: str) -> None:
    folder = shared / "data/bfcl_v4"
    answers = folder / f"possible_answer/BFCL_v4_{part}.json"
    lines = answers.read_text(encoding="utf-8").splitlines() if answers.exists() else []
    truth = {one["id"]: {"ground_truth": one["ground_truth"]} for one in map(json.loads, lines)}
    for record in map(json.loads, (folder / f"BFCL_v4_{part}.json").read_text(encoding="utf-8").splitlines()):
        drafts = bfcl(record | truth.get(record["id"], {}))
        kind, spec = drafts[0].verifier
        row = {"verifier": {"kind": kind, "spec": spec}, "tools": drafts[0].tools}
        calls = json.loads(drafts[1].messages[-1]["tool_calls"]) if len(drafts) > 1 else []
        said_so = [{"role": "assistant", "content": "No tool fits." if not calls else "", "tool_calls": calls}]
        assert verify(row, said_so).outcome == "pass", record["id"]
        more = [*calls, {"function": {"name": "other", "arguments": {}}}]
        assert verify(row, [{"role": "assistant", "tool_calls": more}]).outcome == "fail", record["id"]


@pytest.mark.parametrize(
    "text",
    [
        "Sure! geo.f(a=1)",
        "`geo_f(a=1)`",
        "```py\ngeo.f(1)\n```",
        'I call {"name": "other", "arguments": {"a": 1}} now',
        '{"name": "geo.f"}',
        '[{"name": "geo.f", "arguments": {"a": 1}}, {"note": 1}]',
        '[TOOL_CALLS] [{"name": "geo.f", "arguments": {"a": 1}}]',
        "<function=geo.f><parameter=a>1</parameter></function>",
        "<|python_tag|>geo.f.call(1)",
    ],
)
def test_where_no_tool_fits_a_call_in_any_dress_fails(text: str) -> None:
    assert judge(text, calls=[])[0] == "fail"


@pytest.mark.parametrize(
    "text", ["Neither geo.f nor others fit.", "geo.f() needs a number.", "A function f(a) is missing."]
)
def test_where_no_tool_fits_a_tool_may_be_named(text: str) -> None:
    assert judge(text, calls=[]) == ("pass", "none_fits")


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "geo.f", "arguments": {"a": 7, "a": 1}}</tool_call>',
        '<tool_call>{"name": "geo.g", "name": "geo.f", "arguments": {"a": 1}}</tool_call>',
        said(("geo.f", '{"a": 7, "a": 1}')),
        "[geo.f(a={[1]: 2})]",
        "<function=geo.f>[1]</function>",
    ],
)
def test_a_call_that_can_be_read_in_two_ways_or_none_fails(text: Any) -> None:
    assert judge(text) == ("fail", "malformed")


@pytest.mark.parametrize("tools", [5, True, {"geo.f": 1}, [5], [{"function": 5}], "geo.f"])
def test_tools_that_are_none_say_nothing_about_a_call(tools: Any) -> None:
    assert judge("[geo.f(a=1)]", tools=tools) == ("pass", "calls")
