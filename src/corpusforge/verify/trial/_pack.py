"""Plain data as bytes and back, between processes that do not trust each other.

    [1, "a"]  ->  b"l2;i1;1s1;a"

A letter, a length or a number, then what is inside. Not pickle or marshal, which run or believe what they read, and not
JSON, which has no tuples, sets, bytes or exact integers. What is read back is of built-in types and a few of the
standard library's, whatever the bytes are; nothing in them names code to run.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

DEEPEST: Final = 200  # levels of nesting that are read; more is no answer


def pack(value: Any, export: Callable[[Any], bytes]) -> bytes:
    """A value as bytes; `export` says what stands for a part that is not plain data."""
    out: list[bytes] = []
    _pack(value, out, export)
    return b"".join(out)


def _pack(value: Any, out: list[bytes], export: Callable[[Any], bytes]) -> None:
    kind = type(value)
    if kind in SIMPLE:
        out.append(SIMPLE[kind](value))
    elif kind in _MANY:
        out.append(b"%s%d;" % (_MANY[kind], len(value)))
        for item in value:
            _pack(item, out, export)
    elif kind is dict:
        out.append(b"d%d;" % len(value))
        for key, item in value.items():
            _pack(key, out, export)
            _pack(item, out, export)
    elif kind is type and value in _TYPE_NAMES:
        out.append(_sized(b"y", _TYPE_NAMES[value]))
    elif (portable := _PORTABLE.get(f"{kind.__module__}.{kind.__qualname__}")) and (parts := portable(value)):
        out.append(b"p")
        _pack((f"{kind.__module__}.{kind.__qualname__}", parts), out, export)
    else:
        out.append(export(value))


def _sized(letter: bytes, data: bytes) -> bytes:
    return b"%s%d;%s" % (letter, len(data), data)


SIMPLE: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda _: b"n0;",
    bool: lambda v: b"o%d;" % v,
    int: lambda v: _sized(b"i", format(v, "x").encode()),
    float: lambda v: _sized(b"f", v.hex().encode()),
    complex: lambda v: _sized(b"c", f"{v.real.hex()} {v.imag.hex()}".encode()),
    str: lambda v: _sized(b"s", v.encode("utf-8", "surrogatepass")),
    bytes: lambda v: _sized(b"b", v),
    bytearray: lambda v: _sized(b"a", bytes(v)),
}
_TYPES: Final[dict[bytes, type]] = {n.encode(): kind for n, kind in vars(builtins).items() if isinstance(kind, type)}
_TYPE_NAMES: Final = {kind: name for name, kind in _TYPES.items()}
_MANY: Final[dict[type, bytes]] = {list: b"l", tuple: b"t", set: b"e", frozenset: b"z"}
_PORTABLE: Final[dict[str, Callable[[Any], tuple[Any, ...]]]] = {
    "builtins.range": lambda v: (v.start, v.stop, v.step),
    "decimal.Decimal": lambda v: (str(v),),
    "fractions.Fraction": lambda v: (v.numerator, v.denominator),
    "datetime.date": lambda v: (v.year, v.month, v.day),
    "datetime.timedelta": lambda v: (v.days, v.seconds, v.microseconds),
    "datetime.datetime": lambda v: (*v.timetuple()[:6], v.microsecond) if v.tzinfo is None else (),
    "collections.deque": lambda v: (list(v), v.maxlen),
}
_SCALARS: Final[dict[bytes, Callable[[bytes], Any]]] = {
    b"i": lambda d: int(d, 16),
    b"f": lambda d: float.fromhex(d.decode()),
    b"c": lambda d: complex(*map(float.fromhex, d.decode().split(" "))),
    b"s": lambda d: d.decode("utf-8", "surrogatepass"),
    b"b": lambda d: d,
    b"a": bytearray,
    b"y": lambda d: _TYPES[d],
}
_GATHER: Final[dict[bytes, Callable[[list[Any]], Any]]] = {b"l": list, b"t": tuple, b"e": set, b"z": frozenset}


def unpack(data: bytes, meet: Callable[[bytes, int, Any], Any]) -> Any:
    """The value that bytes stand for; `meet` gives what a number stands for. Raises ValueError for no such bytes."""
    reader = _Reader(data, meet)
    value = reader.value(0)
    if reader.at != len(data):
        raise ValueError("bytes left over")
    return value


class _Reader:
    def __init__(self, data: bytes, meet: Callable[[bytes, int, Any], Any]) -> None:
        self.data, self.at, self.meet = data, 0, meet

    def value(self, depth: int) -> Any:
        letter = self.data[self.at : self.at + 1]
        self.at += 1
        if depth > DEEPEST:
            raise ValueError("nested too deeply")
        if letter == b"p":
            name, parts = self.value(depth + 1)
            if name not in _PORTABLE or type(parts) is not tuple:
                raise ValueError("no such type")
            module, _, kind = name.partition(".")
            return getattr(__import__(module), kind)(*parts)
        end = self.data.index(b";", self.at)
        count = int(self.data[self.at : end])
        if count < 0:
            raise ValueError("a negative length")
        self.at = end + 1
        return self._counted(letter, count, depth + 1)

    def _counted(self, letter: bytes, count: int, depth: int) -> Any:
        if letter in _SCALARS:
            self.at += count
            return _SCALARS[letter](self.data[self.at - count : self.at])
        if letter in _GATHER:
            return _GATHER[letter]([self.value(depth) for _ in range(count)])
        if letter == b"d":
            return {self.value(depth): self.value(depth) for _ in range(count)}
        if letter == b"n":
            return None
        if letter == b"o":
            return bool(count)
        return self.meet(letter, count, self.value(depth) if letter == b"k" else None)
