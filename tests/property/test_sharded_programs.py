"""Laws of sharded programs, for random ones.

On a mesh, with named lanes, and as NumPy on the whole array, a program gives the same; so do its
derivatives. Whatever deadlocks is refused, and what is accepted does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegraph
from lowering.plan.target.overrides import override
from tracegraph import Mesh, PartitionSpec, errors, shard

P = PartitionSpec
N, M = 3, 3
MESH = Mesh(N, "x", device="host")

State = tuple[Any, Any]
"""What each device has, x of shape (3,), and what all have, s of shape (3,)."""

Program = list[Any]
"""Steps: a word; or a construct, what it depends on, and the steps inside."""


class Own:
    """Steps as each device takes them."""

    def sine(self, x: Any, s: Any) -> State:
        return np.sin(x) + 0.5 * s, s

    def scale(self, x: Any, s: Any) -> State:
        return x * (1 + 0.1 * tracegraph.axis_index("x")), s

    def first(self, x: Any, s: Any) -> State:
        return np.where(tracegraph.axis_index("x") == 0, 0.5 * x - s, x), s

    def sum(self, x: Any, s: Any) -> State:
        return x, np.cos(s) + tracegraph.psum(x, "x") / N

    def mean(self, x: Any, s: Any) -> State:
        return x, tracegraph.pmean(x * s, "x")

    def largest(self, x: Any, s: Any) -> State:
        return x, tracegraph.pmax(x, "x") - 0.3 * s

    def shift(self, x: Any, s: Any) -> State:
        return tracegraph.ppermute(x, "x", [(i, (i + 1) % N) for i in range(N)]) - x, s

    def push(self, x: Any, s: Any) -> State:
        return tracegraph.ppermute(x, "x", [(0, 2), (2, 1)]) + s, s

    def exchange(self, x: Any, s: Any) -> State:
        return tracegraph.all_to_all(x, "x", 0, 0), s

    def gather(self, x: Any, s: Any) -> State:
        return x, tracegraph.all_gather(x, "x")[:, 0] + s

    def scatter(self, x: Any, s: Any) -> State:
        return x * tracegraph.psum_scatter(x, "x"), s

    def branch(self, by: Any, then: Any, other: Any, state: State) -> State:
        return tracegraph.cond(by(*state), lambda *s: then(s), lambda *s: other(s), *state)

    def repeat(self, by: Any, body: Any, state: State) -> State:
        def step(carry: Any) -> Any:
            x, s, i, ends = carry
            return *body((x, s)), i + 1, ends

        ends = np.where(by(*state), 3, 1)
        first = (*state, 0, ends)
        looped = tracegraph.while_loop(lambda c: c[2] < c[3], step, first, max_steps=4)
        return looped[:2]


class Whole:
    """The same on arrays of all devices: x of shape (devices, 3), and s as all have it.

    Only where all devices go the same way.
    """

    def sine(self, x: Any, s: Any) -> State:
        return np.sin(x) + 0.5 * s, s

    def scale(self, x: Any, s: Any) -> State:
        return x * (1 + 0.1 * np.arange(N)[:, None]), s

    def first(self, x: Any, s: Any) -> State:
        return np.where(np.arange(N)[:, None] == 0, 0.5 * x - s, x), s

    def sum(self, x: Any, s: Any) -> State:
        return x, np.cos(s) + x.sum(0) / N

    def mean(self, x: Any, s: Any) -> State:
        return x, (x * s).sum(0) / N

    def largest(self, x: Any, s: Any) -> State:
        return x, x.max(0) - 0.3 * s

    def shift(self, x: Any, s: Any) -> State:
        return np.roll(x, 1, 0) - x, s

    def push(self, x: Any, s: Any) -> State:
        return np.stack([0 * x[0], x[2], x[0]]) + s, s

    def exchange(self, x: Any, s: Any) -> State:
        return x.T, s

    def gather(self, x: Any, s: Any) -> State:
        return x, x[:, 0] + s

    def scatter(self, x: Any, s: Any) -> State:
        return x * x.sum(0)[:, None], s

    def branch(self, by: Any, then: Any, other: Any, state: State) -> State:
        return then(state) if by(*state) else other(state)

    def repeat(self, by: Any, body: Any, state: State) -> State:
        for _ in range(3 if by(*state) else 1):
            state = body(state)
        return state


LOCAL = ("sine", "scale", "first")
COLLECTIVE = ("sum", "mean", "largest", "shift", "push", "exchange", "gather", "scatter")
CONDITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "what all have": lambda x, s: s[0] > 0.1,
    "its own": lambda x, s: x[..., 0] > 0.1,
}


def run(form: Any, program: Program, state: State) -> State:
    """The state after the steps of a program."""
    for step in program:
        if isinstance(step, str):
            state = getattr(form, step)(*state)
            continue
        kind, by, *bodies = step
        inside = [lambda state, body=body: run(form, body, state) for body in bodies]
        state = getattr(form, kind)(CONDITIONS[by], *inside, state)
    return state


def programs(conditions: tuple[str, ...]) -> st.SearchStrategy[Program]:
    words = st.sampled_from(LOCAL + COLLECTIVE)

    def nested(inner: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
        by = st.sampled_from(conditions)
        branch = st.tuples(st.just("branch"), by, inner, inner)
        repeat = st.tuples(st.just("repeat"), by, inner)
        return st.lists(words | branch | repeat, min_size=1, max_size=4)

    return st.recursive(st.lists(words, min_size=1, max_size=4), nested, max_leaves=5)


arrays = st.integers(0, 2**32 - 1).map(
    lambda seed: np.random.default_rng(seed).uniform(-1, 1, (N, M))
)


def own(program: Program) -> Callable[..., Any]:
    """The program of each device, on blocks of shape (1, 3)."""

    def fun(x: Any, s: Any) -> Any:
        found, s = run(Own(), program, (x[0], s))
        return found[None], s

    return fun


def loss(program: Program) -> Callable[..., Any]:
    def fun(x: Any, s: Any) -> Any:
        x, s = run(Own(), program, (x, s))
        return tracegraph.psum(np.sum(x**2), "x") + np.sum(np.sin(s))

    return fun


@given(programs(("what all have",)), arrays)
@settings(max_examples=25, deadline=None)
def test_on_a_mesh_with_lanes_and_on_the_whole(program: Program, x: Any) -> None:
    s = np.linspace(-1, 1, M)
    wanted = run(Whole(), program, (x, s))
    mapped = shard(own(program), mesh=MESH, in_specs=(P("x"), P()), out_specs=(P("x"), P()))
    sharded = tracegraph.jit(mapped)(x, s)
    with override(loops="unrolled"):
        several_steps = tracegraph.jit(mapped)(x, s)
    lanes = tracegraph.vmap(own(program), (0, None), (0, None), axis_name="x")(x[:, None], s)
    for found in (sharded, several_steps, (lanes[0][:, 0], lanes[1])):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one), other, 1e-9, 1e-9)


@given(programs(("what all have",)), arrays)
@settings(max_examples=15, deadline=None)
def test_derivatives_are_those_of_the_whole(program: Program, x: Any) -> None:
    """Outside of vmap, its program has no collectives: these are derivatives of NumPy's sums."""
    s = np.linspace(-1, 1, M)
    whole = tracegraph.vmap(loss(program), (0, None), None, axis_name="x")
    wanted = tracegraph.grad(whole, argnums=(0, 1))(x, s)
    inside = tracegraph.grad(loss(program), argnums=(0, 1))

    def of_block(x: Any, s: Any) -> Any:
        by_x, by_s = inside(x[0], s)
        return by_x[None], by_s

    mapped = shard(of_block, mesh=MESH, in_specs=(P("x"), P()), out_specs=(P("x"), P()))
    for one, other in zip(tracegraph.jit(mapped)(x, s), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, 1e-7, 1e-8)


