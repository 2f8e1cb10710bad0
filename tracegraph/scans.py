"""Loops over the leading axis of arrays: scan and map."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tracegraph import errors, interpret, tree
from tracegraph.carry import advance, detached, parameter_name, traced_until_stable
from tracegraph.op import get
from tracegraph.ops import control as ops
from tracegraph.regions import (
    Traced,
    Tree,
    Types,
    cast_results,
    current_for,
    require_callable,
    take_apart,
    trace_tree,
    unify_captures,
)
from tracegraph.trace import Trace, bind, cast, current_trace, trace_program
from tracegraph.tracer import Tracer
from tracegraph.types import ArrayType, result_type, type_of

Function = Callable[..., Any]


def scan(
    f: Function,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """The last carry and the stacked y of ``carry, y = f(carry, x)``, for each slice x of `xs`.

    Args:
        f: takes the carry and a slice of `xs`, and returns a pair: the next carry, of the same
            structure, shapes and dtypes, and a pytree of arrays and scalars.
        init: the first carry, as in `while_loop`.
        xs: a pytree of arrays with one leading extent, along which they are sliced.
        length: that extent; needed if `xs` has no arrays.
        reverse: go from the last slice to the first; each y still stands where its x does.
        unroll: how many slices one iteration of the loop takes; True for all of them. It changes no
            result.

    Returns:
        The last carry, and the y's as arrays with a new leading axis.

    Raises:
        ScanLengthError: the leading extents, or they and `length`, differ, or there is none.
        StaticLengthError: `length` or `unroll` is a traced value.
        ScanBodyError: `f` returned anything but a pair.
        NotCallableError, LeafTypeError, StructureError, LeafMismatchError: as in `while_loop`.
        TypeError, ValueError: `unroll` is not an int, or is negative.

    >>> import numpy as np
    >>> total, running = scan(lambda c, x: (c + x, c + x), 0, np.arange(1, 5))
    >>> print(total, running)
    10 [ 1  3  6 10]
    """
    require_callable("scan", {"f": f})
    name = parameter_name(f)
    carry = take_apart(init, "scan", name)
    stacked = take_apart(xs, "scan", "xs")
    count = _length(stacked, length)
    step = _step(unroll, count)
    trace = current_for((*carry.leaves, *stacked.leaves))
    if trace is not None:
        return _trace(trace, f, carry, stacked, count, reverse, step)
    return _run(f, carry, stacked, count, reverse, name)


def map(f: Function, xs: Any) -> Any:  # the construct's own name
    """``f(x)`` for each slice x along the leading axis of the arrays of `xs`, stacked.

    Args:
        f: takes a slice of `xs` and returns a pytree of arrays and scalars.
        xs: a pytree of arrays with one leading extent.

    Raises:
        ScanLengthError: the leading extents differ, or `xs` has no arrays.
        NotCallableError, LeafTypeError: as in `scan`.

    >>> import numpy as np
    >>> map(lambda x: x * x, np.arange(4))
    array([0, 1, 4, 9])
    """
    require_callable("map", {"f": f})
    return scan(lambda carry, x: (carry, f(x)), (), xs)[1]


def _length(xs: Tree, length: Any) -> int:
    paths = tree.paths(xs.structure, "xs")
    rows = list(zip(paths, xs.types, strict=True))
    if isinstance(length, Tracer):
        raise errors.StaticLengthError("length", length)
    flat = [row for row in rows if row[1].ndim == 0]
    if flat:
        raise errors.ScanLengthError("every array of xs needs a leading axis to go along", flat)
    extents = {t.shape[0] for t in xs.types}
    if length is not None:
        extents.add(operator.index(length))
    if not extents:
        raise errors.ScanLengthError("xs has no arrays; pass length, the number of iterations")
    if len(extents) > 1:
        needed = "equal" if length is None else f"length={length}"
        raise errors.ScanLengthError(f"the leading extents of xs must be {needed}", rows)
    if (count := extents.pop()) < 0:
        raise errors.ScanLengthError(f"length must not be negative: got {count}")
    return count


def _step(unroll: Any, count: int) -> int:
    if isinstance(unroll, Tracer):
        raise errors.StaticLengthError("unroll", unroll)
    if isinstance(unroll, bool):
        return max(count, 1) if unroll else 1
    step = operator.index(unroll)
    if step < 0:
        raise ValueError(f"scan: unroll must be a bool or an int of at least 0, not {step}")
    return max(min(step, count), 1)


def _pair(f: Function, carry: Any, x: Any) -> tuple[Any, Any]:
    result = f(carry, x)
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise errors.ScanBodyError(f, result)
    return result[0], result[1]


def _run(
    f: Function, carry: Tree, xs: Tree, count: int, reverse: bool, name: str
) -> tuple[Any, Any]:
    if count == 0:
        return _run_nothing(f, carry, xs)
    state, steps = detached(carry), []
    for i in reversed(range(count)) if reverse else range(count):
        x = tree.unflatten(xs.structure, [leaf[i] for leaf in xs.leaves])
        after, y = _pair(f, tree.unflatten(state.structure, state.leaves), x)
        steps.append(detached(take_apart(y, "scan", "y")))
        state = advance("scan", f, state, after, name)
    structure = steps[0].structure
    for i, step in enumerate(steps):
        if step.structure != structure:
            first, other = ("first", structure), (f"iteration {i}", step.structure)
            problem = f"{errors.function_text(f)} must return y of one structure"
            raise errors.StructureError("scan", problem, first, other, "y")
    ordered = steps[::-1] if reverse else steps
    ys = [_stack(column) for column in zip(*(step.leaves for step in ordered), strict=True)]
    return tree.unflatten(state.structure, state.leaves), tree.unflatten(structure, ys)


def _run_nothing(f: Function, carry: Tree, xs: Tree) -> tuple[Any, Any]:
    """No iterations: what `f` would return has to be found by tracing it."""
    structures = []
    split = len(carry.leaves)

    def flat(*leaves: Tracer) -> Sequence[Any]:
        init = tree.unflatten(carry.structure, leaves[:split])
        result = scan(f, init, tree.unflatten(xs.structure, leaves[split:]), 0)
        structures.append(tree.structure(result))
        return tree.leaves(result)

    program = trace_program(flat, (*carry.types, *xs.types), "scan")
    arrays = interpret.run(program, *(np.asarray(leaf) for leaf in (*carry.leaves, *xs.leaves)))
    leaves = [a.item() if t.weak else a[()] for a, t in zip(arrays, program.out_types, strict=True)]
    last, ys = tree.unflatten(structures[0], leaves)
    return last, ys


def _trace(
    trace: Trace, f: Function, carry: Tree, xs: Tree, count: int, reverse: bool, step: int
) -> tuple[Any, Any]:
    """Where `step` is above 1, a scan over blocks of that size, and one over what is left."""
    if step == 1:
        return _record(trace, f, carry, xs, count, reverse)
    whole, rest = divmod(count, step)
    parts = [(0, whole, step), (whole * step, 1, rest)] if rest else [(0, whole, step)]
    pieces = []
    for start, blocks, size in reversed(parts) if reverse else parts:
        leaves = tuple(_blocks(leaf, start, blocks, size) for leaf in xs.leaves)
        part = Tree(leaves, tuple(type_of(leaf) for leaf in leaves), xs.structure)
        last, ys = _record(trace, _over_block(f, size, reverse), carry, part, blocks, reverse)
        carry = take_apart(last, "scan", "carry")
        pieces.append(tree.map(_merge_blocks, ys))
    ordered = pieces[::-1] if reverse else pieces
    return last, tree.map(lambda *ys: _apply("concatenate", *ys, axis=0), *ordered)


def _over_block(f: Function, size: int, reverse: bool) -> Function:
    """A body over blocks of `size` slices, which returns a block of y's."""

    def body(carry: Any, block: Any) -> tuple[Any, Any]:
        ys = []
        for i in reversed(range(size)) if reverse else range(size):
            carry, y = _pair(f, carry, tree.map(lambda leaf: _slice(leaf, i), block))  # noqa: B023
            ys.append(y)
        ordered = ys[::-1] if reverse else ys
        return carry, tree.map(lambda *column: _stack(column), *ordered)

    return body


