"""Which products find their matrices by pointer, and which get copies of arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends import cuda, host
from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.nodes import LibraryNode, MemcpyNode, walk
from lowering.plan.plan import Plan
from lowering.plan.reports.explain import explain
from lowering.plan.target.overrides import override
from tests.helpers.compiled import plan_of
from tracegraph import ArrayType
from tracegraph.dtypes import bfloat16

POLICY = cuda.TARGET.operands
assert POLICY is not None


def planned(function: Any, *types: ArrayType, device: str = "cuda", **choices: Any) -> Plan:
    return plan_of(function, *types, device=device, choices={"products": "library", **choices})


def products(plan: Plan) -> list[MatrixProduct]:
    calls = [node.call for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    return [call for call in calls if isinstance(call, MatrixProduct)]


def matmul(x: Any, y: Any) -> Any:
    return x @ y


def of(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[ArrayType]:
    return [ArrayType(dtype, shape) for shape in shapes]


@pytest.mark.parametrize(
    "dtype", [np.float16, bfloat16, np.float32, np.float64, np.complex64, np.complex128]
)
def test_arguments_and_results_of_a_product_are_in_place(dtype: Any) -> None:
    plan = planned(matmul, *of((128, 96), (96, 160), dtype=dtype))
    (call,) = products(plan)
    assert call.by_pointer
    assert [array.buffer for array in call.operands] == [*plan.inputs, *plan.outputs]
    assert len(plan.graph.nodes) == 1
    assert plan.copied_bytes == plan.arena_bytes == 0
    assert "copies" not in explain(plan)
    assert "by pointer" in str(plan)


def test_large_products_get_copies_as_the_library_is_faster_then() -> None:
    plan = planned(matmul, *of((8192, 8192), (8192, 8192), dtype=np.float64))
    (call,) = products(plan)
    assert not call.by_pointer
    assert plan.copied == plan.inputs
    assert explain(plan).count("each launch copies 536,870,912 B to scratch") == 2


def test_the_reuse_of_a_matrix_decides_and_not_its_size() -> None:
    (thin,) = products(planned(matmul, *of((8192, 8192), (8192, 256), dtype=np.float64)))
    assert thin.by_pointer


def test_where_the_library_is_as_fast_by_pointer_no_copies_are_made() -> None:
    for dtype in (np.float16, bfloat16, np.float32, np.complex64):
        (call,) = products(planned(matmul, *of((8192, 8192), (8192, 8192), dtype=dtype)))
        assert call.by_pointer


def test_copies_before_a_loop_serve_all_of_its_steps() -> None:
    def chain(a: Any, x: Any, n: Any) -> Any:
        return tracegraph.fori_loop(0, n, lambda _, v: a @ v, x)

    square = of((1024, 1024), (1024, 1024))
    (once,) = products(planned(matmul, *square))
    assert once.by_pointer
    plan = planned(chain, *square, ArrayType("int64", ()))
    (repeated,) = products(plan)
    assert not repeated.by_pointer
    assert plan.copied == plan.inputs[:1]
    small = products(planned(chain, *of((48, 48), (48, 48)), ArrayType("int64", ())))
    assert all(call.by_pointer for call in small)


def test_branches_do_not_pay_for_copies_of_what_only_the_other_reads() -> None:
    def either(p: Any, x: Any, y: Any, z: Any) -> Any:
        return tracegraph.cond(p, lambda x, y, z: x @ y, lambda x, y, z: x @ z, x, y, z)

    types = of((256, 256), (256, 256), (256, 256))
    plan = planned(either, ArrayType("bool", ()), *types, branches="conditional")
    assert [call.by_pointer for call in products(plan)] == [True, True]
    assert not [node for node in walk(plan.graph) if isinstance(node, MemcpyNode)]


def test_long_sums_for_few_results_get_copies() -> None:
    (long,) = products(planned(matmul, *of((64, 8192), (8192, 64))))
    assert not long.by_pointer
    (short,) = products(planned(matmul, *of((64, 256), (256, 64))))
    assert short.by_pointer


def test_matrices_that_may_not_be_aligned_get_copies() -> None:
    plan = planned(lambda x, y: x[1:, 1:] @ y, *of((65, 97), (96, 64)))
    (call,) = products(plan)
    assert not call.by_pointer
    assert plan.copied == plan.inputs
    (aligned,) = products(planned(lambda x, y: x[1:, 4:] @ y, *of((65, 100), (96, 64))))
    assert aligned.by_pointer
    odd = of((3, 33, 33), (3, 33, 33), dtype=np.float16)
    with override(products="library", operands="in_place"):
        (batch,) = products(tracegraph.jit(matmul, device="cuda").lower(*odd).plan)
    assert not batch.by_pointer, "the second matrix is 2178 bytes behind the first"


def test_large_batches_get_copies() -> None:
    most = POLICY.most_matrices
    for count, by_pointer in ((most, True), (most + 1, False)):
        (call,) = products(planned(matmul, *of((count, 16, 16), (count, 16, 16))))
        assert call.by_pointer is by_pointer


def test_both_forms_can_be_forced() -> None:
    square = of((128, 128), (128, 128))
    copied = planned(matmul, *square, operands="copied")
    assert copied.copied == copied.inputs
    large = of((8192, 8192), (8192, 8192))
    (call,) = products(planned(matmul, *large, operands="in_place"))
    assert call.by_pointer


def test_the_host_has_no_use_for_pointers() -> None:
    assert host.TARGET.operands is None
    (call,) = products(planned(matmul, *of((128, 96), (96, 160)), device="host"))
    assert not call.by_pointer


def test_a_result_that_is_read_again_is_where_it_is_returned() -> None:
    plan = planned(lambda x, y: (x @ y, np.sin(x @ y)), *of((128, 96), (96, 160)))
    (call,) = products(plan)
    assert call.target.buffer is plan.outputs[0]
    assert len(plan.graph.nodes) == 2


@pytest.mark.parametrize("op", ["inverse", "solve"])
def test_systems_of_a_batch_are_solved_where_they_are_returned(op: str) -> None:
    def inverse(a: Any) -> Any:
        return np.linalg.inv(a)

    def solve(a: Any) -> Any:
        return np.linalg.solve(a, a)

    with override(factorizations="library"):
        function = inverse if op == "inverse" else solve
        jitted = tracegraph.jit(function, device="cuda")
        plan = jitted.lower(ArrayType("float64", (9, 16, 16))).plan
    calls = [node.call for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    last = calls[-1]
    assert last.name.startswith("trsm_batched")
    assert plan.outputs[0] in last.writes
    assert plan.outputs[0] not in last.fixed_buffers


def test_systems_of_a_batch_are_solved_in_the_memory_of_a_donated_argument() -> None:
    with override(factorizations="library"):
        jitted = tracegraph.jit(np.linalg.inv, device="cuda", donate_argnums=0)
        plan = jitted.lower(ArrayType("float64", (9, 16, 16))).plan
    *_, last = [node for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    assert last.name.startswith("trsm_batched")
    assert plan.inputs[0] in last.writes
    assert plan.outputs == plan.inputs
