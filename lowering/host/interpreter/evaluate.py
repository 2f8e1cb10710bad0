"""Instruction selection: scalar expressions as NumPy calls over a whole iteration space.

`Evaluator.value(expr)` is the value of an expression at every point. It appends the instructions
that compute it. What depends on no buffer (index arithmetic, constants) is computed here, once.
Loads become views where their index is affine. Each expression is computed once for a nest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from lowering.host.arena import Array
from lowering.host.interpreter import numpy_calls, strided_views
from lowering.host.interpreter.access_maps import AccessMap
from lowering.host.interpreter.axis_dependence import AxisDependence, post_order
from lowering.host.interpreter.dynamic_offsets import offset_function
from lowering.host.interpreter.instructions import (
    DynamicView,
    Instruction,
    NumpyValue,
    Static,
    Temporary,
    View,
    static,
)
from lowering.host.interpreter.load_forms import LoadForm, load_form
from lowering.plan.nests.buffer import Buffer
from tracegraph.ir.scalar import Axis, Both, Clamp, Compare, Const, Expr, FloorDiv, Mod, Select, Sum
from tracegraph.ir.scalar_values import Accumulated, Apply, AsIndex, AsValue, Load

FOLD_LIMIT = 1 << 17
"""Constant folding keeps arrays of up to this many elements: 1 MiB of positions. Larger ones are
computed in each run. An upper bound on memory, not a measured optimum."""

_INDEX = np.dtype(np.int64)
_RELATIONS = {"<": np.less, ">=": np.greater_equal, "==": np.equal}


class Evaluator:
    """The instructions of a nest; `extents` are those of its space and loop."""

    def __init__(self, extents: tuple[int, ...]) -> None:
        self.extents = extents
        self.axes_of = AxisDependence(extents)
        self.instructions: list[Instruction] = []
        self._values: dict[Expr, NumpyValue] = {}
        self._loads: dict[Load, LoadForm | None] = {}

    def mesh(self, axes: Iterable[int]) -> tuple[int, ...]:
        """The open-mesh shape of what varies along `axes`."""
        return strided_views.mesh(self.extents, axes)

    def temporary(self, dtype: np.dtype[Any], axes: Iterable[int]) -> Temporary:
        """A new intermediate value that varies along `axes`."""
        chosen = sorted(axes)
        return Temporary(dtype, self.mesh(chosen), {axis: axis for axis in chosen})

    # -- values ---------------------------------------------------------------------------------

    @contextmanager
    def accumulators(self, values: Sequence[NumpyValue]) -> Iterator[None]:
        """Within, `Accumulated` expressions have these values.

        The axes of expressions are computed anew: an earlier query may have come before the values.
        """
        before = self._values, self._loads, self.axes_of
        known: dict[Expr, NumpyValue] = {
            Accumulated.make(number, value.dtype): value for number, value in enumerate(values)
        }
        self._values, self._loads = {**self._values, **known}, {}
        axes = {expr: frozenset(value.dims) for expr, value in known.items()}
        self.axes_of = AxisDependence(self.extents, axes)
        yield
        self._values, self._loads, self.axes_of = before

    def value(self, expr: Expr) -> NumpyValue:
        """The value of an expression."""
        return post_order(expr, self._values, self._operands, self._compute)

    def _operands(self, expr: Expr) -> tuple[Expr, ...]:
        if isinstance(expr, Load):
            load = self._load_form(expr)
            return () if load is None else load.operands
        return expr.children

    def _compute(self, expr: Expr) -> NumpyValue:
        """The value of an expression whose operands are evaluated."""
        match expr:
            case Const():
                return static(_array_of(expr))
            case Axis(number=number, extent=extent):
                shape = self.mesh(self.axes_of(expr))
                return static(np.arange(extent).reshape(shape), (number,) if shape else ())
            case Load():
                return self._load(expr)
            case Apply():
                return self._apply(expr)
            case AsValue(operand=operand, dtype=dtype):
                return self._converted(operand, dtype)
            case AsIndex(operand=operand):
                return self._converted(operand, _INDEX)
        return self._index(expr)

    def _apply(self, expr: Apply) -> NumpyValue:
        op, dtype = expr.op, expr.dtype
        operands = tuple(map(self.value, expr.args))
        dtypes = tuple(value.dtype for value in operands)
        function = numpy_calls.of_op(op, dtypes, dtype, dict(expr.attrs))
        return self.write(function, operands, dtype)

    def _index(self, expr: Expr) -> NumpyValue:
        match expr:
            case Select(predicate=predicate, chosen=chosen, other=other):
                operands = tuple(map(self.value, (predicate, chosen, other)))
                return self.write(numpy_calls.where, operands, expr.dtype)
            case Sum(terms=terms, offset=offset):
                return self._sum(terms, offset)
            case FloorDiv(operand=operand, divisor=divisor):
                return self._with_number(np.floor_divide, self.value(operand), divisor)
            case Mod(operand=operand, divisor=divisor):
                return self._with_number(np.remainder, self.value(operand), divisor)
            case Clamp(operand=operand, low=low, high=high):
                raised = self._with_number(np.maximum, self.value(operand), low)
                return self._with_number(np.minimum, raised, high)
            case Compare(relation=relation, left=left, right=right):
                operands = (self.value(left), self.value(right))
                return self.write(_RELATIONS[relation], operands, expr.dtype)
            case Both(left=left, right=right):
                return self.write(np.logical_and, (self.value(left), self.value(right)), expr.dtype)
        raise TypeError(f"a nest holds an expression that no value was defined for: {expr!r}")

    def _sum(self, terms: tuple[tuple[Expr, int], ...], offset: int) -> NumpyValue:
        total: NumpyValue | None = None
        for term, factor in terms:
            value = self.value(term)
            if factor != 1:
                value = self._with_number(np.multiply, value, factor)
            total = value if total is None else self.write(np.add, (total, value), _INDEX)
        assert total is not None
        return self._with_number(np.add, total, offset) if offset else total

    def _with_number(self, ufunc: np.ufunc, value: NumpyValue, number: int) -> NumpyValue:
        """The index ufunc(value, number)."""
        return self.write(ufunc, (value, static(np.array(number))), _INDEX)

    def _converted(self, operand: Expr, dtype: np.dtype[Any]) -> NumpyValue:
        value = self.value(operand)
        return value if value.dtype == dtype else self.write(numpy_calls.convert, (value,), dtype)

    def write(
        self,
        function: Callable[..., Any],
        inputs: tuple[NumpyValue, ...],
        dtype: np.dtype[Any],
    ) -> NumpyValue:
        """The value function(*inputs), element by element over the axes of the inputs."""
        axes = frozenset().union(*(value.dims for value in inputs))
        shape = self.mesh(axes)
        function = numpy_calls.with_output_last(function)
        if all(isinstance(value, Static) for value in inputs) and prod(shape) <= FOLD_LIMIT:
            array = np.empty(shape, dtype)
            operands = [value.array for value in inputs if isinstance(value, Static)]
            function(*operands, array)
            return static(array, tuple(sorted(axes)))
        output = self.temporary(dtype, axes)
        self.instructions.append(Instruction("write", function, inputs, output))
        return output

    def assign(
        self,
        function: Callable[..., Any],
        inputs: tuple[NumpyValue, ...],
        output: DynamicView,
    ) -> DynamicView:
        """The array that function(*inputs) returns."""
        self.instructions.append(Instruction("assign", function, inputs, output))
        return output

    def broadcast(self, value: NumpyValue, axes: Iterable[int]) -> NumpyValue:
        """The value repeated along further axes."""
        missing = sorted(set(axes).difference(value.dims))
        if not missing:
            return value
        all_axes = tuple(sorted({*value.dims, *missing}))
        shape = self.mesh(all_axes)
        if isinstance(value, Static):
            return static(np.broadcast_to(value.array, shape), all_axes)
        buffer = value.buffer if isinstance(value, View | DynamicView) else None
        output = DynamicView(value.dtype, shape, {axis: axis for axis in all_axes}, buffer)
        return self.assign(numpy_calls.broadcast(shape), (value,), output)

    # -- loads ----------------------------------------------------------------------------------

    def _load_form(self, load: Load) -> LoadForm | None:
        """The form of a load; None if it only gives zeros."""
        if load not in self._loads:
            self._loads[load] = load_form(load, self.extents, self.axes_of)
        return self._loads[load]

    def _load(self, load: Load) -> NumpyValue:
        form = self._load_form(load)
        if form is None:
            return static(np.zeros((), load.dtype))
        if form.is_dynamic:
            return self.dynamic_window(load.buffer, form.map)
        if form.positions is None:
            loaded: NumpyValue = strided_views.window(load.buffer, form.map, self.extents)
        else:
            loaded = self._gathered(form, load.buffer)
        return self._masked(loaded, form.guard)

    def _masked(self, loaded: NumpyValue, guard: Expr | None) -> NumpyValue:
        """What was loaded where the guard holds, else zero."""
        if guard is None:
            return loaded
        inputs = (loaded, self.value(guard))
        return self.write(numpy_calls.masked, inputs, loaded.dtype)

    def dynamic_window(self, buffer: Buffer, where: AccessMap) -> DynamicView:
        """The elements of an access map whose residual is a scalar that the run computes."""
        dtype = buffer.type.dtype
        shape, strides = strided_views.layout(where, self.extents, dtype.itemsize)
        dims = {axis: axis for axis in where.strides}
        output = DynamicView(dtype, shape, dims, buffer, strides)
        offset, leaves = offset_function(where.residual)
        function = numpy_calls.window_at(shape, dtype, strides, offset)
        inputs = (strided_views.whole(buffer), *map(self.value, leaves))
        return self.assign(function, inputs, output)

    def _gathered(self, form: LoadForm, buffer: Buffer) -> NumpyValue:
        where = form.map
        assert form.positions is not None
        positions = self.value(form.positions)
        axes = {axis: axis for axis in sorted({*positions.dims, *where.strides})}
        source = strided_views.sliding_window(buffer, where, self.extents)
        inputs = (source, self.window_index(positions, where))
        gather = numpy_calls.gathered(
            len(self.extents), tuple(positions.dims), tuple(where.strides)
        )
        return self.assign(
            gather, inputs, DynamicView(buffer.type.dtype, self.mesh(axes), axes, None)
        )

    def window_index(self, positions: NumpyValue, where: AccessMap) -> NumpyValue:
        """Positions as indices of the first dimension of the sliding window."""
        return self._with_number(np.add, positions, where.low) if where.low else positions


def _array_of(constant: Const) -> Array:
    if constant.bits:
        return np.frombuffer(constant.bits, constant.dtype).reshape(())
    return np.asarray(constant.value, constant.dtype)
