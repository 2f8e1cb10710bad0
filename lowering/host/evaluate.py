"""Scalar expressions to NumPy calls over a whole iteration space.

`Evaluator.value(expr)` gives the register that will hold the expression for every point, and
appends the instructions that fill it. What no buffer enters (index arithmetic, constants) is
computed here and now; loads become views wherever their index allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import Any, TypeVar

import numpy as np

from lowering.host import numpy_calls as functions
from lowering.host import numpy_workarounds as faults
from lowering.host import strided_views as windows
from lowering.host.access_maps import AccessMap
from lowering.host.arena import Array
from lowering.host.dynamic_offsets import offset_function
from lowering.host.instructions import (
    DynamicView,
    Instruction,
    NumpyValue,
    ReversedTemporary,
    Static,
    Temporary,
    View,
    memory_order,
    static,
)
from lowering.host.load_forms import Reading, reading_of
from lowering.host.tuning.access_orders import common_order, orders
from lowering.host.tuning.clipping import Limits, limits_of
from lowering.host.tuning.index_wrapping import (
    Wrapping,
    range_of,
    within,
    wrap,
    wrap_into,
    wrapping_of,
)
from lowering.host.tuning.wrapped_loads import Pieces
from lowering.plan.buffer import Buffer
from lowering.plan.kernel import Predicate, Store
from tracegraph.ir.op import Elementwise
from tracegraph.ir.scalar import (
    Accumulated,
    Apply,
    AsIndex,
    AsValue,
    Axis,
    Both,
    Clamp,
    Compare,
    Const,
    Expr,
    FloorDiv,
    Load,
    Mod,
    Select,
    Sum,
    floor_divide,
)

FOLD_LIMIT = 1 << 17
"""Elements up to which an array that no buffer enters is kept instead of computed in each run."""

QUOTIENT_SIZE = 2048
"""Elements from which a remainder takes no longer by way of the quotient, whose loop NumPy has
vectorised, and much less where that is needed, too, as for rows and columns of flat positions."""

CALLED = 8
"""Cost of functions whose loops NumPy has vectorised for strides that are not negative alone."""

_T = TypeVar("_T")

_INDEX = np.dtype(np.int64)
_RELATIONS = {"<": np.less, ">=": np.greater_equal, "==": np.equal}


class Evaluator:
    """The instructions of one nest. `extents` are those of the axes of its space and loops.

    They run if the `predicates` hold. Later nests write all elements of the buffers in
    `overwritten` that this one does not store.
    """

    def __init__(
        self,
        extents: tuple[int, ...],
        predicates: tuple[Predicate, ...] = (),
        overwritten: frozenset[Buffer] = frozenset(),
        accesses: Sequence[Load | Store] = (),
    ) -> None:
        self.extents = extents
        self.predicates = predicates
        self.overwritten = overwritten
        self.accesses = accesses
        self._orders: list[tuple[int, ...] | None] = []  # the one, once it has been asked for
        self._rank = sum(extent > 1 for extent in extents)
        self.instructions: list[Instruction] = []
        self._registers: dict[Expr, NumpyValue] = {}
        self._axes: dict[Expr, frozenset[int]] = {}
        self._readings: dict[Load, Reading | Pieces | None] = {}

    # -- shapes ---------------------------------------------------------------------------------

    def axes_of(self, expr: Expr) -> frozenset[int]:
        """The axes, of more than one element, that an expression varies along."""
        return _visit(expr, self._axes, lambda e: e.children, self._axes_here)

    def _axes_here(self, expr: Expr) -> frozenset[int]:
        if isinstance(expr, Axis):
            return frozenset((expr.number,)) if self.extents[expr.number] > 1 else frozenset()
        return frozenset().union(*(self._axes[child] for child in expr.children))

    def mesh(self, axes: Iterable[int]) -> tuple[int, ...]:
        """The open-mesh shape of what varies along `axes`."""
        return windows.mesh(self.extents, axes)

    def temporary(
        self, dtype: np.dtype[Any], axes: Iterable[int], inputs: Iterable[NumpyValue] = ()
    ) -> Temporary:
        """A new intermediate value that varies along `axes`, laid out as the `inputs` of its shape
        are, if they agree, or else as most of what the nest loads and stores.
        """
        chosen = sorted(axes)
        shape = self.mesh(chosen)
        orders = {memory_order(register) for register in inputs if register.shape == shape}
        if len(orders) == 1:
            order = orders.pop()
        else:
            order = self._order() if len(chosen) == self._rank else None
        return Temporary(dtype, shape, {axis: axis for axis in chosen}, order)

    def _order(self) -> tuple[int, ...] | None:
        """The order of memory of what varies along all axes."""
        if not self._orders:
            self._orders.append(common_order(self.accesses, self.extents, self.axes_of))
        return self._orders[0]

    # -- values ---------------------------------------------------------------------------------

    @contextmanager
    def accumulators(self, values: Sequence[NumpyValue]) -> Iterator[None]:
        """Within, `Accumulated` expressions stand for these registers.

        What expressions vary along may have been asked before, when these stood for nothing.
        """
        before = self._registers, self._axes, self._readings
        self._registers, self._axes, self._readings = dict(self._registers), {}, {}
        for number, register in enumerate(values):
            expr = Accumulated.make(number, register.dtype)
            self._registers[expr] = register
            self._axes[expr] = frozenset(register.dims)
        yield
        self._registers, self._axes, self._readings = before

    def value(self, expr: Expr) -> NumpyValue:
        """The register that holds an expression."""
        return _visit(expr, self._registers, self._demands, self._emit)

    def _demands(self, expr: Expr) -> tuple[Expr, ...]:
        if isinstance(expr, Load):
            reading = self._reading(expr)
            return reading.demands if isinstance(reading, Reading) else ()
        given = self._given(expr)
        return expr.children if given is None else given[:1]

    def _emit(self, expr: Expr) -> NumpyValue:
        match expr:
            case Const():
                return static(_array_of(expr))
            case Axis(number=number, extent=extent):
                shape = self.mesh(self.axes_of(expr))
                return static(np.arange(extent).reshape(shape), (number,) if shape else ())
            case Load():
                return self._load(expr)
            case Apply(op=op, args=args, dtype=dtype, attrs=attrs):
                registers = tuple(map(self.value, args))
                instead = faults.instead(op, registers[0].dtype) if len(registers) == 1 else None
                if instead is not None:
                    function, before = instead
                    return self.write(function, (*map(static, before), *registers), dtype)
                limits = limits_of(op, registers)
                if limits is not None:
                    return self._clipped(limits)
                function, elementwise = functions.of_op(
                    op, tuple(r.dtype for r in registers), dtype, dict(attrs)
                )
                called = isinstance(op.form, Elementwise) and op.form.cost >= CALLED
                return self.write(function, registers, dtype, elementwise, forwards=called)
            case AsValue(operand=operand, dtype=dtype):
                return self._converted(operand, dtype)
            case AsIndex(operand=operand):
                return self._converted(operand, _INDEX)
        return self._emit_index(expr)

    def _clipped(self, limits: Limits) -> NumpyValue:
        ends, dtype = map(static, (limits.low, limits.high)), limits.value.dtype
        clipped = self.write(functions.CLIP, (limits.value, *ends), dtype)
        if not limits.meets_zero:
            return clipped
        return self.write(np.add, (clipped, static(np.zeros((), dtype))), dtype)

    def _given(self, expr: Expr) -> Wrapping | tuple[Expr, int] | None:
        """The index array that an expression wraps, or tests against an extent, as a whole."""
        if not isinstance(expr, Clamp | Select | Both) or not self.axes_of(expr):
            return None
        return range_of(expr) if isinstance(expr, Both) else wrapping_of(expr)

    def _emit_given(self, given: Wrapping | tuple[Expr, int], dtype: np.dtype[Any]) -> NumpyValue:
        """What a program makes of an index that it is given."""
        index = self.value(given[0])
        if not isinstance(given, Wrapping):
            return self.write(within(given[1]), (index,), dtype)
        if not isinstance(index, View | DynamicView):
            return self.write(wrap_into(given), (index,), dtype)
        output = DynamicView(index.dtype, index.shape, index.dims, index.buffer, index.strides)
        self._assign(wrap(given), (index,), output)
        return output

    def _emit_index(self, expr: Expr) -> NumpyValue:
        given = self._given(expr)
        if given is not None:
            return self._emit_given(given, expr.dtype)
        match expr:
            case Select(predicate=predicate, chosen=chosen, other=other):
                registers = tuple(map(self.value, (predicate, chosen, other)))
                return self.write(functions.where, registers, expr.dtype, elementwise=False)
            case Sum(terms=terms, offset=offset):
                return self._sum(terms, offset)
            case FloorDiv(operand=operand, divisor=divisor):
                return self._binary(np.floor_divide, self.value(operand), divisor)
            case Mod(operand=operand, divisor=divisor):
                return self._remainder(operand, divisor)
            case Clamp(operand=operand, low=low, high=high):
                return self._binary(
                    np.minimum, self._binary(np.maximum, self.value(operand), low), high
                )
            case Compare(relation=relation, left=left, right=right):
                operands = (self.value(left), self.value(right))
                return self.write(_RELATIONS[relation], operands, expr.dtype)
            case Both(left=left, right=right):
                return self.write(np.logical_and, (self.value(left), self.value(right)), expr.dtype)
        raise TypeError(f"a nest holds an expression that no value was defined for: {expr!r}")

    def _sum(self, terms: tuple[tuple[Expr, int], ...], offset: int) -> NumpyValue:
        total: NumpyValue | None = None
        for term, factor in terms:
            register = self.value(term)
            if factor != 1:
                register = self._binary(np.multiply, register, factor)
            total = register if total is None else self.write(np.add, (total, register), _INDEX)
        assert total is not None
        return self._binary(np.add, total, offset) if offset else total

    def _remainder(self, operand: Expr, divisor: int) -> NumpyValue:
        value = self.value(operand)
        if isinstance(value, Static) or prod(value.shape) < QUOTIENT_SIZE:
            return self._binary(np.remainder, value, divisor)
        quotient = self.value(floor_divide(operand, divisor))
        return self.write(
            np.subtract, (value, self._binary(np.multiply, quotient, divisor)), _INDEX
        )

    def _binary(self, ufunc: np.ufunc, register: NumpyValue, number: int) -> NumpyValue:
        return self.write(ufunc, (register, static(np.array(number))), _INDEX)

    def _converted(self, operand: Expr, dtype: np.dtype[Any]) -> NumpyValue:
        register = self.value(operand)
        if register.dtype == dtype:
            return register
        return self.write(functions.convert, (register,), dtype)

    def write(
        self,
        function: Callable[..., Any],
        inputs: tuple[NumpyValue, ...],
        dtype: np.dtype[Any],
        elementwise: bool = True,
        forwards: bool = False,
    ) -> NumpyValue:
        """A register with function(*inputs), element by element over the axes of the inputs."""
        axes = frozenset().union(*(r.dims for r in inputs))
        shape = self.mesh(axes)
        if all(isinstance(r, Static) for r in inputs) and prod(shape) <= FOLD_LIMIT:
            array = np.empty(shape, dtype)
            operands = [r.array for r in inputs if isinstance(r, Static)]
            if isinstance(function, np.ufunc):  # some of them take `out` by name only
                function(*operands, out=array)
            else:
                function(*operands, array)
            return static(array, tuple(sorted(axes)))
        output = self.temporary(dtype, axes, inputs)
        made = Instruction("write", function, inputs, output, elementwise, forwards)
        self.instructions.append(made)
        return output

    def spread(self, register: NumpyValue, axes: Iterable[int]) -> NumpyValue:
        """The register repeated along further axes."""
        missing = sorted(set(axes).difference(register.dims))
        if not missing:
            return register
        all_axes = sorted({*register.dims, *missing})
        shape = self.mesh(all_axes)
        if isinstance(register, Static):
            return static(np.broadcast_to(register.array, shape), tuple(all_axes))
        buffer = register.buffer if isinstance(register, View | DynamicView) else None
        output = DynamicView(register.dtype, shape, {axis: axis for axis in all_axes}, buffer)
        self._assign(functions.broadcast(shape), (register,), output, tuple(all_axes))
        return output

    # -- loads ----------------------------------------------------------------------------------

    def _reading(self, load: Load) -> Reading | Pieces | None:
        if load not in self._readings:
            self._readings[load] = reading_of(load, self.extents, self.axes_of)
        return self._readings[load]

    def _load(self, load: Load) -> NumpyValue:
        reading = self._reading(load)
        match reading:
            case None:
                return static(np.zeros((), load.dtype))
            case Pieces():
                return self._joined(reading, load)
            case Reading(place=where, is_shifted=True):
                return self.shifted_window(load.buffer, where)
            case Reading(place=where, positions=None):
                loaded: NumpyValue = windows.window(load.buffer, where, self.extents)
            case Reading(place=where):
                loaded = _turned(self._gathered(reading, load.buffer), where.turned)
        if reading.guard is None:
            return loaded
        inputs = (loaded, self.value(reading.guard))
        return self.write(functions.masked, inputs, load.dtype, elementwise=False)

    def _joined(self, pieces: Pieces, load: Load) -> NumpyValue:
        axes = self.axes_of(load)
        joined = Temporary(load.dtype, self.mesh(axes), {a: a for a in axes}, pieces.order)
        is_full = len(axes) == self._rank and not pieces.ranged
        if is_full and orders(self.accesses, self.extents, self.axes_of):
            joined = replace(joined, order=self._order())  # to be copied, it may as well be turned
        made = Instruction("write", pieces.copy(), pieces.sources, joined)
        made = replace(made, whole_axes=pieces.axes, flat=pieces.ranged)
        self.instructions.append(made)
        return joined

    def shifted_window(self, buffer: Buffer, where: AccessMap) -> DynamicView:
        """The elements at a place whose rest is a scalar that the run computes."""
        dtype = buffer.type.dtype
        shape, strides = windows.layout(where, self.extents, dtype.itemsize)
        dims = {axis: axis for axis in where.strides}
        output = DynamicView(dtype, shape, dims, buffer, strides)
        offset, leaves = offset_function(where.residual)
        function = functions.shifted(shape, dtype, strides, offset)
        self._assign(function, (windows.whole(buffer), *map(self.value, leaves)), output)
        return output

    def _gathered(self, reading: Reading, buffer: Buffer) -> NumpyValue:
        where, rows, extents = reading.place, reading.rows, self.extents
        dtype = buffer.type.dtype
        assert reading.positions is not None
        positions = self.value(reading.positions)
        axes = {axis: axis for axis in sorted({*positions.dims, *where.strides})}
        rank, chosen = len(extents), tuple(positions.dims)
        if rows is None:
            source = windows.sliding_window(buffer, where, extents)
            gathered = DynamicView(dtype, self.mesh(axes), axes, None)
            inputs = (source, self.raised(positions, where))
            gather = functions.gathered(rank, chosen, tuple(where.strides))
            self._assign(gather, inputs, gathered)
            return gathered
        source = windows.rows(buffer, extents, rows)
        places = memory_order(positions) or chosen
        chosen = tuple(axis for axis in places if axis in chosen)
        order = (*rows.outer, *chosen, *rows.inner)  # what `take` fills in one range
        others = [axis for axis in range(rank) if axis not in order]
        in_order = order == tuple(sorted(order))
        output = Temporary(dtype, self.mesh(axes), axes, None if in_order else (*others, *order))
        take = functions.taken(rank, chosen, rows.outer, rows.inner)
        made = Instruction("write", take, (source, positions), output)
        self.instructions.append(made)
        return output

    def raised(self, positions: NumpyValue, where: AccessMap) -> NumpyValue:
        """Positions as indices of the first dimension of the sliding window."""
        return self._binary(np.add, positions, where.low) if where.low else positions

    def _assign(
        self,
        function: Callable[..., Any],
        inputs: tuple[NumpyValue, ...],
        output: DynamicView,
        whole_axes: tuple[int, ...] = (),
    ) -> None:
        made = Instruction("assign", function, inputs, output, whole_axes=whole_axes)
        self.instructions.append(made)


def _turned(register: NumpyValue, axes: frozenset[int]) -> NumpyValue:
    if not axes or not isinstance(register, Temporary):
        return register
    return ReversedTemporary.of(register, frozenset(register.dims[axis] for axis in axes))


def _array_of(constant: Const) -> Array:
    if constant.bits:
        return np.frombuffer(constant.bits, constant.dtype).reshape(())
    return np.asarray(constant.value, constant.dtype)


def _visit(
    root: Expr,
    done: dict[Expr, _T],
    demands: Callable[[Expr], Iterable[Expr]],
    make: Callable[[Expr], _T],
) -> _T:
    """`make` of the root, after that of all it demands, each once.

    Without recursion, since chains of expressions may be longer than Python's stack.
    """
    stack = [root]
    while stack:
        expr = stack[-1]
        missing = [] if expr in done else [e for e in demands(expr) if e not in done]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if expr not in done:
            done[expr] = make(expr)
    return done[root]
