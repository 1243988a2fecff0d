"""OpenAssistant's trees of ranked replies, in each of its exports: one record, many rows.

    {"message_tree_id", "prompt": {"text", "role", "replies": [{"rank", …}]}}    the tree export
    {"message_id", "text", "role": "prompter", "replies": […]}                   a first message, its replies inside
    {"message_tree_id", "group": [{"message_id", "parent_id", "text", …}]}       `group: message_tree_id` made of lines

A tree gives one SFT row along its best-ranked replies, and one preference row per prompt that has two or more ranked
replies: the best against the worst. Replies that were deleted or failed review take no part. What is known of each
message beside its text (labels, votes, who wrote it) stays in `extra.nodes`, in the order of the row's messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpusforge.shapes._draft import Draft, Message, Unrepresentable, maybe_json, string
from corpusforge.shapes.messages import ROLE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NODE: Final = frozenset(
    {"replies", "text", "role", "parent_id", "rank", "deleted", "review_result", "review_count", "synthetic"}
    | {"model_name", "lang", "labels", "emojis", "message_id"}
)
_TREE: Final = _NODE | {"prompt", "group"}
_SAID: Final = ("text", "role", "replies")
_MOST: Final = 100_000  # messages of a tree


def oasst(record: Mapping[str, Any]) -> list[Draft]:
    """A tree of ranked replies."""
    root = _root(record)
    _check_tree(root)
    if not _stands(root):
        raise Unrepresentable("tree_without_prompt")
    path = [root]
    while best := _ranked(path[-1]):
        path.append(best[0])
    while path and path[-1].get("role") != "assistant":
        path.pop()
    drafts = [_from_path("sft", path, record)] if path else []
    for prompt, replies in _compared(root, []):
        draft = _from_path("preference", prompt, record, replies)
        draft.chosen, draft.rejected = _said([replies[0]]), _said([replies[1]])
        drafts.append(draft)
    if not drafts:
        raise Unrepresentable("tree_without_reply")
    return drafts


def _root(record: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(record.get("group"), list):
        return _grown(record["group"])
    prompt = maybe_json(record.get("prompt"))
    return prompt if isinstance(prompt, dict) else dict(record)


def _grown(messages: list[Any]) -> dict[str, Any]:
    """The tree of messages that name their parents. Raises Unrepresentable unless they are one whole tree."""
    if not all(isinstance(one, dict) and isinstance(one.get("message_id"), str) for one in messages):
        raise Unrepresentable("tree_not_understood")
    nodes = {one["message_id"]: {**one, "replies": []} for one in messages}
    roots = [node for node in nodes.values() if node.get("parent_id") is None]
    if len(nodes) < len(messages) or len(roots) != 1 or len(nodes) > _MOST:
        raise Unrepresentable("tree_not_whole", messages=len(messages), roots=len(roots))
    for node in nodes.values():
        if node is not roots[0]:
            parent = nodes.get(node["parent_id"])
            if parent is None:
                raise Unrepresentable("tree_not_whole", messages=len(messages), roots=1)
            parent["replies"].append(node)
    if sum(1 for _ in _walk(roots[0])) < len(nodes):  # messages that are each other's parents
        raise Unrepresentable("tree_not_whole", messages=len(messages), roots=1)
    return roots[0]


def _walk(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node["replies"]


def _check_tree(node: Any) -> None:
    """Raise Unrepresentable unless every message of a tree has a text and a role, and replies and rank if any."""
    replies = node.get("replies") if isinstance(node, dict) else None
    if (
        not isinstance(node, dict)
        or not all(isinstance(node.get(name), str) for name in ("text", "role"))
        or not isinstance(node.get("rank"), (int, float, type(None)))
        or not isinstance(replies, (list, type(None)))
    ):
        raise Unrepresentable("tree_not_understood")
    for reply in replies or []:
        _check_tree(reply)


def _compared(
    node: dict[str, Any], above: list[dict[str, Any]]
) -> Iterator[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Every prompt of the tree (as the path to it) that has ranked replies, with its best and worst reply."""
    path = [*above, node]
    replies = _ranked(node)
    ranked = [reply for reply in replies if reply.get("rank") is not None]
    if node.get("role") == "prompter" and len(ranked) > 1 and ranked[0]["rank"] < ranked[-1]["rank"]:
        yield path, [ranked[0], ranked[-1]]
    for reply in replies:
        yield from _compared(reply, path)


def _ranked(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The replies that stand, best first; those without a rank last, in their order."""
    replies = [reply for reply in node.get("replies") or [] if _stands(reply)]
    return sorted(replies, key=lambda reply: (reply.get("rank") is None, reply.get("rank") or 0))


def _stands(node: dict[str, Any]) -> bool:
    return not node.get("deleted") and node.get("review_result") is not False


def _said(nodes: list[dict[str, Any]]) -> list[Message]:
    return [{"role": ROLE_NAMES.get(n["role"], n["role"]), "content": string(n, "text")} for n in nodes]


def _from_path(
    kind: str, path: list[dict[str, Any]], record: Mapping[str, Any], answers: list[dict[str, Any]] | None = None
) -> Draft:
    """A draft whose origin is that of the people and models who wrote its messages."""
    nodes = [*path, *(answers or [])]
    made = {bool(node.get("synthetic")) for node in nodes}
    models = sorted({str(node["model_name"]) for node in nodes if node.get("synthetic") and node.get("model_name")})
    known = [{key: value for key, value in node.items() if key not in _SAID} for node in nodes]
    return Draft(
        kind,
        _said(path),
        _TREE & record.keys(),
        origin="mixed" if len(made) == 2 else "synthetic" if made == {True} else "human",
        generator=", ".join(models) or None,
        language=path[0].get("lang") if isinstance(path[0].get("lang"), str) else None,
        extra={"message_ids": [node.get("message_id") for node in nodes], "nodes": known},
    )
