"""Collectives over lanes of vmap are NumPy's functions of the axis of the lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import errors

X = np.random.default_rng(0).standard_normal((4, 3, 8))


def lanes(fun: Callable[..., Any], *args: Any, **axes: Any) -> np.ndarray[Any, Any]:
    """Over lanes, eagerly; and jitted, which must agree."""
    mapped = tracegraph.vmap(fun, axis_name="x", **axes)
    eager = np.asarray(mapped(*args))
    jitted = np.asarray(tracegraph.jit(mapped, device="host")(*args))
    np.testing.assert_allclose(jitted, eager, 1e-13, 1e-13)
    return eager


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "psum": (lambda x: tracegraph.psum(x, "x"), lambda x: np.stack([x.sum(0)] * 4)),
    "pmax": (lambda x: tracegraph.pmax(x, "x"), lambda x: np.stack([x.max(0)] * 4)),
    "pmin": (lambda x: tracegraph.pmin(x, "x"), lambda x: np.stack([x.min(0)] * 4)),
    "pmean": (lambda x: tracegraph.pmean(x, "x"), lambda x: np.stack([x.mean(0)] * 4)),
    "all_gather": (lambda x: tracegraph.all_gather(x, "x"), lambda x: np.stack([x] * 4)),
    "all_gather behind": (
        lambda x: tracegraph.all_gather(x, "x", axis=-1),
        lambda x: np.stack([np.moveaxis(x, 0, -1)] * 4),
    ),
    "all_gather tiled": (
        lambda x: tracegraph.all_gather(x, "x", axis=1, tiled=True),
        lambda x: np.stack([np.concatenate(x, axis=1)] * 4),
    ),
    "psum_scatter": (
        lambda x: tracegraph.psum_scatter(x.T[:4], "x"),
        lambda x: x.sum(0).T[:4],
    ),
    "psum_scatter tiled": (
        lambda x: tracegraph.psum_scatter(x, "x", scatter_dimension=1, tiled=True),
        lambda x: np.moveaxis(x.sum(0).reshape(3, 4, 2), 1, 0),
    ),
    "all_to_all": (
        lambda x: tracegraph.all_to_all(x[:, :4], "x", 1, 0),
        lambda x: np.moveaxis(x[:, :, :4], 2, 0),
    ),
    "all_to_all tiled": (
        lambda x: tracegraph.all_to_all(x, "x", 1, 0, tiled=True),
        lambda x: np.moveaxis(x.reshape(12, 4, 2), 1, 0),
    ),
    "ppermute around": (
        lambda x: tracegraph.ppermute(x, "x", [(i, (i + 1) % 4) for i in range(4)]),
        lambda x: np.roll(x, 1, 0),
    ),
    "ppermute in pairs": (
        lambda x: tracegraph.ppermute(x, "x", [(0, 3), (2, 1)]),
        lambda x: np.stack([0 * x[0], x[2], 0 * x[0], x[0]]),
    ),
    "axis_index": (
        lambda x: x + tracegraph.axis_index("x"),
        lambda x: x + np.arange(4)[:, None, None],
    ),
    "axis_size": (lambda x: x * tracegraph.axis_size("x"), lambda x: 4 * x),
    "of constants": (
        lambda x: x + tracegraph.psum(1.0, "x") + tracegraph.pmax(2, "x"),
        lambda x: x + 6,
    ),
    "of what lanes share": (
        lambda x: x + tracegraph.psum(np.float64(2) * tracegraph.psum(x[0, 0], "x"), "x"),
        lambda x: x + 8 * x[:, 0, 0].sum(),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_lanes_take_the_place_of_devices(name: str) -> None:
    fun, wanted = CASES[name]
    np.testing.assert_allclose(lanes(fun, X), wanted(X), 1e-13, 1e-13)


@pytest.mark.parametrize("name", [n for n in CASES if n not in {"axis_index", "axis_size"}])
def test_collectives_of_two_axes_have_lanes_of_the_other_as_elements(name: str) -> None:
    fun, wanted = CASES[name]
    both = np.stack([X, 2 * X, X - 1])
    inner = tracegraph.vmap(tracegraph.vmap(fun, axis_name="x"), axis_name="y")
    outer = tracegraph.vmap(tracegraph.vmap(fun, axis_name="y"), axis_name="x")
    each = np.stack([wanted(x) for x in both])
    np.testing.assert_allclose(inner(both), each, 1e-13, 1e-13)
    swapped = np.swapaxes(outer(np.swapaxes(both, 0, 1)), 0, 1)
    np.testing.assert_allclose(swapped, each, 1e-13, 1e-13)


def test_sums_over_several_axes() -> None:
    def both(x: Any) -> Any:
        return tracegraph.psum(x, ("x", "y")), tracegraph.pmax(x, ("y", "x"))

    total, most = tracegraph.vmap(tracegraph.vmap(both, axis_name="x"), axis_name="y")(X[0])
    np.testing.assert_allclose(total, np.full(X[0].shape, X[0].sum()), 1e-13)
    np.testing.assert_allclose(most, np.full(X[0].shape, X[0].max()))


def test_trees_and_bools() -> None:
    def count(x: Any) -> Any:
        return tracegraph.psum({"positive": x > 0, "all": (x, 1)}, "x")

    found = tracegraph.vmap(count, axis_name="x")(X[:, 0, 0])
    assert found["positive"].dtype == np.int64
    np.testing.assert_array_equal(found["positive"], [(X[:, 0, 0] > 0).sum()] * 4)
    np.testing.assert_array_equal(found["all"][1], [4] * 4)


def test_what_is_outside_of_an_array_may_be_traced() -> None:
    def before(x: Any, outside: Any) -> Any:
        return tracegraph.halo(x, "x", boundary=outside)[0]

    lanes_of = tracegraph.jit(tracegraph.vmap(before, (0, None), axis_name="x"))
    found = np.asarray(lanes_of(X.astype(np.float32), 2.5))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(
        found, np.concatenate([0 * X[:1, -1:] + 2.5, X[:-1, -1:]]).astype("f")
    )


@pytest.mark.parametrize(
    ("dtype", "outside"), [("uint8", 7), ("uint8", 0), ("bool", 1), ("int32", -1), ("bfloat16", 2)]
)
def test_what_is_outside_of_an_array_is_a_number_of_its_dtype(dtype: str, outside: int) -> None:
    x = X[:, :1, 0].astype(tracegraph.ArrayType(dtype).dtype)
    found = tracegraph.vmap(lambda x: tracegraph.halo(x, "x", boundary=outside)[0], axis_name="x")
    before = np.asarray(found(x))
    assert before.dtype == x.dtype
    np.testing.assert_array_equal(before, [[outside], *x[:-1]])


def test_numbers_stay_weak() -> None:
    single = X[:, 0].astype(np.float32)
    for word in (tracegraph.psum, tracegraph.pmean, tracegraph.pmax):
        scaled = tracegraph.vmap(lambda x, word=word: x / word(2.0, "x"), axis_name="x")
        assert scaled(single).dtype == np.float32
    whole = tracegraph.vmap(lambda x: x + tracegraph.pmean(np.arange(8), "x"), axis_name="x")
    np.testing.assert_array_equal(whole(X), X + np.arange(8.0))


def test_results_that_are_the_same_in_all_lanes_need_no_axis() -> None:
    found = tracegraph.vmap(lambda x: tracegraph.psum(x, "x"), axis_name="x", out_axes=None)(X)
    np.testing.assert_allclose(found, X.sum(0), 1e-13)
    with pytest.raises(errors.OutAxesError):
        tracegraph.vmap(
            lambda x: tracegraph.psum_scatter(x[:2, 0], "x", tiled=False) + x[0, 0],
            axis_name="x",
            out_axes=None,
        )(X[:2])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: tracegraph.psum(x, "y"), errors.UnknownAxisError, "the axes are 'x'"),
        (lambda x: tracegraph.psum(x, 3), errors.ShardingError, "name of an axis, or several"),
        (lambda x: tracegraph.all_gather(x, ("x", "y")), errors.ShardingError, "one axis"),
        (lambda x: tracegraph.psum(x, ("x", "x")), errors.ShardingError, "an axis twice"),
        (lambda x: tracegraph.psum(x, "x", 3), TypeError, "positional"),
        (lambda x: tracegraph.psum("a", "x"), TypeError, "leaf x"),
        (lambda x: tracegraph.psum_scatter(x, "x"), errors.ShardingError, "axis 0 of f64"),
        (lambda x: tracegraph.all_to_all(x, "x", 0, 0, tiled=True), errors.ShardingError, "has 3"),
        (lambda x: tracegraph.all_gather(x, "x", axis=7), np.exceptions.AxisError, "axis 7"),
        (lambda x: tracegraph.ppermute(x, "x", [(0, 4)]), errors.ShardingError, "targets of perm"),
        (lambda x: tracegraph.ppermute(x, "x", [(0, 1), (0, 2)]), errors.ShardingError, "sources"),
        (lambda x: tracegraph.ppermute(x, "x", [0]), errors.ShardingError, "pairs"),
        (lambda x: tracegraph.pmax(1j * x, "x"), TypeError, "imaginary"),
        (lambda x: tracegraph.halo(x, ("x",)), errors.ShardingError, "the name of one axis"),
        (lambda x: tracegraph.halo(x, "x", width=1.0), TypeError, "width must be a number of"),
        (lambda x: tracegraph.halo(x, "x", axis=None), TypeError, "axis must be the number"),
        (lambda x: tracegraph.halo(x > 0, "x", boundary=0.5), errors.ShardingError, "no element"),
        (
            lambda x: tracegraph.halo(x.astype("int8"), "x", boundary=300),
            errors.ShardingError,
            "no element",
        ),
        (
            lambda x: tracegraph.vmap(lambda y: y, axis_name="x")(x),
            errors.VmapAxesError,
            "has already",
        ),
    ],
)
def test_misuse_is_named(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        tracegraph.vmap(call, axis_name="x")(X)


def test_outside_there_is_no_axis() -> None:
    for call in (lambda: tracegraph.psum(1.0, "x"), lambda: tracegraph.axis_index("x")):
        with pytest.raises(errors.CollectiveOutsideShardError, match=r"at test_collectives\.py:"):
            call()
    with pytest.raises(errors.CollectiveOutsideShardError, match="called outside of shard"):
        tracegraph.jit(lambda x: tracegraph.psum(x, "x"), device="host")(X)
    with pytest.raises(errors.VmapAxesError, match="must be a string"):
        tracegraph.vmap(lambda x: x, axis_name=3)  # type: ignore[arg-type]
