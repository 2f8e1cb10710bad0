"""The work of `kernels`: nests as they are written here, and functions as they are planned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tracegraph
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    Accumulator,
    Kernel,
    MapNest,
    Nest,
    Pass,
    RowNest,
    ScanNest,
    Store,
)
from lowering.plan.nodes import Graph, KernelNode
from lowering.plan.plan import Plan
from tracegraph.ir.combiners import ADD, MAXIMUM
from tracegraph.ir.op import get
from tracegraph.ir.scalar import Axis, Expr, const
from tracegraph.ir.scalar_values import Accumulated, Load, apply
from tracegraph.ir.types import ArrayType


@dataclass(frozen=True)
class Work:
    """A plan of kernels, what it reads and, last, what it writes."""

    plan: Plan
    buffers: tuple[Buffer, ...]

    @property
    def nbytes(self) -> int:
        """How many bytes it moves at least.

        Of what is read with a stride, all: memory is fetched 32 bytes at a time.
        """
        return sum(buffer.type.nbytes for buffer in self.buffers)


def _nest(nest: Nest, buffers: tuple[Buffer, ...]) -> Work:
    node = KernelNode(Kernel("kernel", (nest,)))
    return Work(Plan("bench", Graph((node,), frozenset()), (), (), (), {}, 0, 64), buffers)


def _planned(function: Callable[..., Any], dtype: str, *shapes: tuple[int, ...]) -> Work:
    types = (ArrayType(dtype, shape) for shape in shapes)
    plan = tracegraph.jit(function, device="cuda").lower(*types).plan
    return Work(plan, (*plan.inputs, *plan.outputs))


def _buffers(dtype: str, *shapes: tuple[int, ...]) -> tuple[Buffer, ...]:
    return tuple(Buffer("input", n, ArrayType(dtype, shape)) for n, shape in enumerate(shapes))


def _axes(*extents: int) -> tuple[Axis, ...]:
    return tuple(Axis.make(number, extent) for number, extent in enumerate(extents))


def _call(name: str, *args: Expr) -> Expr:
    return apply(get(name), args, args[0].dtype, {})


def sine(dtype: str, size: int) -> Work:
    """sin(a) * 1.5 + a * a"""
    x, out = _buffers(dtype, (size,), (size,))
    (i,) = _axes(size)
    a = Load.make(x, (i,))
    scaled = _call("multiply", _call("sin", a), const(1.5, a.dtype))
    value = _call("add", scaled, _call("multiply", a, a))
    return _nest(MapNest((size,), (Store(out, (i,), value),)), (x, out))


def scaled(dtype: str, size: int) -> Work:
    """A * 1.5 + 1"""
    x, out = _buffers(dtype, (size,), (size,))
    (i,) = _axes(size)
    a = Load.make(x, (i,))
    value = _call("add", _call("multiply", a, const(1.5, a.dtype)), const(1, a.dtype))
    return _nest(MapNest((size,), (Store(out, (i,), value),)), (x, out))


def squares(dtype: str, size: int) -> Work:
    """sum(a * a)"""
    x, out = _buffers(dtype, (size,), ())
    (i,) = _axes(size)
    a = Load.make(x, (i,))
    only = Pass((Accumulator(ADD, _call("multiply", a, a)),), ())
    done = Store(out, (), Accumulated.make(0, a.dtype))
    return _nest(RowNest((), (size,), (only,), (done,)), (x, out))


def column_sums(dtype: str, rows: int, columns: int) -> Work:
    """sum(a, axis=0)"""
    x, out = _buffers(dtype, (rows, columns), (columns,))
    j, i = _axes(columns, rows)
    only = Pass((Accumulator(ADD, Load.make(x, (i, j))),), ())
    done = Store(out, (j,), Accumulated.make(0, x.type.dtype))
    return _nest(RowNest((columns,), (rows,), (only,), (done,)), (x, out))


def transpose(dtype: str, rows: int, columns: int) -> Work:
    """a.T + 1"""
    x, out = _buffers(dtype, (columns, rows), (rows, columns))
    i, j = _axes(rows, columns)
    value = _call("add", Load.make(x, (j, i)), const(1, x.type.dtype))
    return _nest(MapNest((rows, columns), (Store(out, (i, j), value),)), (x, out))


def softmax(dtype: str, rows: int, columns: int) -> Work:
    """Softmax of each row"""
    x, out = _buffers(dtype, (rows, columns), (rows, columns))
    i, j = _axes(rows, columns)
    a = Load.make(x, (i, j))
    power = _call("exp", _call("subtract", a, Accumulated.make(0, a.dtype)))
    result = _call("divide", power, Accumulated.make(1, a.dtype))
    passes = (
        Pass((Accumulator(MAXIMUM, a),), ()),
        Pass((Accumulator(ADD, power),), ()),
        Pass((), (Store(out, (i, j), result),)),
    )
    return _nest(RowNest((rows,), (columns,), passes, ()), (x, out))


def cumsum(dtype: str, size: int) -> Work:
    """cumsum(a)"""
    x, out = _buffers(dtype, (size,), (size,))
    (i,) = _axes(size)
    return _nest(ScanNest((size,), 0, ADD, Store(out, (i,), Load.make(x, (i,)))), (x, out))


def row_sums(dtype: str, rows: int, columns: int) -> Work:
    """sum(a, axis=-1)"""
    return _planned(lambda x: x.sum(axis=-1), dtype, (rows, columns))


def layer_norm(dtype: str, rows: int, columns: int) -> Work:
    """Each row less its mean, by its deviation, times weights, plus a bias"""

    def function(x: Any, weights: Any, bias: Any) -> Any:
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = np.mean(centred * centred, axis=-1, keepdims=True)
        return centred / np.sqrt(variance + 1e-5) * weights + bias

    return _planned(function, dtype, (rows, columns), (columns,), (columns,))


def standardise(dtype: str, rows: int, columns: int) -> Work:
    """Each row less its mean, by its deviation"""

    def function(x: Any) -> Any:
        return (x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True)

    return _planned(function, dtype, (rows, columns))


def strided(dtype: str, size: int) -> Work:
    """a[::2] * 1.5 + 1"""
    return _planned(lambda x: x[::2] * 1.5 + 1, dtype, (size,))
