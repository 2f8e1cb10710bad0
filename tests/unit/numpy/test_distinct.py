"""Distinct elements and sets: with a static size under jit, eagerly as NumPy has them."""

from __future__ import annotations

from itertools import chain, cycle, product
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.cases.sorting import values
from tracegraph import errors

DTYPES = ["bool", "int8", "uint64", "float16", "float64", "complex64"]


def few(dtype: str, count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Numbers of which many are equal, NaN and both zeros among them."""
    x = np.random.default_rng(seed).integers(0, 7, count).astype(dtype)
    if x.dtype.kind in "fc" and count > 4:
        x[1:5] = np.nan, -0.0, np.nan, np.inf
    return x


def jitted(function: Any, *args: Any) -> list[Any]:
    return tracegraph.tree.leaves(tracegraph.jit(function, device="host")(*args))


def padded(x: np.ndarray[Any, Any], size: int, fill: Any) -> np.ndarray[Any, Any]:
    return np.concatenate([x[:size], np.full(max(size - len(x), 0), fill, x.dtype)])


def same(found: Any, wanted: Any) -> None:
    for got, want in zip(found, wanted, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("equal_nan", [True, False])
@pytest.mark.parametrize("shape", [(20,), (4, 5), (1,)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(dtype: str, shape: Any, equal_nan: bool) -> None:
    x = few(dtype, int(np.prod(shape))).reshape(shape)
    distinct, at, places, counts = np.unique(x, True, True, True, equal_nan=equal_nan)
    given = list(product((0, 2, len(distinct), 25), (None, 3)))

    def function(x: Any) -> Any:
        options = [
            {"size": size, "fill_value": fill, "equal_nan": equal_nan} for size, fill in given
        ]
        return [tnp.unique(x, True, True, True, **each) for each in options]

    wanted = [
        (
            padded(distinct, size, distinct[0] if fill is None else fill),
            padded(at, size, at[0]),
            places,
            padded(counts, size, 0),
        )
        for size, fill in given
    ]
    same(jitted(function, x), chain(*wanted))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unique_slices(axis: int) -> None:
    x = np.random.default_rng(0).integers(0, 2, (6, 3, 2)).astype(np.float32)
    wanted = np.unique(x, True, True, True, axis)
    size = wanted[0].shape[axis]
    found = jitted(lambda x: tnp.unique(x, True, True, True, axis, size=size), x)
    same(found, wanted)
    more = jitted(lambda x: tnp.unique(x, axis=axis, size=size + 1, fill_value=9), x)[0]
    np.testing.assert_array_equal(np.take(more, size, axis), 9)


def test_unique_of_nothing() -> None:
    for shape in ((0,), (3, 0)):
        found = jitted(lambda x: tnp.unique(x, True, True, True, size=2), np.zeros(shape))
        zeros = np.zeros(2, np.int64)
        same(found, (np.zeros(2), zeros, np.zeros(shape, np.int64), zeros))


def test_functions_of_the_standard() -> None:
    x = few("float64", 12)
    for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
        wanted = getattr(np, name)(x)
        leaves = [wanted] if isinstance(wanted, np.ndarray) else list(wanted)
        size = len(leaves[0])
        found = jitted(lambda x, name=name, size=size: getattr(tnp, name)(x, size=size), x)
        if name == "unique_values":
            leaves = [np.sort(leaves[0])]
        same(found, leaves)
        structure = tracegraph.jit(lambda x, name=name: getattr(tnp, name)(x, size=3))(x)
        assert type(structure) is type(wanted) or name == "unique_values"


SETS = {
    "union1d": (np.union1d, tnp.union1d),
    "intersect1d": (np.intersect1d, tnp.intersect1d),
    "setdiff1d": (np.setdiff1d, tnp.setdiff1d),
    "setxor1d": (np.setxor1d, tnp.setxor1d),
}


LENGTHS = ((20, 30), (6, 1), (5, 0), (0, 5))


@pytest.mark.parametrize(("lengths", "dtype"), [*zip(cycle(LENGTHS), DTYPES, strict=False)])
@pytest.mark.parametrize("name", SETS)
def test_sets(name: str, dtype: str, lengths: Any) -> None:
    reference, ours = SETS[name]
    x, y = few(dtype, lengths[0]), few(dtype, lengths[1], seed=1)
    wanted = reference(x, y)
    sizes = (0, 1, len(wanted), 60)
    found = jitted(lambda x, y: [ours(x, y, size=size, fill_value=5) for size in sizes], x, y)
    same(found, [padded(wanted, size, 5) for size in sizes])
    if len(wanted):
        found = jitted(lambda x, y: [ours(x, y, size=size) for size in sizes], x, y)
        same(found, [padded(wanted, size, wanted[0]) for size in sizes])


def test_sets_of_nothing() -> None:
    nothing = np.zeros(0, np.float32)
    for _, ours in SETS.values():
        (found,) = jitted(lambda x, ours=ours: ours(x, x, size=2, fill_value=4), nothing)
        same([found], [np.full(2, 4, np.float32)])


def test_sets_have_the_common_dtype() -> None:
    x, y = np.array([3, 1], np.int8), np.array([1.5, 3], np.float32)
    for name, (reference, ours) in SETS.items():
        wanted = reference(x, y)
        size = len(wanted)
        (found,) = jitted(lambda x, y, ours=ours, size=size: ours(x, y, size=size), x, y)
        assert found.dtype == wanted.dtype, name
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_of_common_elements(dtype: str) -> None:
    x, y = few(dtype, 15), few(dtype, 9, seed=2)
    wanted = np.intersect1d(x, y, return_indices=True)
    size = len(wanted[0])
    found = jitted(lambda x, y: tnp.intersect1d(x, y, return_indices=True, size=size), x, y)
    same(found, wanted)
    more = jitted(lambda x, y: tnp.intersect1d(x, y, return_indices=True, size=size + 2), x, y)
    same(more, [np.concatenate([each, each[:1], each[:1]]) for each in wanted])


def test_differences_of_distinct_elements_keep_their_order() -> None:
    x, y = np.array([5, 3, 9, 1]), np.array([3, 4])
    found = jitted(lambda x, y: tnp.setdiff1d(x, y, True, size=4, fill_value=-1), x, y)
    same(found, [np.array([5, 9, 1, -1])])


@pytest.mark.parametrize("count", [5, 200])
def test_membership_in_traced_elements(count: int) -> None:
    x, y = values(np.float32, (300,)), values(np.float32, (count,), 1)
    (found,) = jitted(np.isin, x, y)
    np.testing.assert_array_equal(found, np.isin(x, y))


def test_arrays_need_no_size() -> None:
    x, y = tracegraph.asarray([3, 1, 3]), np.array([3, 4])
    assert isinstance(tnp.unique(x), tracegraph.Array)
    np.testing.assert_array_equal(tnp.unique(x), [1, 3])
    same(tnp.intersect1d(x, y, return_indices=True), np.intersect1d([3, 1, 3], y, False, True))
    for reference, ours in SETS.values():
        np.testing.assert_array_equal(ours(x, y), reference([3, 1, 3], y))


def test_without_a_size_traced_elements_are_refused() -> None:
    x = np.arange(3)
    for name, call in {
        "unique": lambda x: np.unique(x),
        "unique_counts": lambda x: np.unique_counts(x),
        **{name: (lambda x, f=f: f(x, np.arange(2))) for name, (f, _) in SETS.items()},
    }.items():
        with pytest.raises(
            errors.ShapeDependentError, match=rf"tracegraph.numpy.{name}\(x.*size=n"
        ):
            tracegraph.jit(call, device="host")(x)
    with pytest.raises(ValueError, match="size must not be negative"):
        tnp.unique(x, size=-1)
    with pytest.raises(errors.StaticArgumentError, match="size"):
        tracegraph.jit(lambda x: tnp.unique(x, size=x[0]), device="host")(x)
