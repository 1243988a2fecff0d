"""Shapes of things that were said: chat messages, ShareGPT, prompt and completion, instructions, plain texts, ratings.

chat               {"messages": [{"role", "content"}, …], "tools"?, "system"?}     OpenAI's and Anthropic's forms
sharegpt           {"conversations": [{"from", "value"}, …], "system"?, "tools"?}
dialogue           {"conversation": ["Hello", "Hi", …]}                  turns alternate, user first
prompt_completion  {"prompt", "completion"}                             text or messages on both sides
alpaca             {"instruction", "input"?, "output"}                  also Dolly's context/response
instances          {"instruction", "instances": [{"input", "output"}]}  one row each
text               {"text"}                                             one assistant turn
completions        {"prompt", "completions": [{"response", "overall_score"}]}    one rated row each
rated              any of them with `rating` (number, or {value, scale, by}), `score` or a yes/no `label`
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from corpusforge.sample import canonical_json
from corpusforge.shapes._draft import (
    Draft,
    Message,
    Note,
    Notes,
    Unrepresentable,
    assistant,
    maybe_json,
    string,
    user,
)
from corpusforge.shapes.calls import tool_schemas
from corpusforge.shapes.messages import conversation, system

if TYPE_CHECKING:
    from collections.abc import Mapping

_SYSTEMS: Final = ("system", "system_prompt")
_NOTHING: Final[frozenset[str]] = frozenset()
_NUMBER: Final = re.compile(r"[-+]?\d{1,300}(?:\.\d+)?(?:[eE][-+]?\d{1,3})?")
_COMPLETIONS: Final = ("completions", "responses")
_ANSWERS: Final = ("response", "completion", "text", "content", "output")
_SCORES: Final = ("overall_score", "score", "rating", "reward")


def chat(record: Mapping[str, Any], field: str = "messages") -> list[Draft]:
    """Messages with role and content (OpenAI's form, Anthropic's, and their relatives)."""
    notes = Notes.of(record)
    messages = conversation(record[field], notes, field)
    messages, used = with_system(record, messages, notes)
    tools = next((name for name in ("tools", "functions") if record.get(name)), "tools")
    schemas = tool_schemas(record.get(tools))
    return [Draft("sft", messages, used | {field, tools}, tools=schemas, notes=notes, images=notes.images or None)]


def sharegpt(record: Mapping[str, Any]) -> list[Draft]:
    """Conversations with from and value."""
    return chat(
        record, next(name for name in ("conversations", "conversation", "dialogue", "dialog") if name in record)
    )


def dialogue(record: Mapping[str, Any]) -> list[Draft]:
    """A list of utterances that take turns, the user first."""
    field = next(name for name in ("conversation", "dialogue", "dialog") if name in record)
    turns = record[field]
    if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
        raise Unrepresentable("turns_not_text")
    messages = [user(turn) if number % 2 == 0 else assistant(turn) for number, turn in enumerate(turns)]
    code = record.get("language")
    language = code if isinstance(code, str) and len(code) in (2, 3) and code.islower() else None
    messages, system_field = with_system(record, messages, [])
    return [Draft("sft", messages, system_field | {field}, language=language)]


def prompt_completion(record: Mapping[str, Any]) -> list[Draft]:
    """A prompt and its completion, each a text or messages."""
    notes = Notes.of(record)
    answer = "completion" if "completion" in record else "response"
    messages = [
        *side(record["prompt"], "user", notes, "prompt"),
        *side(record[answer], "assistant", notes, answer),
    ]
    messages, used = with_system(record, messages, notes)
    tools = tool_schemas(record.get("tools"))
    return [
        Draft(
            "sft", messages, used | {"prompt", answer, "tools"}, tools=tools, notes=notes, images=notes.images or None
        )
    ]


def prompt_only(record: Mapping[str, Any]) -> list[Draft]:
    """A prompt without answer and checker: a task that cannot be scored yet."""
    notes = Notes.of(record)
    field = "prompt" if "prompt" in record else "question"
    messages, used = with_system(record, side(record[field], "user", notes, field), notes)
    tools = tool_schemas(record.get("tools"))
    return [Draft("task", messages, used | {field, "tools"}, tools=tools, notes=notes, images=notes.images or None)]


def side(value: Any, role: str, notes: list[Note], field: str) -> list[Message]:
    """One side of a pair as messages: a text is one turn of `role`."""
    if value is None or isinstance(value, str):
        made = maybe_json(value)
        if isinstance(made, list) and made and all(isinstance(m, dict) and "role" in m for m in made):
            return conversation(made, notes, field)
        return [{"role": role, "content": value} if value is not None else {"role": role}]
    if isinstance(value, dict):
        return conversation([value], notes, field)
    return conversation(value, notes, field)


def alpaca(record: Mapping[str, Any]) -> list[Draft]:
    """An instruction, perhaps an input, and the output. Instruction and input are joined by an empty line."""
    given = "input" if "input" in record else "context"
    answer = next(name for name in ("output", "response") if name in record)
    messages = _history(record.get("history"))
    messages += [user(_asked(record, record.get(given))), assistant(_text_or_none(record, answer))]
    messages, used = with_system(record, messages, [])
    return [Draft("sft", messages, used | {"instruction", given, answer, "history"})]


def instances(record: Mapping[str, Any]) -> list[Draft]:
    """An instruction with several input/output pairs: one row each."""
    pairs = maybe_json(record["instances"])
    if not isinstance(pairs, list) or not pairs or not all(isinstance(pair, dict) for pair in pairs):
        raise Unrepresentable("instances_not_objects")
    used = frozenset({"instruction", "instances"})
    made = []
    for pair in pairs:
        messages = [user(_asked(record, pair.get("input"))), assistant(string(pair, "output"))]
        left = {key: value for key, value in pair.items() if key not in ("input", "output")}
        made.append(Draft("sft", messages, used, extra={"instance": left} if left else {}))
    return made


def _asked(record: Mapping[str, Any], given: Any) -> str:
    instruction = string(record, "instruction")
    if given is None or given == "":
        return instruction
    if not isinstance(given, str):
        raise Unrepresentable("field_not_text", field="input")
    return f"{instruction}\n\n{given}"


def _history(value: Any) -> list[Message]:
    value = maybe_json(value) or []
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise Unrepresentable("history_not_pairs")
    if not all(isinstance(text, str) for pair in value for text in pair):
        raise Unrepresentable("history_not_pairs")
    return [turn for question, answer in value for turn in (user(question), assistant(answer))]


def text(record: Mapping[str, Any]) -> list[Draft]:
    """A plain text: one assistant turn, because it is what a model would learn to write."""
    field = "text" if "text" in record else "content"
    return [Draft("sft", [assistant(_text_or_none(record, field))], frozenset({field}))]


def completions(record: Mapping[str, Any]) -> list[Draft]:
    """A prompt with several answers, each with its score: one rated row per answer."""
    field = next(name for name in _COMPLETIONS if name in record)
    asked = "prompt" if "prompt" in record else "instruction"
    answers = maybe_json(record[field])
    if not isinstance(answers, list) or not answers or not all(isinstance(one, dict) for one in answers):
        raise Unrepresentable("instances_not_objects")
    made = []
    for answer in answers:
        score = next((name for name in _SCORES if answer.get(name) is not None), None)
        if score is None:
            raise Unrepresentable("field_missing", field="score")
        notes: list[Note] = []
        messages = [*side(record[asked], "user", notes, asked), assistant(string(answer, *_ANSWERS))]
        model = next((answer[name] for name in ("model", "generator") if isinstance(answer.get(name), str)), None)
        kept = {key: value for key, value in answer.items() if key not in (score, *_ANSWERS)}
        draft = Draft("sft", messages, frozenset({asked, field}), generator=model, notes=notes)
        draft.extra = {"answer": kept} if kept else {}
        made += rated(answer, [draft], score)
    return made


def rated(record: Mapping[str, Any], inner: list[Draft], field: str) -> list[Draft]:
    """Drafts of another shape, with the record's rating."""
    value = maybe_json(record[field])
    value = said_number(value) if isinstance(value, str) else value
    rating: dict[str, Any] = dict.fromkeys(("value", "scale", "by"))
    left: dict[str, Any] = {}
    if isinstance(value, dict):
        rating |= {"scale": _name(value.get("scale")), "by": _name(value.get("by"))}
        left = {key: inner for key, inner in value.items() if key not in rating}
        value = value.get("value")
    if isinstance(value, bool):
        rating["scale"] = rating["scale"] or "yes/no"
    elif value is not None and not isinstance(value, (int, float)):
        raise Unrepresentable("rating_not_a_number", field=field)
    rating["value"] = _finite(value) if value is not None else None
    if value is not None and rating["value"] != value:
        left["value"] = value  # more digits than a double has
    for draft in inner:
        draft.kind, draft.rating, draft.used = "rated", rating, draft.used | {field}
        draft.extra |= {field: left} if left else {}
    return inner


