"""How the process that runs a solution and the process that runs the tests talk: in values, never in objects.

The judge holds a `Remote` in place of the function under test. Calling it sends the arguments over; what comes back is
built anew from plain data, so `==`, `in`, `<` and `repr` in a test are Python's own on Python's own types, and nothing
that a solution defines (an `__eq__` that says yes, a patched `assert`) is ever asked whether the solution is right.

    f([3, 1])  ->  ?call, f, ([3, 1],), {}   ->   =True, [1, 3], "", {}    ->  [1, 3]

What is not plain data (a generator, an instance, a class) stays where it is and is reached through a `Remote` of its
own: called, iterated, indexed, asked for an attribute, shown; never compared. Instances of subclasses of built-in types
(a named tuple, a Counter) come as the base type that they are, with their text.

This file, `_pack`, `_solver` and `_judge` run inside confinement and import nothing that costs time to import.
"""

from __future__ import annotations

import builtins
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify.trial._pack import SIMPLE, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Wire:
    """Frames over two file descriptors: four bytes of length, then the bytes."""

    def __init__(self) -> None:
        """Take standard input and output over; what is printed from now on goes nowhere."""
        self._in, self._out, self._kept = os.dup(0), os.dup(1), b""
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)

    def read(self) -> bytes:
        """The next frame. Ends the process when there is none: the other side is gone."""
        return self._take(int.from_bytes(self._take(4), "big"))

    def write(self, frame: bytes) -> None:
        """Send a frame."""
        data = memoryview(len(frame).to_bytes(4, "big") + frame)
        while data:
            data = data[os.write(self._out, data) :]

    def _take(self, count: int) -> bytes:
        parts, missing = [self._kept], count - len(self._kept)
        while missing > 0:
            part = os.read(self._in, max(missing, 65536))
            if not part:
                os._exit(0)
            parts.append(part)
            missing -= len(part)
        data = b"".join(parts)
        self._kept = data[count:]
        return data[:count]


