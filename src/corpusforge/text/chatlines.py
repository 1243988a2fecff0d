r"""Conversations in JSON Lines to columns, without a parser: the commonest form of all, compiled.

    {"id": "a7", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho", "weight": 0}]}
    ->  record_id   a7                  roles           1  2
        extra       (none)              content         Hi  Ho
        canonical   {"kind":"sft",…}    message_extra   (none)  {"weight":0}

Every message has one of the four roles, a text, and at most one more field, which no form of messages has a meaning
for. Beside the messages a line may have an `id`, a text or an integer, and fields that no shape reads, which go to the
extras. A line that is different in any way is left alone, as if it had not been looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numba as nb
import numpy as np
import numpy.typing as npt

from corpusforge.text.jsoncopy import (
    BYTES,
    OUT,
    copy_key,
    copy_number,
    copy_scalar,
    copy_string,
    copy_text,
    copy_value,
    put,
    skip,
)
from corpusforge.text.kernels import Bytes, T, jit

if TYPE_CHECKING:
    from collections.abc import Iterable

ROLES: Final = ("system", "user", "assistant", "tool")
LEAD: Final = 240
"""Characters of what is said that a detector of languages looks at."""

Places = npt.NDArray[np.int64]
_LEAST: Final = len('{"role":"user","content":""}')
_TEXTS: Final = ("content", "message_extra", "record_id", "extra", "canonical", "said")
_CONTENT, _MORE, _ID, _REST, _WHOLE, _SAID = range(len(_TEXTS))
# Behind the pens: how many messages there are, whether the line has an id, and how many characters were said in it.
_COUNT, _NAMED, _HEARD = range(len(_TEXTS), len(_TEXTS) + 3)

_OUTS: Final = T.UniTuple(OUT, len(_TEXTS))
_READ: Final = T.Array(nb.int64, 1, "C", readonly=True)
_I64: Final = nb.int64[::1]
_NAMES: Final = T.Tuple((BYTES, _READ))
_ENDS: Final = T.UniTuple(_I64, len(_TEXTS))


@dataclass(frozen=True)
class Columns:
    """What the lines that were read gave. Texts stand one behind another: offsets (one more than texts) and bytes."""

    lines: Places  # numbers of the lines that were read, in order
    texts: dict[str, tuple[Places, Bytes]]  # content and message_extra by message; the others by line
    messages: Places  # offsets of each line's messages
    roles: Places  # of each message, in the order of ROLES
    named: npt.NDArray[np.bool_]  # by line: whether it has an id


@dataclass(frozen=True)
class Names:
    """Keys that make a line, or a message, no plain one."""

    line: tuple[Bytes, Places]
    message: tuple[Bytes, Places]

    @classmethod
    def of(cls, line: Iterable[str], message: Iterable[str]) -> Names:
        """For these keys."""
        return cls(_packed(line), _packed(message))


def _packed(names: Iterable[str]) -> tuple[Bytes, Places]:
    """Texts one behind another, and where each ends."""
    known = [name.encode() for name in sorted(names)]
    return np.frombuffer(b"".join(known), np.uint8), np.cumsum([len(name) for name in known], dtype=np.int64)


def read(block: bytes, starts: Places, ends: Places, wanted: npt.NDArray[np.bool_], names: Names) -> Columns:
    """The plain ones among the `wanted` lines of a block of UTF-8, none of which has a key twice in an object."""
    data = np.frombuffer(block, np.uint8)
    most = len(block) // _LEAST + 1  # messages
    # Copies are no longer than what they are copied from; the canonical text has 26 bytes more for each conversation,
    # and for each message 11 more than its source.
    room = len(block) + 40 * (len(starts) + 1)
    sizes = [room, room, room, room, room + 11 * most, room]
    outs = tuple(np.empty(size, np.uint8) for size in sizes)
    offsets = tuple(
        np.zeros((most if number in (_CONTENT, _MORE) else len(starts)) + 1, np.int64) for number in range(6)
    )
    lines, messages = np.empty(len(starts), np.int64), np.zeros(len(starts) + 1, np.int64)
    roles, named = np.empty(most, np.int64), np.empty(len(starts), np.bool_)
    count = _read(data, starts, ends, wanted, names.line, names.message, outs, offsets, lines, messages, roles, named)
    said = int(messages[count])
    texts = {}
    for number, name in enumerate(_TEXTS):
        places = offsets[number][: (said if number in (_CONTENT, _MORE) else count) + 1]
        texts[name] = places, outs[number][: places[-1]]
    return Columns(lines[:count], texts, messages[: count + 1], roles[:said], named[:count])


_ROLE_NAMES: Final = np.frombuffer("".join(ROLES).encode(), np.uint8)
_ROLE_ENDS: Final = (6, 10, 19, 23)
_HEAD: Final = np.frombuffer(b'{"kind":"sft","messages":[', np.uint8)
_KEYS: Final = np.frombuffer(b'{"content":,"extra":,"role":"', np.uint8)  # cut at 11 and 20; the names at 2 and 22
_TOP: Final = np.frombuffer(b"messagesid", np.uint8)


@jit(nb.boolean(BYTES, nb.int64, nb.int64, BYTES, nb.int64, nb.int64))
def _same(data: Bytes, at: int, end: int, other: Bytes, first: int, last: int) -> Any:
    if end - at != last - first:
        return False
    for place in range(end - at):  # noqa: SIM110 # compiled
        if data[at + place] != other[first + place]:
            return False
    return True


@jit(nb.boolean(BYTES, nb.int64, nb.int64, _NAMES))
def _is_among(data: Bytes, at: int, end: int, names: tuple[Bytes, Places]) -> Any:
    """Whether one of these names stands there."""
    first = np.int64(0)
    for number in range(len(names[1])):
        if _same(data, at, end, names[0], first, names[1][number]):
            return True
        first = names[1][number]
    return False


@jit(nb.int64(BYTES, nb.int64, nb.int64))
def _role(data: Bytes, at: int, end: int) -> Any:
    """The number of the role that stands there; -1 for none of the four."""
    first = 0
    for number in range(4):
        if _same(data, at, end, _ROLE_NAMES, first, _ROLE_ENDS[number]):
            return number
        first = _ROLE_ENDS[number]
    return -1


@jit(nb.int64(BYTES, nb.int64, nb.int64))
def _end_of_name(data: Bytes, at: int, end: int) -> int:
    """The quote that ends the plain string which begins at `at`; -1 where it is not plain."""
    if at >= end or data[at] != 34:
        return -1
    at += 1
    while at < end and data[at] != 34:
        if data[at] < 32 or data[at] == 92:
            return -1
        at += 1
    return at if at < end else -1


@jit(nb.int64(BYTES, nb.int64, nb.int64))
def _behind_colon(data: Bytes, at: int, end: int) -> Any:
    at = skip(data, at, end)
    return skip(data, at + 1, end) if at < end and data[at] == 58 else -1


@jit(nb.void(_OUTS, _I64, nb.int64))
def _say(outs: Any, pens: Any, first: int) -> None:
    """Add a message that begins at `first` of the contents to what is said, up to LEAD characters."""
    to, count = pens[_SAID], pens[_HEARD]
    if 0 < count < LEAD:
        outs[_SAID][to] = 32
        to, count = to + 1, count + 1
    for place in range(first, pens[_CONTENT]):
        if count > LEAD:
            break
        sign = outs[_CONTENT][place]
        count += (sign & 0xC0) != 0x80
        if count <= LEAD:
            outs[_SAID][to] = sign
            to += 1
    pens[_SAID], pens[_HEARD] = to, count


@jit(nb.int64(BYTES, nb.int64, nb.int64, _NAMES, _OUTS, _I64, _I64))
def _message(data: Bytes, at: int, end: int, special: Any, outs: Any, pens: Any, found: Any) -> Any:
    """Read one message into the columns; the place behind it, -1 where it is not a plain one.

    `found` is told its role, where its content begins, where its one more field begins and ends, whether the content
    is spelled as encoders would, and where it ends.
    """
    role: Any = np.int64(-1)
    content: Any = np.int64(-1)
    more, to, fields = pens[_MORE], pens[_MORE], 0
    while at < end and data[at] == (44 if fields else 123):
        fields += 1
        at = skip(data, at + 1, end)
        key_end = _end_of_name(data, at, end)
        key = at + 1
        at = _behind_colon(data, key_end + 1, end) if key_end >= 0 else -1
        if at < 0 or at >= end:
            return -1
        if _same(data, key, key_end, _KEYS, 22, 26):
            value_end = _end_of_name(data, at, end)
            role = _role(data, at + 1, value_end) if value_end >= 0 else -1
            at = value_end + 1 if role >= 0 else -1
        elif _same(data, key, key_end, _KEYS, 2, 9):
            content = at if data[at] == 34 else -1
            if content < 0:
                return -1
            at, pens[_CONTENT], found[4] = copy_text(data, at, end, outs[_CONTENT], pens[_CONTENT])
            found[5] = at
        elif to > more or data[at] == 110 or _is_among(data, key, key_end, special):
            return -1
        else:
            outs[_MORE][more] = 123
            to = put(data, key - 1, key_end + 1, outs[_MORE], more + 1)
            outs[_MORE][to] = 58
            at, to = copy_scalar(data, at, end, outs[_MORE], to + 1)
        if at < 0:
            return -1
        at = skip(data, at, end)
    if at >= end or data[at] != 125 or role < 0 or content < 0:
        return -1
    if to > more:
        outs[_MORE][to] = 125
        to += 1
    found[0], found[1], found[2], found[3] = role, content, more, to
    pens[_MORE] = to
    return at + 1


@jit(nb.void(BYTES, nb.int64, _OUTS, _I64, _I64))
def _write_message(data: Bytes, end: int, outs: Any, pens: Any, found: Any) -> None:
    """Add a message to the canonical text."""
    role, out = found[0], outs[_WHOLE]
    to = put(_KEYS, 0, 11, out, pens[_WHOLE])
    if found[4]:
        to = put(data, found[1], found[5], out, to)
    else:
        _, to = copy_string(data, found[1], end, out, to)
    if found[3] > found[2]:
        to = put(_KEYS, 11, 20, out, to)
        for place in range(found[2], found[3]):
            out[to] = outs[_MORE][place]
            to += 1
    to = put(_KEYS, 20, 29, out, to)
    to = put(_ROLE_NAMES, _ROLE_ENDS[role - 1] if role else 0, _ROLE_ENDS[role], out, to)
    out[to], out[to + 1] = 34, 125
    pens[_WHOLE] = to + 2


@jit(nb.int64(BYTES, nb.int64, nb.int64, _NAMES, _OUTS, _I64, _I64, _I64, _I64))
def _messages(
    data: Bytes, at: int, end: int, special: Any, outs: Any, pens: Any, roles: Any, content_ends: Any, more_ends: Any
) -> Any:
    """Read a list of messages; the place behind it, -1 where it is empty or one of them is not plain."""
    found = np.empty(6, np.int64)
    begins = pens[_COUNT]
    whole = outs[_WHOLE]
    pens[_WHOLE] = put(_HEAD, 0, len(_HEAD), whole, pens[_WHOLE])
    while at < end and data[at] == (44 if pens[_COUNT] > begins else 91):
        if pens[_COUNT] > begins:
            whole[pens[_WHOLE]] = 44
            pens[_WHOLE] += 1
        first = pens[_CONTENT]
        at = skip(data, at + 1, end)
        at = _message(data, at, end, special, outs, pens, found)
        if at < 0:
            return -1
        _write_message(data, end, outs, pens, found)
        if found[0] and pens[_CONTENT] > first:
            _say(outs, pens, first)
        count = pens[_COUNT]
        roles[count] = found[0]
        content_ends[count + 1], more_ends[count + 1] = pens[_CONTENT], pens[_MORE]
        pens[_COUNT] = count + 1
        at = skip(data, at, end)
    if at >= end or data[at] != 93 or pens[_COUNT] == begins:
        return -1
    whole[pens[_WHOLE]], whole[pens[_WHOLE] + 1] = 93, 125
    pens[_WHOLE] += 2
    return at + 1


@jit(nb.int64(BYTES, nb.int64, nb.int64, _OUTS, _I64))
def _record_id(data: Bytes, at: int, end: int, outs: Any, pens: Any) -> Any:
    """Read a text or an integer; the place behind it, -1 for anything else."""
    if at < 0 or at >= end:
        return -1
    first, to = pens[_ID], pens[_ID]
    if data[at] == 34:
        at, to, _ = copy_text(data, at, end, outs[_ID], to)
    elif data[at] == 45 or 48 <= data[at] <= 57:
        at, to = copy_number(data, at, end, outs[_ID], to)
        for place in range(first, to):
            if outs[_ID][place] == 46:
                return -1
    else:
        return -1
    pens[_ID], pens[_NAMED] = to, 1
    return at


@jit(nb.int64(BYTES, nb.int64, nb.int64, _OUTS, _I64, nb.int64))
def _rest(data: Bytes, at: int, end: int, outs: Any, pens: Any, first: int) -> Any:
    """Copy a field to the extras of the line, which begin at `first`; the place behind it, -1 where it is odd."""
    outs[_REST][pens[_REST]] = 44 if pens[_REST] > first else 123
    at, to = copy_key(data, at, end, outs[_REST], pens[_REST] + 1)
    if at >= 0:
        at, pens[_REST] = copy_value(data, at, end, outs[_REST], to)
    return at


@jit(nb.int64(BYTES, nb.int64, nb.int64, _NAMES, _NAMES, _OUTS, _I64, _I64, _I64, _I64))
def _line(
    data: Bytes, at: int, end: int, names: Any, special: Any, outs: Any, pens: Any,
    roles: Any, content_ends: Any, more_ends: Any,
) -> Any:  # fmt: skip
    """Read a line into the columns: 1, or 0 where it is not a plain one."""
    begins, rest, fields = pens[_COUNT], pens[_REST], 0
    at = skip(data, at, end)
    while at < end and data[at] == (44 if fields else 123):
        fields += 1
        at = skip(data, at + 1, end)
        key_end = _end_of_name(data, at, end)
        if key_end < 0:
            return 0
        if _same(data, at + 1, key_end, _TOP, 0, 8):
            at = _behind_colon(data, key_end + 1, end)
            if at >= 0:
                at = _messages(data, at, end, special, outs, pens, roles, content_ends, more_ends)
        elif _same(data, at + 1, key_end, _TOP, 8, 10):
            at = _record_id(data, _behind_colon(data, key_end + 1, end), end, outs, pens)
        elif _is_among(data, at + 1, key_end, names):
            return 0
        else:
            at = _rest(data, at, end, outs, pens, rest)
        if at < 0:
            return 0
        at = skip(data, at, end)
    if at >= end or data[at] != 125 or skip(data, at + 1, end) != end or pens[_COUNT] == begins:
        return 0
    if pens[_REST] > rest:
        outs[_REST][pens[_REST]] = 125
        pens[_REST] += 1
    return 1


@jit(
    nb.int64(
        *(BYTES, _READ, _READ, T.Array(nb.boolean, 1, "C", readonly=True), _NAMES, _NAMES),
        *(_OUTS, _ENDS, _I64, _I64, _I64, nb.boolean[::1]),
    )
)
def _read(
    data: Bytes, starts: Places, ends: Places, wanted: Any, names: Any, special: Any,
    outs: Any, offsets: Any, lines: Any, messages: Any, roles: Any, named: Any,
) -> Any:  # fmt: skip
    """Fill in the columns; how many lines were read."""
    read = 0
    pens, before = np.zeros(_HEARD + 1, np.int64), np.zeros(_HEARD + 1, np.int64)
    for line in range(len(starts)):
        if not wanted[line]:
            continue
        before[:] = pens
        pens[_NAMED], pens[_HEARD] = 0, 0
        plain = _line(
            data, starts[line], ends[line], names, special, outs, pens, roles, offsets[_CONTENT], offsets[_MORE]
        )
        if not plain:
            pens[:] = before
            continue
        lines[read], named[read] = line, pens[_NAMED] > 0
        read += 1
        messages[read] = pens[_COUNT]
        for text in range(_ID, _COUNT):
            offsets[text][read] = pens[text]
    return read
