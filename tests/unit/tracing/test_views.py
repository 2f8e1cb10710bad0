"""What NumPy makes a view, a copy or read-only of a local array is the same when traced."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegraph
import tracegraph.numpy as tnp
from tests.helpers.traced import assert_traced_equals_eager, trace
from tracegraph import errors

View = Callable[[Any], Any]

ARRAYS = {
    "float64": np.arange(6.0).reshape(2, 3) + 0.25,
    "int64": np.arange(6).reshape(2, 3),
    "complex64": (np.arange(6.0) * (1 + 2j)).reshape(2, 3).astype(np.complex64),
    "NaNs": np.array([[1, np.nan, 2], [np.inf, -0.0, -np.inf]]),
}

EXPRESSIONS = """
    y.real | y.imag | np.real(y) | np.imag(y) | y.T.real | y.imag[1:] | y.imag.T[0]
    y.real.reshape(-1) | y.real.ravel() | y.real[::-1].reshape(-1) | y[:1].real.ravel()
    y.real.conj() | y.imag.real | y.real.imag | y.conj() | y.conjugate() | np.conj(y) | y.T.conj()
    y[1].conj() | +y | np.abs(y) | y.ravel() | y.ravel("C") | y.ravel("K") | y.ravel("A")
    y.T.ravel() | y.T.ravel("C") | y.T.ravel("K") | y.T.ravel("A") | y[:, ::2].T.ravel("K")
    y[:, ::2].T.ravel("A") | y[:, ::-1].T.ravel("K") | y[::-1].ravel("K") | y[::-1].ravel("A")
    y[None].swapaxes(0, 2).ravel("K") | y.real.T.ravel("K") | np.reshape(y.T, -1, "A")
    np.reshape(y, (3, 2), "A") | np.reshape(y.T, (2, 3), "A") | np.nan_to_num(y, copy=False)
    np.nan_to_num(y) | np.nan_to_num(y[1:], copy=False) | np.nan_to_num(y.real, copy=False)
    np.nan_to_num(y.T, copy=False, nan=5) | np.diagonal(y) | y.diagonal() | np.diag(y)
    np.diag(y, 1) | np.diag(y.T, 1) | np.diagonal(y[::-1]) | np.diagonal(y[:, ::2])
    np.diagonal(y[:, None, :], axis1=0, axis2=2) | np.linalg.diagonal(y)
    np.diagonal(y[:, :, None], axis1=0, axis2=1) | np.diagonal(y.real) | np.diagonal(y, 1)[:1]
    np.einsum("ij->ji", y) | np.einsum("ii->i", y[:2, :2]) | np.einsum("ij->ij", y)
    np.einsum("ij", y) | np.einsum("iji->ij", y[:, :, None][:, :, [0, 0]])
    np.einsum("ii->i", y.T[:2]) | np.round(y, 1) | y.round() | np.clip(y.real, 0, 1, out=y.real)
    np.add(y, 1, out=y) | np.add(y[0], y[1], out=y[1])
    np.add(y.real, 1, out=y.imag) if y.dtype.kind == "c" else y | np.concatenate([y])
    np.stack([y]) | np.vstack([y]) | np.hstack([y]) | np.tile(y, 1) | np.repeat(y, 1, 0)
    np.pad(y, 0) | np.roll(y, 0) | np.roll(y, 0, 0) | np.where(True, y, y) | np.sum(y, axis=())
    y.max(axis=()) | np.take(y, 0, 0) | y[np.array(1)] | y[np.int64(1)] | y[[0]]
    y[np.array([True, False])] | y[...] | y[()] | np.meshgrid(y[0], y[:, 0])[0]
    np.meshgrid(y[0], y[:, 0], sparse=True, copy=False)[1]
    y.astype(y.dtype) | y.astype(y.dtype, copy=False) | np.astype(y, y.dtype, copy=False)
    np.copy(y) | y ** 1 | np.atleast_3d(y) | np.atleast_1d(y) | np.moveaxis(y, 0, 1)
    np.rollaxis(y, 1) | y.mT | np.unstack(y)[1] | np.lib.stride_tricks.sliding_window_view(y, 2, 1)
    np.lib.stride_tricks.sliding_window_view(y.T, (2, 2))[0] | y.view() | y.T.view(y.dtype)
    np.rot90(y, 4) | np.rot90(y, 2) | np.rot90(y, 3)
    np.array_split(y, 2, 1)[1] | np.hsplit(y, [1])[1]
    y.ravel("F") | y.T.ravel("F") | y[:, ::2].ravel("F") | y[0].ravel("F") | y.flatten("F")
    y.reshape(3, 2, order="F") | y.reshape(-1, order="F") | y.T.reshape(6, 1, order="F")
    y.T.reshape(-1, 2, order="F") | np.reshape(y, (1, 3, -1), "f") | y.reshape(2, 3, order="F")
    y.reshape(3, 2, order="F").reshape(-1, order="F") | y.T.reshape(6, order="F", copy=True)
    y.T.flatten("K") | y.T.flatten("A") | y[:, ::-1].T.flatten("K") | y.reshape(6, copy=False)
    np.copy(y.T).ravel("K") | np.copy(y.T, "C").ravel("K") | np.copy(y, "F").ravel("K")
    y.copy("F").ravel("A") | y.T.copy().ravel("K") | y.T.copy("K").ravel("K")
    y.T.copy("A").ravel("K") | y[:, ::2].T.copy("A").ravel("K") | y[:, ::-1].copy("K").ravel("K")
    np.copy(y.T).T.reshape(-1) | y.copy("F").T.reshape(-1) | y.copy("F") | np.copy(y.T)
    y.copy("F").reshape(-1, order="F") | y[None].swapaxes(0, 2).copy("K").ravel("K")
    np.copy(np.broadcast_to(y[0], (2, 3))).ravel("K") | np.broadcast_to(y, (2, 2, 3)).copy("F")
    np.broadcast_to(y[:, :1], (2, 3)).copy("K").ravel("K")
    y.astype(np.complex128, order="F").ravel("K") | y.astype(y.dtype, order="F", copy=False)
    y.astype(int, order="f").ravel("k") | y.astype(int, order="c").ravel("K")
    y.T.copy("c").ravel("K") | y.astype(int, order=None) | y.T.copy(None).ravel("K")
    np.copy(y.T, None).ravel("K") | y.T.ravel(None)
    y.reshape(3, 2, order=None) | y.copy("f").ravel("a")
