"""Nests as instructions: one function for each kind of nest."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from lowering.host.arena import Array
from lowering.host.interpreter import numpy_calls, strided_views
from lowering.host.interpreter.access_maps import access_map
from lowering.host.interpreter.evaluate import Evaluator
from lowering.host.interpreter.instructions import (
    Condition,
    DynamicView,
    Instruction,
    NumpyValue,
    View,
    static,
)
from lowering.host.interpreter.nest_program import extents_of
from lowering.host.interpreter.reports import report_function
from lowering.plan.nests.kernel import (
    Accumulator,
    MapNest,
    Nest,
    ReduceNest,
    RowNest,
    ScanNest,
    ScatterNest,
    SetCondition,
    Signal,
    Store,
)
from lowering.plan.plan import Plan
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import Combiner
from tracegraph.ir.scalar import FALSE, TRUE, Expr


@dataclass(frozen=True, slots=True)
class _Scattered:
    """A store to positions that data decides, or that may repeat."""

    window: View
    positions: NumpyValue
    axes: tuple[int, ...]


_Target = View | DynamicView | _Scattered


def evaluate(nest: Nest, plan: Plan) -> Evaluator:
    """The instructions of a nest; its signals are those of `plan`."""
    run = Evaluator(extents_of(nest))
    rank = len(nest.space)
    loop = range(rank, len(run.extents))
    match nest:
        case MapNest(stores=stores, signals=signals):
            _finish(run, stores, signals, plan, rank)
        case ReduceNest(stores=stores, signals=signals):
            values = [_fold(run, accumulator, loop) for accumulator in nest.accumulators]
            with run.accumulators(values):
                _finish(run, stores, signals, plan, rank)
        case RowNest():
            _rows(run, nest, plan, loop)
        case ScanNest():
            _scan(run, nest)
        case ScatterNest():
            _scatter(run, nest)
    return run


def _rows(run: Evaluator, nest: RowNest, plan: Plan, loop: Sequence[int]) -> None:
    rank, values = len(nest.space), list[NumpyValue]()
    with ExitStack() as known:
        for each in nest.passes:
            folded = [_fold(run, a, loop) for a in each.accumulators]
            _finish(run, each.stores, (), plan, len(run.extents))
            values += folded
            known.enter_context(run.accumulators(values))
        _finish(run, nest.stores, nest.signals, plan, rank)


def _fold(run: Evaluator, accumulator: Accumulator, loop: Sequence[int]) -> NumpyValue:
    """The final value of an accumulator over the axes of the loop."""
    combiner, dtype = accumulator.combiner, accumulator.value.dtype
    result = np.dtype(np.int64) if accumulator.arg else dtype
    if any(run.extents[axis] == 0 for axis in loop):
        return static(np.asarray(combiner.identity(dtype), dtype))
    value = run.value(accumulator.value)
    along = [axis for axis in loop if run.extents[axis] > 1]
    if not along:
        return static(np.zeros((), result)) if accumulator.arg else _of_one(run, combiner, value)
    value = run.broadcast(value, along)
    kept = [axis for axis in value.dims if axis not in loop]
    function = (
        numpy_calls.positioned(combiner.ufunc, len(run.extents) - len(loop))
        if accumulator.arg
        else numpy_calls.folded(combiner.ufunc, dtype, tuple(along) if kept else None)
    )
    output = run.temporary(result, kept)
    run.instructions.append(Instruction("write", function, (value,), output))
    return output


def _of_one(run: Evaluator, combiner: Combiner, value: NumpyValue) -> NumpyValue:
    """The fold of one element, which NumPy combines with the identity: 0 + -0.0 is 0.0."""
    dtype = value.dtype
    if dtype.kind in "biu" or combiner.ufunc not in (np.add, np.multiply):
        return value
    return run.write(combiner.ufunc, (static(np.asarray(combiner.identity(dtype))), value), dtype)


def _scan(run: Evaluator, nest: ScanNest) -> None:
    rank, axis = len(nest.space), nest.axis
    target = _target(run, nest.store, rank)
    value = run.value(nest.store.value)
    if run.extents[axis] > 1:
        value = run.broadcast(value, [axis])
        function = numpy_calls.accumulated(nest.combiner.ufunc, axis)
        running = run.temporary(value.dtype, value.dims)
        run.instructions.append(Instruction("write", function, (value,), running))
        value = running
    guard = _guard(nest.store)
    _store(run, rank, target, (value,) if guard is None else (value, run.value(guard)))


def _scatter(run: Evaluator, nest: ScatterNest) -> None:
    rank = len(nest.space)
    store, combiner = nest.store, nest.combiner
    if store.guard is FALSE:
        return
    target = _target(run, store, rank, range(nest.repeats))
    ufunc = None if combiner is None else combiner.ufunc
    _store(run, rank, target, _operands(run, store), ufunc, bool(nest.repeats))


def _finish(
    run: Evaluator,
    stores: Sequence[Store],
    signals: Sequence[Signal],
    plan: Plan,
    rank: int,
) -> None:
    """Evaluate everything, then append the signals and the stores."""
    live = [store for store in stores if store.guard is not FALSE]
    targets = [_target(run, store, rank) for store in live]
    operands = [_operands(run, store) for store in live]
    for signal in signals:
        value = run.value(signal.value)
        if isinstance(signal, SetCondition):
            condition = Condition(value.dtype, (), {}, signal.condition)
            made = Instruction("assign", numpy_calls.number, (value,), condition)
        else:
            made = Instruction("effect", report_function(signal, plan), (value,))
        run.instructions.append(made)
    for target, values in zip(targets, operands, strict=True):
        _store(run, rank, target, values)


def _target(run: Evaluator, store: Store, rank: int, ordered: Sequence[int] = ()) -> _Target | None:
    """The target of a store: a view of its buffer, or positions in it; None if nothing fits."""
    buffer, guard = store.buffer, _guard(store)
    where = access_map(buffer, store.indices, run.extents, run.axes_of)
    guarded = frozenset() if guard is None else run.axes_of(guard)
    if not ordered and guarded.issubset(where.strides) and where.fits(buffer.type.size):
        return strided_views.window(buffer, where, run.extents)
    if not ordered and guard is None and not where.axes and where.fixed is None:
        return run.dynamic_window(buffer, where)
    axes = where.axes | guarded | {axis for axis in ordered if run.extents[axis] > 1}
    where = access_map(buffer, store.indices, run.extents, run.axes_of, axes)
    if buffer.type.size <= where.high - where.low:
        return None
    positions = run.window_index(run.value(where.residual), where)
    used = tuple(a for a in range(rank) if run.extents[a] > 1 and a not in where.strides)
    return _Scattered(strided_views.sliding_window(buffer, where, run.extents), positions, used)


def _store(
    run: Evaluator,
    rank: int,
    target: _Target | None,
    operands: tuple[NumpyValue, ...],
    combine: np.ufunc | None = None,
    repeats: bool = False,
) -> None:
    """Append the store of operands = (value[, guard])."""
    if isinstance(target, _Scattered):
        extents = (*run.extents[:rank], *(1 for _ in run.extents[rank:]))
        window = target.window
        spread = _spread(window) if repeats and combine is not None else None
        arguments = (extents, target.axes, tuple(window.dims), combine, spread)
        scatter = numpy_calls.scattered(*arguments)
        output = window if spread is None else strided_views.whole(window.buffer)
        inputs = (target.positions, *operands)
        run.instructions.append(Instruction("write", scatter, inputs, output))
    elif target is not None:
        plain = numpy_calls.store if len(operands) == 1 else numpy_calls.store_where
        store = plain if combine is None else numpy_calls.combined(combine)
        run.instructions.append(Instruction("write", store, operands, target))


def _spread(window: View) -> Array:
    """Elements from the start of the buffer to each element of the first window."""
    distances: Array = np.array(window.offset // window.dtype.itemsize)
    for extent, stride in zip(window.shape[1:], window.strides[1:], strict=True):
        steps = np.arange(extent) * (stride // window.dtype.itemsize)
        distances = np.add.outer(distances, steps)
    return distances.reshape(-1)


def _operands(run: Evaluator, store: Store) -> tuple[NumpyValue, ...]:
    """The value of a store and, if it has one, its guard."""
    guard = _guard(store)
    value = run.value(store.value)
    return (value,) if guard is None else (value, run.value(guard))


def _guard(store: Store) -> Expr | None:
    return None if store.guard is TRUE else store.guard
