"""while_loop and fori_loop: loops whose number of iterations may depend on data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import numpy as np

from tracegraph import errors, limits, tree
from tracegraph.arrays.eager import apply
from tracegraph.control.carry import (
    advance,
    detached,
    parameter_name,
    require_whole,
    settled,
    traced_until_stable,
)
from tracegraph.control.ownership import owned, read_only
from tracegraph.control.regions import (
    TracedRegion,
    Tree,
    Types,
    cast_results,
    current_for,
    flatten_checked,
    join,
    require_callable,
    settled_axes,
    trace_tree,
    traced_with_carry,
    unify_captures,
    with_token,
)
from tracegraph.control.schedules import LoopSchedule, loop_hints
from tracegraph.control.steps import OnMaxSteps, Progress, Steps, bounded_steps, counted_steps
from tracegraph.errors.tracebacks import entry_point
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.effects import TOKEN, forbidden_in
from tracegraph.ir.op import get
from tracegraph.ir.program import Hints, Literal
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.ir.varying import Sets
from tracegraph.ops import control as ops
from tracegraph.tracing.trace import Trace, bind, cast
from tracegraph.tracing.tracer import Tracer

__all__ = ["fori_loop", "while_loop"]

Function = Callable[..., Any]
Leaves = Sequence[Any]
_T = TypeVar("_T")

_ZERO = np.int64(0)
_UNSIGNED = np.dtype(np.uint64)


@entry_point
def while_loop(
    cond_fun: Callable[[_T], Any],
    body_fun: Callable[[_T], _T],
    init: _T,
    *,
    max_steps: int | None = None,
    on_max_steps: OnMaxSteps = "raise",
    progress: Progress = False,
    schedule: LoopSchedule | None = None,
    unroll: int | None = None,
    checkpoints: int | None = None,
) -> _T:
    """The carry after replacing it by ``body_fun(carry)`` while ``cond_fun(carry)`` holds.

    Args:
        cond_fun: takes the carry and returns a boolean scalar. It is tested first: zero iterations
            are possible. It must not print, nor have any other effect.
        body_fun: takes the carry and returns the next, of the same structure, shapes and dtypes. It
            may write to the carry, which is its own: ``c[i] = v``, ``c += 1``.
        init: the first carry, a pytree of arrays and scalars. Python scalars in it take the type
            that the body gives them; an eager loop that ends before it is known, such as one of no
            iterations, traces the body to find it, and leaves them as they are if only plain
            Python can run the body. `init` is never written to.
        max_steps: how often `body_fun` runs at most.
        on_max_steps: what happens if `cond_fun` still holds then: ``"raise"`` an error where the
            results are waited for, or ``"stop"`` and return the carry as it is.
        progress: True for a progress bar, a string for one of that label, or a function that is
            called with the number of steps so far and None. On a device it is called now and then,
            from another thread.
        schedule: ``"conditional"``: a node of the graph repeats one step; ``"unrolled"``: the node
            repeats several steps, and those past the end return at once; ``"one_kernel"``: one
            kernel makes all steps; ``"per_lane"``: one kernel, each thread of which makes all steps
            of one element; None: what is estimated to be faster. It changes no result.
        unroll: the number of steps that the node repeats, if unrolled; None: what is estimated.
        checkpoints: at how many steps reverse mode keeps the carry; what it needs of the steps
            between is computed again. None: it keeps what it needs of all steps if that fits into
            256 MiB, and else the carry at about √max_steps of them.

    Raises:
        NotCallableError: `cond_fun` or `body_fun` is not callable.
        ConditionError: `cond_fun` returned anything but a boolean scalar.
        EffectInConditionError: `cond_fun` has an effect.
        LeafTypeError: the carry has a leaf that is not an array.
        StructureError: the body returned another structure than that of the carry.
        LeafMismatchError: the body returned other types than those of the carry.
        StaticLengthError: `max_steps` or `checkpoints` is a traced value.
        CheckpointsError: `checkpoints` is not an int of at least 1.
        StepLimitOptionError: `max_steps` or `on_max_steps` has a value not listed above.
        ProgressError: `progress` has a value not listed above.
        ScheduleError: `schedule` or `unroll` has a value not listed above.
        UnschedulableError: lowered, the loop cannot be unrolled: it has another one inside.
        StepLimitError: `cond_fun` still held after `max_steps`.
        TimeLimitError: the time of a `time_limit` was up.

    >>> while_loop(lambda n: n < 100, lambda n: 2 * n, 3)
    192
    >>> while_loop(lambda n: n < 100, lambda n: 2 * n, 3, max_steps=2, on_max_steps="stop")
    12
    """
    require_callable("while_loop", {"cond_fun": cond_fun, "body_fun": body_fun}, ["carry"])
    steps = bounded_steps(cond_fun, body_fun, max_steps, on_max_steps, progress)
    hints = loop_hints("while_loop", schedule, unroll, checkpoints)
    name = parameter_name(body_fun)
    carry = flatten_checked(init, "while_loop", name)

    def body(leaves: Leaves, counters: Leaves) -> Any:
        return body_fun(tree.unflatten(carry.structure, leaves))

    loop = _Loop("while_loop", body_fun, body, carry, name, steps, ())
    trace = current_for(carry.leaves)
    if trace is None:
        return _run_while(cond_fun, loop)  # type: ignore[no-any-return]

    def condition(leaves: Leaves, counters: Leaves) -> Any:
        goes_on = _condition(cond_fun, tree.unflatten(carry.structure, leaves))
        if steps.limit is None:
            return goes_on
        return apply(get("logical_and"), goes_on, apply(get("less"), counters[0], steps.limit))

    known = {} if steps.limit is None else {"max_steps": steps.limit}
    last = tree.unflatten(carry.structure, _trace_loop(trace, loop, condition, known, hints))
    if steps.failure is not None:  # a condition that still holds means that the limit was reached
        ended = apply(get("logical_not"), _condition(cond_fun, last))
        trace.perform(get("require"), [ended], {"failure": steps.failure})
    return last  # type: ignore[no-any-return]


@entry_point
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, _T], _T],
    init: _T,
    *,
    max_steps: int | None = None,
    progress: Progress = False,
    schedule: LoopSchedule | None = None,
    unroll: int | None = None,
    checkpoints: int | None = None,
) -> _T:
    """The carry after replacing it by ``body_fun(i, carry)`` for i = lower, …, upper - 1.

    Args:
        lower: the first i: an integer scalar.
        upper: the end of i, of the same integer type; where it is not above `lower`, there are no
            iterations. If both are known while tracing, so is the number of iterations.
        body_fun: takes i and the carry and returns the next carry, as in `while_loop`.
        init: the first carry, as in `while_loop`.
        max_steps: the most iterations that the bounds may ask for, where they are data: reverse
            mode needs it, to know what to keep.
        progress: as in `while_loop`; a function gets the number of iterations as its second
            argument, if it is known while tracing.
        schedule: as in `while_loop`.
        unroll: as in `while_loop`. If the number of iterations is known and at most this, the graph
            has no loop node.
        checkpoints: as in `while_loop`.

    Raises:
        IntegerError: a bound is not an integer scalar.
        LeafMismatchError: the bounds differ in type, or the carry in and out.
        StepLimitError: the bounds ask for more than `max_steps`.
        NotCallableError, LeafTypeError, StructureError, StaticLengthError, StepLimitOptionError,
            CheckpointsError, ProgressError, ScheduleError, UnschedulableError, TimeLimitError: as
            in `while_loop`.

    >>> fori_loop(1, 5, lambda i, product: product * i, 1)
    24
    """
    require_callable("fori_loop", {"body_fun": body_fun}, ["i", "carry"])
    counter = _counter_type(lower, upper)
    steps = counted_steps(body_fun, max_steps, progress, _trip_count(lower, upper))
    hints = loop_hints("fori_loop", schedule, unroll, checkpoints)
    name = parameter_name(body_fun, 1)
    carry = flatten_checked(init, "fori_loop", name)

    def body(leaves: Leaves, counters: Leaves) -> Any:
        return body_fun(counters[0], tree.unflatten(carry.structure, leaves))

    loop = _Loop("fori_loop", body_fun, body, carry, name, steps, ((lower, counter),))
    trace = current_for((lower, upper, *carry.leaves))
    if trace is None:
        if steps.failure is not None and (_trip_count(lower, upper) or 0) > (steps.limit or 0):
            raise steps.failure.exception()
        return _run_for(range(int(lower), int(upper)), counter, loop)  # type: ignore[no-any-return]

    bounds = trace.read(lower), trace.read(upper)
    literals = [bound.value for bound in bounds if isinstance(bound, Literal)]
    known = {"trip_count": _trip_count(*literals)} if len(literals) == 2 else {}
    if steps.failure is not None:
        fits = _fits(trace, lower, upper, steps.limit)
        trace.perform(get("require"), [fits], {"failure": steps.failure})
        if not known:
            known = {"max_steps": steps.limit}

    def condition(leaves: Leaves, counters: Leaves) -> Any:
        goes_on = apply(get("less"), counters[0], upper)
        if steps.limit is None or "trip_count" in known:
            return goes_on
        return apply(get("logical_and"), goes_on, apply(get("less"), counters[1], steps.limit))

    return tree.unflatten(carry.structure, _trace_loop(trace, loop, condition, known, hints))  # type: ignore[no-any-return]


def _fits(trace: Trace, lower: Any, upper: Any, limit: int | None) -> Any:
    """Whether bounds ask for at most `limit` iterations; their difference fits unsigned numbers."""
    ends = [bind(trace, get("cast"), [x], {"dtype": _UNSIGNED}) for x in (upper, lower)]
    count = bind(trace, get("subtract"), ends, {})
    few = bind(trace, get("less_equal"), [count, np.uint64(limit or 0)], {})
    none = bind(trace, get("less_equal"), [upper, lower], {})
    return bind(trace, get("logical_or"), [few, none], {})


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop of the user's `function`, which calls its carry `name`.

    `body` takes the leaves of the carry and the counters, and returns the next carry. `counters`
    has the first value and the type of each.
    """

    construct: str
    function: Function
    body: Callable[[Leaves, Leaves], Any]
    carry: Tree
    name: str
    steps: Steps
    counters: tuple[tuple[Any, ArrayType], ...]
    varying: Sets = ()
    """The axes over which the carry and the counters differ between devices, if it is known."""

    def advanced(self, state: Tree, counters: Leaves) -> Tree:
        """The carry after one iteration."""
        returned = self.body(state.leaves, counters)

        def types() -> Types:
            return replace(self, carry=state, steps=Steps()).traced(Trace(None))[1]

        after = advance(self.construct, self.function, state, returned, self.name, types)
        if after.types != state.types:
            require_whole(self.construct, self.function, state, after, self.name, types)
        return after

    def settled(self, state: Tree) -> Tree:
        """The last carry, in the types that it would have if traced."""
        return settled(state, lambda trace: replace(self, carry=state, steps=Steps()).traced(trace))

    def traced(self, trace: Trace) -> tuple[TracedRegion, Types]:
        """The body, traced with carry types that it returns, and these types.

        The traced body returns a pair: the carry, and the next counters.
        """
        kinds = tuple([type_ for _, type_ in self.counters])
        split = len(self.carry.leaves)

        def step(types: Types) -> TracedRegion:
            def call(leaves: Leaves) -> Any:
                after = self.body(owned(leaves[:split]), leaves[split:])
                flatten_checked(after, self.construct, self.name, self.function)
                numbers = tuple([apply(get("add"), number, 1) for number in leaves[split:]])
                if self.steps.counted:
                    self.steps.report(numbers[-1])
                return after, numbers

            def body(varying: Sets) -> TracedRegion:
                kind, function = self.construct, self.function
                return trace_tree(call, (*types, *kinds), trace, kind, function, varying)

            first = (*self.carry.leaves, *[value for value, _ in self.counters])
            varying = self.varying or tuple(map(trace.varying_axes, first))
            return traced_with_carry(trace, body, varying, len(first)) if trace.axes else body(())

        return traced_until_stable(self.construct, step, self.function, self.carry, self.name)