"""
NAMES = [name.strip() for name in EXPRESSIONS.replace("\n", "|").split("|") if name.strip()]
VIEWS: dict[str, View] = {name: eval(f"lambda y: {name}") for name in NAMES}


def read_after_write(view: View, x: Any) -> Any:
    y = x.copy()
    part = view(y)
    y[...] = y * 2 + 1
    return part


def set_through(view: View, x: Any) -> Any:
    y = x.copy()
    part = view(y)
    part[...] = 7
    return y, part


def double_through(view: View, x: Any) -> Any:
    y = x.copy()
    part = view(y)
    part *= 2
    return y, part


@pytest.mark.parametrize("name", NAMES)
def test_reads_and_writes_through_results_equal_numpys(name: str) -> None:
    for x in ARRAYS.values():
        for use in (read_after_write, set_through, double_through):
            function = tracegraph.jit(lambda x, use=use: use(VIEWS[name], x), device="host")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy's, of infinities
                try:
                    expected = use(VIEWS[name], x)
                except ValueError:  # read-only
                    with pytest.raises(errors.TracerWriteError, match="read-only"):
                        function(x)
                    continue
                found = function(x)
            pairs = (
                zip(found, expected, strict=True)
                if type(expected) is tuple
                else [(found, expected)]
            )
            for got, wanted in pairs:
                assert got.dtype == wanted.dtype
                np.testing.assert_array_equal(np.asarray(got), wanted)


CHAINED = ["y.real", "y.imag", "y.T", "y[1:]", "y.conj()", 'y.ravel("K")', "y[::-1]"]
CHAINED += [
    "y[0] if y.ndim > 1 else y",
    "np.diagonal(y) if y.ndim > 1 else y",
    "y.ravel()",
    "np.reshape(y, -1)",
]


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(["complex64", "float64"]),
    st.lists(st.tuples(st.sampled_from(CHAINED), st.booleans()), min_size=1, max_size=5),
)
def test_chains_of_views_of_complex_arrays_equal_numpys(
    dtype: str, steps: list[tuple[str, bool]]
) -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        arrays = [y]
        for name, deeper in steps:
            base = arrays[-1] if deeper and arrays[-1].ndim else y
            arrays.append(eval(name, {"y": base, "np": np}))
            try:
                arrays[-1][...] += 1
            except (ValueError, TypeError):
                y *= 3
            arrays[len(arrays) // 2].real *= 2
        return [a + 0 for a in arrays]

    try:
        f(ARRAYS[dtype])
    except (ValueError, TypeError, AttributeError):  # a part of a read-only view, or of a number
        return
    assert_traced_equals_eager(f, ARRAYS[dtype])


def test_parts_are_assigned_and_changed_in_place() -> None:
    def f(z: Any, x: Any) -> Any:
        y, w = z.copy(), x.copy()
        y.real *= 2
        y.imag[:] = 0
        y[1].imag += 3
        y.T.real -= y.T.imag
        y.imag = y.real[::-1]
        y.real = 1
        y.real[0] = x[0]
        w.real += 1
        w.real = w[::-1]
        return y, w, y.real.sum(), y.imag

    assert_traced_equals_eager(f, ARRAYS["complex64"], ARRAYS["float64"])
    assert_traced_equals_eager(f, ARRAYS["complex64"], ARRAYS["int64"])


def test_a_part_keeps_the_bits_of_the_other() -> None:
    z = np.array([complex(np.nan, -0.0), complex(-0.0, np.inf), complex(np.inf, np.nan)])

    def f(z: Any) -> Any:
        y, w = z.copy(), z.copy()
        y.real[1:] = 0
        w.imag[:2] = -0.0
        return y.real, y.imag, w.real, w.imag

    for got, wanted in zip(tracegraph.jit(f, device="host")(z), f(z), strict=True):
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


@pytest.mark.parametrize("name", ["imag", "diagonal", "argument", "constant"])
def test_what_is_read_only_says_so(name: str) -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        match name:
            case "imag":
                y.imag = 1
            case "diagonal":
                np.diagonal(y)[0] = 1
            case "argument":
                x.real[0] = 1
            case "constant":
                tnp.asarray(np.arange(3))[0] = 1
        return y

    expected = {
        "imag": "the imaginary part of a real array, which is read-only",
        "diagonal": "a diagonal, which is read-only",
        "argument": "an argument, which belongs to the caller",
        "constant": "a constant array, which is read-only",
    }
    with pytest.raises(errors.TracerWriteError, match=expected[name]) as caught:
        trace(f, ARRAYS["float64"])
    assert "test_views.py" in str(caught.value)


def test_the_parts_of_an_argument_belong_to_the_caller() -> None:
    def f(z: Any) -> Any:
        z.imag[:] = 0
        return z

    with pytest.raises(errors.TracerWriteError, match="a view of an argument"):
        trace(f, ARRAYS["complex64"])
    with pytest.raises(errors.TracerWriteError, match="an argument"):
        trace(lambda x: np.nan_to_num(x, copy=False), ARRAYS["NaNs"])


def test_ascontiguousarray_copies_what_is_not_row_major() -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        same, other = tnp.ascontiguousarray(y[:1]), tnp.ascontiguousarray(y.T)
        y[...] = 5
        return same, other, tnp.ascontiguousarray(y[0, 0])

    same, other, scalar = tracegraph.jit(f, device="host")(ARRAYS["float64"])
    np.testing.assert_array_equal(same, [[5, 5, 5]])
    np.testing.assert_array_equal(other, ARRAYS["float64"].T)
    assert scalar.shape == (1,)


BITS = [("f8", "i8"), ("i4", "f4"), ("f4", "u4"), ("u1", "i1")]


@pytest.mark.parametrize(("source", "target"), BITS)
def test_bits_are_read_and_written_as_another_dtype(source: str, target: str) -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        bits = y.view(target)
        first = bits + 0
        y[0] = 3
        bits[1:] = bits[0]
        rows = y.reshape(2, 2).T.view(np.dtype(target))
        rows[1, 0] -= 1
        bits.view(source)[3] = 7
        return first, y, bits, rows, x.view(target)[::-1]

    x = np.array([1, 0, 100, 5]).astype(source)
    assert_traced_equals_eager(f, x)
    found = tracegraph.jit(f, device="host")(x)
    for got, wanted in zip(found, f(x), strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted)


def test_bits_of_arrays_of_the_package() -> None:
    x = tracegraph.asarray(np.array([1.0, np.nan]))
    np.testing.assert_array_equal(x.view("u8"), np.array([1.0, np.nan]).view("u8"))
    np.testing.assert_array_equal(x.view(np.complex128), [complex(1, np.nan)])
    assert x.view() is x


def test_views_as_floats_of_16_bits_say_what_to_use() -> None:
    with pytest.raises(
        errors.UnsupportedByTracerError, match="takes booleans, integers, floats of 32 or 64 bits"
    ) as caught:
        trace(lambda x: x.view("f2"), np.arange(3.0))
    assert "test_views.py" in str(caught.value)
