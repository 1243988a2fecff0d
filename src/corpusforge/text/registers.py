"""What a processor does in one step and Python has no word for: eight bytes as one number, the lowest bit that is set.

To be called in kernels only. Places are not checked: eight bytes must be there.
"""

from __future__ import annotations

import sys
from typing import Any

import numba.core.cgutils
import numba.extending
from llvmlite import ir

from corpusforge.text.kernels import T

intrinsic: Any = numba.extending.intrinsic
_cgutils: Any = numba.core.cgutils


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


@intrinsic
def prefetch(_context: Any, data: Any, _at: Any) -> Any:
    """Ask for the cache line of data[at], which is read soon; a place outside does no harm."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        size = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        whole, word, byte = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
        begin = builder.ptrtoint(array.data, whole)
        place = builder.inttoptr(builder.add(begin, builder.mul(args[1], ir.Constant(whole, size))), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        ask = _cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(ask, [place, ir.Constant(word, 0), ir.Constant(word, 3), ir.Constant(word, 1)])
        return context.get_dummy_value()

    return T.void(data, T.int64), build


@intrinsic
def ones(_context: Any, _value: Any) -> Any:
    """How many bits are set."""

    def build(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return T.int64(T.uint64), build