def _run_while(cond_fun: Function, loop: _Loop) -> Any:
    steps, state, done, stable = loop.steps, detached(loop.carry), 0, False
    with steps.watch() as show:
        while done != steps.limit and _condition(cond_fun, _to_read(state)):
            limits.check()
            before, state = state, loop.advanced(state, ())
            stable = state.types == before.types
            done += 1
            show(done)
    last = state if stable else loop.settled(state)
    if steps.failure is not None and done == steps.limit and _condition(cond_fun, _to_read(last)):
        raise steps.failure.exception()
    return last.unflatten()


def _to_read(state: Tree) -> Any:
    """The carry, for the condition, which must not write to it."""
    return tree.unflatten(state.structure, read_only(state.leaves))


def _condition(cond_fun: Function, carry: Any) -> Any:
    with forbidden_in(cond_fun):
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
    _require_range((lower, upper), joined)
    return joined


def _require_range(bounds: tuple[Any, Any], type_: ArrayType) -> None:
    """Check that Python ints fit the counter's type, or i64 where promotion gives f64.

    Two Python ints have a type of both: u64 if one needs it.
    """
    whole = type_ if type_.dtype.kind in "iu" else type_of(0)
    least, most = _range_of(whole.dtype)
    for parameter, value in zip(("lower", "upper"), bounds, strict=True):
        if type(value) is int and not least <= value <= most:
            raise errors.BoundRangeError(parameter, value, whole)


