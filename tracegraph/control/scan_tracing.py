"""Tracing scan and map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracegraph import tree
from tracegraph.arrays.eager import apply
from tracegraph.control import slices
from tracegraph.control.carry import traced_until_stable
from tracegraph.control.ownership import own, owned
from tracegraph.control.regions import (
    TracedRegion,
    Tree,
    Types,
    cast_results,
    flatten_checked,
    trace_tree,
    traced_with_carry,
    unify_captures,
    with_token,
)
from tracegraph.control.steps import Steps
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import get
from tracegraph.ir.program import Hints
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.ir.varying import EQUAL, Sets
from tracegraph.ops import control as ops
from tracegraph.tracing.trace import Trace, cast

Function = Callable[..., Any]

_COUNT = ArrayType(np.dtype(np.int64))


@dataclass(frozen=True, slots=True)
class SettledTypes:
    """The types that tracing finds for a scan's carry and y's, and the structure of the y's."""

    carry: Types
    y: Types
    structure: tree.Structure


@dataclass(frozen=True, slots=True)
class Body:
    """What a scan repeats: `call(carry, x)` returns a carry and a y.

    `function` is the user's function, `name` what it calls the carry, and `result` what messages
    call y. `hints` are those of the scans that it is recorded as.
    """

    construct: str
    function: Function
    call: Callable[[Any, Any], tuple[Any, Any]]
    name: str
    result: str
    steps: Steps
    hints: Hints

    def flatten_y(self, y: Any) -> Tree:
        """The leaves of a y."""
        return flatten_checked(y, self.construct, self.result, self.function)

    def over_blocks(self, size: int, reverse: bool) -> Callable[[Any, Any], tuple[Any, Any]]:
        """`call` for blocks of `size` slices, which returns a block of y's."""
        order = range(size)[::-1] if reverse else range(size)

        def call(carry: Any, block: Any) -> tuple[Any, Any]:
            ys = []
            for i in order:
                carry, y = self.call(carry, tree.map(partial(slices.take, i=i), block))
                ys.append(tree.map(own, y))
                carry = tree.map(own, carry)
            ordered = ys[::-1] if reverse else ys
            return carry, tree.map(lambda *column: slices.stack(column), *ordered)

        return call


def trace_scan(
    trace: Trace, body: Body, carry: Tree, xs: Tree, count: int, reverse: bool, size: int
) -> tuple[Any, Any]:
    """Strip-mining: for `size` above 1, a scan over blocks of that size, and one over the rest."""
    if size == 1:
        return _record(trace, body, body.call, carry, xs, reverse, range(1, count + 1))
    whole, rest = divmod(count, size)
    parts = [(0, whole, size), (whole * size, 1, rest)] if rest else [(0, whole, size)]
    pieces, done = [], 0
    for start, blocks, size in reversed(parts) if reverse else parts:
        leaves = tuple(slices.cut(leaf, start, blocks, size) for leaf in xs.leaves)
        part = Tree(leaves, tuple(type_of(leaf) for leaf in leaves), xs.structure)
        steps = range(done + size, done + blocks * size + 1, size)
        call = body.over_blocks(size, reverse)
        last, ys = _record(trace, body, call, carry, part, reverse, steps)
        carry, done = flatten_checked(last, body.construct, body.name), steps[-1]
        pieces.append(tree.map(slices.merge, ys))
    ordered = pieces[::-1] if reverse else pieces
    return last, tree.map(lambda *ys: slices.join(ys), *ordered)


def _record(
    trace: Trace,
    body: Body,
    call: Callable[[Any, Any], tuple[Any, Any]],
    carry: Tree,
    xs: Tree,
    reverse: bool,
    steps: range,
) -> tuple[Any, Any]:
    """One scan of `call`; `steps` has the number of steps done after each of its iterations.

    The equation carries the user's carry, the number of steps if it is shown, and the token if
    there are effects.
    """
    counters = (_COUNT,) if body.steps.counted else ()
    split = len(carry.leaves)
    count = split + len(counters)
    traced, types = _traced(trace, body, call, carry, xs, counters, steps.step)
    types = (*types, *counters)
    first = (*carry.leaves, *(np.int64(steps.start - steps.step) for _ in counters))
    init = [cast(trace, trace.read(x), t.dtype) for x, t in zip(first, types, strict=True)]
    results = (*types, *traced.types[count:])
    effects = traced.tokens is not None
    if effects:
        traced, results = with_token(traced, count, count), (*types, TOKEN, *results[count:])
        init.append(trace.token())
    (region,), captures = unify_captures([traced])
    operands = (*init, *(trace.read(x) for x in xs.leaves), *captures)
    attrs = {
        "carry": len(init),
        "xs": len(xs.leaves),
        "length": len(steps),
        "reverse": bool(reverse),
    }
    region = cast_results(region, results)
    outputs = trace.record(ops.scan, operands, attrs, (region,), body.hints)
    if effects:
        trace.last_token = outputs[count]
    after, _, y = traced.structure.children()
    return tree.unflatten(after, outputs[:split]), tree.unflatten(y, outputs[len(init) :])


def settled_types(trace: Trace, body: Body, carry: Tree, xs: Tree) -> SettledTypes:
    """The types of a scan of this carry over these xs, found by tracing its body."""
    traced, types = _traced(trace, body, body.call, carry, xs, (), 1)
    return SettledTypes(types, traced.types[len(types) :], traced.structure.children()[2])


def _traced(
    trace: Trace,
    body: Body,
    call: Callable[[Any, Any], tuple[Any, Any]],
    carry: Tree,
    xs: Tree,
    counters: Types,
    size: int,
) -> tuple[TracedRegion, Types]:
    """`call` traced with carry types that it returns, and these types.

    The region returns a triple: the carry, the counters increased by `size`, and a y.
    """
    split = len(carry.leaves)
    count = split + len(counters)
    parts = tuple(t.with_shape(t.shape[1:]) for t in xs.types)

    def step(types: Types) -> TracedRegion:
        def flat(leaves: Sequence[Any]) -> Any:
            x = tree.unflatten(xs.structure, leaves[count:])
            after, y = call(tree.unflatten(carry.structure, owned(leaves[:split])), x)
            flatten_checked(after, body.construct, body.name, body.function)
            body.flatten_y(y)
            numbers = tuple(apply(get("add"), n, size) for n in leaves[split:count])
            for number in numbers:
                body.steps.report(number)
            return after, numbers, y

        def traced(varying: Sets) -> TracedRegion:
            kinds, construct = (*types, *counters, *parts), body.construct
            return trace_tree(flat, kinds, trace, construct, body.function, varying)

        if not trace.axes:
            return traced(())
        none = [EQUAL] * len(counters)
        first = [*map(trace.varying_axes, carry.leaves), *none, *map(trace.varying_axes, xs.leaves)]
        return traced_with_carry(trace, traced, first, split)

    return traced_until_stable(body.construct, step, body.function, carry, body.name)
