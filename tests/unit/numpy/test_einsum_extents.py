"""`einsum` where a label has the extent 1 in one operand and another in the next: it broadcasts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.traced import assert_traced_equals_eager, trace

TERMS = [
    *("i,i", "i,i->i", "ij,ij->i", "ij,jk->ik", "ij,jk", "ii", "ii->i", "ij,j,k->ik", "i,i,i"),
    *("ij,ji->", "bij,bjk->bik", "ij,kj->ik", "ii,i->i", "iij,j->i", "ij,jk,kl->il"),
]


def operands(shapes: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.integers(-5, 6, shape).astype(float) for shape in shapes]


def check(subscripts: str, shapes: Any) -> None:
    arrays = operands(shapes)

    def f(*arrays: Any) -> Any:
        return np.einsum(subscripts, *arrays)

    try:
        f(*arrays)
    except ValueError:
        with pytest.raises(ValueError, match="einsum"):
            trace(f, *arrays)
        return
    assert_traced_equals_eager(f, *arrays)


@pytest.mark.parametrize("subscripts", TERMS)
def test_every_label_may_be_1_or_more(subscripts: str) -> None:
    terms = subscripts.partition("->")[0].split(",")
    axes = sum(map(len, terms))
    for extents in itertools.product([1, 3], repeat=axes):
        rest = iter(extents)
        check(subscripts, [tuple(next(rest) for _ in term) for term in terms])


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("...i,...i->...", [(2, 1), (1, 3)]),
        ("...i,...i->...", [(2, 3), (3,)]),
        ("...ij,...jk->...ik", [(2, 3, 1), (4, 5)]),
        ("...ij,...jk->...ik", [(1, 3, 4), (5, 4, 2)]),
        ("i...,i...->...", [(1, 3), (2, 3)]),
        ("...,...", [(3, 1), (1, 4)]),
        ("i,i", [(0,), (1,)]),
        ("i,i->i", [(0,), (1,)]),
        ("ij,j->i", [(0, 1), (3,)]),
        ("ij,jk->ik", [(2, 0), (1, 3)]),
        ("ij,jk->ik", [(2, 1), (0, 3)]),
    ],
)
def test_ellipses_and_no_elements(subscripts: str, shapes: Any) -> None:
    check(subscripts, shapes)


def test_derivatives_and_vmap() -> None:
    a, b = operands([(2, 1), (3, 4)])

    def total(a: Any, b: Any) -> Any:
        return np.sum(np.einsum("ij,jk->ik", a, b) ** 2)

    da, db = tracegraph.jit(tracegraph.grad(total, argnums=(0, 1)), device="host")(a, b)
    product = np.einsum("ij,jk->ik", a, b)
    np.testing.assert_allclose(da, 2 * np.einsum("ik,jk->i", product, b)[:, None])
    np.testing.assert_allclose(db, 2 * np.einsum("ij,ik->jk", np.repeat(a, 3, 1), product))
    batch = np.stack([a, a + 1])
    mapped = tracegraph.vmap(lambda a: np.einsum("ij,jk->ik", a, b))(batch)
    np.testing.assert_allclose(mapped, np.einsum("bij,jk->bik", batch, b))
