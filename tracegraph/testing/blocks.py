"""Blocks of steps, and the steps that have blocks inside: branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tracegraph
from tracegraph import debug
from tracegraph.generated.dataclass import dataclass
from tracegraph.testing.operation_chains import beside
from tracegraph.testing.random_steps import SIMPLE, Maker
from tracegraph.testing.special import special
from tracegraph.testing.values import Drawn, Env, Known, Step, StepScope, bounded, conform


@dataclass(frozen=True, slots=True)
class StepBlock:
    """Steps that extend an environment. `known` are all values then, `first` the first new one."""

    steps: tuple[Step, ...]
    known: tuple[Known, ...]
    first: int
    text: str

    def run(self, env: Sequence[Any]) -> Env:
        """The environment after all steps."""
        values = list(env)
        for step in self.steps:
            values.extend(step(values))
        return values


def draw_block(
    draw: st.DrawFn,
    known: Sequence[Known],
    depth: int,
    max_steps: int,
    indent: str,
    effects: bool,
) -> StepBlock:
    """A block of at least one step; its text names every value."""
    scope = StepScope(draw, depth, list(known), effects)
    shown = (printed,) * 6 if effects else ()  # so often that most programs print
    makers = (*SIMPLE, special, special, *(CONTROL if depth > 0 else ()), *shown)
    steps, lines = [], []
    for _ in range(draw(st.integers(1, max_steps))):
        drawn = draw(st.sampled_from(makers))(scope)
        names = (f"v{len(scope.known) + n}: {r}" for n, r in enumerate(drawn.results))
        lines.append(f"{indent}{', '.join(names)} = {drawn.text}".replace("\n", f"\n{indent}"))
        steps.append(drawn.step)
        scope.known.extend(drawn.results)
    return StepBlock(tuple(steps), tuple(scope.known), len(known), "\n".join(lines))


def _inner(scope: StepScope, parameters: Sequence[Known]) -> StepBlock:
    """A block inside a step, which sees all values around it, and parameters."""
    known, effects = [*scope.known, *parameters], scope.effects
    return draw_block(scope.draw, known, scope.depth - 1, 3, "  ", effects)


def _ends(scope: StepScope, block: StepBlock, results: Sequence[Known]) -> list[int]:
    """For each result of a block, the number of the value to return: preferably one of its type."""
    chosen = []
    for like in results:
        alike = [i for i, known in enumerate(block.known) if known == like]
        made = list(range(block.first, len(block.known)))
        chosen.append(scope.draw(st.sampled_from([*alike[-4:], *made])))
    return chosen


def _returned(env: Env, ends: Sequence[int], known: Sequence[Known]) -> tuple[Any, ...]:
    """The chosen values, as they are where the type fits: a swap of carries stays a plain swap."""
    pairs = [(env[i], like) for i, like in zip(ends, known, strict=True)]
    return tuple(x if Known(x.shape, x.dtype) == like else conform(x, like) for x, like in pairs)


def _values(results: Any) -> tuple[Any, ...]:
    """What a construct returned for a tuple of results."""
    return tuple(results)


def _carry(scope: StepScope) -> list[int]:
    return [scope.any() for _ in range(scope.draw(st.integers(1, 3)))]


def _branches(scope: StepScope, count: int) -> tuple[list[Any], tuple[Known, ...], str]:
    results = tuple(scope.known[i] for i in _carry(scope))
    blocks = [_inner(scope, ()) for _ in range(count)]
    ends = [_ends(scope, block, results) for block in blocks]

    def branch(k: int, env: Env) -> tuple[Any, ...]:
        return _returned(blocks[k].run(env), ends[k], results)

    pairs = enumerate(zip(blocks, ends, strict=True))
    text = "".join(f"\n  branch {k}:\n{b.text}\n  -> {e}" for k, (b, e) in pairs)
    return [partial(branch, k) for k in range(count)], results, text


def cond(scope: StepScope) -> Drawn:
    """A branch on the sum of a value."""
    i = scope.any()
    (yes, no), results, text = _branches(scope, 2)

    def step(env: Env) -> tuple[Any, ...]:
        return _values(tracegraph.cond(np.sum(env[i]) > 0, lambda: yes(env), lambda: no(env)))

    return Drawn(step, results, f"cond sum(v{i}) > 0{text}")


def switch(scope: StepScope) -> Drawn:
    """A choice of three by the sum of a value, out of range at times."""
    i = scope.any()
    branches, results, text = _branches(scope, 3)

    def step(env: Env) -> tuple[Any, ...]:
        index = np.sum(env[i]).astype(np.int64) % 5 - 1
        return _values(tracegraph.switch(index, [partial(b, env) for b in branches]))

    return Drawn(step, results, f"switch sum(v{i}) % 5 - 1{text}")


def while_loop(scope: StepScope) -> Drawn:
    """A loop with several carries that ends after some trips, or when a sum is large."""
    carry = _carry(scope)
    results = tuple(scope.known[i] for i in carry)
    block = _inner(scope, results)
    ends = _ends(scope, block, results)
    trips, limit = scope.draw(st.integers(0, 4)), scope.draw(st.integers(0, 300))

    def step(env: Env) -> tuple[Any, ...]:
        def goes_on(state: tuple[Any, Any]) -> Any:
            return (state[1] < trips) & (np.sum(state[0][0]) <= limit)

        def body(state: tuple[Any, Any]) -> tuple[Any, Any]:
            local = block.run([*env, *state[0]])
            return _returned(local, ends, results), state[1] + 1

        start = tuple(env[i] for i in carry)
        return _values(tracegraph.while_loop(goes_on, body, (start, 0))[0])

    head = f"while {trips} trips and sum <= {limit}, from {carry} as v{len(scope.known)}.."
    return Drawn(step, results, f"{head}\n{block.text}\n  -> {ends}")


def fori_loop(scope: StepScope) -> Drawn:
    """A loop over a counter that the body may read; its bound is known, or computed."""
    carry = _carry(scope)
    results = tuple(scope.known[i] for i in carry)
    counter = Known((), np.dtype(np.int32))
    block = _inner(scope, (*results, counter))
    ends = _ends(scope, block, results)
    bound = scope.draw(st.one_of(st.integers(-1, 4), st.none()))
    source = scope.any()

    def step(env: Env) -> tuple[Any, ...]:
        def body(i: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
            number = (np.zeros((), np.int64) + i).astype(np.int32)
            return _returned(block.run([*env, *state, number]), ends, results)

        start = tuple(env[i] for i in carry)
        upper = np.sum(env[source]).astype(np.int64) % 4 if bound is None else bound
        return _values(tracegraph.fori_loop(0, upper, body, start))

    upper_text = f"sum(v{source}) % 4" if bound is None else str(bound)
    head = f"fori to {upper_text}, from {carry} as v{len(scope.known)}.., and the counter"
    return Drawn(step, results, f"{head}\n{block.text}\n  -> {ends}")


def scan(scope: StepScope) -> Drawn:
    """A loop over the rows of a value that stacks one result."""
    i = scope.pick(lambda k: len(k.shape) > 0)
    if i is None:
        return cond(scope)
    carry = _carry(scope)
    states = tuple(scope.known[c] for c in carry)
    row = Known(scope.known[i].shape[1:], scope.known[i].dtype)
    block = _inner(scope, (*states, row))
    ends = _ends(scope, block, (*states, row))
    reverse = scope.draw(st.booleans())

    def step(env: Env) -> tuple[Any, ...]:
        def body(state: tuple[Any, ...], x: Any) -> tuple[tuple[Any, ...], Any]:
            *after, y = _returned(block.run([*env, *state, x]), ends, (*states, row))
            return tuple(after), y

        start = tuple(env[c] for c in carry)
        after, ys = tracegraph.scan(body, start, env[i], reverse=reverse)
        return (*after, bounded(ys))

    head = f"scan v{i} from {carry} reverse={reverse} as v{len(scope.known)}.., then the row"
    return Drawn(step, (*states, scope.known[i]), f"{head}\n{block.text}\n  -> {ends}")


def printed(scope: StepScope) -> Drawn:
    """A step whose values are printed, with one more."""
    i, drawn = scope.any(), scope.draw(st.sampled_from(SIMPLE))(scope)
    template = f"v{i} = {{v{i}}}" + " {}" * len(drawn.results)

    def step(env: Env) -> tuple[Any, ...]:
        values = drawn.step(env)
        debug.print(template, *values, **{f"v{i}": env[i]})
        return values

    return Drawn(step, drawn.results, f"{drawn.text}, printed with v{i}")


def beside_a_chain(scope: StepScope) -> Drawn:
    """A loop or a branch, beside a chain of operations that it does not depend on."""
    return beside(scope, scope.draw(st.sampled_from(CONSTRUCTS)))


CONSTRUCTS: tuple[Maker, ...] = (cond, switch, while_loop, fori_loop, scan)

CONTROL: tuple[Maker, ...] = (*CONSTRUCTS, beside_a_chain, beside_a_chain)
