"""scan and map: loops over the leading axis of arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from tracegraph import errors, limits, tree
from tracegraph.arrays.array import Array
from tracegraph.control import slices
from tracegraph.control.carry import (
    advance,
    converted,
    detached,
    if_traceable,
    parameter_name,
    require_whole,
)
from tracegraph.control.regions import Tree, Types, current_for, flatten_checked, require_callable
from tracegraph.control.scan_tracing import Body, SettledTypes, settled_types, trace_scan
from tracegraph.control.schedules import LoopSchedule, loop_hints
from tracegraph.control.steps import Progress, steps_of
from tracegraph.errors.keywords import required_bool
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.types import type_of
from tracegraph.tracing.trace import Trace
from tracegraph.tracing.tracer import Tracer

__all__ = ["map", "scan"]

Function = Callable[..., Any]
_Carry = TypeVar("_Carry")
_Y = TypeVar("_Y")


@entry_point
def scan(
    f: Callable[[_Carry, Any], tuple[_Carry, _Y]],
    init: _Carry,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    progress: Progress = False,
    schedule: LoopSchedule | None = None,
    checkpoints: int | None = None,
) -> tuple[_Carry, _Y]:
    """The last carry and the stacked y of ``carry, y = f(carry, x)``, for each slice x of `xs`.

    Args:
        f: takes the carry and a slice of `xs`, and returns a pair: the next carry, of the same
            structure, shapes and dtypes, and a pytree of arrays and scalars.
        init: the first carry, as in `while_loop`.
        xs: a pytree of arrays with one leading extent, along which they are sliced.
        length: that extent; needed if `xs` has no arrays.
        reverse: go from the last slice to the first; each y keeps the position of its x.
        unroll: the number of slices that one iteration of the loop takes; True for all of them. It
            changes no result. `schedule` is about these iterations.
        progress: as in `while_loop`; a function gets the number of slices as its second argument.
        schedule: as in `while_loop`.
        checkpoints: as in `while_loop`, of the iterations of the loop.

    Returns:
        The last carry, and the y's as arrays with a new leading axis.

    Raises:
        ScanLengthError: the leading extents, or they and `length`, differ, or there is none.
        StaticLengthError: `length`, `unroll` or `checkpoints` is a traced value.
        ScanBodyError: `f` returned anything but a pair.
        NotCallableError, LeafTypeError, StructureError, LeafMismatchError, CheckpointsError,
            ProgressError, ScheduleError, UnschedulableError, TimeLimitError: as in `while_loop`.
        TypeError, ValueError: `unroll` is not an int, or is negative; `reverse` is neither True nor
            False.

    >>> import numpy as np
    >>> total, running = scan(lambda c, x: (c + x, c + x), 0, np.arange(1, 5))
    >>> print(total, running)
    10 [ 1  3  6 10]
    """
    require_callable("scan", {"f": f}, ["carry", "x"])
    carry = flatten_checked(init, "scan", parameter_name(f))
    stacked = flatten_checked(xs, "scan", "xs")
    count = _length("scan", stacked, length)
    steps = steps_of("scan", f, progress, count)
    hints = loop_hints("scan", schedule, checkpoints=checkpoints)

    def call(carry: Any, x: Any) -> tuple[Any, Any]:
        result = f(carry, x)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise errors.ScanBodyError(f, result)
        return result[0], result[1]

    body = Body("scan", f, call, parameter_name(f), "y", steps, hints)
    backwards = required_bool("reverse", reverse)
    return _scan(body, carry, stacked, count, backwards, _block_size(unroll, count))


@entry_point
def map(  # the construct's own name
    f: Function,
    xs: Any,
    *,
    progress: Progress = False,
    schedule: LoopSchedule | None = None,
) -> Any:
    """``f(x)`` for each slice x along the leading axis of the arrays of `xs`, stacked.

    Args:
        f: takes a slice of `xs` and returns a pytree of arrays and scalars.
        xs: a pytree of arrays with one leading extent.
        progress: as in `scan`.
        schedule: as in `while_loop`.

    Raises:
        ScanLengthError: the leading extents differ, or `xs` has no arrays.
        NotCallableError, LeafTypeError, ProgressError, ScheduleError, UnschedulableError,
            TimeLimitError: as in `scan`.

    >>> import numpy as np
    >>> map(lambda x: x * x, np.arange(4))
    array([0, 1, 4, 9])
    """
    require_callable("map", {"f": f}, ["x"])
    stacked = flatten_checked(xs, "map", "xs")
    count = _length("map", stacked, None)
    steps = steps_of("map", f, progress, count)
    hints = loop_hints("map", schedule)
    body = Body("map", f, lambda carry, x: (carry, f(x)), "carry", "result", steps, hints)
    return _scan(body, flatten_checked((), "map", "carry"), stacked, count, False, 1)[1]


def _length(construct: str, xs: Tree, length: Any) -> int:
    rows = list(zip(tree.paths(xs.structure, "xs"), xs.types, strict=True))
    if isinstance(length, Tracer):
        raise errors.StaticLengthError(construct, "length", length)
    flat = [row for row in rows if row[1].ndim == 0]
    if flat:
        problem = "every array of xs needs a leading axis to go along; let f capture these"
        raise errors.ScanLengthError(construct, problem, flat)
    extents = {t.shape[0] for t in xs.types}
    if length is not None:
        extents.add(_static_int("length", length))
    if not extents:
        needed = "pass length, the number of iterations" if construct == "scan" else "use fori_loop"
        raise errors.ScanLengthError(construct, f"xs has no arrays to go along; {needed}")
    if len(extents) > 1:
        needed = "equal" if length is None else f"length={length}"
        raise errors.ScanLengthError(construct, f"the leading extents of xs must be {needed}", rows)
    if (count := extents.pop()) < 0:
        raise errors.ScanLengthError(construct, f"length must not be negative: got {count}")
    return count


def _block_size(unroll: Any, count: int) -> int:
    """How many slices an iteration takes."""
    if isinstance(unroll, Tracer):
        raise errors.StaticLengthError("scan", "unroll", unroll)
    if isinstance(unroll, bool):
        return max(count, 1) if unroll else 1
    size = _static_int("unroll", unroll)
    if size < 0:
        raise ValueError(f"scan: unroll must be a bool or an int of at least 0, not {size}")
    return max(min(size, count), 1)


def _static_int(parameter: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        type_ = type_of(value) if isinstance(value, (float, complex, np.ndarray)) else None
        raise errors.IntegerError("scan", parameter, value, type_) from None


def _scan(
    body: Body, carry: Tree, xs: Tree, count: int, reverse: bool, size: int
) -> tuple[Any, Any]:
    trace = current_for((*carry.leaves, *xs.leaves))
    if trace is not None:
        return trace_scan(trace, body, carry, xs, count, reverse, size)
    return _run(body, carry, xs, count, reverse) if count else _run_nothing(body, carry, xs)


def _run(body: Body, carry: Tree, xs: Tree, count: int, reverse: bool) -> tuple[Any, Any]:
    state, ys = detached(carry), []
    unsettled = 0  # iterations that ran before the types of the carry had settled
    with body.steps.watch() as show:
        for done, i in enumerate(reversed(range(count)) if reverse else range(count), 1):
            limits.check()
            x = tree.unflatten(xs.structure, [_read_only(leaf[i]) for leaf in xs.leaves])
            after, y = body.call(state.unflatten(), x)
            ys.append(detached(body.flatten_y(y)))
            before = state
            types = partial(_carry_types, body, before, xs)
            state = advance(body.construct, body.function, state, after, body.name, types)
            if state.types != before.types:
                unsettled = done
                require_whole(body.construct, body.function, before, state, body.name, types)
            show(done)
    _require_alike(body, ys)
    if unsettled == count:
        state, dtypes = _settled(body, state, xs, ys)
    else:
        dtypes = _meeting(ys[unsettled:])
    ordered = ys[::-1] if reverse else ys
    columns = zip(*(y.leaves for y in ordered), strict=True)
    stacked = [slices.stack(*leaf) for leaf in zip(columns, dtypes, strict=True)]
    return state.unflatten(), tree.unflatten(ys[0].structure, stacked)


def _carry_types(body: Body, state: Tree, xs: Tree) -> Types:
    return settled_types(Trace(None), body, state, xs).carry


def _settled(
    body: Body, state: Tree, xs: Tree, ys: Sequence[Tree]
) -> tuple[Tree, list[np.dtype[Any]]]:
    """The last carry and the dtypes of y as tracing finds them: the last iteration changed them.

    A body that only plain Python can run has no such types.
    """
    types = if_traceable(lambda: settled_types(Trace(None), body, state, xs))
    if types is None:
        return state, _meeting(ys)
    return converted(state, types.carry), [type_.dtype for type_ in types.y]


def _meeting(ys: Sequence[Tree]) -> list[np.dtype[Any]]:
    """The common dtype of the values of each leaf."""
    return [slices.meeting(column) for column in zip(*(y.types for y in ys), strict=True)]


def _read_only(x: Any) -> Any:
    """A read-only slice: the body cannot write to the caller's array through it."""
    if isinstance(x, np.ndarray):
        x.setflags(write=False)
    return x


