"""What a verifier is asked and what it answers.

    Task("numeric", {"answer": "72"})  "…so 72 clips."  ->  Verdict("pass", 1.0, "numeric.last_number", 0.0001)

`undecided` is not a failure: the verifier could not tell (no gold answer, no confinement for code, a judge out of
time). It is counted apart, and a trainer gets None for it, never 0.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Outcome = Literal["pass", "fail", "undecided"]
Completion = "str | Sequence[Mapping[str, Any]]"
"""A text, or the messages that a chat trainer hands over: `[{"role": "assistant", "content": …}]`."""


@dataclass(frozen=True)
class Verdict:
    """The answer of a verifier. Never holds a text of the task or of the completion."""

    outcome: Outcome
    score: float | None
    """0 to 1; 1 for a pass, 0 for a fail unless the kind grades finer, None when undecided."""
    rule: str
    """What decided: `numeric.last_number`, `code.tests`, `code.timeout`, `math.unparsable_gold`, …"""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def passed(rule: str, score: float = 1.0) -> Verdict:
    """A pass."""
    return Verdict("pass", score, rule)


def failed(rule: str, score: float = 0.0) -> Verdict:
    """A fail; `score` below 1 where the kind grades."""
    return Verdict("fail", score, rule)


def undecided(rule: str) -> Verdict:
    """The verifier cannot tell."""
    return Verdict("undecided", None, rule)


@dataclass(frozen=True)
class Task:
    """How an answer is checked: a kind, its specification, and what the prompt offered."""

    kind: str
    spec: Mapping[str, Any]
    prompt: Sequence[Mapping[str, Any]] = ()
    tools: Sequence[Mapping[str, Any]] = field(default_factory=tuple)

    @classmethod
    def of(cls, row: Task | Mapping[str, Any]) -> Task:
        """A task from a line of a task shard (`verifier_kind`, `verifier_spec`, …), a row (`verifier`), or itself.

        A specification that cannot be read gives a task of the kind `unreadable`, on which nothing can be decided.
        """
        if isinstance(row, Task):
            return row
        verifier = row.get("verifier") or {"kind": row.get("verifier_kind"), "spec": row.get("verifier_spec")}
        prompt = _json(row.get("prompt") or row.get("messages") or [])
        if isinstance(prompt, str):
            prompt = [{"role": "user", "content": prompt}]
        if set(verifier) - {"kind", "spec"}:
            verifier = {"kind": verifier["kind"], "spec": {k: v for k, v in verifier.items() if k != "kind"}}
        spec = _json(verifier.get("spec"))
        if not isinstance(verifier.get("kind"), str) or not isinstance(spec, dict):
            return cls("unreadable", {})
        return cls(verifier["kind"], spec, [_json(message) for message in prompt], _json(row.get("tools")) or [])


def _json(value: Any) -> Any:
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def text_of(completion: Any) -> str:
    """The text of a completion: of its last assistant message when it is a list of messages; content parts joined."""
    if isinstance(completion, str):
        return completion
    said = [message for message in completion if message.get("role") == "assistant"]
    content = said[-1].get("content") if said else ""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
