"""Shapes of tasks whose answer is a text or a number that can be checked.

    verifier         {"prompt", "verifier": {"kind", …}}                        taken as it is
    question_answer  {"question", "answer"}              numeric or exact; GSM8K's "… #### 72" is numeric 72
    math             {"problem", "solution", "answer"?}  math: the answer, or what the solution puts in its last box
    ifeval           {"prompt", "instruction_id_list", "kwargs"}                instructions
    reasoning_gym    {"question", "answer", "metadata"}  reasoning_gym: its own scorer, with the whole entry
    longchat         {"prompt", "topics", "prompt_length"}                      exact: the first topic

`choices` has multiple choice, `code` has tasks with tests, `tools` has tool calls.
A worked solution stays in `extra.solution`: it is what a model learns from, and never the gold answer itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from corpusforge.shapes._draft import (
    Draft,
    Note,
    Unrepresentable,
    json_text,
    maybe_json,
    string,
    user,
    verifier,
)
from corpusforge.shapes.calls import tool_schemas
from corpusforge.shapes.conversations import side

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBER: Final = re.compile(r"[-+]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?")
_FINAL: Final = re.compile(r"####[ \t]*([^\n]*?)\s*$")


def verified(record: Mapping[str, Any]) -> list[Draft]:
    """A prompt with its verifier."""
    notes: list[Note] = []
    given = maybe_json(record["verifier"])
    if not isinstance(given, dict) or not isinstance(given.get("kind"), str):
        raise Unrepresentable("verifier_without_kind")
    spec = (
        maybe_json(given["spec"]) if set(given) == {"kind", "spec"} else {k: v for k, v in given.items() if k != "kind"}
    )
    field = next((name for name in ("prompt", "messages", "question") if name in record), None)
    if field is None:
        raise Unrepresentable("field_missing", field="prompt")
    used = frozenset({field, "verifier", "tools"} & record.keys())
    checker = (given["kind"], json_text(spec))
    tools = tool_schemas(record.get("tools"))
    return [Draft("task", side(record[field], "user", notes, field), used, verifier=checker, tools=tools, notes=notes)]


def question_answer(record: Mapping[str, Any]) -> list[Draft]:
    """A question and its answer."""
    notes: list[Note] = []
    field = "question" if "question" in record else "prompt"
    answer = record["answer"]
    used = frozenset({field, "answer"})
    prompt = side(record[field], "user", notes, field)
    if isinstance(answer, str) and (final := _FINAL.search(answer)):
        return [Draft("task", prompt, used, verifier=gold(final[1]), extra={"solution": answer}, notes=notes)]
    return [Draft("task", prompt, used, verifier=gold(answer), notes=notes)]


def gold(answer: Any) -> tuple[str, str]:
    """The verifier of a bare answer: `numeric` for a number (thousands separators removed), else `exact`."""
    if isinstance(answer, (int, float)) and not isinstance(answer, bool):
        return verifier("numeric", answer=json_text(answer))
    if isinstance(answer, str):
        plain = answer.strip().removeprefix("$").strip()
        if _NUMBER.fullmatch(plain):
            return verifier("numeric", answer=plain.replace(",", ""))
    return verifier("exact", answer=answer)


def math(record: Mapping[str, Any]) -> list[Draft]:
    """A problem with a worked solution."""
    field = "problem" if "problem" in record else "question"
    solution = record.get("solution")
    answer = record.get("answer")
    if answer is None and isinstance(solution, str):
        final = _FINAL.search(solution)
        answer = final[1] if final else last_box(solution)
    used = frozenset({field, "solution", "answer"} & record.keys())
    extra = {"solution": solution} if solution is not None else {}
    checker = verifier("math", answer=answer if answer is None or isinstance(answer, str) else json_text(answer))
    return [Draft("task", [user(string(record, field))], used, verifier=checker, extra=extra, domain="math")]


def last_box(solution: str) -> str | None:
    r"""What stands inside the last \boxed{…} of a solution, braces matched; None without one."""
    start = solution.rfind("\\boxed{")
    if start < 0:
        return None
    depth = 0
    for at in range(start + 6, len(solution)):
        depth += {"{": 1, "}": -1}.get(solution[at], 0)
        if depth == 0:
            return solution[start + 7 : at]
    return None


def ifeval(record: Mapping[str, Any]) -> list[Draft]:
    """A prompt with verifiable instructions."""
    names, arguments = maybe_json(record["instruction_id_list"]), maybe_json(record.get("kwargs"))
    if not isinstance(names, list) or not isinstance(arguments, list) or len(names) != len(arguments):
        raise Unrepresentable("instructions_do_not_match")
    listed = [{"id": name, "kwargs": given} for name, given in zip(names, arguments, strict=True)]
    used = frozenset({"prompt", "instruction_id_list", "kwargs"})
    return [
        Draft("task", [user(string(record, "prompt"))], used, verifier=verifier("instructions", instructions=listed))
    ]


def reasoning_gym(record: Mapping[str, Any]) -> list[Draft]:
    """A generated puzzle; its scorer needs the entry as it was made."""
    entry = {name: record.get(name) for name in ("question", "answer", "metadata")}
    metadata = entry["metadata"] if isinstance(entry["metadata"], dict) else {}
    dataset = metadata.get("source_dataset", record.get("task"))
    checker = verifier("reasoning_gym", dataset=dataset, answer=record.get("answer"), entry=entry)
    used = frozenset({"question", "answer", "metadata"} & record.keys())
    return [Draft("task", [user(string(record, "question"))], used, verifier=checker, domain="reasoning")]


def longchat(record: Mapping[str, Any]) -> list[Draft]:
    """A long conversation in one text, which asks for its first topic."""
    topics = maybe_json(record["topics"])
    if not isinstance(topics, list) or not topics or not isinstance(topics[0], str):
        raise Unrepresentable("field_not_texts", field="topics")
    checker = verifier("exact", answer=topics[0], ignore_case=True)
    return [Draft("task", [user(string(record, "prompt"))], frozenset({"prompt"}), verifier=checker)]
