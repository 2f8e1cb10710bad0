"""The algorithms of ops that a backend has no library call for: planned for a GPU, run here.

Those by LAPACK's routines run NumPy's, too.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.algorithms import ALGORITHMS
from lowering.backends.host import TARGET
from lowering.lower import lower
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nodes import LibraryNode, walk
from lowering.planning.factorizations import FactorizationForm
from tests.helpers.agreement import check, planned_for_cuda
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Op, Sample, get
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.ops.factorizations.matrices import mixed, positive_definite

each_op = pytest.mark.parametrize("op", [get(name) for name in ALGORITHMS], ids=lambda op: op.name)


@each_op
@pytest.mark.parametrize("form", ["own", "library"])
def test_it_gives_what_the_reference_gives(op: Op, form: FactorizationForm) -> None:
    for sample in op.samples()[form == "own" :: 2]:
        check(op, sample, partial(planned_for_cuda, form=form))


@pytest.mark.parametrize("name", ["cholesky", "lu", "triangular_solve"])
@pytest.mark.parametrize("n", [65, 130, 200])
@pytest.mark.parametrize("form", ["own", "library"])
def test_large_matrices_are_factored_by_blocks(name: str, n: int, form: FactorizationForm) -> None:
    a = positive_definite(n)
    operands = (a,) if name != "triangular_solve" else (np.linalg.cholesky(a), mixed((n, 3)))
    attrs = {"lower": True} if name == "triangular_solve" else {}
    check(get(name), Sample(operands, attrs), partial(planned_for_cuda, form=form))


@pytest.mark.parametrize("shape", [(200, 70), (70, 200), (2, 90, 80)])
@pytest.mark.parametrize("form", ["own", "library"])
def test_rectangular_matrices_are_eliminated_by_blocks(
    shape: tuple[int, ...], form: FactorizationForm
) -> None:
    a = mixed(shape)
    *_, m, n = shape
    k = min(m, n)
    factors, _, rows = planned_for_cuda(get("lu"), (a,), {}, form)
    lower = np.tril(factors[..., :k], -1) + np.eye(m, k)
    upper = np.triu(factors[..., :k, :])
    assert np.abs(lower).max() == 1
    moved = np.take_along_axis(a, rows[..., None], -2)
    np.testing.assert_allclose(lower @ upper, moved, atol=1e-13 * k)


@pytest.mark.parametrize("shape", [(3, 3), (7, 3), (3, 7), (2, 5, 4)])
def test_qr_by_the_library(shape: tuple[int, ...]) -> None:
    for dtype in (np.float32, np.complex128):
        check(get("qr"), Sample((mixed(shape, dtype),)), partial(planned_for_cuda, form="library"))


def test_the_size_and_the_batch_decide() -> None:
    """A matrix of many rows and columns has library calls; small square ones have kernels."""

    def nodes(function: Any, *shapes: tuple[int, ...]) -> list[Any]:
        types = [tracegraph.ArrayType(np.float64, shape) for shape in shapes]
        program = tracegraph.jit(function, device="host").lower(*types).traced.optimized
        return list(walk(lower(program, "cuda").graph))

    def calls(name: str, *shapes: tuple[int, ...], **attrs: Any) -> int:
        found = nodes(lambda *xs: apply(get(name), *xs, **attrs), *shapes)
        assert not any(isinstance(node, CustomKernelNode) for node in found)
        return sum(isinstance(n, LibraryNode) and n.call.noun != "a product" for n in found)

    def kernels(name: str, *shapes: tuple[int, ...], **attrs: Any) -> int:
        found = nodes(lambda *xs: apply(get(name), *xs, **attrs), *shapes)
        return sum(isinstance(node, CustomKernelNode) for node in found)

    def kernels_in_a_loop(name: str, shape: tuple[int, ...]) -> int:
        def body(_: Any, a: Any) -> Any:
            found = apply(get(name), a)
            return found[1] if isinstance(found, tuple) else found

        found = nodes(lambda a: tracegraph.fori_loop(0, 3000, body, a, unroll=1), shape)
        return sum(isinstance(node, CustomKernelNode) for node in found)

    assert calls("cholesky", (2000, 2000)) == 1
    assert calls("lu", (2000, 3000)) == 1
    assert calls("qr", (3000, 2000)) == 2
    assert calls("triangular_solve", (2000, 2000), (2000, 3), lower=True) == 1
    assert calls("qr", (3000, 16)) == calls("cholesky", (1, 1)) == 0
    assert calls("cholesky", (1000, 130, 130)) == calls("lu", (1000, 32, 16)) == 0
    assert kernels("cholesky", (1000, 33, 33)) == kernels("lu", (10, 100, 48, 48)) == 1
    assert kernels("triangular_solve", (10, 17, 17), (10, 17, 300), lower=True) == 1
    assert kernels("triangular_solve", (1000, 9, 9), (1000, 9, 300), lower=True) == 0
    assert calls("triangular_solve", (1000, 33, 33), (1000, 33, 300), lower=True) == 1
    assert kernels("cholesky", (16, 16)) == kernels("lu", (10, 100, 32, 32)) == 1
    assert kernels("triangular_solve", (1000, 9, 9), (1000, 9, 3), lower=True) == 1
    assert kernels("eigh", (2, 2)) == kernels("eigh", (9, 32, 32)) == kernels("eigh", (64, 64)) == 1
    assert kernels("qr", (64, 32)) == kernels("qr", (10, 4, 4)) == 1
    assert kernels_in_a_loop("eigh", (4, 4)) == kernels_in_a_loop("cholesky", (64, 4, 4)) == 1
    assert kernels_in_a_loop("cholesky", (63, 4, 4)) == 0


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_systems_of_many_right_hand_sides_are_written_out(
    lower: bool, unit: bool, dtype: str
) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 7, 7)), rng.standard_normal((2, 7, 5000))
    a, b = (a + 3 * np.eye(7)).astype(dtype), b.astype(dtype)
    attrs = {"lower": lower, "unit": unit}
    solve = get("triangular_solve")
    wanted = solve.reference(a, b, **attrs)
    found = planned_for_cuda(solve, (a, b), attrs)
    unit_of_rounding = 200 * float(np.finfo(dtype).eps) * np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, 0, unit_of_rounding)

    def lengths(a: Any, b: Any) -> Any:
        return np.sum(np.abs(apply(solve, a, b, **attrs)) ** 2, axis=-2)

    types = [tracegraph.ArrayType(dtype, x.shape) for x in (a, b)]
    plan = tracegraph.jit(lengths, device="cuda").lower(*types).plan
    accessed = {buffer for node in walk(plan.graph) for buffer in node.accessed_buffers}
    assert [buffer.space for buffer in accessed if buffer.type.shape == b.shape] == ["input"]


@each_op
def test_no_library_is_needed(op: Op) -> None:
    sample = op.samples()[0]

    def function(*xs: Any) -> Any:
        return apply(op, *xs, **sample.attrs)

    program = tracegraph.jit(function, device="host").lower(*sample.operands).traced.optimized
    assert not any(isinstance(node, LibraryNode) for node in walk(lower(program, "cuda").graph))
    on_host = any(isinstance(node, LibraryNode) for node in walk(lower(program, "host").graph))
    assert on_host != TARGET.programs.prefers(op.name, type_of(sample.operands[0]))


@pytest.mark.parametrize(
    ("n", "batch", "calls"), [(4, (), 0), (32, (), 0), (33, (), 1), (16, (1000,), 1)]
)
def test_small_matrices_are_factored_by_programs_on_a_cpu(
    n: int, batch: tuple[int, ...], calls: int
) -> None:
    a = ArrayType(np.dtype(np.float64), (*batch, n, n))
    plan = tracegraph.jit(np.linalg.cholesky, device="host").lower(a).plan
    assert sum(isinstance(node, LibraryNode) for node in walk(plan.graph)) == calls
