"""vmap: arguments, axes, results; where and when it runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.fakes.fake_device import FakeCompiler
from tests.helpers.batching import assert_same
from tests.helpers.compiled import host_jit
from tracegraph import Array, cond, fori_loop, vmap, while_loop
from tracegraph.ir.program import walk
from tracegraph.ir.verify import verify

X = np.arange(6.0).reshape(3, 2)


@tracegraph.register_dataclass
@dataclass
class State:
    position: Any
    mass: Any


def ops_of(function: Any, *args: Any) -> list[str]:
    """The ops of a program, of all regions, after verification and optimization."""
    program = host_jit(function).trace(*args).optimized
    return [eqn.op.name for eqn in walk(verify(program).body)]


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("place", [0, 1, -1])
def test_axes_may_be_any(axis: int, place: int) -> None:
    x = np.arange(12.0).reshape(3, 4)
    found = vmap(lambda x: x * x, axis, place)(x)
    lanes = np.moveaxis(x, axis, 0)
    assert_same(found, np.moveaxis(lanes * lanes, 0, place))
    np.testing.assert_array_equal(host_jit(vmap(lambda x: x * x, axis, place))(x), found)


def test_axes_are_a_prefix_of_the_arguments() -> None:
    def move(state: State, pair: Any, dt: Any) -> State:
        return State(state.position + dt * pair[0], state.mass * pair[1]["m"])

    state = State(X, np.arange(1.0, 4.0))
    axes = (State(0, 0), (1, {"m": None}), None)
    found = vmap(move, axes, State(1, 0))(state, (X.T, {"m": 2.0}), 0.5)
    assert_same(found, State((X + 0.5 * X).T, state.mass * 2.0))


def test_none_in_a_tree_has_no_axis() -> None:
    assert_same(vmap(lambda x, y: (x[0], y))((np.arange(3), None), None), (np.arange(3), None))
    assert_same(vmap(lambda x: x[0], ((0, None),))((np.arange(3), None)), np.arange(3))


def test_axes_in_a_list() -> None:
    assert_same(vmap(lambda x, y: x + y, [0, None])(np.arange(3), 1), np.arange(3) + 1)


def test_keyword_arguments_are_mapped_along_axis_0() -> None:
    def scale(x: Any, *, by: Any, plus: Any = 0.0) -> Any:
        return x * by + plus

    found = vmap(scale, in_axes=(None,))(2.0, plus=np.ones(3), by=np.arange(3.0))
    assert_same(found, 2.0 * np.arange(3.0) + 1)


def test_numbers_that_lanes_share_stay_numbers() -> None:
    def power(x: Any, n: Any, name: Any) -> Any:
        assert name == "power"
        for _ in range(n):
            x = x * x
        return fori_loop(0, n, lambda i, x: x + i, x)

    found = vmap(power, (0, None, None))(np.arange(3.0), 2, "power")
    assert_same(found, np.arange(3.0) ** 4 + 1)
    program = (
        host_jit(lambda x: vmap(power, (0, None, None))(x, 2, "power")).trace(X[:, 0]).optimized
    )
    (loop,) = [e for e in walk(program.body) if e.op.name == "while_loop"]
    assert loop.attrs["trip_count"] == 2


def test_arrays_that_lanes_share_are_traced() -> None:
    table = np.array([5, 7, 9])
    for run in (vmap, lambda *args: host_jit(vmap(*args))):
        found = run(lambda i, table: table[i], (0, None))(np.array([2, 0, 0]), table)
        np.testing.assert_array_equal(found, [9, 5, 5])


def test_results_that_lanes_share_need_no_axis() -> None:
    def both(x: Any, y: Any) -> Any:
        return x + y, y * 2

    found = vmap(both, (0, None), (0, None))(np.arange(3), 4)
    assert_same(found, (np.arange(3) + 4, np.int64(8)))
    assert_same(vmap(both, (0, None))(np.arange(3), 4)[1], np.full(3, 8))


def test_a_size_without_mapped_arguments() -> None:
    assert_same(vmap(lambda: 2.5, axis_size=3)(), np.full(3, 2.5))
    assert_same(vmap(lambda x: x, None, axis_size=0)(np.float32(1)), np.zeros(0, np.float32))


def test_results_are_of_the_kind_of_the_arguments() -> None:
    assert type(vmap(np.sin)(np.ones(2))) is np.ndarray
    found = vmap(lambda x, y: (x * 2, y), (0, None))(np.ones(2), tracegraph.asarray(X))
    assert all(type(x) is Array for x in found)
    assert type(vmap(lambda x, y: y, (0, None), None)(np.ones(2), 1.5)) is np.float64


def test_results_are_arrays_of_their_own() -> None:
    x = X.copy()
    same, twice, constant = vmap(lambda x: (x, x[::-1], 1.5))(x)
    for result in (same, twice, constant):
        result[...] = -1
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(twice, -np.ones((3, 2)))


class Foreign:
    """An array that speaks DLPack alone."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.dtype, self.shape = f"foreign.{data.dtype}", data.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.data.__dlpack_device__()