@cache
def _range_of(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the greatest number of an integer dtype."""
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _trip_count(lower: Any, upper: Any) -> int | None:
    if isinstance(lower, Tracer) or isinstance(upper, Tracer):
        return None
    return max(int(upper) - int(lower), 0)


def _run_for(numbers: range, counter: ArrayType, loop: _Loop) -> Any:
    state, stable = detached(loop.carry), False
    with loop.steps.watch() as show:
        for done, number in enumerate(numbers, 1):
            limits.check()
            i = number if counter.weak else counter.dtype.type(number)
            before, state = state, loop.advanced(state, (i,))
            stable = state.types == before.types
            show(done)
    return (state if stable else loop.settled(state)).unflatten()


def _trace_loop(
    trace: Trace,
    loop: _Loop,
    condition: Callable[[Leaves, Leaves], Any],
    known: Mapping[str, Any],
    hints: Hints,
) -> tuple[Tracer, ...]:
    """The leaves of the carry after a loop.

    The equation carries the user's carry, the counters, the number of steps if it is needed, and
    the token if there are effects. `condition` takes the leaves of the user's carry and the
    counters. `known` are further attributes of the equation.
    """
    given = loop
    if loop.steps.counted:
        loop = replace(loop, counters=(*loop.counters, (_ZERO, type_of(_ZERO))))
    read = trace.uses.sets_read
    stepped, types = loop.traced(trace)
    takes_derivatives = trace.uses.sets_read != read
    types = (*types, *[type_ for _, type_ in loop.counters])
    split, count = len(loop.carry.leaves), len(types)
    first = (*loop.carry.leaves, *[value for value, _ in loop.counters])
    init = [cast(trace, trace.read(x), t.dtype) for x, t in zip(first, types, strict=True)]
    effects = stepped.tokens is not None
    if effects:
        stepped, types = with_token(stepped, count, count), (*types, TOKEN)
        init.append(trace.token())

    def test(leaves: Leaves) -> Any:
        return condition(leaves[:split], leaves[split:count])

    tested = trace_tree(test, types, trace, loop.construct, loop.function)
    (region, body_region), captures = unify_captures([tested, stepped])
    regions = (region, cast_results(body_region, types))
    attrs = {"carry": len(init), **known}
    if trace.axes and takes_derivatives:
        assumed = loop.varying or tuple(map(trace.varying_axes, first))
        varying = settled_axes(trace, (*init, *captures), attrs, regions, assumed)
        if varying != assumed:
            return _trace_loop(trace, replace(given, varying=varying), condition, known, hints)
    outputs = trace.record(ops.while_loop, (*init, *captures), attrs, regions, hints)
    if effects:
        trace.last_token = outputs[count]
    return outputs[:split]
