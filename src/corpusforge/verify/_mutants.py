"""Programs with one small fault: what tests have to notice (mutation analysis, DeMillo, Lipton and Sayward 1978).

    "def f(a, b): return a + b if a < b else a"   ->   a - b;   not a < b;   a <= b;   return None; …

Which faults are tried follows from a hash of the program: the same ones in every run. Nothing inside a `while` is
touched, where a small fault is most often an endless loop, and nothing in an annotation.
"""

from __future__ import annotations

import ast
import hashlib
from typing import TYPE_CHECKING, Final

from corpusforge.verify._python import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

_FLIPPED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_SHIFTED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip
_SWAPPED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
}  # fmt: skip


def mutants(code: str, most: int) -> list[tuple[str, str]]:
    """Up to `most` programs, each with the name of its fault; different kinds of faults first. [] for no Python."""
    tree = parsed(code)
    if tree is None:
        return []
    sites = [(number, fault) for number, node in enumerate(_nodes(tree)) for fault in _faults(node)]
    sites.sort(key=lambda site: hashlib.blake2b(f"{site} {code}".encode("utf-8", "replace")).digest())
    ranked: list[tuple[int, str]] = []
    while sites:
        first = {fault: number for number, fault in reversed(sites)}  # of each kind the first that is left
        round_ = [site for site in sites if first[site[1]] == site[0]]
        ranked += round_
        sites = [site for site in sites if site not in round_]
    plain, found = ast.unparse(tree), dict[str, str]()
    for number, fault in ranked:
        changed = _with(code, number, fault)
        if changed not in (plain, *found):
            found[changed] = fault
        if len(found) == most:
            break
    return [(fault, changed) for changed, fault in found.items()]


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that may be changed, always in the same order."""
    yield tree
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "format_spec"):
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.AST) and not isinstance(one, ast.While):
                yield from _nodes(one)


def _faults(node: ast.AST) -> list[str]:
    """Names of the faults that a node can have."""
    if isinstance(node, ast.Compare):
        return ["comparison"] * (type(node.ops[0]) in _FLIPPED) + ["boundary"] * (type(node.ops[0]) in _SHIFTED)
    if isinstance(node, ast.BinOp):
        return ["arithmetic"] * (type(node.op) in _SWAPPED)
    if isinstance(node, ast.Constant):
        return ["constant"] * (type(node.value) in (int, float))
    if isinstance(node, ast.BoolOp):
        return ["connective"]
    if isinstance(node, ast.If | ast.IfExp):
        return ["condition"]
    if isinstance(node, ast.Return):
        return ["nothing returned"] * (node.value is not None)
    is_range = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
    return ["off by one"] * is_range


def _with(code: str, number: int, fault: str) -> str:
    """The program with this fault in the node of this number."""
    tree = ast.parse(code)
    node = next(node for place, node in enumerate(_nodes(tree)) if place == number)
    match node:
        case ast.Compare():
            node.ops[0] = (_FLIPPED if fault == "comparison" else _SHIFTED)[type(node.ops[0])]()
        case ast.BinOp():
            node.op = _SWAPPED[type(node.op)]()
        case ast.Constant(value=int() | float() as value):
            node.value = value + 1
        case ast.BoolOp():
            node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        case ast.If() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Return():
            node.value = ast.Constant(None)
        case ast.Call() if node.args and not isinstance(node.args[-1], ast.Starred):
            end = min(len(node.args), 2) - 1
            node.args[end] = ast.BinOp(node.args[end], ast.Add(), ast.Constant(1))
    return ast.unparse(ast.fix_missing_locations(tree))
