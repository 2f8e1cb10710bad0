"""Arguments of functions that are no ufuncs: what they accept, and what they raise, is NumPy's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.numpy_agreement import assert_jitted_equals_numpy, expressions
from tracegraph import errors

RNG = np.random.default_rng(5)
ARGUMENTS = {
    "x": RNG.normal(size=(4, 3)),
    "y": np.arange(24.0).reshape(2, 3, 4),
    "v": np.array([5, 2, 1, 3, 4]),
    "w": np.array([0.5, -2.0, 3.25, 0.0, 1.0]),
    "s": np.float32(2.5),
    "f": np.array([1.0, 2.0, 2.00001, -3.0], np.float32),
    "i": np.array([[0, 1, 2], [2, 1, 0]]),
    "b": np.array([True, False, True]),
    "z": np.array([1 + 2j, 3 - 1j]),
    "e": np.zeros((0, 3)),
    "n": np.array(0),
    "u": np.array([3, 250, 7], np.uint8),
}

SPLITTING = expressions("""
    np.array_split(v, np.int64(2)); np.array_split(v, np.array(3)); np.array_split(v, 2.7);
    np.array_split(v, -1); np.array_split(v, 0); np.array_split(e, 2);
    np.array_split(x, 2, axis=np.int8(1)); np.split(x, np.uint8(2)); np.split(x, np.array([1, 3]));
    np.split(x, [1.5]); np.split(x, 3); np.hsplit(x, np.int64(3)); np.vsplit(x, np.int64(2));
    np.dsplit(y, np.int64(2)); np.hsplit(s, 1); np.vsplit(v, 5); np.dsplit(x, 1)
""")

JOINING = expressions("""
    np.hstack([x, v]); np.vstack([x, y]); np.concatenate([x, v]);
    np.concatenate([x, x], axis=np.int64(1)); np.concatenate([x, x], axis=2);
    np.stack([x, x], axis=np.int64(-1)); np.tile(v, np.int64(2)); np.tile(v, np.array([2, 1]));
    np.tile(v, 1.5); np.tile(v, (2, 1.0)); np.tile(v, -1); np.tile(x, (2, 0, 1));
    np.expand_dims(x, np.int64(1)); np.expand_dims(x, [0, np.int32(2)]); np.expand_dims(x, (0, 0));
    np.size(x, (0, 1)); np.size(x, ()); np.size(x, np.int64(1)); np.size(x, 2); np.size(x, (0, 0));
    np.rollaxis(y, 0, -5); np.rollaxis(y, 0, 4); np.rollaxis(y, 2, -3);
    np.rollaxis(y, np.int64(1), np.int64(3)); np.roll(v, 2**66); np.roll(v, -(2**70) - 1);
    np.roll(x, (2**66, 1), (0, 1)); np.roll(e, 2**66, 1); np.permute_dims(x);
    np.tensordot(x, x, axes=(np.int64(0), np.int64(0)));
    np.tensordot(x, x, axes=([np.int64(0)], [np.int8(0)])); np.tensordot(x, x.T, axes=np.int64(1));
    np.apply_over_axes(np.sum, x, np.int64(0)); np.apply_over_axes(np.sum, y, np.array([0, 2]));
    np.add.reduceat(x, [0, 2], axis=np.int64(0)); np.linspace(s, 3.0, np.int64(4));
    np.linspace(s, 3.0, -1); np.linspace(s, 3.0, 2.5)
""")

CHOOSING = expressions("""
    np.select([v, v > 2], [v, v]); np.select([v > 4, v > 2], [v, w], default=np.nan);
    np.select(i > 0, [1, 2]); np.select(b[:1], [0], default=[0]); np.select([], []);
    np.select([v > 2, x[:, :1] > 0], [v, w]); np.select([True, b], [u, u]);
    np.choose(i, [1000, u, u]); np.choose(i[0], [-1, u, u]); np.choose([0, 1, 0], (300, u));
    np.choose(i, (s, 7, u)); np.isclose(f, 2); np.isclose(f, 2, rtol=0, atol=1e-5);
    np.isclose(u, 3.0000001); np.isclose(u, 250); np.allclose(f, [1, 2, 2, -3]);
    np.sum(x, axis=1, where=[True, False, True]);
    np.mean(x, where=[[True], [False], [True], [True]]);
    np.nan_to_num(w / w, nan=np.inf, posinf=3.0); np.cross(x[:, :2], x[:, :2]);
    np.cross(x[:, :2], x); np.cross(x, x[:, 1:]); np.cross(v[:4], v[:4])