def said_number(text: str) -> float | bool | str:
    """The number, or the yes or no, that a cell of a table says; the text itself where it says neither."""
    if text in ("true", "True", "false", "False"):
        return text in ("true", "True")
    return float(text) if _NUMBER.fullmatch(text) else text


def _finite(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise Unrepresentable("number_out_of_range") from None
    if not math.isfinite(number):
        raise Unrepresentable("nan_or_infinity")
    return number


def _name(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else canonical_json(value)


def _text_or_none(record: Mapping[str, Any], field: str) -> str | None:
    return None if record.get(field) is None else string(record, field)


def with_system(
    record: Mapping[str, Any], messages: list[Message], notes: list[Note]
) -> tuple[list[Message], frozenset[str]]:
    """The messages behind the record's own system prompt, where it has one, and the fields that this takes in."""
    stated = [field for field in _SYSTEMS if field in record]
    if not stated:
        return messages, _NOTHING
    empty = {field for field in stated if record[field] in (None, "", [])}
    field = next((field for field in stated if field not in empty), None)
    if field is None:
        return messages, frozenset(empty)
    if not isinstance(record[field], (str, list)):
        raise Unrepresentable("field_not_text", field=field)
    first = system(record[field], notes)
    return messages if messages[:1] == [first] else [first, *messages], frozenset({field, *empty})
