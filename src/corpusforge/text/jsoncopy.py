r"""JSON values copied from bytes to bytes as `json.dumps` would write them, strictly checked; compiled.

    { "a" : "\u00e9\/" , "b" : [ 1 , true ] }   ->   {"a":"é/","b":[1,true]}

Whatever is not valid JSON, or would not come out of a parser and an encoder as these kernels write it (half a surrogate
pair, a number with an exponent, a zero too many or more digits than a double keeps), is refused: the place behind it is
-1 then. Bytes are taken to be UTF-8. A key that stands twice is not looked for: `jsonscan` finds it.
"""

from __future__ import annotations

from typing import Any, Final

import numba as nb
import numpy as np

from corpusforge.text.jsontext import DEEPEST
from corpusforge.text.kernels import Bytes, T, jit

BYTES: Final = T.Array(nb.uint8, 1, "C", readonly=True)
OUT: Final = nb.uint8[::1]
_PLACES: Final = T.UniTuple(nb.int64, 2)
_FRACTION: Final = 15  # characters of a number with a point that a double keeps
_WHOLE: Final = 18  # characters of an integer: longer ones are rare


@jit(nb.int64(BYTES, nb.int64, nb.int64))
def skip(data: Bytes, at: int, end: int) -> int:
    """The next byte that is no blank."""
    while at < end and (data[at] == 32 or data[at] == 9 or data[at] == 13 or data[at] == 10):
        at += 1
    return at


@jit(nb.int64(BYTES, nb.int64, nb.int64))
def _hex(data: Bytes, at: int, end: int) -> Any:
    """The number of four hexadecimal digits; -1 for others."""
    if at + 4 > end:
        return -1
    number = np.int64(0)
    for place in range(at, at + 4):
        sign = data[place]
        if 48 <= sign <= 57:
            digit = np.int64(sign) - 48
        elif 97 <= sign <= 102:
            digit = np.int64(sign) - 87
        elif 65 <= sign <= 70:
            digit = np.int64(sign) - 55
        else:
            return -1
        number = number * 16 + digit
    return number


@jit(nb.int64(nb.uint8))
def _short(sign: Any) -> Any:
    """What a short escape stands for; -1 for none."""
    if sign == 34 or sign == 92 or sign == 47:
        return np.int64(sign)
    if sign == 110:
        return 10
    if sign == 116:
        return 9
    if sign == 114:
        return 13
    if sign == 98:
        return 8
    return 12 if sign == 102 else -1


@jit(nb.int64(OUT, nb.int64, nb.int64))
def _put_utf8(out: Any, to: int, code: int) -> int:
    if code < 0x80:
        out[to] = code
        return to + 1
    if code < 0x800:
        out[to] = 0xC0 | code >> 6
        to += 1
    else:
        if code < 0x10000:
            out[to] = 0xE0 | code >> 12
            to += 1
        else:
            out[to] = 0xF0 | code >> 18
            out[to + 1] = 0x80 | code >> 12 & 0x3F
            to += 2
        out[to] = 0x80 | code >> 6 & 0x3F
        to += 1
    out[to] = 0x80 | code & 0x3F
    return to + 1


@jit(nb.int64(OUT, nb.int64, nb.int64))
def _put_escaped(out: Any, to: int, code: int) -> Any:
    """A character as JSON text has it."""
    if code >= 32 and code != 34 and code != 92:
        return _put_utf8(out, to, code)
    out[to] = 92
    letter = code
    if code == 10:
        letter = 110
    elif code == 9:
        letter = 116
    elif code == 13:
        letter = 114
    elif code == 8:
        letter = 98
    elif code == 12:
        letter = 102
    elif code < 32:
        out[to + 1], out[to + 2], out[to + 3] = 117, 48, 48
        out[to + 4] = 48 + (code >> 4)
        low = code & 15
        out[to + 5] = 48 + low if low < 10 else 87 + low
        return to + 6
    out[to + 1] = letter
    return to + 2


