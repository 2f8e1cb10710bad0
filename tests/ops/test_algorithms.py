"""The algorithms of ops that a backend has no library call for: planned for a GPU, run here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import check, planned_for_cuda

import tracegraph
from lowering.lower import lower
from lowering.plan.nodes import LibraryNode, walk
from tracegraph.algorithms import ALGORITHMS
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Op, Sample, get
from tracegraph.ops.factorizations.matrices import mixed, positive_definite

each_op = pytest.mark.parametrize("op", [get(name) for name in ALGORITHMS], ids=lambda op: op.name)


@each_op
def test_it_gives_what_the_reference_gives(op: Op) -> None:
    for sample in op.samples():
        check(op, sample, planned_for_cuda)


@pytest.mark.parametrize("name", ["cholesky", "lu", "triangular_solve"])
@pytest.mark.parametrize("n", [65, 130, 200])
def test_large_matrices_are_factored_by_blocks(name: str, n: int) -> None:
    a = positive_definite(n)
    operands = (a,) if name != "triangular_solve" else (np.linalg.cholesky(a), mixed((n, 3)))
    attrs = {"lower": True} if name == "triangular_solve" else {}
    check(get(name), Sample(operands, attrs), planned_for_cuda)


@pytest.mark.parametrize("shape", [(200, 70), (70, 200), (2, 90, 80)])
def test_rectangular_matrices_are_eliminated_by_blocks(shape: tuple[int, ...]) -> None:
    a = mixed(shape)
    *_, m, n = shape
    k = min(m, n)
    factors, _, rows = planned_for_cuda(get("lu"), (a,), {})
    lower = np.tril(factors[..., :k], -1) + np.eye(m, k)
    upper = np.triu(factors[..., :k, :])
    assert np.abs(lower).max() == 1
    moved = np.take_along_axis(a, rows[..., None], -2)
    np.testing.assert_allclose(lower @ upper, moved, atol=1e-13 * k)


@each_op
def test_no_library_is_needed(op: Op) -> None:
    sample = op.samples()[0]

    def function(*xs: Any) -> Any:
        return apply(op, *xs, **sample.attrs)

    program = tracegraph.jit(function, device="host").lower(*sample.operands).traced.optimized
    assert not any(isinstance(node, LibraryNode) for node in walk(lower(program, "cuda").graph))
    assert any(isinstance(node, LibraryNode) for node in walk(lower(program, "host").graph))
