"""Values at the edges of what NumPy's functions accept: no axes, many axes, NaN, zeros, None."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.traced import assert_traced_equals_eager, trace
from tracegraph import errors, testing

NAN, INF = np.nan, np.inf


def agrees(function: Any, *args: Any, **options: Any) -> None:
    ways = ("interpreted", "optimized", "host")
    testing.assert_traced_equals_eager(function, *args, ways=ways, **options)


# ---- arrays without axes ----

OF_AXES: dict[str, Any] = {
    **{
        name: lambda x, axis, name=name: reduce(getattr, name.split("."), np)(x, axis=axis)
        for name in (
            *("sum", "prod", "any", "all", "max", "min", "ptp", "count_nonzero", "nansum", "mean"),
            *("nanprod", "nanmax", "nanmin", "nanmean", "argmax", "argmin", "argsort", "squeeze"),
            *("cumsum", "cumprod", "std", "var", "median", "average", "sort", "diff", "flip"),
            *("add.reduce", "maximum.reduce", "logical_or.reduce"),
        )
    },
    "take": lambda x, axis: np.take(x, 0, axis=axis),
    "repeat": lambda x, axis: np.repeat(x, 2, axis=axis),
    "compress": lambda x, axis: np.compress([True], x, axis=axis),
    "argpartition": lambda x, axis: np.argpartition(x, 0, axis=axis),
    "x.sum": lambda x, axis: x.sum(axis),
}


@pytest.mark.parametrize("axis", [0, -1, 1, None])
@pytest.mark.parametrize("name", OF_AXES)
def test_axes_of_arrays_without_any(name: str, axis: int | None) -> None:
    def f(x: Any) -> Any:
        return OF_AXES[name](x, axis)

    raised = (np.exceptions.AxisError, ValueError, TypeError)
    agrees(f, np.array(5.0), raises=raised)


@pytest.mark.parametrize("rank", [33, 64])
def test_more_than_32_axes(rank: int) -> None:
    def f(x: Any) -> Any:
        y = np.where(x > 0, x, 0) + x[..., 0, None] * x[0]
        return y + 1, np.broadcast_to(x[0], x.shape).sum(), x.reshape(-1).reshape((1,) * rank) * 2

    agrees(f, np.full((1,) * rank, 3.0))


# ---- digitize, geomspace, spacing ----

EDGES = [
    *([NAN, 3.0, 2.0, 1.0], [NAN, NAN, 1.0], [3.0, 2.0, 1.0], [1.0, 2.0, NAN], [1.0, 1.0, 1.0]),
    *([NAN], [NAN, NAN], [5.0], [], [INF, 1.0, -INF], [3.0, 2.0, 2.0], [NAN, 1.0], [-0.0, 0.0]),
    *([1.0, 1.0, 2.0], [2.0, 2.0, 1.0], [1.0, NAN], [NAN, 2.0, 2.0], [1.0, 1.0]),
]


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("edges", EDGES, ids=str)
def test_digitize_by_edges_with_nan(edges: Any, right: bool) -> None:
    x = np.array([0.0, 1.0, 1.5, 2.0, 3.0, 4.0, NAN, INF, -INF])
    bins = np.array(edges)
    agrees(lambda x: np.digitize(x, bins, right), x)
    agrees(lambda x, bins: np.digitize(x, bins, right), x, bins)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1", "c8", "c16"])
@pytest.mark.parametrize("other", ["f2", "f4", "f8", "i4", "c8"])
def test_geomspace_has_numpys_dtypes(dtype: str, other: str) -> None:
    start, stop = np.array([1, 2], dtype), np.array([9, 16], other)
    agrees(lambda a, b: np.geomspace(a, b, 4), start, stop, rtol=1e-12)
    agrees(lambda a, b: np.geomspace(a[0], b[1], 4), start, stop, rtol=1e-12)
    agrees(lambda a: np.geomspace(a, 10.0, 4), start, rtol=1e-12)
    agrees(lambda a: np.geomspace(a, 10, 4, dtype=np.complex64), start, rtol=1e-6)
    if dtype != "c16" and other[0] != "c":
        agrees(lambda a, b: np.geomspace(a, b, 4, dtype=np.float32).real, start, stop, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.filterwarnings("ignore:overflow")
def test_spacing_at_zeros_and_subnormals(dtype: Any) -> None:
    limits = np.finfo(dtype)
    tiny, small = limits.tiny, limits.smallest_subnormal
    x = np.array([0.0, small, 3 * small, tiny, 1.0, 0.99, 2.0, limits.max, INF, NAN], dtype)
    both = np.concatenate([x, -x])
    with np.errstate(all="ignore"):
        found = np.asarray(tracegraph.jit(np.spacing, device="host")(both))
        np.testing.assert_array_equal(found, np.spacing(both))
        np.testing.assert_array_equal(np.signbit(found), np.signbit(np.spacing(both)))


# ---- views that are read-only, and results that are not ----


@pytest.mark.parametrize("shape", [(2,), (3, 2), ()])
def test_what_broadcast_to_gives_is_read_only(shape: tuple[int, ...]) -> None:
    x = np.ones(shape[-1:])

    def written(x: Any) -> Any:
        y = np.broadcast_to(x + 1, shape)
        y[...] = 5
        return y

    def added(x: Any) -> Any:
        y = np.broadcast_to(x + 1, (*shape,))[...]
        np.add.at(y, ..., 1)
        return y

    with pytest.raises(ValueError, match="read-only"):
        written(x)
    for function in (written, added):
        with pytest.raises(errors.TracerWriteError, match="a broadcast view"):
            trace(function, x)

    def copied(x: Any) -> Any:
        base = np.zeros_like(x)
        view = np.broadcast_to(base, shape)
        y = view.copy()
        y[...] = 5
        base[...] = 7
        return y, view + 0, np.broadcast_to(base, shape).sum()

    assert_traced_equals_eager(copied, x)


def test_an_update_of_all_elements_is_no_alias_of_its_value() -> None:
    def f(x: Any) -> Any:
        v = x * 2
        y = x.at[...].set(v)
        y[0] = 9
        z = x.at[:].set(v)
        z += 1
        return v, y, z

    v, y, z = tracegraph.jit(f, device="host")(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(v, [2, 4])
    np.testing.assert_array_equal(y, [9, 4])
    np.testing.assert_array_equal(z, [3, 5])


# ---- None, round ----


@pytest.mark.parametrize(
    "other", [None, "a", b"a", ..., {}, object(), slice(1), Exception], ids=lambda x: repr(x)[:9]
)
def test_no_number_is_equal_to_an_element(other: Any) -> None:
    def f(x: Any) -> Any:
        return x == other, x != other, other == x, other != x, x[0] == other, x[0] != other

    assert_traced_equals_eager(f, np.arange(3.0))
    for found, expected in zip(f(tracegraph.asarray(np.arange(3.0))), f(np.ones(3)), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert_traced_equals_eager(lambda x: (np.equal(x, None), np.not_equal(None, x)), np.arange(3.0))

    class Everything:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    found = tracegraph.jit(lambda x: 1 if x == Everything() else 2, device="host")(np.arange(3.0))
    assert found == 1


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1"])
def test_round_of_a_number_is_an_integer(dtype: str) -> None:
    def f(x: Any) -> Any:
        s = x[0]
        return round(s), round(s, 1), round(s, 0), round(s * 3)

    for value in (3.7, -2.5, 0.5):
        if dtype[0] == "u" and value < 0:
            continue
        x = np.array([value]).astype(dtype)
        found = [np.asarray(each) for each in tracegraph.jit(f, device="host")(x)]
        assert [each.item() for each in found] == [*f(x)]
        assert found[0].dtype.kind in "iu"
    assert type(round(tracegraph.asarray(3.7))) is int
    assert round(tracegraph.asarray(3.75), 1).dtype == np.float64

    def g(x: Any) -> Any:
        return round(x) + np.int8(1)  # weak stays weak

    assert np.asarray(tracegraph.jit(g, device="host")(3.7)).dtype == np.int8


@pytest.mark.parametrize("index", [(True,) * 64, (False,) * 64])
def test_an_index_has_fewer_than_64_arrays(index: Any) -> None:
    with pytest.raises(IndexError):
        np.ones(1)[index]
    with pytest.raises(IndexError, match="fewer than 64 arrays"):
        tracegraph.jit(lambda x: x[index], device="host")(np.ones(1))


def test_many_axes_are_added_to_on_the_host() -> None:
    x = np.arange(15).reshape(3, *[1] * 32, 5)
    found = tracegraph.jit(lambda x: x + 1000, device="host")(x)
    np.testing.assert_array_equal(np.asarray(found), x + 1000, strict=True)


def test_an_element_is_no_sequence() -> None:
    def call(x: Any) -> Any:
        y = x.copy()
        y[0] = [1.0]
        return y

    with pytest.raises(ValueError, match="sequence"):
        call(np.zeros(2))
    with pytest.raises(ValueError, match="sequence"):
        tracegraph.jit(call, device="host")(np.zeros(2))


def test_nothing_is_read_from_an_axis_without_elements() -> None:
    read = tracegraph.jit(lambda x, i: x[i], device="host")
    for i in (np.array(10), np.array([0, 1])):
        with pytest.raises(IndexError, match="size 0"):
            read(np.zeros(0), i)
    assert np.asarray(read(np.zeros((0, 3)), np.zeros(0, int))).shape == (0, 3)
