"""Sparse products and folds by segment, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tracegraph import sparse
from tracegraph.sparse import CSR

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

RNG = np.random.default_rng(8)
DENSE = np.where(RNG.random((40, 30)) < 0.2, RNG.integers(1, 9, (40, 30)), 0).astype(float)
A = CSR.from_dense(DENSE)
X, Y = RNG.integers(-9, 10, (30, 3)).astype(float), RNG.integers(-9, 10, (2, 40)).astype(float)
IDS = RNG.integers(-1, 25, 40)


def of(a: CSR) -> Any:
    """The arrays of a matrix, which is made again of them in the traced function."""
    return a.data, a.indices, a.indptr


def product(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data, indices, indptr, x: function(CSR(data, indices, indptr, (40, 30)), x)


def folded(fold: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, ids: fold(x, ids, 20)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any]] = {
    "a @ x": (product(lambda a, x: a @ x), (*of(A), X[:, 0]), DENSE @ X[:, 0]),
    "a @ X": (product(lambda a, x: a @ x), (*of(A), X), DENSE @ X),
    "y @ a": (product(lambda a, x: x @ a), (*of(A), Y[0]), Y[0] @ DENSE),
    "Y @ a": (product(lambda a, x: x @ a), (*of(A), Y), Y @ DENSE),
    "dense": (product(lambda a, x: a.todense() + x), (*of(A), np.float64(1)), DENSE + 1),
    **{
        name: (folded(getattr(sparse, name)), (Y.T, IDS), getattr(sparse, name)(Y.T, IDS, 20))
        for name in ("segment_sum", "segment_prod", "segment_min", "segment_max")
    },
}


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    programs = {name: (function, operands) for name, (function, operands, _) in PROGRAMS.items()}
    return EmulatedPlans(programs, tmp_path_factory.mktemp("sparse"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_products_and_folds_are_those_of_the_host(name: str, plans: EmulatedPlans) -> None:
    _, operands, wanted = PROGRAMS[name]
    np.testing.assert_array_equal(np.asarray(plans.run(name, *operands)), wanted)