def _record(
    trace: Trace, f: Function, carry: Tree, xs: Tree, count: int, reverse: bool
) -> tuple[Any, Any]:
    split = len(carry.leaves)
    slices = tuple(t.with_shape(t.shape[1:]) for t in xs.types)
    name = parameter_name(f)

    def body(types: Types) -> Traced:
        def call(leaves: Sequence[Any]) -> Any:
            x = tree.unflatten(xs.structure, leaves[split:])
            pair = _pair(f, tree.unflatten(carry.structure, leaves[:split]), x)
            take_apart(pair[0], "scan", name)
            return pair

        return trace_tree(call, (*types, *slices), trace, "scan")

    traced, types = traced_until_stable("scan", body, f, carry, name)
    init = [cast(trace, trace.read(x), t.dtype) for x, t in zip(carry.leaves, types, strict=True)]
    (region,), captures = unify_captures([traced])
    region = cast_results(region, (*types, *traced.types[split:]))
    operands = (*init, *(trace.read(x) for x in xs.leaves), *captures)
    attrs = {"carry": split, "xs": len(slices), "length": count, "reverse": bool(reverse)}
    outputs = trace.record(ops.scan, operands, attrs, (region,))
    after, y = traced.structure.children()
    return tree.unflatten(after, outputs[:split]), tree.unflatten(y, outputs[split:])


def _apply(name: str, *args: Any, **attrs: Any) -> Any:
    """Run an op now, or record it even if it could run now: what is traced stays in the program."""
    trace = current_trace()
    return get(name)(*args, **attrs) if trace is None else bind(trace, get(name), args, attrs)


def _blocks(x: Any, start: int, blocks: int, size: int) -> Any:
    shape = type_of(x).shape[1:]
    zeros, ones = (0,) * len(shape), (1,) * len(shape)
    attrs = {"starts": (start, *zeros), "steps": (1, *ones), "sizes": (blocks * size, *shape)}
    return _apply("reshape", _apply("slice", x, **attrs), shape=(blocks, size, *shape))


def _merge_blocks(ys: Any) -> Any:
    blocks, size, *shape = type_of(ys).shape
    return _apply("reshape", ys, shape=(blocks * size, *shape))


def _slice(x: Any, i: int) -> Any:
    shape = type_of(x).shape[1:]
    zeros, ones = (0,) * len(shape), (1,) * len(shape)
    attrs = {"starts": (i, *zeros), "steps": (1, *ones), "sizes": (1, *shape)}
    return _apply("reshape", _apply("slice", x, **attrs), shape=shape)


def _stack(leaves: Sequence[Any]) -> Any:
    types = [type_of(leaf) for leaf in leaves]
    dtype = reduce(lambda a, b: ArrayType(result_type(a, b), (), a.weak and b.weak), types).dtype
    rows = [
        _apply(
            "reshape",
            leaf if t.dtype == dtype else _apply("cast", leaf, dtype=dtype),
            shape=(1, *t.shape),
        )
        for leaf, t in zip(leaves, types, strict=True)
    ]
    return _apply("concatenate", *rows, axis=0)