def _require_alike(body: Body, ys: Sequence[Tree]) -> None:
    """Check that the y's of all iterations have one structure, and leaves of one shape."""
    first = ys[0]
    function = errors.function_text(body.function)
    for i, y in enumerate(ys):
        labels = ("iteration 0", f"iteration {i}")
        if y.structure != first.structure:
            problem = f"{function} must return {body.result} of one structure"
            pairs = list(zip(labels, (first.structure, y.structure), strict=True))
            raise errors.StructureError(body.construct, problem, pairs, body.result)
        rows = [
            (path, list(zip(labels, types, strict=True)))
            for path, *types in zip(
                tree.paths(y.structure, body.result), first.types, y.types, strict=True
            )
            if types[0].shape != types[1].shape
        ]
        if rows:
            problem = f"{function} must return {body.result} of the same shapes each time"
            raise errors.LeafMismatchError(body.construct, problem, [], rows)


def _run_nothing(body: Body, carry: Tree, xs: Tree) -> tuple[Any, Any]:
    """No iterations: tracing the function finds what it would return; if only plain Python can run
    it, a call with zeros does.
    """
    types = if_traceable(lambda: settled_types(Trace(None), body, carry, xs))
    if types is None:
        types = _types_for_zeros(body, carry, xs)
    wrap: Callable[..., Any] = np.asarray
    if any(type(leaf) is Array for leaf in (*carry.leaves, *xs.leaves)):
        wrap = Array
    ys = [wrap(np.zeros((0, *type_.shape), type_.dtype)) for type_ in types.y]
    last = converted(detached(carry), types.carry)
    return last.unflatten(), tree.unflatten(types.structure, ys)


def _types_for_zeros(body: Body, carry: Tree, xs: Tree) -> SettledTypes:
    """The types that the function returns for the first carry and a slice of zeros."""
    rows = [np.zeros((1, *type_.shape[1:]), type_.dtype) for type_ in xs.types]
    given = [
        Array(row)[0] if type(leaf) is Array else _read_only(row[0])
        for leaf, row in zip(xs.leaves, rows, strict=True)
    ]
    first = detached(carry)
    try:
        with np.errstate(all="ignore"):
            after, y = body.call(first.unflatten(), tree.unflatten(xs.structure, given))
    except Exception as error:
        error.add_note(errors.no_slices_text(body.construct, body.function))
        raise
    types = partial(_carry_types, body, carry, xs)
    last = advance(body.construct, body.function, carry, after, body.name, types)
    found = body.flatten_y(y)
    return SettledTypes(last.types, found.types, found.structure)