@jit(_PLACES(BYTES, nb.int64, nb.int64))
def _escape(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """The character that the backslash at `at` begins, and the bytes it takes; -1 for none."""
    if at + 1 >= end:
        return -1, 0
    if data[at + 1] != 117:
        return _short(data[at + 1]), 2
    code = _hex(data, at + 2, end)
    if code < 0xD800 or code >= 0xE000:
        return code, 6
    if code >= 0xDC00 or at + 7 >= end or data[at + 6] != 92 or data[at + 7] != 117:
        return -1, 0
    low = _hex(data, at + 8, end)
    return (0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) if 0xDC00 <= low < 0xE000 else -1), 12


@jit(nb.int64(BYTES, nb.int64, nb.int64))
def _run(data: Bytes, at: int, end: int) -> Any:
    """The end of the characters from `at` on that stand for themselves."""
    place = np.uint64(at)  # an unsigned place is taken as it is
    while place < np.uint64(end) and data[place] >= 32 and data[place] != 34 and data[place] != 92:
        place += np.uint64(1)
    return np.int64(place)


@jit(nb.int64(BYTES, nb.int64, nb.int64, OUT, nb.int64))
def put(data: Bytes, first: int, last: int, out: Any, to: int) -> int:
    """Copy bytes as they are; the place behind them."""
    for place in range(np.uint64(last - first)):  # unsigned, as in `_run`
        out[np.uint64(to) + place] = data[np.uint64(first) + place]
    return to + last - first


@jit(T.UniTuple(nb.int64, 3)(BYTES, nb.int64, nb.int64, OUT, nb.int64))
def copy_text(data: Bytes, at: int, end: int, out: Any, to: int) -> tuple[int, int, int]:
    """Copy the text that the string at `at` means; 1 behind the places where it is spelled as encoders would."""
    at, usual = at + 1, 1
    while True:
        stop = _run(data, at, end)
        to = put(data, at, stop, out, to)
        at = stop
        if at >= end or data[at] < 32:
            return -1, to, 0
        if data[at] == 34:
            return at + 1, to, usual
        code, width = _escape(data, at, end)
        if code < 0:
            return -1, to, 0
        if width != 2 or code == 47:
            usual = 0
        to = _put_utf8(out, to, code)
        at += width


@jit(_PLACES(BYTES, nb.int64, nb.int64, OUT, nb.int64))
def copy_string(data: Bytes, at: int, end: int, out: Any, to: int) -> tuple[int, int]:
    """Copy the string whose quote is at `at`."""
    out[to] = 34
    at, to = at + 1, to + 1
    while True:
        stop = _run(data, at, end)
        to = put(data, at, stop, out, to)
        at = stop
        if at >= end or data[at] < 32:
            return -1, to
        if data[at] == 34:
            out[to] = 34
            return at + 1, to + 1
        code, width = _escape(data, at, end)
        if code < 0:
            return -1, to
        to = _put_escaped(out, to, code)
        at += width


@jit(nb.int64(BYTES, nb.int64, nb.int64))
def _digits(data: Bytes, at: int, end: int) -> int:
    """The place behind the digits that begin at `at`."""
    while at < end and 48 <= data[at] <= 57:
        at += 1
    return at


@jit(nb.boolean(BYTES, nb.int64, nb.int64, nb.int64))
def _is_plain(data: Bytes, first: int, point: int, end: int) -> Any:
    """Whether a fraction from its first digit to `end` has no zero too many, few digits, and is not tiny."""
    digits = end - point - 1
    if digits == 0 or end - first > _FRACTION or (digits > 1 and data[end - 1] == 48):
        return False
    tiny = digits > 3 and data[point + 1] == 48 and data[point + 2] == 48 and data[point + 3] == 48
    return not (tiny and data[first] == 48)