def test_arrays_of_other_libraries_have_lanes() -> None:
    found = vmap(lambda x, y: x * y, (0, None))(Foreign(X), Foreign(X[0]))
    assert type(found) is Array
    np.testing.assert_array_equal(found, X * X[0])
    program = tracegraph.make_program(lambda x: x + vmap(lambda x: x * 2)(Foreign(X)))(X)
    assert len(program.constants) == 1


def test_functions_of_all_kinds_are_mapped() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def __call__(self, x: Any) -> Any:
            return x * self.factor

    @partial(vmap, in_axes=(None, 0))
    def apply(matrix: Any, x: Any) -> Any:
        return matrix @ x

    assert_same(vmap(Scale(3.0))(X), X * 3)
    assert_same(vmap(partial(np.subtract, 1.0))(X), 1 - X)
    np.testing.assert_array_equal(host_jit(vmap(Scale(3.0)))(X), X * 3)
    assert_same(apply(2 * np.eye(2), X), 2 * X)


def test_a_function_keeps_its_name() -> None:
    def velocity(x: Any) -> Any:
        """Of a particle."""
        return x

    assert vmap(velocity).__name__ == "velocity"
    assert vmap(velocity).__doc__ == "Of a particle."
    assert vmap(host_jit(velocity)).__wrapped__.__wrapped__ is velocity
    assert host_jit(vmap(velocity)).trace(X).program.name == "velocity"


def test_jitted_functions_become_part_of_the_lanes() -> None:
    inner = host_jit(lambda x: x * 2)
    assert_same(vmap(inner)(X), X * 2)
    assert_same(np.asarray(host_jit(vmap(inner))(X)), X * 2)
    assert inner.stats()["builds"] == 0


def test_values_around_are_shared_by_all_lanes() -> None:
    def outer(x: Any, y: Any) -> Any:
        shared = y.sum()
        return vmap(lambda x: cond(x[0] > 1, lambda: x + shared, lambda: x - table))(x)

    table = np.array([1.0, 2.0])
    found = host_jit(outer)(X, X)
    np.testing.assert_array_equal(found, np.where(X[:, :1] > 1, X + X.sum(), X - table))


def test_what_all_lanes_share_is_computed_once() -> None:
    def lane(x: Any, y: Any) -> Any:
        return x + np.sin(y).sum()

    program = host_jit(vmap(lane, (0, None))).trace(X, np.ones(100)).optimized
    (sine,) = [e for e in program.body.eqns if e.op.name == "sin"]
    assert sine.outputs[0].type.shape == (100,)


def test_a_shared_counter_stays_a_number() -> None:
    def steps(x: Any) -> Any:
        return while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2), (0, x))

    program = host_jit(vmap(steps)).trace(X).optimized
    (loop,) = [e for e in program.body.eqns if e.op.name == "while_loop"]
    assert [a.type.shape for a in loop.operands] == [(), (3, 2)]
    assert "any" not in ops_of(vmap(steps), X)