""")

SEARCHING = expressions("""
    np.searchsorted(v, [0, 3, 9], sorter=np.argsort(v));
    np.searchsorted(v, 3, sorter=[2, 1, 3, 4, 0]); np.searchsorted(v, 3, sorter=[2, 1, 3, 4]);
    np.searchsorted(v, 3, sorter=[2, 1, 3, 4, 0, 1]); np.searchsorted(v, 3, sorter=[5, 6, 7, 8, 9]);
    np.searchsorted(v, 3, sorter=[-1, -2, -3, -4, -5]);
    np.searchsorted(v, 3, sorter=[1.0, 2.0, 0.0, 3.0, 4.0]);
    np.searchsorted(v, 3, sorter=[[2, 1, 3, 4, 0]]); np.bincount(v[:0], weights=w[:0], minlength=3);
    np.bincount(v[:0], weights=w[:0]); np.bincount(v, weights=w, minlength=6);
    np.ravel_multi_index([i, i], (2, 0), mode='clip');
    np.ravel_multi_index([i, i], (0, 3), mode='wrap'); np.ravel_multi_index([i, i], (2**62, 2));
    np.ravel_multi_index([i, i], (2**40, 3), mode='clip');
    np.ravel_multi_index([i[:, :0], i[:, :0]], (0, 3)); np.unravel_index(v, ());
    np.unravel_index(n, ()); np.unravel_index(v, (2, 0)); np.unravel_index(v[:0], (2, 0));
    np.unravel_index(v, (2**32, 2**32)); np.unravel_index(v, (2**31, 2**31)); np.lexsort((s, s));
    np.lexsort((s,), axis=3); np.convolve(w, w[:2], mode=None); np.correlate(w, w[:2], mode=3.5);
    np.unpackbits(u, bitorder=3); np.histogramdd(w[:, None] * np.ones(10), bins=1024);
    np.diff(w, n=0, prepend=1, append=2); np.diff(w, n=2, prepend=[1, 5]);
    np.diff(x, n=0, axis=0, append=x[:1])
