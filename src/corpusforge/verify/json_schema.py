r"""json_schema: the completion is JSON that obeys a schema. Spec: {"schema": {"type": "object", …}, "around"?: true}.

The JSON stands bare, or in one fenced block; reasoning before it is left out, and of `<answer>…</answer>` the inside
counts. Anything else around it fails, unless `around` is true: then the last fenced block counts, or the whole text.
JSON is read strictly (RFC 8259): a name given twice, NaN and Infinity fail.

    schema {"type": "object", "required": ["a"]}    {"a": 1}  pass    [1]  fail    {"a": 1, "a": 2}  fail

Schemas are draft 2020-12 where `$schema` names no other draft; jsonschema (MIT) decides, in a worker process with hard
limits (`_limits`), since a `pattern` can take for ever. No `$ref` is ever fetched: a schema that needs
one outside of itself is undecided. `format` is a remark, as the standard has it. A gold value is `{"const": …}`.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import MissingExtra
from corpusforge.verify import _limits
from corpusforge.verify._final import spoken
from corpusforge.verify._verdict import Task, Verdict, failed, passed, text_of, undecided

if TYPE_CHECKING:
    from collections.abc import Sequence

_LANGUAGES: Final = ("", "json", "jsonc", "json5")  # what may stand behind the three backticks
_FENCE: Final = "```"
_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)
_DEEPEST: Final = 100  # brackets inside of each other
_LONGEST: Final = 4_000_000  # characters of JSON that are read
_MOST_DIGITS: Final = 1_000  # of one number
_DECIDE: Final = "corpusforge.verify.json_schema:decide"
_UNDECIDED: Final = ("unreadable_schema", "unresolved_ref", "schema_too_deep")


class _Wrong(ValueError):
    """What is wrong with the JSON; the message is the last part of a rule."""


def check(task: Task, completion: Any) -> Verdict:
    """Pass when the JSON is valid by the schema. Raises MissingExtra without jsonschema."""
    schema, around = task.spec.get("schema"), task.spec.get("around", False) is True
    if not isinstance(schema, (Mapping, bool)):
        return undecided("json_schema.unreadable_schema")
    _need_jsonschema()
    text = _written(text_of(completion), around)
    if len(text) > _LONGEST:
        return failed("json_schema.too_long")
    try:
        word = _decided(schema, text)
    except _limits.Exceeded as over:
        return (failed if over.own else undecided)(f"json_schema.{over.reason}")
    if word in _UNDECIDED:
        return undecided(f"json_schema.{word}")
    return passed("json_schema.valid") if word == "valid" else failed(f"json_schema.{word}")


def check_many(tasks: Sequence[Task], completions: Sequence[Any]) -> list[Verdict]:
    """The verdicts of `check`, over all workers."""
    return _limits.spread(check, tasks, completions)


def _decided(schema: Any, text: str) -> Any:
    """What a worker says. Raises Exceeded: the text's own fault where no pattern of the schema could be at fault."""
    if _has_pattern(schema):
        return _limits.call(_DECIDE, schema, text)
    return _limits.hold(_DECIDE, (schema, text), (schema, "null"))


def _has_pattern(schema: Any) -> bool:
    """Whether a schema holds a regular expression, which can run away by its own fault."""
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            if "pattern" in one or "patternProperties" in one:
                return True
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return False


@cache
def _need_jsonschema() -> None:
    if find_spec("jsonschema") is None:
        raise MissingExtra("jsonschema is not installed", hint="pip install 'corpusforge[verify]'")


def _written(completion: str, around: bool) -> str:
    """The text that has to be JSON: what stands in the fence, else all of it."""
    text = spoken(completion)[0].strip()
    if around:
        return (_blocks(text) or [text])[-1]
    if len(text) < 6 or not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    language, newline, inside = text[3:-3].partition("\n")
    return inside.strip() if newline and language.strip().lower() in _LANGUAGES else text