@given(programs(tuple(CONDITIONS)), arrays)
@settings(max_examples=40, deadline=None)
def test_whatever_deadlocks_is_refused(program: Program, x: Any) -> None:
    s = np.linspace(-1, 1, M)
    mapped = shard(own(program), mesh=MESH, in_specs=(P("x"), P()), out_specs=P("x"))
    try:
        lowered = tracegraph.jit(mapped).lower(x, s)
    except errors.UniformityError:
        return
    lowered.compile()(x, s)  # what is accepted ends


@pytest.mark.parametrize("seed", range(4))
def test_what_is_refused_does_deadlock_for_some_values(seed: int) -> None:
    """The refused programs are not refused in vain: run all the same, this one gets stuck."""
    x = np.random.default_rng(seed).uniform(-1, 1, (N, M))
    x[:, 0] = (0.5, -0.5, 0.5)
    program: Program = [("branch", "its own", ["sum"], ["shift"])]
    mapped = shard(own(program), mesh=MESH, in_specs=(P("x"), P()), out_specs=P("x"))
    with pytest.raises(errors.UniformityError):
        mapped(x, np.zeros(M))
    with (
        mock.patch("tracegraph.staging.calls.sharded_tracing.check_uniform"),
        pytest.raises(errors.DeadlockError),
    ):
        tracegraph.jit(mapped)(x, np.zeros(M))