""")

LAYOUTS = [
    *[f"{make}.ravel('K')"
      for order in "CF"
      for make in [f"np.zeros_like(x, order={order!r})", f"np.full_like(x, 3, order={order!r})",
                   f"np.ones_like(x, int, {order!r}, True, (2, 5))",
                   f"np.full_like(x, x[0], float, {order!r})",
                   f"np.copy(x + 1, order={order!r})",
                   f"np.einsum('ij->ji', x + 1, order={order!r})",
                   f"np.einsum('ij,jk->ki', x, x.T, order={order!r})"]],
    *expressions("""
        np.zeros_like(x, order='X'); np.empty_like(x, order='F').shape;
        np.full_like(x, 3, order='K'); np.einsum('ij->i', x, dtype='c16');
        np.einsum('ij->i', i, dtype='f4'); np.einsum('ij->i', i, dtype='f4', casting='unsafe');
        np.einsum('ij->i', x, order='Z'); np.einsum(x, [0, -1]); np.einsum(x, [0, 52]);
        np.einsum(x, [np.int64(0), 1], [1, 0])
    """),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("expression", [*SPLITTING, *JOINING, *CHOOSING, *SEARCHING, *LAYOUTS])
def test_arguments_are_numpys(expression: str) -> None:
    assert_jitted_equals_numpy(expression, ARGUMENTS)


@pytest.mark.parametrize("create", ["zeros((2, 3)", "ones((2, 3)", "full((2, 3), 4.0", "eye(2, 3"])
def test_new_arrays_are_laid_out_in_an_order(create: str) -> None:
    def function(a: Any) -> Any:
        xp = tracegraph.numpy
        x = eval(f"xp.{create}, order='F')", {"xp": xp})
        x[0, 1] = a
        return x.ravel("K"), xp.asfortranarray(x.T).ravel("K"), xp.asarray(x, order="C").ravel("K")

    x = eval(f"np.{create}, order='F')", {"np": np})
    x[0, 1] = 7.0
    found = tracegraph.jit(function, device="host")(7.0)
    for got, order, array in zip(found, "KFC", [x, x.T, x], strict=True):
        np.testing.assert_array_equal(got, array.ravel(order))
    with pytest.raises(ValueError, match="only 'C' or 'F'"):
        eval(f"xp.{create}, order='K')", {"xp": tracegraph.numpy})


@pytest.mark.parametrize("options", [
    {}, {"order": "C"}, {"order": "F"}, {"order": "A"}, {"copy": None},
    {"copy": None, "order": "F"},
    {"ndmin": 4, "order": "F"}, {"ndmax": 2}, {"dtype": "f4", "order": "F"},
])  # fmt: skip
@pytest.mark.parametrize("of", [lambda x: x + 1, lambda x: (x + 1).T], ids=["rows", "columns"])
def test_arrays_of_arrays_are_laid_out_in_an_order(of: Any, options: dict[str, Any]) -> None:
    x = ARGUMENTS["x"]
    wanted = np.array(of(x), **options)
    jitted = tracegraph.jit(
        lambda x: ((a := tracegraph.numpy.array(of(x), **options)), a.ravel("K")), device="host"
    )
    for got, expected in zip(jitted(x), (wanted, wanted.ravel("K")), strict=True):
        assert np.asarray(got).dtype == wanted.dtype
        np.testing.assert_array_equal(got, expected)


def test_arrays_of_too_many_axes_are_refused() -> None:
    for options in ({"ndmin": 3, "ndmax": 2}, {"ndmax": -1}, {"ndmax": 65}, {"order": "X"}):
        with pytest.raises(ValueError, match=r"nd|order"):
            tracegraph.jit(lambda x: tracegraph.numpy.array(x, **options), device="host")(1.0)  # noqa: B023
    with pytest.raises(ValueError, match="copy"):
        tracegraph.jit(lambda x: tracegraph.numpy.array(x, copy="always"), device="host")(1.0)


def test_a_copy_in_another_order_is_none_in_its_own() -> None:
    def function(a: Any) -> Any:
        x = a * 1
        same, other = tracegraph.numpy.array(x, copy=None), tracegraph.numpy.asarray(x, order="F")
        same[0, 0] = 5
        other[0, 1] = 6
        return x

    x = ARGUMENTS["x"]
    wanted = x.copy()
    wanted[0, 0] = 5
    np.testing.assert_array_equal(tracegraph.jit(function, device="host")(x), wanted)


KNOTS = [np.nan, -1.0, 0.0, 2.0]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_interp_has_numpys_values_beside_nans(count: int) -> None:
    x = np.array([np.nan, -2.0, -1.0, -0.5, 0.0, 1.0, 2.0, 3.0])
    fp = np.array([1.0, 4.0, -2.0, 0.5])[:count]
    jitted = tracegraph.jit(lambda x, xp, fp: np.interp(x, xp, fp, 8.0, 9.0), device="host")
    for xp in itertools.product(KNOTS, repeat=count):
        got = np.asarray(jitted(x, np.array(xp), fp))
        with np.errstate(all="ignore"):
            # one element at a time: among unsorted knots NumPy begins where the last one was
            wanted = np.array([np.interp(e, xp, fp, 8.0, 9.0) for e in x])
        np.testing.assert_allclose(got, wanted, err_msg=str(xp))


def test_interp_of_many_knots_takes_nans_at_the_end() -> None:
    xp = np.array([0.0, 1.0, 2.0, 3.0, 4.0, np.nan, np.nan])
    fp = np.arange(7.0) ** 2
    x = np.array([-1.0, 0.0, 0.5, 3.5, 9.0, np.nan])
    got = tracegraph.jit(np.interp, device="host")(x, xp, fp)
    np.testing.assert_allclose(np.asarray(got), np.interp(x, xp, fp))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16])
def test_insert_and_delete_take_traced_positions(axis: int | None, dtype: Any) -> None:
    x = np.arange(12).reshape(4, 3)
    extent = x.size if axis is None else x.shape[axis]
    inserted = tracegraph.jit(lambda x, p, v: np.insert(x, p, v, axis), device="host")
    deleted = tracegraph.jit(lambda x, p: np.delete(x, p, axis), device="host")
    for k in range(0 if np.dtype(dtype).kind == "u" else -extent, extent + 1):
        at = np.array(k, dtype)
        values = [np.array(50), np.array([50, 60, 70])][: 1 if axis == 1 else 2]
        for v in values:
            for p in (at, at.reshape(1)):
                np.testing.assert_array_equal(inserted(x, p, v), np.insert(x, p, v, axis))
        if k < extent:
            np.testing.assert_array_equal(deleted(x, at), np.delete(x, k, axis))
            np.testing.assert_array_equal(deleted(x, at.reshape(1)), np.delete(x, [k], axis))


def test_several_values_are_inserted_at_traced_positions() -> None:
    x = np.arange(5.0)
    inserted = tracegraph.jit(np.insert, device="host")
    for places in itertools.product(range(-2, 6), repeat=3):
        p, v = np.array(places), np.array([7.0, 8.0, 9.0])
        np.testing.assert_array_equal(inserted(x, p, v), np.insert(x, p, v))
    in_list = tracegraph.jit(lambda x, a, b: np.insert(x, [a, b], 1), device="host")
    np.testing.assert_array_equal(in_list(x, 2, 4), np.insert(x, [2, 4], 1))


def test_insertion_at_a_traced_position_has_a_derivative_and_a_batch() -> None:
    def energy(x: Any, p: Any) -> Any:
        return (np.insert(x, p, 3.0) * np.arange(5.0)).sum() + (np.delete(x, p) ** 2).sum()

    x, p = np.array([1.0, 2.0, 3.0, 4.0]), np.array(1)
    got = tracegraph.jit(tracegraph.grad(energy), device="host")(x, p)
    np.testing.assert_allclose(np.asarray(got), [2.0, 2.0, 9.0, 12.0])
    batched = tracegraph.jit(tracegraph.vmap(energy, (None, 0)), device="host")
    places = np.arange(4)
    np.testing.assert_allclose(np.asarray(batched(x, places)), [energy(x, int(k)) for k in places])


def test_traced_masks_and_several_traced_deletions_are_refused() -> None:
    x = np.arange(4)
    for function in (
        lambda x: np.insert(x, x > 1, 0),
        lambda x: np.delete(x, x > 1),
        lambda x: np.delete(x, x),
        lambda x: np.histogram(x, "auto"),
    ):
        with pytest.raises(errors.ShapeDependentError):
            tracegraph.jit(function, device="host")(x)
    with pytest.raises(IndexError):
        tracegraph.jit(lambda x: np.delete(x, x / 2), device="host")(x[:1])