@jit(_PLACES(BYTES, nb.int64, nb.int64, OUT, nb.int64))
def copy_number(data: Bytes, at: int, end: int, out: Any, to: int) -> tuple[int, int]:
    """Copy a number that encoders write as it stands."""
    begins = at
    first = at + 1 if data[at] == 45 else at
    at = _digits(data, first, end)
    if at == first or (data[first] == 48 and at > first + 1):
        return -1, to
    if at < end and data[at] == 46:
        point = at
        at = _digits(data, at + 1, end)
        if not _is_plain(data, first, point, at):
            return -1, to
    elif at - begins > _WHOLE or (data[first] == 48 and first > begins):
        return -1, to
    if at < end and (data[at] == 69 or data[at] == 101):
        return -1, to
    for place in range(begins, at):
        out[to] = data[place]
        to += 1
    return at, to


@jit(_PLACES(BYTES, nb.int64, nb.int64, OUT, nb.int64))
def _copy_literal(data: Bytes, at: int, end: int, out: Any, to: int) -> tuple[int, int]:
    size = 5 if data[at] == 102 else 4
    if at + size > end:
        return -1, to
    a, b, c, d = data[at], data[at + 1], data[at + 2], data[at + 3]
    true = a == 116 and b == 114 and c == 117 and d == 101
    null = a == 110 and b == 117 and c == 108 and d == 108
    false = a == 102 and b == 97 and c == 108 and d == 115 and data[at + size - 1] == 101
    if not (true or null or false):
        return -1, to
    for place in range(at, at + size):
        out[to] = data[place]
        to += 1
    return at + size, to


@jit(_PLACES(BYTES, nb.int64, nb.int64, OUT, nb.int64))
def copy_scalar(data: Bytes, at: int, end: int, out: Any, to: int) -> Any:
    """Copy a string, a number, true, false or null."""
    if at >= end:
        return -1, to
    if data[at] == 34:
        return copy_string(data, at, end, out, to)
    if data[at] == 45 or 48 <= data[at] <= 57:
        return copy_number(data, at, end, out, to)
    return _copy_literal(data, at, end, out, to)


@jit(_PLACES(BYTES, nb.int64, nb.int64, OUT, nb.int64))
def copy_key(data: Bytes, at: int, end: int, out: Any, to: int) -> tuple[int, int]:
    """Copy a key and its colon; the place of its value."""
    at = skip(data, at, end)
    if at >= end or data[at] != 34:
        return -1, to
    at, to = copy_string(data, at, end, out, to)
    if at < 0:
        return -1, to
    at = skip(data, at, end)
    if at >= end or data[at] != 58:
        return -1, to
    out[to] = 58
    return skip(data, at + 1, end), to + 1


@jit(_PLACES(BYTES, nb.int64, nb.int64, OUT, nb.int64))
def copy_value(data: Bytes, at: int, end: int, out: Any, to: int) -> tuple[int, int]:  # noqa: C901 # one state machine
    """Copy any value."""
    closing = np.empty(DEEPEST + 1, np.uint8)
    depth = 0
    while True:
        if at < 0 or at >= end:
            return -1, to
        sign = data[at]
        if sign == 123 or sign == 91:
            if depth >= DEEPEST:
                return -1, to
            out[to] = sign
            to += 1
            closing[depth] = sign + 2
            depth += 1
            at = skip(data, at + 1, end)
            if at >= end or data[at] != sign + 2:  # it is not empty
                if sign == 123:
                    at, to = copy_key(data, at, end, out, to)
                continue
        else:
            at, to = copy_scalar(data, at, end, out, to)
            if at < 0:
                return -1, to
            if depth == 0:
                return at, to
        while True:  # behind a value, or at the end of an empty list or object
            at = skip(data, at, end)
            if at >= end:
                return -1, to
            if data[at] == closing[depth - 1]:
                out[to] = data[at]
                to += 1
                at += 1
                depth -= 1
                if depth == 0:
                    return at, to
                continue
            if data[at] != 44:
                return -1, to
            out[to] = 44
            to += 1
            at = skip(data, at + 1, end)
            if closing[depth - 1] == 125:
                at, to = copy_key(data, at, end, out, to)
            break