def _blocks(text: str) -> list[str]:
    """What stands in the fenced blocks of JSON. A fence ends a line: three backticks inside of a string are none."""
    blocks: list[str] = []
    opened: tuple[int, bool] | None = None  # where the block begins, and whether it is one of JSON
    at = 0
    for line in text.split("\n"):
        end = at + len(line) + 1
        if opened is None and line.count(_FENCE) % 2:
            opened = (end, line.rpartition(_FENCE)[2].strip().lower() in _LANGUAGES)
        elif opened is not None and line.rstrip().endswith(_FENCE):
            if opened[1]:
                blocks.append(text[opened[0] : at + line.rindex(_FENCE)].strip())
            opened = None
        at = end
    return blocks


def prepare() -> None:
    """In the worker, before the first call and outside its limits: what takes long to import."""
    importlib.import_module("jsonschema")


def decide(schema: Any, text: str) -> str:
    """In the worker: `valid`, `invalid`, or the last part of the rule that says why there is nothing to decide on."""
    validator = _validator(schema)
    if validator is None:
        return "unreadable_schema"
    try:
        value = read(text)
    except _Wrong as wrong:
        return str(wrong)
    from referencing.exceptions import Unresolvable

    try:
        return "valid" if validator.is_valid(value) else "invalid"
    except Unresolvable:
        return "unresolved_ref"
    except RecursionError:
        return "schema_too_deep"


def read(text: str) -> Any:
    """A JSON text as a value, strictly. Raises ValueError whose message says why not."""
    if not text:
        raise _Wrong("no_answer")
    if text.count("[") + text.count("{") > _DEEPEST and _depth(text) > _DEEPEST:
        raise _Wrong("too_deep")
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_refuse, parse_int=_integer, parse_float=_real)
    except _Wrong:
        raise
    except ValueError:
        raise _Wrong("malformed") from None


def _depth(text: str) -> int:
    depth = deepest = 0
    for match in _BRACKET.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        deepest = max(deepest, depth)
    return deepest


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _Wrong("duplicate_key")
    return fields


def _refuse(_: str) -> None:
    raise _Wrong("malformed")


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise _Wrong("too_long")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if len(digits) > _MOST_DIGITS or math.isinf(value):
        raise _Wrong("too_long")
    return value


def _validator(schema: Any) -> Any:
    """The validator of a schema's own draft, 2020-12 where it names none; None for what is no schema."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import extend, validator_for
    from jsonschema_specifications import REGISTRY

    dialect = Draft202012Validator
    if isinstance(schema, dict) and "$schema" in schema:
        named = isinstance(schema["$schema"], str)
        with warnings.catch_warnings():  # of a draft that it does not know
            warnings.simplefilter("ignore")
            dialect = validator_for(schema, default=None) if named else None
    if dialect is None:
        return None
    try:
        dialect.check_schema(schema)
        exact = extend(dialect, {"multipleOf": _multiple_of, "uniqueItems": _unique_items})
        return exact(schema, registry=REGISTRY)  # the drafts' own schemas, and nothing that could be fetched
    except (SchemaError, RecursionError, TypeError, ValueError, re.error):
        return None


def _multiple_of(validator: Any, step: Any, value: Any, _schema: Any) -> Iterator[Any]:
    """In decimals: 0.07 is seven times 0.01, and a number of hundreds of digits is compared all the same."""
    from jsonschema.exceptions import ValidationError

    if validator.is_type(value, "number") and Fraction(str(value)) % Fraction(str(step)):
        yield ValidationError("no multiple")


def _unique_items(validator: Any, asked: Any, value: Any, _schema: Any) -> Iterator[Any]:
    """By hashes: comparing each with each takes longer than the limit for some thousand objects."""
    from jsonschema.exceptions import ValidationError

    if asked and validator.is_type(value, "array") and len(set(map(_hashable, value))) < len(value):
        yield ValidationError("not unique")


def _hashable(value: Any) -> Any:
    """A JSON value as one that is equal, and hashes alike, where JSON says equal: 1 is 1.0, and true is not 1."""
    if isinstance(value, dict):
        return "object", frozenset((name, _hashable(one)) for name, one in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_hashable, value))
    return ("boolean", value) if isinstance(value, bool) else value
