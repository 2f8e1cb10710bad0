"""Functions whose result has as many elements as a mask is true: with a static size, under jit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.helpers.compiled import host_jit
from tracegraph import errors

DTYPES = ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64"]
SHAPES = [(7,), (3, 4), (2, 1, 3), (0,), (3, 0), (0, 2), (1,)]


def array(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Zeros and others, NaN and -0.0 among them."""
    found = np.random.default_rng(0).integers(0, 3, shape).astype(dtype)
    if found.size > 3 and found.dtype.kind in "fc":
        found.flat[1:3] = np.nan, -0.0
    return found


def padded(values: np.ndarray[Any, Any], size: int, fill: Any) -> np.ndarray[Any, Any]:
    rest = np.full((max(size - len(values), 0), *values.shape[1:]), fill, values.dtype)
    return np.concatenate([values[:size], rest])


def looped(function: Any) -> Any:
    """The function in the body of a loop, whose second step gives the result."""

    def run(*args: Any) -> Any:
        first = tracegraph.tree.map(tnp.zeros_like, function(*args))
        return tracegraph.fori_loop(0, 2, lambda k, _: function(*args), first)

    return host_jit(run)


def assert_same(got: Any, wanted: Any) -> None:
    got, wanted = tracegraph.tree.leaves(got), tracegraph.tree.leaves(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(np.asarray(a), b)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_of_true_elements(shape: tuple[int, ...], dtype: str) -> None:
    x = array(shape, dtype)
    for size, fill in ((x.size // 2, None), (x.size, -1), (x.size + 2, 7), (0, None)):
        value = fill or 0
        options = {"size": size, "fill_value": fill}
        wanted = (
            tuple(padded(p, size, value) for p in np.nonzero(x)),
            tuple(padded(p, size, value) for p in np.where(x)),
            padded(np.flatnonzero(x), size, value),
            padded(np.argwhere(x), size, value),
        )

        def found(x: Any, options: Any = options) -> Any:
            return (
                tnp.nonzero(x, **options),
                tnp.where(x, **options),
                tnp.flatnonzero(x, **options),
                tnp.argwhere(x, **options),
            )

        assert_same(found(x), wanted)
        assert_same(found(tracegraph.asarray(x)), wanted)
        assert_same(host_jit(found)(x), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_elements_where_a_condition_holds(axis: int | None, dtype: str) -> None:
    x, fill = array((3, 4), dtype), 1
    length = x.size if axis is None else x.shape[axis]
    condition = np.arange(length) % 3 != 1
    for size in (0, 1, length, length + 2):
        kept = np.compress(condition, x, axis)
        along = 0 if axis is None else axis
        wanted = np.moveaxis(padded(np.moveaxis(kept, along, 0), size, fill), 0, along)
        everything = padded(np.extract(x, x), size, 0)

        def kept_of(c: Any, x: Any, size: int = size) -> Any:
            return (
                tnp.compress(c, x, axis, size=size, fill_value=fill),
                tnp.extract(x, x, size=size),
            )

        assert_same(kept_of(condition, x), (wanted, everything))
        assert_same(host_jit(kept_of)(condition, x), (wanted, everything))


def test_conditions_need_not_have_the_length_of_the_axis() -> None:
    x = np.arange(4.0)
    keep = host_jit(lambda c, x: tnp.compress(c, x, size=3, fill_value=-1.0))
    assert_same(keep(np.array([True, True]), x), np.array([0.0, 1.0, -1.0]))
    assert_same(keep(np.array([False, True, False, True, True]), x), np.array([1.0, 3.0, -1.0]))
    assert_same(keep(np.array([True]), np.zeros(0)), np.full(3, -1.0))
    with pytest.raises(IndexError, match="out of bounds"):
        host_jit(lambda x: np.compress([True] * 5, x))(x)


def test_in_the_body_of_a_loop() -> None:
    x = array((3, 4), "int8")
    found = looped(lambda x: (tnp.nonzero(x, size=5), tnp.compress(x[0], x, 1, size=2)))
    wanted = tuple(padded(p, 5, 0) for p in np.nonzero(x))
    kept = padded(np.compress(x[0], x, 1).T, 2, 0).T
    assert_same(found(x), (wanted, kept))


def test_one_value_of_padding_for_each_axis() -> None:
    found = host_jit(lambda x: tnp.nonzero(x, size=3, fill_value=(8, 9)))(np.eye(2))
    assert_same(found, (np.array([0, 1, 8]), np.array([0, 1, 9])))
    with pytest.raises(ValueError, match="each of the 2 axes"):
        tnp.nonzero(np.eye(2), size=3, fill_value=(1,))


def test_the_padding_may_be_traced() -> None:
    found = host_jit(lambda x, v: tnp.flatnonzero(x, size=3, fill_value=v))(np.eye(2)[0], 5)
    assert_same(found, np.array([0, 5, 5]))


def test_arrays_without_a_size_are_as_in_numpy() -> None:
    x = array((3, 4), "float32")
    ours = tracegraph.asarray(x)
    for f in (tnp.nonzero, tnp.flatnonzero, tnp.argwhere, tnp.where):
        assert_same(f(ours), f(x))
    assert_same(ours.nonzero(), x.nonzero())
    assert_same(ours.compress([True, False, True], 0), x[::2])
    assert_same(tnp.argwhere(tracegraph.asarray(np.array(3))), np.argwhere(3))


@pytest.mark.parametrize(
    ("call", "sized"),
    [
        (np.nonzero, "tracegraph.numpy.nonzero(x, size=n)"),
        (np.flatnonzero, "tracegraph.numpy.flatnonzero(x, size=n)"),
        (np.argwhere, "tracegraph.numpy.argwhere(x, size=n)"),
        (np.where, "tracegraph.numpy.where(x, size=n)"),
        (lambda x: np.compress(x > 0, x), "tracegraph.numpy.compress(condition, x, size=n)"),
        (lambda x: np.extract(x > 0, x), "tracegraph.numpy.extract(condition, x, size=n)"),
        (lambda x: x[x > 0], "tracegraph.numpy.extract(x > 0, x, size=n)"),
    ],
)
def test_without_a_size_the_message_names_it(call: Any, sized: str) -> None:
    with pytest.raises((errors.ShapeDependentError, errors.BooleanMaskError)) as caught:
        host_jit(call)(np.arange(3))
    assert sized in str(caught.value)
    assert "test_finding.py" in str(caught.value)


def test_wrong_sizes_and_shapes() -> None:
    x = np.arange(3)
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        host_jit(lambda x: tnp.nonzero(x, size=-1))(x)
    with pytest.raises(errors.TracerIndexError):
        host_jit(lambda x: tnp.nonzero(x, size=x[0]))(x)
    with pytest.raises(ValueError, match="atleast_1d"):
        host_jit(lambda x: tnp.nonzero(x[0], size=2))(x)
    with pytest.raises(ValueError, match="1-d"):
        host_jit(lambda x: tnp.compress(x[None], x, size=2))(x)
    with pytest.raises(ValueError, match="with one argument"):
        host_jit(lambda x: tnp.where(x, x, x, size=2))(x)
