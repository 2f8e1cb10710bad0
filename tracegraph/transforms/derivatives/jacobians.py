"""Jacobians and Hessians: the linear map of tangents on all basis vectors, batched as by vmap.

The function itself runs once; the linear part alone is batched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any

import numpy as np

from tracegraph import errors, tree
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.trace import Trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.batching.batch import batch_region
from tracegraph.transforms.batching.flags import BatchedFlags
from tracegraph.transforms.batching.lanes import Batch, Lanes
from tracegraph.transforms.bodies import dense, region_of
from tracegraph.transforms.derivatives.activity import is_inexact
from tracegraph.transforms.derivatives.forward import require_inexact
from tracegraph.transforms.derivatives.reverse import (
    OTHER_KEYWORDS,
    positions,
    require_result,
)
from tracegraph.transforms.trace_emitter import Emit, plain
from tracegraph.transforms.transformed_calls import (
    TracedFunction,
    TransformCall,
    linearized,
    recorded_values,
    require_function,
    split_aux,
)

__all__ = ["hessian", "jacfwd", "jacrev"]

Function = Callable[..., Any]

_refuses_other_keywords = errors.refuses(
    **OTHER_KEYWORDS, allow_int="integers have no derivative: leave them out of argnums"
)
Columns = Callable[[Trace, Sequence[Any], Sequence[Any]], Sequence[Any]]

_INT64 = np.dtype(np.int64)


@_refuses_other_keywords
def jacfwd(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Function:
    """The function that returns the Jacobian, column by column: one tangent per input element.

    Args:
        fun: a function of pytrees of arrays.
        argnums: the position of the argument to differentiate by, or several, as in `grad`.
        has_aux: `fun` returns a pair, and only the first part is differentiated.
        holomorphic: arguments are complex, and the function complex differentiable.

    Returns:
        A function of the same arguments. In place of each leaf of the result, of shape `s`, it
        returns a tree like the argument (for several, a tuple of trees), in which a leaf of shape
        `t` is a Jacobian of shape ``s + t``; and aux if there is one.

    Raises:
        DifferentiatedTypeError: an argument is an integer, or complex while `holomorphic` is not
            set; or a result is an integer.
        ArgumentNumberError, DerivativeError: as in `grad`.

    All columns are computed side by side. A loop of unknown length cannot keep its steps: it runs
    once more, along with its tangents.

    >>> import numpy as np
    >>> jacfwd(lambda x: x * x[0])(np.array([2.0, 3.0]))
    array([[4., 0.],
           [3., 2.]])
    """
    return _jacobian("jacfwd", fun, argnums, has_aux, holomorphic, _by_columns)


@_refuses_other_keywords
def jacrev(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Function:
    """The function that returns the Jacobian, row by row: one cotangent per result element.

    Arguments and results are those of `jacfwd`. It is the faster one if the result has fewer
    elements than the argument. All rows are computed side by side.

    Raises:
        DifferentiatedTypeError: an argument or a result is an integer; or a result is complex
            while `holomorphic` is not set.
        ReverseLoopError: the number of steps of a loop is not known.
        ArgumentNumberError, DerivativeError: as in `grad`.

    >>> import numpy as np
    >>> jacrev(lambda x: x * x[0])(np.array([2.0, 3.0]))
    array([[4., 0.],
           [3., 2.]])
    """
    return _jacobian("jacrev", fun, argnums, has_aux, holomorphic, _by_rows)


@_refuses_other_keywords
def hessian(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Function:
    """The function that returns the matrix of second derivatives: `jacfwd` of `jacrev`.

    Arguments are those of `jacfwd`; a leaf of the result has the shape of the function's result,
    then that of the argument twice.

    >>> import numpy as np
    >>> hessian(lambda x: x[0] * x[1] ** 2)(np.array([2.0, 3.0]))
    array([[0., 6.],
           [6., 4.]])
    """
    rows = _jacobian("hessian", fun, argnums, has_aux, holomorphic, _by_rows)
    return _jacobian("hessian", rows, argnums, has_aux, holomorphic, _by_columns)


def _jacobian(
    transform: str,
    fun: Function,
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    record: Callable[..., tuple[list[Any], list[list[Any]]]],
) -> Function:
    require_function(transform, fun)

    @entry_point
    @wraps(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        call = TransformCall(
            transform, fun, args, kwargs, positions(transform, fun, argnums, len(args))
        )
        require_inexact(transform, call, False, holomorphic)
        structures: list[tree.Structure] = []

        def recorded(trace: Trace, leaves: Sequence[Any]) -> Sequence[Any]:
            run = split_aux(transform, fun, call.run) if has_aux else call.run
            traced = call.trace(transform, trace, run)
            structure = traced.result.structure
            structures[:] = structure.children() if has_aux else [structure, tree.structure(())]
            types = traced.types[: structures[0].num_leaves]
            if record is _by_rows:
                require_result(transform, fun, types, holomorphic)
            else:
                _require_types(transform, fun, call, types, holomorphic)
            outs, blocks = record(trace, traced, leaves, call, len(types))
            return [*outs[len(types) :], *(block for row in blocks for block in row)]

        values = recorded_values(transform, call.leaves, recorded)
        out, aux = structures
        blocks, rows = iter(values[aux.num_leaves :]), []
        for _ in range(out.num_leaves):
            parts = call.unflatten([next(blocks) for _ in range(call.count)])
            rows.append(tuple(parts) if isinstance(argnums, (tuple, list)) else parts[0])
        found = tree.unflatten(out, rows)
        return (found, tree.unflatten(aux, values[: aux.num_leaves])) if has_aux else found

    return jacobian


def _require_types(
    transform: str,
    fun: Function,
    call: TransformCall,
    types: Sequence[ArrayType],
    holomorphic: bool,
) -> None:
    for path, type_ in zip(call.paths, call.types, strict=False):
        if type_.dtype.kind == "c" and not holomorphic:
            raise errors.DifferentiatedTypeError(
                transform,
                f"{path} of {errors.function_text(fun)} is {type_}; set holomorphic if the "
                "function is complex differentiable, or pass real and imaginary parts",
            )
    for type_ in types:
        if not is_inexact(type_):
            raise errors.DifferentiatedTypeError(
                transform, f"{errors.function_text(fun)} returned {type_}, which has no derivative"
            )


def _by_columns(
    trace: Trace, traced: TracedFunction, leaves: Sequence[Any], call: TransformCall, count: int
) -> tuple[list[Any], list[list[Any]]]:
    """The results, and for each of the first `count` its Jacobians by the arguments."""
    inputs = call.types[: call.count]
    types = traced.types[:count]
    active = [i < call.count for i in range(len(leaves))]
    outs, linear = linearized(trace, traced, leaves, active, count)

    def columns(inner: Trace, directions: Sequence[Any], values: Sequence[Any]) -> Any:
        given = [*directions, *[None] * (len(active) - len(directions))]
        there = linear.with_residuals(values)
        return dense(inner, types, there.apply(inner, given))

    stacked = _on_basis(trace, inputs, linear.residuals, columns)
    emit = Emit(trace)
    return outs, [
        [
            _moved_last(emit, _rows(emit, column, start, t), t)
            for start, t in zip(_starts(inputs), inputs, strict=True)
        ]
        for column in stacked
    ]


def _by_rows(
    trace: Trace, traced: TracedFunction, leaves: Sequence[Any], call: TransformCall, count: int
) -> tuple[list[Any], list[list[Any]]]:
    inputs, types = call.types[: call.count], traced.types[:count]
    active = [i < call.count for i in range(len(leaves))]
    outs, linear = linearized(trace, traced, leaves, active, count)

    def rows(inner: Trace, directions: Sequence[Any], values: Sequence[Any]) -> Any:
        there = linear.with_residuals(values)
        return dense(inner, inputs, there.transpose(inner, directions)[: len(inputs)])

    stacked = _on_basis(trace, types, linear.residuals, rows)
    emit = Emit(trace)
    return outs, [
        [
            emit.reshape(_rows(emit, each, start, t), shape=(*t.shape, *each.shape[1:]))
            for each in stacked
        ]
        for start, t in zip(_starts(types), types, strict=True)
    ]


def _on_basis(
    trace: Trace, types: Sequence[ArrayType], captured: Sequence[Any], record: Columns
) -> Sequence[Tracer]:
    """What `record(trace, vectors, captured)` returns for each basis vector, stacked.

    A basis vector is an array for each type, with a single one among all elements.
    """
    total = sum(t.size for t in types)
    given = [plain(trace, x) for x in captured]

    def body(inner: Trace, params: list[Tracer]) -> Sequence[Any]:
        return record(inner, params[: len(types)], params[len(types) :])

    region = region_of(trace, [*types, *(x.type for x in given)], body)
    emit, lanes = Emit(trace), Lanes(trace, total, BatchedFlags())
    vectors = [_units(emit, total, s, t) for s, t in zip(_starts(types), types, strict=True)]
    operands = [Batch(x.atom, True) for x in vectors] + [Batch(x.atom, False) for x in given]
    found = batch_region(lanes, region, operands)
    return [Tracer(trace, lanes.spread(x.atom, x.is_batched)) for x in found]


def _starts(types: Sequence[ArrayType]) -> list[int]:
    """The number of the first element of each array among the elements of all."""
    return [sum(t.size for t in types[:i]) for i in range(len(types))]


def _units(emit: Emit, total: int, start: int, type_: ArrayType) -> Any:
    """For each of `total` basis vectors, the part of one array, whose first element is `start`."""
    numbers = emit.reshape(emit.iota(size=total, dtype=_INT64), shape=(total, 1))
    places = emit.iota(size=type_.size, dtype=_INT64)
    here = emit.equal(numbers, emit.add(places, np.int64(start)))
    units = emit.where(here, type_.dtype.type(1), type_.dtype.type(0))
    return emit.reshape(units, shape=(total, *type_.shape))


def _rows(emit: Emit, stacked: Any, start: int, type_: ArrayType) -> Any:
    """Those rows of a stack that belong to an array."""
    shape = stacked.shape[1:]
    starts, steps = (start, *(0 for _ in shape)), (1,) * stacked.ndim
    return emit.slice(stacked, starts=starts, steps=steps, sizes=(type_.size, *shape))


def _moved_last(emit: Emit, rows: Any, type_: ArrayType) -> Any:
    """The leading axis at the end, as the axes of the argument."""
    moved = emit.transpose(rows, axes=(*range(1, rows.ndim), 0))
    assert moved.shape[-1] == prod(type_.shape)
    return emit.reshape(moved, shape=(*moved.shape[:-1], *type_.shape))
