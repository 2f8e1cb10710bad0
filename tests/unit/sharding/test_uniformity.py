"""What may deadlock is refused before anything is built, with the values that decide it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import Mesh, PartitionSpec, errors, shard
from tracegraph.ir.program import walk

P = PartitionSpec

B = np.random.default_rng(0).standard_normal((4, 6))


def psum(x: Any) -> Any:
    return tracegraph.psum(x, "x")


def loop_on_own_values(b: Any) -> Any:
    def halve(state: Any) -> Any:
        x, total = state
        return 0.5 * x, psum(total)

    return tracegraph.while_loop(lambda state: np.sum(state[0] ** 2) > 1e-3, halve, (b, np.sum(b)))


def loop_on_a_carry_that_comes_to_differ(b: Any) -> Any:
    def step(state: Any) -> Any:
        n, limit = state
        return n + psum(np.int64(1) + 0 * n), limit + tracegraph.axis_index("x")

    return tracegraph.while_loop(lambda state: state[0] < state[1], step, (0, 9))


def branch_on_the_index(b: Any) -> Any:
    i = tracegraph.axis_index("x")
    return tracegraph.cond(2 * i > 3, lambda: psum(b), lambda: b)


def branch_inside_of_a_loop(b: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        return tracegraph.cond(x[i] > 0, lambda: tracegraph.ppermute(x, "x", [(0, 1)]), lambda: x)

    return tracegraph.fori_loop(0, 3, step, b)


def loop_inside_of_a_branch(b: Any) -> Any:
    def summed() -> Any:
        return tracegraph.fori_loop(0, 2, lambda i, x: psum(x), b)

    return tracegraph.switch(np.argmax(b), [lambda: b, summed, lambda: -b])


def bounds_that_differ(b: Any) -> Any:
    return tracegraph.fori_loop(0, tracegraph.axis_index("x"), lambda i, x: psum(x), b)


REFUSED = {
    loop_on_own_values: ("different numbers of steps", ("argument b", "sum", "greater")),
    loop_on_a_carry_that_comes_to_differ: ("different numbers of steps", ("axis_index", "less")),
    branch_on_the_index: ("different branches", ("axis_index", "multiply", "greater")),
    branch_inside_of_a_loop: ("different branches", ("argument b", "greater")),
    loop_inside_of_a_branch: ("different branches", ("argument b", "arg")),
    bounds_that_differ: ("different numbers of steps", ("axis_index", "less")),
}


@pytest.mark.parametrize("fun", REFUSED, ids=lambda fun: fun.__name__)
def test_what_may_deadlock_is_refused(fun: Any) -> None:
    what, chain = REFUSED[fun]
    with pytest.raises(errors.UniformityError, match=what) as raised:
        tracegraph.vmap(fun, axis_name="x")(B)
    error = raised.value
    assert error.axis == "x"
    assert "at test_uniformity.py:" in str(error)
    rest = iter(error.chain)
    assert all(any(word in line for line in rest) for word in chain), error.chain
    assert "psum or pmax over 'x'" in str(error)


def test_the_chain_is_the_shortest() -> None:
    def long_and_short(b: Any) -> Any:
        far = np.sin(np.cos(np.exp(b.sum())))
        near = far + tracegraph.axis_index("x")
        return tracegraph.cond(near > 0, lambda: psum(b), lambda: b)

    with pytest.raises(errors.UniformityError) as raised:
        tracegraph.vmap(long_and_short, axis_name="x")(B)
    names = [line.partition(" ")[0] for line in raised.value.chain]
    assert names == ["axis_index", "cast", "add", "greater"]


def accepted_loop(b: Any) -> Any:
    def step(state: Any) -> Any:
        x, _ = state
        x = np.where(np.abs(x) > 1e-3, 0.5 * x, x)
        return x, psum(np.sum(x**2))

    return tracegraph.while_loop(lambda state: state[1] > 1e-1, step, (b, psum(np.sum(b**2))))[0]


def loop_of_its_own(b: Any) -> Any:
    """Devices may leave a loop without collectives as they like."""
    own = tracegraph.while_loop(lambda x: np.sum(x**2) > 0.3, lambda x: 0.5 * x, b)
    return own + psum(own)


def branch_that_all_take(b: Any) -> Any:
    return tracegraph.cond(tracegraph.pmax(b[0], "x") > 0, lambda: psum(b), lambda: b)


def collective_of_another_axis(b: Any) -> Any:
    def rows(row: Any) -> Any:
        i = tracegraph.axis_index("x")
        return tracegraph.cond(i > 1, lambda: tracegraph.psum(row, "y"), lambda: row)

    return tracegraph.vmap(rows, axis_name="y")(b)


@pytest.mark.parametrize(
    "fun",
    [accepted_loop, loop_of_its_own, branch_that_all_take, collective_of_another_axis],
    ids=lambda fun: fun.__name__,
)
def test_what_cannot_is_accepted(fun: Any) -> None:
    found = tracegraph.vmap(fun, axis_name="x")(B)
    jitted = tracegraph.jit(tracegraph.vmap(fun, axis_name="x"), device="host")(B)
    np.testing.assert_allclose(np.asarray(jitted), found, 1e-12)


def test_a_printed_program_shows_what_varies_over_which_axes() -> None:
    """The carry begins the same on all devices; after the first step it may differ along y."""
    mesh = Mesh((2, 2), ("x", "y"), device="host")

    def steps(a: Any, b: Any) -> Any:
        def step(i: Any, carry: Any) -> Any:
            return tracegraph.psum(carry + a, "x") + b

        return tracegraph.fori_loop(0, 3, step, np.zeros_like(b)), a

    specs = P("x"), P("y")
    mapped = shard(steps, mesh=mesh, in_specs=specs, out_specs=(P("y"), P("x")))
    text = str(tracegraph.jit(mapped).trace(np.ones(4), np.ones(4)).program)
    assert "program steps(a: f64[2]{x}, b: f64[2]{y})" in text
    assert "f64[2]{x,y} = add" in text
    assert "f64[2]{y} = psum[axes=('x',)" in text
    assert "f64[2]) {" in str(tracegraph.make_program(np.sin)(np.ones(2)))


def test_updates_of_what_is_the_same_on_several_devices_are_in_order() -> None:
    """Else their rounding would differ between devices, and with it what loops decide by them."""

    def fun(own: Any, i: Any, v: Any) -> Any:
        along_x = np.bincount(i, v * tracegraph.axis_index("x"), 2)
        shared = tracegraph.fori_loop(0, 3, lambda _, s: s.at[i].add(v), np.zeros(2))
        return own.at[i].add(v), along_x, shared

    mesh = Mesh((2, 2), ("x", "y"), device="host")
    specs = (P(("x", "y")), P(), P()), (P(("x", "y")), P("x"), P())
    mapped = tracegraph.jit(shard(fun, mesh=mesh, in_specs=specs[0], out_specs=specs[1]))
    program = mapped.trace(np.zeros(8), np.array([0, 1, 1]), np.ones(3)).optimized
    found = {
        e.source.line: e.hints.in_order for e in walk(program.body) if e.op.name == "scatter_add"
    }
    assert [found[line] for line in sorted(found)] == [True, True, None]