class Remote:
    """Something on the other side. Two of them are equal only when they are the same thing."""

    def __init__(self, peer: Peer, number: int) -> None:
        object.__setattr__(self, "_at", (peer, number))

    def _ask(self, what: str, *details: Any) -> Any:
        peer: Peer = object.__getattribute__(self, "_at")[0]
        return peer.ask(what, self, *details)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ask("call", args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return self._ask("get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._ask("set", name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._ask("item", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._ask("put", key, value)

    def __len__(self) -> int:
        return int(self._ask("len"))

    def __iter__(self) -> Any:
        return self._ask("iter")

    def __next__(self) -> Any:
        return self._ask("next")

    def __bool__(self) -> bool:
        return bool(self._ask("bool"))

    def __repr__(self) -> str:
        return str(self._ask("repr"))

    def __str__(self) -> str:
        return str(self._ask("str"))


class Mirror:
    """An instance of a subclass of a built-in type, as the base type: it compares as that, and is shown as itself."""

    _told: tuple[Remote, str, str]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._told[0], name)

    def __repr__(self) -> str:
        return self._told[1]

    def __str__(self) -> str:
        return self._told[2]


_BASES: Final[dict[type, Callable[[Any], Any]]] = {
    int: lambda v: int(int.__format__(v, "x"), 16),
    float: lambda v: float.fromhex(float.hex(v)),
    str: lambda v: str.__getitem__(v, slice(None)),
    bytes: lambda v: bytes.__getitem__(v, slice(None)),
    list: lambda v: [*list.__iter__(v)],
    tuple: lambda v: (*tuple.__iter__(v),),
    set: lambda v: {*set.__iter__(v)},
    frozenset: lambda v: frozenset(frozenset.__iter__(v)),
    dict: lambda v: {key: dict.__getitem__(v, key) for key in dict.__iter__(v)},
}
ACTS: Final[dict[str, Callable[..., Any]]] = {
    "call": lambda it, args, kwargs: it(*args, **kwargs),
    "get": getattr,
    "set": setattr,
    "item": lambda it, key: it[key],
    "put": lambda it, key, value: it.__setitem__(key, value),
    "len": len,
    "iter": iter,
    "next": next,
    "bool": bool,
    "repr": repr,
    "str": str,
}


class Peer:
    """One side of the conversation: asks for things to be done with objects over there, and does them with its own.

    wire   frames
    acts   what this side does when it is asked to, by name; the judge does little
    hear   takes what was printed over there
    said   gives what was printed here since it was last called
    """

    def __init__(
        self, wire: Wire, acts: Iterable[str], hear: Callable[[str], Any] = str, said: Callable[[], str] = str
    ) -> None:
        self.wire, self.hear, self.said = wire, hear, said
        self.acts: dict[str, Callable[..., Any]] = {name: ACTS[name] for name in acts}
        self.calls = 0
        """How often something over there was called."""
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._remotes: dict[int, Remote] = {}

    def ask(self, what: str, *details: Any) -> Any:
        """Have something done over there, and do what is asked of this side meanwhile. Raises what it raised there."""
        self.calls += what == "call"
        self.wire.write(b"?" + self.dump((what, details)))
        while (frame := self.wire.read())[:1] == b"?":
            self.answer(frame)
        fine, value, printed, changed = self.load(frame[1:])
        self.hear(str(printed))
        if what == "call":
            _change(details[1], changed)
        if fine:
            return value
        raise _error(*value)

    def answer(self, frame: bytes) -> None:
        """Do what a frame asks for, and send what came of it."""
        try:
            what, details = self.load(frame[1:])
            before = self._mutable(details[1]) if what == "call" else {}
            value = self.acts[what](*details)
            after = self._mutable(details[1]) if what == "call" else {}
            changed = {at: details[1][at] for at in before if before[at] != after.get(at)}
            reply = self.dump((True, value, self.said(), changed))
        except BaseException as error:  # noqa: BLE001 - whatever a solution raises is an answer, SystemExit too
            reply = self.dump((False, _described(error), self.said(), {}))
        self.wire.write(b"=" + reply)

    def dump(self, value: Any) -> bytes:
        """A value as bytes."""
        return pack(value, self._export)

    def load(self, data: bytes) -> Any:
        """The value that bytes stand for."""
        return unpack(data, self._meet)

    def _mutable(self, args: tuple[Any, ...]) -> dict[int, bytes]:
        """Arguments that a call may change, as bytes: where they change, the caller's are changed too."""
        return {at: self.dump(arg) for at, arg in enumerate(args) if type(arg) in (list, dict, set, bytearray)}

    def _export(self, value: Any) -> bytes:
        if isinstance(value, Mirror):
            value = value._told[0]
        if type(value) is Remote:
            return b"h%d;" % object.__getattribute__(value, "_at")[1]
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)
        number = b"%d;" % self._numbers[id(value)]
        base = next((base for base in _BASES if isinstance(value, base)), None)
        if base is None or isinstance(value, type):
            return b"r" + number
        return b"k" + number + self.dump((type(value).__name__, _BASES[base](value), repr(value), str(value)))

    def _meet(self, letter: bytes, number: int, details: Any) -> Any:
        if letter == b"h":
            return self._objects[number]
        if letter not in (b"r", b"k"):
            raise ValueError("no such letter")
        remote = self._remotes.setdefault(number, Remote(self, number))
        if letter == b"r":
            return remote
        name, value, shown, text = details
        if type(value) not in _BASES:
            raise ValueError("no such base")
        mirror = type(str(name), (Mirror, type(value)), {})(value)
        mirror._told = (remote, str(shown), str(text))
        return mirror


def _change(args: tuple[Any, ...], changed: dict[int, Any]) -> None:
    for at, new in changed.items():
        old = args[at]
        if type(old) is not type(new):
            raise TypeError("an argument changed its type")
        if isinstance(old, (list, bytearray)):
            old[:] = new
        else:
            old.clear()
            old.update(new)


def _described(error: BaseException) -> tuple[Any, ...]:
    """An exception as data: module, name, its nearest built-in class, arguments and text."""
    kind = type(error)
    base = next(name for name in (c.__name__ for c in kind.__mro__ if c.__module__ == "builtins"))
    try:
        args = tuple(arg for arg in error.args if type(arg) in SIMPLE)
        text = str(error)
    except Exception:  # noqa: BLE001 - its own text fails
        args, text = (), ""
    return kind.__module__, kind.__qualname__, base, args, text


def _error(module: str, name: str, base: str, args: tuple[Any, ...], text: str) -> Exception:
    """The exception that was raised over there: the same class if it is built in, else one of its name and base."""
    known = getattr(builtins, str(base), Exception)
    if not (isinstance(known, type) and issubclass(known, Exception)):
        known = Exception  # SystemExit and the like do not end the judge
    if (module, name) == ("builtins", known.__name__):
        try:
            return known(*args)
        except TypeError:
            pass
    made: type[Exception] = type(str(name), (known,), {"__module__": str(module), "__str__": lambda _: str(text)})
    return made.__new__(made)


def printed_text() -> Callable[[], str]:
    """Catch what is printed from now on: a function that gives it, once."""
    import io

    caught = sys.stdout = io.StringIO()

    def said() -> str:
        text = caught.getvalue() if not caught.closed else ""
        if text:
            caught.seek(0)
            caught.truncate()
        return text

    return said
