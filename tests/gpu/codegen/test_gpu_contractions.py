"""Contractions as kernels on a GPU: what NumPy gives, and the same bits in every schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.nodes import LibraryNode, walk
from lowering.plan.target.overrides import override
from tests.cases.contractions import CASES, DTYPES, assert_contracts, power_iteration
from tests.helpers.compiled import on_gpu
from tests.helpers.parameters import in_turn
from tracegraph.dtypes import bfloat16


@pytest.mark.parametrize(("name", "dtype"), in_turn(CASES, DTYPES, rounds=3), ids=str)
def test_nests_give_what_numpy_gives(name: str, dtype: np.dtype[Any]) -> None:
    assert_contracts(on_gpu, name, dtype)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16, np.float32, np.float64], ids=str)
def test_a_long_dot_product_is_shared_by_blocks(dtype: Any) -> None:
    x = np.random.default_rng(0).uniform(0, 2**-8, 1 << 20).astype(dtype)
    y = np.ones(1 << 20, dtype)
    found = float(np.asarray(on_gpu(lambda x, y: x @ y, x, y)))
    unit = {2: 2.0**-8, 4: 2.0**-20, 8: 2.0**-48}[np.dtype(dtype).itemsize]
    np.testing.assert_allclose(found, x.astype(np.float64).sum(), rtol=unit)


@pytest.mark.parametrize("n", [200, 1024])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bits_do_not_depend_on_the_schedule(n: int, dtype: str) -> None:
    rng = np.random.default_rng(3)
    a, v = rng.standard_normal((n, n)).astype(dtype), rng.standard_normal(n).astype(dtype)

    def found(**ways: Any) -> bytes:
        with override(**ways):
            compiled = tracegraph.jit(power_iteration, device="cuda").lower(a, v, 7).compile()
        assert not any(isinstance(node, LibraryNode) for node in walk(compiled.plan.graph))
        return np.asarray(compiled(a, v, 7)).tobytes()

    once = found(loops="conditional")
    for unroll in (2, 3, 7):
        assert found(loops="unrolled", unroll=unroll) == once


@pytest.mark.parametrize("p", [True, False])
def test_a_predicated_branch_has_the_bits_of_a_node(p: bool) -> None:
    rng = np.random.default_rng(4)
    a, v = rng.standard_normal((300, 300)), rng.standard_normal(300)

    def run(schedule: str) -> bytes:
        def either(p: Any, a: Any, v: Any) -> Any:
            return tracegraph.cond(p, lambda: a @ v, lambda: v @ a, schedule=schedule)

        return np.asarray(on_gpu(either, p, a, v)).tobytes()

    assert run("predicated") == run("conditional")


def test_both_forms_agree() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((48, 200)), rng.standard_normal((200, 24))
    with override(products="library"):
        by_library = np.asarray(on_gpu(lambda x, y: x @ y, x, y))
    with override(products="nests"):
        by_nest = np.asarray(on_gpu(lambda x, y: x @ y, x, y))
    np.testing.assert_allclose(by_nest, by_library, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_from_both_sides_of_a_large_matrix(dtype: str) -> None:
    """Each reads it in its own direction, in a kernel of its own."""
    rng = np.random.default_rng(6)
    a, x, y = (rng.standard_normal(shape).astype(dtype) for shape in ((1500, 1500), 1500, 1500))
    found = on_gpu(lambda a, x, y: (a @ x + y @ a, a @ x, y @ a), a, x, y)
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    for got, wanted in zip(found, (a @ x + y @ a, a @ x, y @ a), strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=tolerance, atol=tolerance)


def test_products_that_share_a_factor() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((40, 30, 1, 70)), rng.standard_normal((70, 60))
    np.testing.assert_allclose(np.asarray(on_gpu(lambda x, y: x @ y, x, y)), x @ y, rtol=1e-9)
    z = rng.standard_normal((500, 70, 3))
    shared = np.asarray(on_gpu(lambda y, z: y.T @ z, y, z))
    np.testing.assert_allclose(shared, y.T @ z, rtol=1e-9, atol=1e-12)
