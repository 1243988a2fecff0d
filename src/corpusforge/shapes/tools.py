"""Questions and dialogues with functions to call: BFCL's items, call lists beside a question, schema-guided dialogues.

    bfcl            {"question": [[turn, …], …], "function", "ground_truth"?}     tool_call; and an SFT row that calls
    function_calls  {"query", "tools", "answers": [{"name", "arguments"}]}        the same, for one question
    sgd             {"dialogue_id", "services", "turns": [{"speaker", "utterance", "frames"}]}      an SFT row

BFCL keeps its accepted calls in a file apart (`options: {answers: FILE}`), and SGD its services
(`options: {schemas: FILE}`, which become the dialogue's tools).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from corpusforge.shapes._draft import Draft, Message, Note, Unrepresentable, json_text, maybe_json, string, verifier
from corpusforge.shapes.calls import tool_calls, tool_schemas
from corpusforge.shapes.conversations import side
from corpusforge.shapes.messages import conversation

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVICES: Final = "service_schemas"
"""The field under which the schemas of a dialogue's services stand in its record."""


def bfcl(record: Mapping[str, Any]) -> list[Draft]:
    """A question with functions to call and the calls that are accepted; a task for each of its turns.

    Where calls are expected, an SFT row makes them, with the first accepted value of each argument. A question that no
    function fits (`irrelevance`) expects no call, and gives the task alone. What the functions would have returned is
    not in the data: in a question of several turns, the next turn follows on the call.
    """
    notes: list[Note] = []
    turns = _turns(record["question"], notes)
    tools = tool_schemas(record["function"])
    truth = maybe_json(record.get("ground_truth"))
    if truth is None and "irrelevance" not in str(record.get("id", "")):
        raise Unrepresentable("no_accepted_answer")
    accepted = [truth or []] if len(turns) == 1 else truth
    if not isinstance(accepted, list) or len(accepted) != len(turns):
        raise Unrepresentable("accepted_call_not_understood")
    used = frozenset({"question", "function", "ground_truth"} & record.keys())
    drafts: list[Draft] = []
    said: list[Message] = []
    parameters = _parameters(record["function"])
    for turn, calls in zip(turns, accepted, strict=True):
        said = [*said, *turn]
        if not isinstance(calls, list):
            raise Unrepresentable("accepted_call_not_understood")
        wanted = [_wanted(call, parameters) for call in calls]
        checker, noted = verifier("tool_call", calls=wanted), [] if drafts else notes
        drafts.append(Draft("task", said, used, verifier=checker, tools=tools, domain="tools", notes=noted))
        if wanted:
            made = json_text([_expected(call) for call in wanted])
            said = [*said, {"role": "assistant", "content": "", "tool_calls": made}]
    if said[-1].get("tool_calls"):
        drafts.append(Draft("sft", said, used, tools=tools, domain="tools"))
    return drafts


def _turns(question: Any, notes: list[Note]) -> list[list[Message]]:
    given = maybe_json(question)
    if isinstance(given, str):
        return [side(given, "user", notes, "question")]
    if isinstance(given, list) and given and all(isinstance(turn, list) for turn in given):
        return [conversation(turn, notes, "question") for turn in given]
    return [conversation(given, notes, "question")]


def _parameters(functions: Any) -> dict[str, list[str]]:
    """Names of the parameters of each function, in their order."""
    found = {}
    listed = maybe_json(functions)
    for function in listed if isinstance(listed, list) else [listed]:
        inner = maybe_json(function)
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            schema = maybe_json(inner.get("parameters"))
            properties = maybe_json(schema.get("properties")) if isinstance(schema, dict) else None
            found[inner["name"]] = list(properties) if isinstance(properties, dict) else []
    return found


def _wanted(call: Any, parameters: Mapping[str, list[str]]) -> dict[str, Any]:
    """An accepted call as `{name: {argument: [accepted values]}}`; several-turn questions write it as Python does."""
    if isinstance(call, str):
        return _written(call, parameters)
    if not isinstance(call, dict) or len(call) != 1 or not all(isinstance(v, dict) for v in call.values()):
        raise Unrepresentable("accepted_call_not_understood")
    return call


