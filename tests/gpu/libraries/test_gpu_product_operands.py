"""Products that find arguments and results by pointer, on the device: in place, wherever these are.

Sums are exact, so that results are NumPy's bit by bit.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.nodes import LibraryNode, walk
from lowering.plan.target.features import override as features
from lowering.plan.target.overrides import override
from tests.cases.kernels.products import DTYPES, PRODUCTS, chosen, halves, power
from tests.fakes.foreign_arrays import Foreign
from tests.helpers.compiled import all_on_device, gpu_jit
from tests.helpers.threads import in_threads
from tracegraph import linalg, tree


@pytest.fixture(autouse=True)
def in_place():
    with override(products="library", operands="in_place"):
        yield


def assert_calls(f: Any, function: Any, left: Any, right: Any, dtype: Any, *more: Any) -> None:
    """Calls on arrays that move give what NumPy gives, without copies.

    NumPy computes in float32 what has 16 bits: its own loops take seconds, and sums are exact.
    """
    kept, wide = [], np.float32 if np.dtype(dtype).itemsize == 2 else dtype
    for seed in range(3):
        x, y = halves(seed, dtype, *left), halves(seed + 10, dtype, *right)
        there = all_on_device(x, y)
        results = tree.leaves(f(*there, *more))
        kept += [*there, *results]
        expected = function(x.astype(wide), y.astype(wide), *more)
        for found, value in zip(results, tree.leaves(expected), strict=True):
            assert found.dtype == dtype
            np.testing.assert_array_equal(np.asarray(found), np.asarray(value).astype(dtype))
    assert (f.stats()["builds"], f.stats()["bytes_copied"]) == (1, 0)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", PRODUCTS)
def test_arguments_and_results_are_in_place(name: str, dtype: Any) -> None:
    function, left, right = PRODUCTS[name]
    assert_calls(gpu_jit(function), function, left, right, dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(512, 384, 640), (64, 1000, 72), (1000, 8, 1000), (33, 77, 19)])
def test_larger_and_odd_extents(shape: tuple[int, int, int], dtype: Any) -> None:
    m, k, n = shape
    for function, left, right in (
        (lambda x, y: x @ y, (m, k), (k, n)),
        (lambda x, y: x.T @ y, (k, m), (k, n)),
        (lambda x, y: x @ y.T, (m, k), (n, k)),
    ):
        assert_calls(gpu_jit(function), function, left, right, dtype)


@pytest.mark.parametrize("operands", ["in_place", "copied"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_independent_products_run_side_by_side(operands: Any, dtype: Any) -> None:
    # few results of long sums, which the library splits: their parts are in its workspaces
    def products(a: Any, b: Any) -> Any:
        return a @ b, -a @ b, (2 * a) @ b, a @ (b + 1), (a + 1) @ b, a @ (-2 * b)

    def step(_: Any, x: Any) -> Any:
        return (x % 8) @ (x.T % 8) + (x.T % 8) @ (x % 8)

    def program(a: Any, b: Any) -> Any:
        return *products(a, b), tracegraph.fori_loop(0, 5, step, a @ b)

    with override(products="library", operands=operands, loops="conditional"):
        f = gpu_jit(program)
        for seed in range(50):
            left, right = (
                np.random.default_rng(seed).integers(-2, 3, s).astype(dtype)
                for s in ((64, 4096), (4096, 64))
            )
            there = all_on_device(left, right)
            found, again = f(*there), f(*there)
            last = left @ right
            for i in range(5):
                last = step(i, last)
            for x, y, z in zip(found, again, (*products(left, right), last), strict=True):
                np.testing.assert_array_equal(np.asarray(x), z)
                np.testing.assert_array_equal(np.asarray(y), z)


def test_a_large_batch() -> None:
    assert_calls(gpu_jit(np.matmul), np.matmul, (1000, 16, 16), (1000, 16, 16), np.float32)


@pytest.mark.parametrize("way", ["conditional", "unrolled"])
def test_loops_read_arguments_of_the_call(way: Any) -> None:
    with override(products="library", operands="in_place", loops=way):
        f = gpu_jit(power)
        for n in (3, 0, 2, 4):
            a, x = halves(n, float, 64, 64), halves(n + 10, float, 64, 64)
            found = np.asarray(f(*all_on_device(a, x), n))
            np.testing.assert_array_equal(found, np.linalg.matrix_power(a, n) @ x)
    assert (f.stats()["builds"], f.stats()["bytes_copied"]) == (1, 0)


@pytest.mark.parametrize("missing", ["conditional_nodes", "body_updates"])
def test_loops_where_a_feature_is_missing(missing: Any) -> None:
    with (
        override(products="library", operands="in_place", loops="conditional"),
        features(**{missing: False}),
    ):
        f = gpu_jit(power)
        for n in (3, 1):
            a, x = halves(n, float, 64, 64), halves(n + 10, float, 64, 64)
            found = np.asarray(f(*all_on_device(a, x), n))
            np.testing.assert_array_equal(found, np.linalg.matrix_power(a, n) @ x)
    assert f.stats()["bytes_copied"] == 0


def test_branches_read_arguments_of_the_call() -> None:
    with override(products="library", operands="in_place", branches="conditional"):
        f = gpu_jit(chosen)
        for p in (True, False, True):
            a, x = halves(p, float, 64, 64), halves(p + 10, float, 64, 64)
            expected = a @ x if p else x @ a.T
            np.testing.assert_array_equal(np.asarray(f(p, *all_on_device(a, x))), expected)
    assert (f.stats()["builds"], f.stats()["bytes_copied"]) == (1, 0)


@pytest.mark.parametrize("loops", ["conditional", "unrolled"])
def test_a_loop_works_in_the_memory_of_a_donated_argument(loops: Any) -> None:
    with override(products="library", operands="in_place", loops=loops):
        f = gpu_jit(power, donate_argnums=1)
        a, x = halves(0, float, 64, 64), halves(1, float, 64, 64)
        (there, state) = all_on_device(a, x)
        for _ in range(3):
            state = f(there, state, 1)
    expected = np.linalg.matrix_power(a, 3) @ x
    np.testing.assert_array_equal(np.asarray(state), expected)
    assert f.stats()["bytes_copied"] == 0


def test_an_argument_is_overwritten_behind_the_product_that_reads_it() -> None:
    f = gpu_jit(lambda a, x: a @ x + x, donate_argnums=1)
    a, x = halves(0, float, 256, 256), halves(1, float, 256, 256)
    for _ in range(20):
        there, state = all_on_device(a, x)
        np.testing.assert_array_equal(np.asarray(f(there, state)), a @ x + x)


def test_streams_have_pointer_arrays_of_their_own() -> None:
    f = gpu_jit(lambda x, y: x @ y)
    streams = [None, *(tracegraph.Stream("cuda") for _ in range(3))]
    pairs = [
        (halves(i, np.float32, 256, 256), halves(i + 9, np.float32, 256, 256)) for i in range(8)
    ]
    there = [all_on_device(*pair) for pair in pairs]
    results = []
    for turn in range(40):
        stream = streams[turn % len(streams)]
        with nullcontext() if stream is None else tracegraph.stream(stream):
            results.append((turn % 8, f(*there[turn % 8])))
    for number, result in results:
        x, y = pairs[number]
        np.testing.assert_array_equal(np.asarray(result), x @ y)
    assert f.stats()["bytes_copied"] == 0


def test_threads_that_call_with_other_arrays() -> None:
    f = gpu_jit(lambda x, y: x @ y)
    pairs = [(halves(i, float, 128, 128), halves(i + 9, float, 128, 128)) for i in range(4)]
    there = [all_on_device(*pair) for pair in pairs]
    f(*there[0])

    def call(number: int) -> None:
        x, y = pairs[number]
        for _ in range(100):
            np.testing.assert_array_equal(np.asarray(f(*there[number])), x @ y)

    in_threads(4, call)


@pytest.mark.parametrize("function", [lambda x, y: x @ y, lambda x, y: power(x, y, 3)])
def test_exported_graphs_multiply_what_is_at_their_addresses(function: Any, stream: Any) -> None:
    x, y = halves(0, float, 64, 64), halves(1, float, 64, 64)
    there = all_on_device(x, y)
    compiled = gpu_jit(function).lower(*there).compile()
    exported = compiled.export_graph(*there)
    executable = exported.definition.instantiate()
    for _ in range(2):
        executable.launch(stream)
        stream.sync()
        np.testing.assert_array_equal(np.asarray(exported.results), function(x, y))
    np.testing.assert_array_equal(np.asarray(compiled(*there)), function(x, y))


def test_arrays_of_others_are_read_in_place_if_aligned_and_copied_else() -> None:
    f = gpu_jit(lambda x, y: x @ y)
    base = halves(0, np.float32, 64 * 64 + 64)
    y = halves(1, np.float32, 64, 64)
    (owner, there) = all_on_device(base, y)
    first = owner.__cuda_array_interface__["data"][0]
    for start in (0, 4, 1, 3, 8):
        x = base[start : start + 64 * 64].reshape(64, 64)
        x_there = Foreign(first + 4 * start, None, "<f4", (64, 64))
        found = np.asarray(f(x_there, there))
        np.testing.assert_array_equal(found, x @ y)
    assert f.stats()["bytes_copied"] == 2 * y.nbytes


def test_memory_of_the_user_is_copied_if_it_is_not_aligned() -> None:
    f = gpu_jit(lambda x, y: x @ y)
    base, y = halves(0, np.float32, 64 * 64 + 64), halves(1, np.float32, 64, 64)
    (owner, there) = all_on_device(base, y)
    start = owner.__cuda_array_interface__["data"][0]
    type_ = tracegraph.ArrayType("float32", (64, 64))
    for offset in (0, 1, 4):
        x = tracegraph.owned(start + 4 * offset, type_, owner=owner, device="cuda")
        expected = base[offset : offset + 64 * 64].reshape(64, 64) @ y
        np.testing.assert_array_equal(np.asarray(f(x, there)), expected)
    assert f.stats()["bytes_copied"] == y.nbytes


def test_small_matrices_travel_by_value() -> None:
    f = gpu_jit(lambda x, y: x @ y)
    y = halves(1, float, 4, 64)
    (there,) = all_on_device(y)
    for seed in range(3):
        x = halves(seed, float, 4, 4)
        np.testing.assert_array_equal(np.asarray(f(x, there)), x @ y)
        np.testing.assert_array_equal(np.asarray(f(*all_on_device(x), there)), x @ y)
    assert f.stats()["bytes_copied"] == 0


@pytest.mark.parametrize("scratch", ["kept", "per_launch"])
def test_products_beside_scratch(scratch: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        return x @ y @ (x + y), (x * 2) @ y

    shape = (64, 64)
    assert_calls(gpu_jit(function, scratch=scratch), function, shape, shape, float)


def test_many_products_in_one_graph() -> None:
    def function(x: Any, y: Any) -> Any:
        return tuple(x[8 * i : 8 * i + 8].T @ y for i in range(70))

    assert_calls(gpu_jit(function), function, (560, 8), (8, 8), float)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_systems_of_a_batch_are_solved_in_place(dtype: str) -> None:
    with override(factorizations="library"):
        f = gpu_jit(lambda a, b: linalg.solve_triangular(a, b, lower=True))
        for seed in range(3):
            rng = np.random.default_rng(seed)
            a = np.tril(rng.uniform(0.1, 0.5, (40, 16, 16))) + 2 * np.eye(16)
            b = rng.standard_normal((40, 16, 8))
            a, b = a.astype(dtype), b.astype(dtype)
            found = np.asarray(f(*all_on_device(a, b)))
            np.testing.assert_allclose(a @ found, b, atol=1e-4 if dtype == "float32" else 1e-12)
    assert (f.stats()["builds"], f.stats()["bytes_copied"]) == (1, 0)


@pytest.mark.parametrize("function", [np.linalg.cholesky, np.linalg.inv])
def test_batches_are_factored_in_donated_arguments(function: Any) -> None:
    with override(factorizations="library"):
        f = gpu_jit(function, donate_argnums=0)
        for seed in range(3):
            x = np.random.default_rng(seed).uniform(-1, 1, (40, 16, 16))
            a = x @ x.mT + 16 * np.eye(16)
            (there,) = all_on_device(a)
            np.testing.assert_allclose(np.asarray(f(there)), function(a), rtol=1e-10, atol=1e-12)
    assert (f.stats()["builds"], f.stats()["bytes_copied"]) == (1, 0)


def test_what_the_policy_chooses_gives_the_same() -> None:
    x, y = halves(0, np.float32, 512, 512), halves(1, np.float32, 512, 512)
    there = all_on_device(x, y)
    for form in ("copied", "in_place", None):
        with override(products="library", operands=form):
            f = gpu_jit(lambda x, y: x @ y)
            calls = [n.call for n in walk(f.lower(*there).plan.graph) if isinstance(n, LibraryNode)]
            assert all(isinstance(call, MatrixProduct) for call in calls)
            np.testing.assert_array_equal(np.asarray(f(*there)), x @ y)
            copied = 2 * x.nbytes if form == "copied" else 0
            assert f.stats()["bytes_copied"] == copied
