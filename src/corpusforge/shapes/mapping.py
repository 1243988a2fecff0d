"""Own mappings: the fields of a record under the names that its shape knows.

    fields: {question: data.q, id: uid}                                   where each field stands
    fields: {messages: {path: "turns[*]", role: speaker, content: said, roles: {CLIENT: user}}}
    fields: {text: {template: "{given_name} {surname}, {suburb}"}}        several fields in one text
    fields: {rating: {path: verdict, values: {good: 1, bad: 0}}}          their words for our values
    fields: {system: {value: "Answer in French."}}                        the same for every record

What a mapping takes leaves its old place, unless its path goes into single elements of a list; a field that stood under
the mapped name goes to `extra` as it was. Names of provenance (`id`, `license`, …) are told apart from those of the
shape, and what they take stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from string import Formatter
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic import Field, model_validator

from corpusforge.shapes._draft import Unrepresentable, json_text, maybe_json
from corpusforge.shapes.paths import lookup, steps, without
from corpusforge.stages._stage import StageConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROVENANCE: Final = (
    *("id", "license", "restrictions", "origin", "generator", "parents", "depth", "created", "domain", "language"),
)
"""Names of a mapping that say where a record comes from, not what it holds."""
Scalar = str | int | float | bool | None


class FieldRule(StageConfig):
    """Where one field comes from, when a path alone does not say it."""

    path: str | None = None
    """Where it stands: `data.q`, `turns[0].text`, `turns[*].text` for a list of them."""
    value: Scalar = None
    """A constant, the same for every record."""
    template: str | None = None
    """A text with paths in braces: `{title}, by {author.name}`. What a record lacks leaves its place empty."""
    role: str | None = None
    """Messages: the field of each turn that says who speaks (default: role)."""
    content: str | None = None
    """Messages: the field of each turn that holds what is said (default: content)."""
    roles: dict[str, str] = Field({})
    """Messages: their names of roles to ours."""
    values: dict[str, Scalar] = Field({})
    """Their values to ours; a record with any other value is quarantined."""
    optional: bool = False
    """Whether none of the first thousand records need have it."""

    @model_validator(mode="after")
    def _check_rule(self) -> Self:
        given = self.model_fields_set & {"path", "value", "template"}
        if len(given) != 1:
            raise ValueError("say one of path, value and template")
        turned = self.model_fields_set & {"role", "content", "roles", "values"}
        if "path" not in given and turned:
            raise ValueError(f"{min(turned)} goes with path")
        if self.values and (self.role or self.content or self.roles):
            raise ValueError("values are not for messages; roles names their speakers")
        if self.template is not None and not template_fields(self.template):
            raise ValueError(f"template {self.template!r} names no field; for a constant write value")
        for path in (self.path, self.role, self.content):
            if path is not None:
                steps(path)
        return self


@dataclass(frozen=True, slots=True)
class Mapped:
    """A record as its shape sees it, the provenance that it states, and fields whose names were needed."""

    record: Mapping[str, Any]
    stated: Mapping[str, Any]
    displaced: Mapping[str, Any]


_EMPTY: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True)
class Fields:
    """A mapping, ready to be applied to records."""

    rules: Mapping[str, str | FieldRule]
    targets: frozenset[str] = field(init=False)
    """Mapped names that the shape reads."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", frozenset(self.rules) - set(PROVENANCE))

    def apply(self, record: Mapping[str, Any]) -> Mapped:
        """The record under the shape's names. Raises Unrepresentable where a value has no counterpart."""
        if not self.rules:
            return Mapped(record, _EMPTY, _EMPTY)
        taken: dict[str, Any] = {}
        stated: dict[str, Any] = {}
        left: dict[str, Any] = dict(record)
        for target, rule in self.rules.items():
            found = _found(record, target, rule)
            if found is None:
                continue
            if target in PROVENANCE:
                stated[target] = found
                continue
            taken[target] = found
            for path in _paths(rule):
                left = without(left, path)
        displaced = {name: left.pop(name) for name in taken if name in left}
        return Mapped({**left, **taken}, stated, displaced)

    def places(self) -> Iterator[tuple[str, str]]:
        """Every path that the mapping looks at and the name that it is for, optional ones left out."""
        for target, rule in self.rules.items():
            if isinstance(rule, str):
                yield target, rule
            elif not rule.optional:
                yield from ((target, path) for path in _paths(rule))
                inner = [rule.role or "role", rule.content or "content"] if _is_messages(rule) else []
                base = rule.path if str(rule.path).endswith("[*]") else f"{rule.path}[*]"
                yield from ((target, f"{base}.{name}") for name in inner)


def template_fields(template: str) -> list[str]:
    """Paths in the braces of a template. Raises ValueError for braces that hold something else."""
    found = []
    for _, name, spec, conversion in Formatter().parse(template):
        if name is None:
            continue
        if not name or spec or conversion:
            raise ValueError(f"in template {template!r}, write a field's path between braces, and {{{{ for a brace")
        steps(name)
        found.append(name)
    return found


def _paths(rule: str | FieldRule) -> list[str]:
    if isinstance(rule, str):
        return [rule]
    return template_fields(rule.template) if rule.template is not None else [rule.path] if rule.path else []


def _is_messages(rule: FieldRule) -> bool:
    return bool(rule.role or rule.content or rule.roles)


def _found(record: Mapping[str, Any], target: str, rule: str | FieldRule) -> Any:
    if isinstance(rule, str):
        return lookup(record, rule)
    if rule.template is not None:
        return _joined(record, rule.template)
    if rule.path is None:
        return rule.value
    found = lookup(record, rule.path)
    if found is None:
        return None
    if _is_messages(rule):
        return _messages(found, target, rule)
    return _valued(found, target, rule.values) if rule.values else found


def _joined(record: Mapping[str, Any], template: str) -> str | None:
    """The template filled in; None where the record has none of its fields. What is no text is written as JSON."""
    pieces, any_there = [], False
    for text, name, _, _ in Formatter().parse(template):
        pieces.append(text)
        found = lookup(record, name) if name else None
        if found is not None:
            any_there = True
            pieces.append(found if isinstance(found, str) else json_text(found))
    return "".join(pieces) if any_there else None


def _valued(found: Any, target: str, values: Mapping[str, Any]) -> Any:
    if isinstance(found, list):
        return [_valued(one, target, values) for one in found]
    key = _key(found)
    if key not in values:
        raise Unrepresentable("value_not_mapped", field=target)
    return values[key]


def _key(value: Any) -> str:
    """A value as a key of YAML that is read as text: `true`, `1`, `hateful`."""
    return value if isinstance(value, str) else json_text(value)


def _messages(found: Any, target: str, rule: FieldRule) -> list[Any]:
    turns = maybe_json(found)
    if not isinstance(turns, list):
        raise Unrepresentable("messages_not_a_list", field=target)
    return [_message(maybe_json(turn), rule) for turn in turns]


def _message(turn: Any, rule: FieldRule) -> Any:
    if not isinstance(turn, dict):
        return turn
    names = {"role": rule.role or "role", "content": rule.content or "content"}
    made = {name: lookup(turn, path) for name, path in names.items()}
    if rule.roles and made["role"] is not None:
        made["role"] = rule.roles.get(_key(made["role"]), made["role"])
    left: dict[str, Any] = turn
    for path in names.values():
        left = without(left, path)
    return {**{f"source_{key}" if key in made else key: value for key, value in left.items()}, **made}