def _written(text: str, parameters: Mapping[str, list[str]]) -> dict[str, Any]:
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if not isinstance(node, ast.Call):
            raise Unrepresentable("accepted_call_not_understood")
        name = ast.unparse(node.func)
        names = parameters.get(name, [])[: len(node.args)]
        if len(names) < len(node.args) or any(keyword.arg is None for keyword in node.keywords):
            raise Unrepresentable("accepted_call_not_understood")
        given = {one: ast.literal_eval(value) for one, value in zip(names, node.args, strict=True)}
        given |= {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        if isinstance(error, Unrepresentable):
            raise
        raise Unrepresentable("accepted_call_not_understood") from None
    return {name: {one: [value] for one, value in given.items()}}


def _expected(call: dict[str, Any]) -> dict[str, Any]:
    ((name, accepted),) = call.items()
    return {"type": "function", "function": {"name": name, "arguments": _first_of_each(accepted)}}


def _first_of_each(accepted: dict[str, Any]) -> dict[str, Any]:
    """The first accepted value of each argument; one whose first value is "" (may be left out) is left out."""
    chosen = {name: values[0] if isinstance(values, list) and values else values for name, values in accepted.items()}
    return {name: _inner(value) for name, value in chosen.items() if value != ""}


def _inner(value: Any) -> Any:
    """Objects inside accepted values list the accepted values of their own fields."""
    if isinstance(value, dict):
        return _first_of_each(value) if all(isinstance(v, list) for v in value.values()) else value
    return [_inner(one) for one in value] if isinstance(value, list) else value


def function_calls(record: Mapping[str, Any]) -> list[Draft]:
    """A question, its tools, and the calls that answer it."""
    notes: list[Note] = []
    prompt = side(record["query"], "user", notes, "query")
    tools = tool_schemas(record["tools"])
    calls = tool_calls(maybe_json(record["answers"]), notes)
    functions = [call["function"] for call in calls]
    if not all(isinstance(function["arguments"], dict) for function in functions):
        raise Unrepresentable("accepted_call_not_understood")
    wanted = [{f["name"]: {name: [value] for name, value in f["arguments"].items()}} for f in functions]
    used = frozenset({"query", "tools", "answers"})
    checker = verifier("tool_call", calls=wanted)
    drafts = [Draft("task", prompt, used, verifier=checker, tools=tools, domain="tools", notes=notes)]
    if calls:
        said = {"role": "assistant", "content": "", "tool_calls": json_text(calls)}
        drafts.append(Draft("sft", [*prompt, said], used, tools=tools, domain="tools"))
    return drafts


_SPEAKERS: Final = {"USER": "user", "SYSTEM": "assistant"}


def sgd(record: Mapping[str, Any]) -> list[Draft]:
    """A schema-guided dialogue: a service call and its results stand before the turn that tells of them."""
    turns = maybe_json(record["turns"])
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, dict) for turn in turns):
        raise Unrepresentable("messages_not_a_list", field="turns")
    messages: list[Message] = []
    for turn in turns:
        speaker = turn.get("speaker")
        frames = turn.get("frames") or []
        if not isinstance(frames, list) or not all(isinstance(frame, dict) for frame in frames):
            raise Unrepresentable("frames_not_objects")
        called = [frame for frame in frames if frame.get("service_call")]
        if called:
            calls = [_service_call(frame) for frame in called]
            messages.append({"role": "assistant", "tool_calls": json_text(tool_calls(calls, []))})
            results = [json_text(frame.get("service_results", [])) for frame in called]
            messages += [{"role": "tool", "content": result} for result in results]
        messages.append({"role": _SPEAKERS.get(str(speaker), str(speaker)), "content": string(turn, "utterance")})
    tools = _services(record.get(SERVICES))
    used = frozenset({"turns", SERVICES})
    return [Draft("sft", messages, used, tools=tools, domain="tools", extra={"turns": [_left(turn) for turn in turns]})]


def _left(turn: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations of a turn: all that its messages do not say."""
    called = ("service_call", "service_results")
    frames = [{k: v for k, v in frame.items() if k not in called} for frame in turn.get("frames") or []]
    return {**{k: v for k, v in turn.items() if k not in ("speaker", "utterance", "frames")}, "frames": frames}


def _service_call(frame: Mapping[str, Any]) -> dict[str, Any]:
    call = frame["service_call"]
    if not isinstance(call, dict) or not isinstance(call.get("parameters"), dict):
        raise Unrepresentable("tool_call_not_an_object")
    return {"name": call.get("method"), "arguments": call["parameters"]}


def _services(schemas: Any) -> str | None:
    """The intents of services as tools: their slots are the parameters."""
    if not isinstance(schemas, list):
        return None
    tools = []
    for schema in schemas:
        if not isinstance(schema, dict) or not all(isinstance(schema.get(n), list) for n in ("slots", "intents")):
            raise Unrepresentable("tool_not_an_object")
        slots = {slot["name"]: slot for slot in schema["slots"]}
        tools += [_intent(intent, slots) for intent in schema["intents"]]
    return tool_schemas(tools)


def _intent(intent: dict[str, Any], slots: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    optional = intent.get("optional_slots") or {}
    required = list(intent.get("required_slots") or [])
    properties = {}
    for name in [*required, *optional]:
        slot = slots.get(name, {})
        schema: dict[str, Any] = {"type": "string"}
        if slot.get("description"):
            schema["description"] = slot["description"]
        if slot.get("is_categorical") and slot.get("possible_values"):
            schema["enum"] = slot["possible_values"]
        if name in optional:
            schema["default"] = optional[name]
        properties[name] = schema
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": intent["name"], "description": intent.get("description", ""), "parameters": parameters}
