"""Values at consecutive steps of a fold as vectors, without a loop that LLVM must vectorise.

So a dot product is loads, products and sums of lanes. What has no such form is stored in memory
first: see `folds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.native.nests.lanes import WIDTH, VectorAt, load_vector, splat
from lowering.native.nests.loops import UNKNOWN, step_strides
from lowering.native.nests.points import NativeNestWriter
from lowering.native.schedule import NestLoop
from lowering.native.types import memory_parts
from lowering.plan.nests.strides import offset_in
from tracegraph.ir.scalar import Expr, affine
from tracegraph.ir.scalar_values import Apply, Load

INSTRUCTIONS = {
    ("add", 2): "fadd {type} {0}, {1}",
    ("subtract", 2): "fsub {type} {0}, {1}",
    ("multiply", 2): "fmul {type} {0}, {1}",
    ("square", 1): "fmul {type} {0}, {0}",
    ("negative", 1): "fneg {type} {0}",
}
"""Ops on floats that are one instruction, by name and number of operands."""

FAR_BYTES = 1 << 20
"""The size of an array that is not in the near cache: it is read ahead."""

AHEAD_BYTES = 4096
"""How far: processors by themselves stop at the end of a page."""


class StepVectors:
    """Values of one dtype at the steps of a block of a fold.

    The block begins at step `low` of `loop`, each of which has `inner` steps of the loops `within`.
    """

    def __init__(
        self,
        nest: NativeNestWriter,
        dtype: np.dtype[Any],
        loop: NestLoop,
        low: str,
        within: Sequence[NestLoop],
        inner: int,
    ) -> None:
        self._nest, self._dtype = nest, dtype
        self._loops, self._low = (loop, *within), low
        self._strides = {each.axis: stride for each, stride in step_strides(within)}
        self._strides[loop.axis] = inner
        self._axes = sum(1 << axis for each in self._loops for axis in each.axes)

    def of(self, root: Expr) -> VectorAt | None:
        """The vectors of an expression; None if it has no such form."""
        if self._dtype.kind != "f" or self._dtype.itemsize == 2:
            return None
        starts: dict[Expr, str] = {}
        order = self._order(root)
        if order is None:
            return None
        for expr in order:
            if self._is_fixed(expr):
                starts[expr] = self._nest.run.value(expr)[0]
            elif isinstance(expr, Load):
                starts[expr] = self._start(expr)
        return lambda place, live: self._at(order, starts, place, live)

    def _order(self, root: Expr) -> list[Expr] | None:
        """What is computed for the root, operands first."""
        order: list[Expr] = []
        stack = [(root, False)]
        while stack:
            expr, ready = stack.pop()
            if ready:
                order.append(expr)
            elif expr not in order:
                if expr.dtype != self._dtype:
                    return None
                stack.append((expr, True))
                if self._is_fixed(expr) or (isinstance(expr, Load) and self._is_run(expr)):
                    continue
                if (
                    not isinstance(expr, Apply)
                    or (expr.op.name, len(expr.args)) not in INSTRUCTIONS
                ):
                    return None
                stack += [(each, False) for each in expr.args]
        return list(dict.fromkeys(order))

    def _is_fixed(self, expr: Expr) -> bool:
        """Whether a value is the same at all steps of the block."""
        return expr in self._nest.run.values or not self._nest.axes_of(expr) & (
            self._axes | UNKNOWN
        )

    def _is_run(self, load: Load) -> bool:
        """Whether a load is of consecutive elements."""
        if self._nest.run.ranges.truth(load.guard) is not True:
            return False
        found = affine(offset_in(load.buffer.type.shape, load.indices))
        return found is not None and all(
            found[0].get(axis, 0) == factor for axis, factor in self._strides.items()
        )

    def _start(self, load: Load) -> str:
        """The address of the block's first element."""
        run, first = self._nest.run, self._loops[0]
        with run.scope():
            for loop in self._loops:
                for axis in loop.axes:
                    run.bind(axis, self._low if axis == first.axis else "0", 0, loop.extent)
            place = run.position(load.buffer, load.indices)
        return run.address(load.buffer, place)

    def _at(self, order: Sequence[Expr], starts: dict[Expr, str], place: str, live: int) -> str:
        writer, (type_,) = self._nest.writer, memory_parts(self._dtype)
        vector, found = f"<{WIDTH} x {type_}>", dict[Expr, str]()
        for expr in order:
            if self._is_fixed(expr):
                found[expr] = splat(writer, type_, starts[expr])
            elif isinstance(expr, Load):
                if live == WIDTH and expr.buffer.type.nbytes >= FAR_BYTES:
                    self._read_ahead(type_, starts[expr], place)
                found[expr] = load_vector(writer, type_, starts[expr], place, live)
            else:
                assert isinstance(expr, Apply)
                text = INSTRUCTIONS[expr.op.name, len(expr.args)]
                operands = [found[each] for each in expr.args]
                found[expr] = writer.assign(text.format(*operands, type=vector))
        return found[order[-1]]

    def _read_ahead(self, type_: str, start: str, place: str) -> None:
        """Ask for what later steps read. Nothing need be there."""
        writer = self._nest.writer
        address = writer.element(type_, start, place)
        ahead = writer.assign(f"getelementptr i8, ptr {address}, i64 {AHEAD_BYTES}")
        writer.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        writer.line(f"call void @llvm.prefetch.p0(ptr {ahead}, i32 0, i32 3, i32 1)")
