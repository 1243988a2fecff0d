"""What a processor does in one step and Python has no word for: eight bytes as one number, the lowest bit that is set.

To be called in kernels only. Places are not checked: eight bytes must be there.
"""

from __future__ import annotations

import sys
from typing import Any

import numba.extending
from llvmlite import ir

from corpusforge.text.kernels import T

intrinsic: Any = numba.extending.intrinsic


@intrinsic
def load(_context: Any, data: Any, at: Any) -> Any:
    """Eight bytes from data[at] on as one number, the first of them lowest."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(64).as_pointer())
        value = builder.load(place, align=1)
        return builder.bswap(value) if sys.byteorder == "big" else value

    return T.uint64(data, at), build


@intrinsic
def store(_context: Any, data: Any, at: Any, _value: Any) -> Any:
    """Write a number to data[at:at + 8], its lowest byte first."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(64).as_pointer())
        builder.store(builder.bswap(args[2]) if sys.byteorder == "big" else args[2], place, align=1)
        return context.get_dummy_value()

    return T.void(data, at, T.uint64), build


@intrinsic
def lowest(_context: Any, _value: Any) -> Any:
    """The number of the lowest bit that is set; 64 where none is."""

    def build(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return T.int64(T.uint64), build
