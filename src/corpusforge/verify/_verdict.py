"""What a verifier is asked and what it answers.

    Task("numeric", {"answer": "72"})  "…so 72 clips."  ->  Verdict("pass", 1.0, "numeric.last_number", 0.0001)

`undecided` is not a failure: the verifier could not tell (no gold answer, no confinement for code, a judge out of
time). It is counted apart, and a trainer gets None for it, never 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

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
        spec = _json(verifier.get("spec")) if "spec" in verifier else {}
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


def understood(completion: Any) -> Any:
    """The completion as a text or a list of messages; parts without a role are joined. None for what is neither.

    [{"type": "text", "text": "so "}, {"type": "text", "text": "72"}]  ->  "so 72"      b"72", None, ["72"]  ->  None
    """
    if isinstance(completion, str):
        return completion
    if not isinstance(completion, (list, tuple)) or not all(isinstance(one, Mapping) for one in completion):
        return None
    if completion and not any("role" in one for one in completion) and any("text" in one for one in completion):
        return _joined(completion)
    said = _last_said(completion)
    if said is None or said.get("content") is None:
        return completion  # nothing was said: an empty answer, or calls of tools alone
    content = said["content"]
    content = _joined(content) if isinstance(content, (list, tuple)) else content
    return completion if isinstance(content, str) else None


def text_of(completion: Any) -> str:
    """The text of a completion: of its last assistant message when it is a list of messages; content parts joined."""
    if isinstance(completion, str):
        return completion
    content = (_last_said(completion) or {}).get("content")
    if isinstance(content, (list, tuple)):
        return _joined(content) or ""
    return content if isinstance(content, str) else ""


def _last_said(messages: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return next((message for message in reversed(messages) if message.get("role") == "assistant"), None)


def _joined(parts: Sequence[Any]) -> str | None:
    """The texts of content parts; None where a part that should be a text is none."""
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts if _speaks(part)]
    said = [text for text in texts if isinstance(text, str)]
    return "".join(said) if len(said) == len(texts) else None


def _speaks(part: Any) -> bool:
    return not isinstance(part, Mapping) or part.get("type", "text") == "text"
