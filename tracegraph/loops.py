"""Loops whose number of iterations may depend on data: while_loop and fori_loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracegraph import errors, tree
from tracegraph.carry import advance, detached, parameter_name, traced_until_stable
from tracegraph.ir import Literal
from tracegraph.op import get
from tracegraph.ops import control as ops
from tracegraph.regions import (
    Traced,
    Tree,
    Types,
    cast_results,
    current_for,
    join,
    require_callable,
    take_apart,
    trace_tree,
    unify_captures,
)
from tracegraph.trace import Trace, cast
from tracegraph.tracer import Tracer
from tracegraph.types import ArrayType, type_of

Function = Callable[..., Any]


def while_loop(cond_fun: Function, body_fun: Function, init: Any) -> Any:
    """The carry after replacing it by ``body_fun(carry)`` for as long as ``cond_fun(carry)`` holds.

    Args:
        cond_fun: takes the carry and returns a boolean scalar. It is tested first: zero iterations
            are possible.
        body_fun: takes the carry and returns the next, of the same structure, shapes and dtypes.
        init: the first carry, a pytree of arrays and scalars. Python scalars in it take the type
            that the body gives them. It is never written to.

    Raises:
        NotCallableError: `cond_fun` or `body_fun` is not callable.
        ConditionError: `cond_fun` returned anything but a boolean scalar.
        LeafTypeError: the carry has a leaf that is no array.
        StructureError: the body returned another structure than that of the carry.
        LeafMismatchError: the body returned other types than those of the carry.

    >>> while_loop(lambda n: n < 100, lambda n: 2 * n, 3)
    192
    """
    require_callable("while_loop", {"cond_fun": cond_fun, "body_fun": body_fun})
    name = parameter_name(body_fun)
    carry = take_apart(init, "while_loop", name)
    trace = current_for(carry.leaves)
    if trace is None:
        return _run_while(cond_fun, body_fun, carry, name)

    def condition(leaves: Sequence[Any]) -> Any:
        return _condition(cond_fun, tree.unflatten(carry.structure, leaves))

    def body(types: Types) -> Traced:
        def call(leaves: Sequence[Any]) -> Any:
            after = body_fun(tree.unflatten(carry.structure, leaves))
            take_apart(after, "while_loop", name)
            return after, ()

        return trace_tree(call, types, trace, "while_loop")

    traced, types = traced_until_stable("while_loop", body, body_fun, carry, name)
    tested = trace_tree(condition, types, trace, "while_loop")
    results = _record(trace, tested, traced, carry.leaves, types, {})
    return tree.unflatten(carry.structure, results)


def fori_loop(lower: Any, upper: Any, body_fun: Function, init: Any) -> Any:
    """The carry after replacing it by ``body_fun(i, carry)`` for i = lower, …, upper - 1.

    Args:
        lower: the first i: an integer scalar.
        upper: the end of i, of the same integer type; where it is not above `lower`, there are no
            iterations. If both are known while tracing, so is the number of iterations.
        body_fun: takes i and the carry and returns the next carry, as in `while_loop`.
        init: the first carry, as in `while_loop`.

    Raises:
        IntegerError: a bound is not an integer scalar.
        LeafMismatchError: the bounds differ in type, or the carry in and out.
        NotCallableError, LeafTypeError, StructureError: as in `while_loop`.

    >>> fori_loop(1, 5, lambda i, product: product * i, 1)
    24
    """
    require_callable("fori_loop", {"body_fun": body_fun})
    counter = _counter_type(lower, upper)
    name = parameter_name(body_fun, 1)
    carry = take_apart(init, "fori_loop", name)
    trace = current_for((lower, upper, *carry.leaves))
    if trace is None:
        return _run_for(lower, upper, counter, body_fun, carry, name)
    return _trace_for(trace, (lower, upper), counter, body_fun, carry, name)


def _run_while(cond_fun: Function, body_fun: Function, carry: Tree, name: str) -> Any:
    state = detached(carry)
    while _condition(cond_fun, tree.unflatten(state.structure, state.leaves)):
        after = body_fun(tree.unflatten(state.structure, state.leaves))
        state = advance("while_loop", body_fun, state, after, name)
    return tree.unflatten(state.structure, state.leaves)


def _condition(cond_fun: Function, carry: Any) -> Any:
    result = cond_fun(carry)
    try:
        type_ = type_of(result)
    except (TypeError, OverflowError):
        raise errors.ConditionError(cond_fun, errors.value_text(result)) from None
    if type_.dtype != np.bool_ or type_.shape != ():
        raise errors.ConditionError(cond_fun, str(type_))
    return result


def _counter_type(lower: Any, upper: Any) -> ArrayType:
    types = []
    for parameter, value in (("lower", lower), ("upper", upper)):
        try:
            type_ = type_of(value)
        except (TypeError, OverflowError):
            raise errors.IntegerError("fori_loop", parameter, value, None) from None
        if type_.dtype.kind not in "iu" or type_.shape != ():
            raise errors.IntegerError("fori_loop", parameter, value, type_)
        types.append(type_)
    joined = join(*types)
    if joined is None:
        rows = [("bounds", list(zip(("lower", "upper"), types, strict=True)))]
        raise errors.LeafMismatchError("fori_loop", "the bounds must have one type", [], rows)
    return joined


def _run_for(
    lower: Any, upper: Any, counter: ArrayType, body_fun: Function, carry: Tree, name: str
) -> Any:
    state = detached(carry)
    for number in range(int(lower), int(upper)):
        i = number if counter.weak else counter.dtype.type(number)
        after = body_fun(i, tree.unflatten(state.structure, state.leaves))
        state = advance("fori_loop", body_fun, state, after, name)
    return tree.unflatten(state.structure, state.leaves)


def _trace_for(
    trace: Trace,
    bounds: tuple[Any, Any],
    counter: ArrayType,
    body_fun: Function,
    carry: Tree,
    name: str,
) -> Any:
    """A while_loop whose last carry is the counter."""
    lower, upper = (trace.read(bound) for bound in bounds)

    def condition(leaves: Sequence[Any]) -> Any:
        return get("less")(leaves[-1], bounds[1])

    def body(types: Types) -> Traced:
        def call(leaves: Sequence[Any]) -> Any:
            *state, i = leaves
            after = body_fun(i, tree.unflatten(carry.structure, state))
            take_apart(after, "fori_loop", name)
            return after, get("add")(i, 1)

        return trace_tree(call, (*types, counter), trace, "fori_loop")

    traced, types = traced_until_stable("fori_loop", body, body_fun, carry, name)
    attrs = {}
    if isinstance(lower, Literal) and isinstance(upper, Literal):
        attrs["trip_count"] = max(int(upper.value) - int(lower.value), 0)
    tested = trace_tree(condition, (*types, counter), trace, "fori_loop")
    leaves = (*carry.leaves, bounds[0])
    *state, _ = _record(trace, tested, traced, leaves, (*types, counter), attrs)
    return tree.unflatten(carry.structure, state)


def _record(
    trace: Trace,
    condition: Traced,
    body: Traced,
    leaves: Sequence[Any],
    types: Types,
    attrs: Mapping[str, Any],
) -> tuple[Tracer, ...]:
    init = [cast(trace, trace.read(x), t.dtype) for x, t in zip(leaves, types, strict=True)]
    (tested, stepped), captures = unify_captures([condition, body])
    regions = (tested, cast_results(stepped, types))
    attrs = {"carry": len(init), **attrs}
    return trace.record(ops.while_loop, (*init, *captures), attrs, regions)
