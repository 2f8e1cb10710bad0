"""Which matrix products are reduction nests on a GPU, and what the nests give."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.cuda import TARGET
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.kernel import MapNest, ReduceNest
from lowering.plan.nests.tiled_products import tiled_product
from lowering.plan.nodes import KernelNode, LibraryNode, walk
from lowering.plan.plan import Plan
from lowering.plan.target.overrides import Choices, override
from lowering.planning.expansion.contractions import is_thin
from tests.cases.contractions import CASES, DTYPES, assert_contracts, operands, power_iteration
from tests.helpers.compiled import plan_of
from tests.helpers.forced import FORCED, on_host
from tracegraph.ir.types import ArrayType

F64 = "float64"
THIN = [
    ((1, 1 << 20), (1 << 20, 1)),
    ((1024, 1024), (1024, 1)),
    ((1, 2048), (2048, 2048)),
    ((4, 4096), (4096, 4096)),
    ((1, 9), (9, 262_144)),
    ((8192, 1), (1, 8192)),
    ((32, 32), (32, 32)),
    ((500, 8), (8, 500)),
    ((4096, 3, 3), (4096, 3, 3)),
]
THICK = [
    ((64, 64), (64, 64)),
    ((8, 1024), (1024, 1024)),
    ((4096, 32), (32, 4096)),
    ((16384, 1024), (1024, 16)),
    ((1 << 16, 256), (256, 10)),
    ((512, 64, 64), (512, 64, 64)),
]
NARROW = [
    ((4096, 16), (16, 4096)),
    ((2048, 256), (256, 10)),
    ((256, 1024), (1024, 10)),
    ((1 << 18, 64), (64, 16)),
    ((256, 1 << 16), (1 << 16, 10)),
]


SHARED: dict[str, tuple[Any, tuple[tuple[int, ...], ...], tuple[int, ...]]] = {
    "rows": (lambda x, y: x @ y, ((40, 50, 1, 70), (70, 90)), (1, 2000, 90, 70)),
    "lengths of one": (lambda x, y: x @ y, ((40, 1, 50, 70), (1, 1, 70, 90)), (1, 2000, 90, 70)),
    "in part": (lambda x, y: x @ y, ((4, 500, 1, 70), (4, 1, 70, 90)), (4, 500, 90, 70)),
    "a view of views": (
        lambda x, y: x @ np.broadcast_to(y.T.reshape(1, 70, 1, 90), (40, 70, 2, 90))[:, :, 0],
        ((40, 50, 70), (90, 70)),
        (1, 2000, 90, 70),
    ),
    "einsum": (
        lambda x, y: np.einsum("abij,jk->abik", x, y), ((4, 5, 60, 70), (70, 90)), (1, 1200, 90, 70)
    ),
    "tensordot": (
        lambda x, y: np.tensordot(x, y, 1), ((4, 5, 60, 70), (70, 90)), (1, 1200, 90, 70)
    ),
    "lanes": (
        tracegraph.vmap(lambda x, y: x @ y, (0, None)), ((99, 60, 70), (70, 90)), (1, 5940, 90, 70)
    ),
    "lanes of a batch": (
        tracegraph.vmap(lambda x, y: x @ y, (0, None)),
        ((30, 5, 4, 256), (5, 256, 90)),
        (5, 120, 90, 256),
    ),
    "first axes of a batch": (
        lambda x, y: x @ y, ((30, 5, 4, 256), (5, 256, 90)), (5, 120, 90, 256)
    ),
    "first axes of columns": (
        lambda x, y: x @ y, ((5, 90, 256), (60, 5, 256, 4)), (5, 240, 90, 256)
    ),
    "lanes of vectors": (
        tracegraph.vmap(lambda x, y: y @ x, (0, None)), ((999, 70), (90, 70)), (1, 999, 90, 70)
    ),
    "a left factor and vectors": (
        lambda x, y: x @ y, ((90, 70), (999, 70, 1)), (1, 999, 90, 70)
    ),
    "a left factor and columns": (
        lambda x, y: x @ y, ((90, 70), (999, 70, 3)), (1, 2997, 90, 70)
    ),
}  # fmt: skip
"""By name: a function of two arrays, their shapes, and the batch, m, n and k of its one product."""


def kinds(plan: Plan) -> Counter[str]:
    return Counter(type(node).__name__ for node in plan.graph.nodes)


def product(x: Any, y: Any) -> Any:
    return x @ y


@pytest.mark.parametrize("shapes", THIN, ids=str)
def test_a_thin_product_is_one_kernel(shapes: Any) -> None:
    for dtype in ("float32", "float64", "complex64", "float16", "int32"):
        assert kinds(plan_of(product, *(ArrayType(dtype, s) for s in shapes))) == {"KernelNode": 1}


@pytest.mark.parametrize("shapes", THICK, ids=str)
def test_a_product_with_reuse_and_much_work_is_a_library_call(shapes: Any) -> None:
    types = [ArrayType("float32", shape) for shape in shapes]
    assert not is_thin(*types, TARGET.contractions)
    assert kinds(plan_of(product, *types))["LibraryNode"] == 1


@pytest.mark.parametrize("shapes", NARROW, ids=str)
def test_a_narrow_product_of_float32_is_computed_by_tiles(shapes: Any) -> None:
    plan = plan_of(product, *[ArrayType("float32", shape) for shape in shapes])
    (node,) = plan.graph.nodes
    assert isinstance(node, KernelNode)
    assert tiled_product(node.kernel.nests[0]) is not None
    double = plan_of(product, *[ArrayType(F64, shape) for shape in shapes])
    assert kinds(double)["LibraryNode"] == 1


@pytest.mark.parametrize(("n", "called"), [(16, False), (24, False), (25, True)])
def test_the_host_calls_the_library_for_large_products(n: int, called: bool) -> None:
    plan = plan_of(product, *[ArrayType(F64, (n, n))] * 2, device="host")
    assert (LibraryNode in map(type, plan.graph.nodes)) == called


def test_either_form_can_be_forced() -> None:
    thin, thick = ([ArrayType(F64, (n, n))] * 2 for n in (8, 64))
    with override(products="library"):
        assert kinds(plan_of(product, *thin))["LibraryNode"] == 1
        assert kinds(plan_of(product, *[ArrayType("int32", (64, 64))] * 2)) == {"KernelNode": 1}
    with override(products="nests"):
        assert kinds(plan_of(product, *thick)) == {"KernelNode": 1}


@pytest.mark.parametrize("name", CASES)
def test_the_cases_have_no_library_call(name: str) -> None:
    function, shapes = CASES[name]
    plan = plan_of(function, *(ArrayType("float32", shape) for shape in shapes))
    assert not any(isinstance(node, LibraryNode) for node in walk(plan.graph))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_nests_give_what_numpy_gives(name: str, dtype: np.dtype[Any]) -> None:
    assert_contracts(on_host(Choices()), name, dtype)


def test_an_empty_sum_is_zeros() -> None:
    found = on_host(Choices())(product, *operands("empty_sum", np.dtype(np.float32)))
    np.testing.assert_array_equal(found, np.zeros((3, 4), np.float32))


def test_transposed_operands_are_read_in_place() -> None:
    plan = plan_of(lambda a, v: a.T @ v, ArrayType(F64, (300, 200)), ArrayType(F64, (300,)))
    (node,) = plan.graph.nodes
    assert node.reads == set(plan.inputs)
    assert plan.arena_bytes == 0


def test_what_makes_an_operand_and_what_uses_the_result_are_fused() -> None:
    plan = plan_of(
        lambda a, v, b: np.tanh((a + 1) @ v + b),
        *(ArrayType(F64, shape) for shape in ((300, 200), (200,), (300,))),
    )
    (node,) = plan.graph.nodes
    assert isinstance(node, KernelNode)
    (nest,) = node.kernel.nests
    assert isinstance(nest, ReduceNest)


def test_an_outer_product_folds_nothing() -> None:
    (node,) = plan_of(product, ArrayType(F64, (70, 1)), ArrayType(F64, (1, 90))).graph.nodes
    assert isinstance(node, KernelNode)
    assert [type(nest) for nest in node.kernel.nests] == [MapNest]


# -- in programs -------------------------------------------------------------------------------


def body_kinds(function: Any, *types: ArrayType) -> Counter[str]:
    """The nodes of the body of a loop of one step an iteration; nothing is a library call."""
    with override(loops="conditional"):
        plan = plan_of(function, *types)
    assert not any(isinstance(node, LibraryNode) for node in walk(plan.graph))
    (loop,) = [node for node in plan.graph.nodes if isinstance(node, WhileNode)]
    return Counter(type(node).__name__ for node in loop.body.nodes)


def conjugate_gradients(a: Any, b: Any) -> Any:
    def step(state: Any) -> Any:
        x, r, p, rr = state
        ap = a @ p
        alpha = rr / (p @ ap)
        r = r - alpha * ap
        new = r @ r
        return x + alpha * p, r, r + new / rr * p, new

    return tracegraph.while_loop(lambda s: s[3] > 1e-9, step, (np.zeros_like(b), b, b, b @ b))[0]


def test_a_step_of_conjugate_gradients_is_two_kernels() -> None:
    types = ArrayType(F64, (200, 200)), ArrayType(F64, (200,))
    assert body_kinds(conjugate_gradients, *types) == {"KernelNode": 2}


def test_a_step_of_a_power_iteration_is_two_kernels() -> None:
    types = ArrayType(F64, (200, 200)), ArrayType(F64, (200,)), ArrayType("int64")
    assert body_kinds(power_iteration, *types) == {"KernelNode": 2}


def test_a_large_matrix_and_a_vector_are_a_nest_in_a_loop() -> None:
    types = ArrayType("float32", (2048, 2048)), ArrayType("float32", (2048,)), ArrayType("int64")
    assert body_kinds(power_iteration, *types) == {"KernelNode": 2}


@pytest.mark.parametrize("way", FORCED)
def test_the_bits_do_not_depend_on_the_schedule(way: str) -> None:
    rng = np.random.default_rng(3)
    a, v = rng.standard_normal((40, 40)), rng.standard_normal(40)

    def run(a: Any, v: Any, n: Any) -> Any:
        return tracegraph.cond(n > 2, lambda: power_iteration(a, v, n), lambda: v @ a)

    plain = on_host(Choices(branches="conditional", loops="conditional"))
    for n in (0, 1, 3, 7):
        found = on_host(FORCED[way])(run, a, v, np.int64(n))
        np.testing.assert_array_equal(found, plain(run, a, v, np.int64(n)))


def test_a_product_in_a_scan_and_a_branch_is_predicated() -> None:
    def run(a: Any, xs: Any, p: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = tracegraph.cond(p, lambda c: a @ c, lambda c: c @ a, c)
            return c, c @ x

        return tracegraph.scan(step, xs[0], xs)

    a, xs = np.arange(9.0).reshape(3, 3) % 4, np.arange(30.0).reshape(10, 3) % 5
    with override(branches="predicated", loops="conditional"):
        plan = plan_of(run, ArrayType(F64, (3, 3)), ArrayType(F64, (10, 3)), ArrayType("bool"))
    assert plan.node_counts["IfElseNode"] == 0
    for p in (True, False):
        found = on_host(FORCED["predicated"])(run, a, xs, np.bool_(p))
        for got, wanted in zip(found, run(a, xs, np.bool_(p)), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("device", ["host", "cuda"])
def test_products_that_share_a_factor_are_one_of_more_rows(name: str, device: str) -> None:
    function, shapes, sizes = SHARED[name]
    x, y = (np.random.default_rng(1).standard_normal(shape) for shape in shapes)
    lowered = tracegraph.jit(function, device=device).lower(x, y)
    (call,) = [node.call for node in walk(lowered.plan.graph) if isinstance(node, LibraryNode)]
    assert (call.batch, call.m, call.n, call.k) == sizes
    expected = function(x, y)
    np.testing.assert_allclose(
        tracegraph.jit(function, device="host")(x, y), expected, rtol=1e-9, atol=1e-11
    )


def test_factors_in_place_are_not_copied_for_that() -> None:
    """Many rows of each product, apart in memory from those of the next."""

    def turned(x: Any, y: Any) -> Any:
        return x.transpose(1, 0, 2) @ y

    types = ArrayType(F64, (100, 8, 200)), ArrayType(F64, (200, 300))
    assert kinds(plan_of(turned, *types))["LibraryNode"] == 1
    (call,) = [n.call for n in walk(plan_of(turned, *types).graph) if isinstance(n, LibraryNode)]
    assert (call.batch, call.m) == (8, 100)


def test_a_reshape_of_an_operand_is_no_copy() -> None:
    types = ArrayType(F64, (20, 50, 200)), ArrayType(F64, (200, 300))
    assert "MapNest" not in kinds(plan_of(lambda x, y: x.reshape(-1, 200) @ y, *types))
    plan = plan_of(lambda x, y: x.reshape(1000, 200) @ y, *types)
    assert kinds(plan)["KernelNode"] == 0
