r"""Python text as data: the code in a completion, and what tests need from a solution. Nothing is run.

"Sure:\n```python\ndef add(a, b): …\n```"  ->  "def add(a, b): …"
"assert add(1, 2) == 3"                     ->  names {"add"}, one assertion
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import symtable
import sys
import textwrap
import threading
import warnings
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify._final import spoken
from corpusforge.verify._verdict import text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_FENCE: Final = re.compile(
    r"^[ \t]*(?P<ticks>```+|~~~+)[ \t]*(?P<tag>[\w+-]*)[^\n]*\n(?P<code>.*?)(?:^[ \t]*(?P=ticks)[ \t]*$|\Z)",
    re.M | re.S,
)
_LINES: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")  # lines as Python's parser counts them
_TAGS: Final = ("", "python", "py", "python3", "pycon", "ipython")
_QUIET: Final = threading.Lock()  # the list of warning filters belongs to the whole process


def parsed(text: str) -> ast.Module | None:
    """The syntax tree, or None for what is no Python. A completion's own warnings are its own business."""
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def said(completion: Any) -> str:
    """The text of a completion without its reasoning."""
    text = text_of(completion)
    return spoken(text)[0] if "<think>" in text or "</think>" in text else text


def code_of(completion: str, names: Collection[str]) -> str | None:
    """The code in a completion: the last fenced block that defines one of `names`, else the last fenced block.

    Without any block it is the whole text, if that is Python; else None. Blocks of other languages do not count.
    """
    blocks = [found["code"] for found in _FENCE.finditer(completion) if found["tag"].lower() in _TAGS]
    if blocks:
        return next((block for block in reversed(blocks) if names and defined(block) & set(names)), blocks[-1])
    whole = parsed(completion)
    return completion if whole is not None and whole.body else None


def completed(prompt: str, completion: str, name: str) -> str | None:
    """The program that a completion makes of a prompt: the prompt ends inside the function `name`.

    A completion is the whole function, in a block or bare, or its body, indented or not. None where there is no code.
    """
    code = code_of(completion, [name])
    if code is not None and name in defined(code):
        whole = f"{prompt}\n    pass\n\n{code}"  # what the prompt imports and defines beside it is still needed
        return whole if parsed(whole) is not None else code
    body = (completion if code is None else code).strip("\n")
    if not body.strip():
        return None
    bodies = [textwrap.indent(textwrap.dedent(body), "    "), f"    {body}"]  # the second: its first line was stripped
    candidates = [f"{prompt}\n{one}\n" for one in ([body, *bodies] if body[0].isspace() else bodies)]
    return next((one for one in candidates if parsed(one) is not None), None)


def beside(prompt: str, name: str) -> str:
    r"""What a prompt that ends inside the function `name` defines beside it, say a helper. Nothing if it is no Python.

    "import math\ndef half(x): return x / 2\ndef f(x):"  ->  "import math\n\ndef half(x): …"
    """
    tree = parsed(f"{prompt}\n    pass\n")
    kept = [] if tree is None else [node for node in tree.body if getattr(node, "name", None) != name]
    return "\n".join(map(ast.unparse, kept))


def defined(text: str) -> set[str]:
    """Names that a text binds at its top: functions, classes, assignments, imports."""
    table = _symbols(text)
    return set() if table is None else {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}


@functools.lru_cache(maxsize=32)
def _symbols(text: str) -> symtable.SymbolTable | None:
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return symtable.symtable(text, "", "exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def needed(texts: Sequence[str], own: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """What tests use and do not bind themselves: names of the solution, and modules of the standard library.

    A built-in name counts as the solution's only if it is in `own`: else a solution could bring its own `abs`.
    A module is one that is used with a dot: `math.isclose` is Python's, `bisect(…)` is the solution's.
    """
    text = "\n".join(texts)
    used = set(_free(text)) - defined(text)
    dotted = {n.value.id for n in _walk(text) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)}
    modules = {name for name in used & dotted if name in sys.stdlib_module_names} - set(own)
    names = {name for name in used - modules if name in own or not hasattr(builtins, name)}
    return sorted(names), sorted(modules)


def _free(text: str) -> Iterator[str]:
    tables = [table for table in [_symbols(text)] if table is not None]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        top = table.get_type() == "module"
        yield from (s.get_name() for s in table.get_symbols() if s.is_referenced() and (top or s.is_global()))


def _walk(text: str) -> Iterator[ast.AST]:
    tree = parsed(text)
    return iter(()) if tree is None else ast.walk(tree)


def marked(test: str, mark: str, number: int) -> tuple[str, bool] | None:
    """A test that calls `mark(number)` when an assertion held; and whether it has any. None for what is no Python.

    The call is put behind the assertion on its line: `assert f(1) == 2; mark(0)`.
    """
    tree = parsed(test)
    if tree is None:
        return None
    ends = sorted((n.end_lineno or 0, n.end_col_offset or 0) for n in ast.walk(tree) if isinstance(n, ast.Assert))
    lines = [line.encode("utf-8", "surrogatepass") for line in _LINES.findall(test)] if ends else []
    for line, column in reversed(ends):
        whole = lines[line - 1]
        lines[line - 1] = b"%b; %b(%d)%b" % (whole[:column], mark.encode(), number, whole[column:])
    return (b"".join(lines).decode("utf-8", "surrogatepass") if ends else test), bool(ends)


def imports(text: str) -> list[str]:
    """The import statements at the top of a text, one a line."""
    tree = parsed(text)
    return [] if tree is None else [ast.unparse(n) for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
