"""Sparse products and folds by segment, with sums that are exact, and what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import Device
from tracegraph import sparse
from tracegraph.sparse import CSR

RNG = np.random.default_rng(8)
DENSE = np.where(RNG.random((40, 30)) < 0.2, RNG.integers(1, 9, (40, 30)), 0)
X, Y = RNG.integers(-9, 10, (30, 3)), RNG.integers(-9, 10, (2, 40))
IDS = RNG.integers(-1, 25, 40)
DTYPES = ("int64", "float32", "float64")

PRODUCTS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "a @ x": (lambda a, x: a @ x, X[:, 0]),
    "a @ X": (lambda a, x: a @ x, X),
    "y @ a": (lambda a, y: y @ a, Y[0]),
    "Y @ a": (lambda a, y: y @ a, Y),
    "a.T @ y": (lambda a, y: a.T @ y, Y[0]),
    "dense": (lambda a, x: (a.todense() if isinstance(a, CSR) else a) + x, np.array(1)),
}
FOLDS = ("segment_sum", "segment_prod", "segment_min", "segment_max")


def of(a: CSR) -> Any:
    """The arrays of a matrix, which is made again of them in the traced function."""
    return a.data, a.indices, a.indptr


def product(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data, indices, indptr, x: function(CSR(data, indices, indptr, (40, 30)), x)


def folded(fold: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, ids: fold(x, ids, 20)


def cases() -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, function, arguments and what NumPy gives."""
    for dtype in DTYPES:
        dense = DENSE.astype(dtype)
        for name, (function, x) in PRODUCTS.items():
            arguments = *of(CSR.from_dense(dense)), x.astype(dtype)
            yield f"{name} of {dtype}", product(function), arguments, function(dense, arguments[-1])
    for name in FOLDS:
        fold, x = getattr(sparse, name), Y.T.astype(float)
        yield name, folded(fold), (x, IDS), fold(x, IDS, 20)


PROGRAMS = {name: (function, arguments) for name, function, arguments, _ in cases()}
EXPECTED = {name: wanted for name, *_, wanted in cases()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_products_and_folds_are_those_of_the_host(name: str, device: Device) -> None:
    found = np.asarray(device.run(name, *PROGRAMS[name][1]))
    np.testing.assert_array_equal(found, EXPECTED[name], strict=True)