def test_rows_that_are_written_are_not_chosen_as_a_whole() -> None:
    def fill(x: Any, n: Any) -> Any:
        def step(carry: Any) -> Any:
            i, x = carry
            x[i] = i
            return i + 1, x

        return while_loop(lambda carry: carry[0] < n, step, (0, x))[1]

    x = np.zeros((3, 100))
    program = host_jit(vmap(fill)).trace(x, np.array([4, 0, 100])).optimized
    chosen = [e for e in walk(program.body) if e.op.name == "where"]
    assert chosen
    assert max(e.outputs[0].type.size for e in chosen) == 3


def test_branches_without_loops_are_chosen_by_lane_and_others_skipped() -> None:
    def cheap(x: Any) -> Any:
        return cond(x[0] > 0, lambda: x + 1, lambda: x - 1)

    def costly(x: Any) -> Any:
        return cond(x[0] > 0, lambda: x[:, None] @ x[None], lambda: x[None] + x[:, None])

    assert "cond" not in ops_of(vmap(cheap), X)
    ops = ops_of(vmap(costly), X)
    assert ops.count("cond") == ops.count("matmul") == 1
    large = tracegraph.ArrayType("float64", (2, 1 << 21))
    assert ops_of(vmap(lambda x: cheap(x * 2)), large).count("cond") > 0


def test_lines_are_those_of_the_function() -> None:
    def lane(x: Any) -> Any:
        y = x + 1
        return while_loop(lambda y: y[0] < 3, lambda y: y * 2, y)

    first = lane.__code__.co_firstlineno
    program = host_jit(vmap(lane)).trace(X).program
    lines = {e.source.line - first for e in walk(program.body) if e.source}
    assert lines == {1, 2}


def test_dtypes_of_weak_numbers_are_those_of_the_loop() -> None:
    def lane(x: Any, n: Any) -> Any:
        return x * 2.5, n + 1, fori_loop(0, n, lambda i, c: c + 0.5, 0), np.float32(1) * n

    x, n = np.ones(2, np.float16), np.array([1, 2], np.int8)
    found = vmap(lane)(x, n)
    alone = [lane(a, b) for a, b in zip(x, n, strict=True)]
    for got, one in zip(found, alone[0], strict=True):
        assert got.dtype == np.asarray(one).dtype


MATRIX = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    ("axes", "arguments", "shapes"),
    [
        ((0, None), (np.ones((5, 2, 3)), MATRIX), [(10, 3), (3, 4)]),
        ((0, None), (np.ones((5, 3)), MATRIX), [(5, 3), (3, 4)]),
        ((None, 0), (MATRIX, np.ones((5, 4))), [(5, 4), (4, 3)]),
        ((None, 0), (MATRIX, np.ones((5, 4, 2))), [(5, 3, 4), (5, 4, 2)]),
        ((0, 0), (np.ones((5, 2, 3)), np.ones((5, 3, 4))), [(5, 2, 3), (5, 3, 4)]),
    ],
)
def test_products_with_a_shared_matrix_are_one_product(
    axes: Any, arguments: Any, shapes: Any
) -> None:
    program = host_jit(vmap(np.matmul, axes)).trace(*arguments).optimized
    (product,) = [e for e in program.body.eqns if e.op.name == "matmul"]
    assert [a.type.shape for a in product.operands] == shapes
    np.testing.assert_array_equal(
        vmap(np.matmul, axes)(*arguments),
        [
            np.matmul(*[x if a is None else x[i] for x, a in zip(arguments, axes, strict=True)])
            for i in range(5)
        ],
    )


def test_lanes_need_no_order_among_their_writes() -> None:
    def add(x: Any, i: Any) -> Any:
        return tnp.asarray(x).at[i].add(1.0)

    def distinct(i: Any) -> list[int]:
        program = host_jit(vmap(add)).trace(np.zeros((3, 4)), i).optimized
        return [e.attrs["distinct"] for e in program.body.eqns if e.op.name == "scatter_add"]

    assert distinct(np.zeros(3, int)) == [1]
    assert distinct(np.zeros((3, 2), int)) == [1]


def test_arrays_on_a_device_stay_there(compiler: FakeCompiler) -> None:
    x = tracegraph.asarray(X, device="fake:0")
    found = vmap(lambda x: x.sum())(x)
    assert found.device == "fake:0"
    np.testing.assert_array_equal(np.asarray(found), X.sum(1))
