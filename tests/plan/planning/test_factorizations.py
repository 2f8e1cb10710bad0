"""The form of a factorization: of our own, by a library, or a kernel for small matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.cuda import TARGET
from lowering.planning.factorizations import FactorizationForm, form_of
from tracegraph.ir.types import ArrayType


def form(
    name: str,
    *shapes: Sequence[int],
    in_body: bool = False,
    forced: FactorizationForm | None = None,
) -> str:
    types = [ArrayType("float32", tuple(shape)) for shape in shapes]
    return form_of(name, types, TARGET.lapack, in_body=in_body, forced=forced)


@pytest.mark.parametrize(
    "name", ["cholesky", "eigh", "lu", "pinv", "qr", "svd", "triangular_solve"]
)
@pytest.mark.parametrize("batch", [(), (1,), (10, 1000)])
@pytest.mark.parametrize("n", [2, 32])
def test_small_matrices_at_the_top_have_a_kernel(name: str, batch: Any, n: int) -> None:
    assert form(name, (*batch, n, n)) == "small"


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("cholesky", [(1000, 1, 1)]),
        ("cholesky", [(1000, 129, 129)]),
        ("eigh", [(1000, 129, 129)]),
        ("lu", [(1000, 8, 7)]),
        ("qr", [(1000, 129, 129)]),
        ("qr", [(1025, 8)]),
        ("svd", [(1000, 129, 140)]),
        ("pinv", [(1000, 8, 1)]),
        ("triangular_solve", [(1000, 33, 33), (1000, 33, 65)]),
        ("triangular_solve", [(1000, 129, 129), (1000, 129, 3)]),
    ],
)
@pytest.mark.parametrize("forced", [None, "small"])
def test_others_have_none(name: str, shapes: Any, forced: FactorizationForm | None) -> None:
    assert form(name, *shapes, forced=forced) != "small"


@pytest.mark.parametrize(
    ("name", "batch", "n", "expected"),
    [
        ("cholesky", (), 4, "own"),
        ("cholesky", (), 5, "small"),
        ("cholesky", (63,), 4, "own"),
        ("cholesky", (64,), 4, "small"),
        ("lu", (9,), 4, "own"),
        ("triangular_solve", (2,), 33, "small"),
        ("triangular_solve", (2,), 129, "library"),
        ("triangular_solve", (3,), 129, "at once"),
        ("lu", (9,), 33, "small"),
        ("lu", (9,), 129, "own"),
        ("cholesky", (), 32, "small"),  # the library would factor it
        ("cholesky", (), 64, "small"),
        ("cholesky", (), 65, "library"),
        ("cholesky", (), 129, "library"),
        ("eigh", (), 2, "small"),
    ],
)
def test_few_in_a_body_are_a_part_of_it(name: str, batch: Any, n: int, expected: str) -> None:
    assert form(name, (*batch, n, n), in_body=True) == expected


@pytest.mark.parametrize("forced", ["own", "library", "small"])
def test_a_form_that_is_asked_for_is_used(forced: FactorizationForm) -> None:
    found = form("cholesky", (4, 4), in_body=True, forced=forced)
    assert found == forced


def test_no_elements_need_no_kernel() -> None:
    assert form("cholesky", (0, 8, 8)) == "own"
    assert form("tridiagonal_solve", *[(0, 8)] * 3, (0, 8, 1)) == "own"


@pytest.mark.parametrize(
    ("batch", "n", "in_body", "expected"),
    [
        ((), 1, False, "small"),
        ((), 5000, False, "small"),
        ((), 64, True, "small"),
        ((), 63, True, "own"),
        ((9,), 7, True, "own"),
        ((3, 4), 6, True, "small"),
    ],
)
def test_tridiagonal_systems_have_kernels(batch: Any, n: int, in_body: bool, expected: str) -> None:
    shapes = [(*batch, n)] * 3 + [(*batch, n, 2)]
    assert form("tridiagonal_solve", *shapes, in_body=in_body) == expected
    assert form("tridiagonal_solve", *shapes, forced="own") == "own"
    assert form("tridiagonal_solve", *shapes, in_body=True, forced="small") == "small"


def test_a_long_tridiagonal_system_is_divided_among_blocks() -> None:
    arrays = *[ArrayType("float64", (20_000,))] * 3, ArrayType("float64", (20_000, 1))
    lowered = tracegraph.jit(tracegraph.linalg.tridiagonal_solve, device="cuda").lower(*arrays)
    names = [node.name for node in lowered.nodes if node.kind == "custom kernel"]
    assert names == [
        "tridiagonal_reduce_8x128",
        "tridiagonal_solve_spans_2x32",
        "tridiagonal_finish_8x128",
    ]


@pytest.mark.parametrize(("count", "kernels"), [(63, 0), (64, 3)])
def test_a_loop_over_systems(count: int, kernels: int) -> None:
    def solved(a: Any, b: Any, steps: Any) -> Any:
        return tracegraph.fori_loop(0, steps, lambda _, x: np.linalg.solve(a + x[..., :1], x), b)

    arrays = np.ones((count, 4, 4)), np.ones((count, 4, 1))
    lowered = tracegraph.jit(solved, device="cuda").lower(*arrays, 3)
    assert lowered.plan.node_counts["CustomKernelNode"] == kernels
    assert lowered.plan.node_counts["LibraryNode"] == 0
