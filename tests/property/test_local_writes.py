"""Random views of arrays and writes through them: NumPy's, run eagerly, on a device, and jitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tracegraph
from tests.fakes.fake_device import FakeBuffer, FakeCompiler
from tests.programs.writes import STEPS, program
from tests.unit.conftest import compiler as compiler
from tracegraph.arrays.array import Array
from tracegraph.tracing import views

A = np.arange(12.0).reshape(3, 4) % 7


def check(of: Callable[[Any], Any]) -> None:
    """`of` runs a program's steps on Arrays."""

    @settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
    @given(steps=STEPS)
    def equals(steps: Any) -> None:
        expected = program(steps, A.copy())
        found = of(steps)
        for new, old in zip(found, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(new), old, strict=True)

    equals()


def test_on_the_host() -> None:
    check(lambda steps: program(steps, tracegraph.asarray(A)))


def test_jitted() -> None:
    check(lambda steps: tracegraph.jit(lambda a: program(steps, a), device="host")(A))


@pytest.mark.usefixtures("compiler")
def test_on_a_device(compiler: FakeCompiler) -> None:
    check(lambda steps: program(steps, Array(FakeBuffer(A.copy(), "fake:0"))))
    assert compiler.backends["fake:0"].compiled


COPIES: dict[str, Callable[[Any], Any]] = {
    "an element": lambda x: x[1, 2],
    "by an array without axes": lambda x: x[np.array(1)],
    "of a view": lambda x: x[None].T[1, 2, 0],
    "by take": lambda x: np.take(x, 1),
}


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("copied", COPIES)
def test_copies_on_a_device_keep_their_elements(copied: str) -> None:
    x = Array(FakeBuffer(A.copy(), "fake:0")).copy()
    copy, expected = COPIES[copied](x), COPIES[copied](A)
    x[...] = 50
    np.testing.assert_array_equal(np.asarray(copy), expected)
    copy[...] = 7
    np.testing.assert_array_equal(np.asarray(x), 50)


@pytest.mark.usefixtures("compiler")
def test_views_of_arrays_by_columns_are_written_through() -> None:
    a = Array(FakeBuffer(A.copy(), "fake:0"))
    for by_columns in (a.copy().T + 1, a.T + 1):  # laid out as their operands are
        by_columns.T.reshape(-1)[...] = 5
        np.testing.assert_array_equal(np.asarray(by_columns), 5)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "a result of a read-only view": lambda a: a.T + 1,
    "of a view with gaps": lambda a: a.T[::2] + 1,
    "of two that are laid out otherwise": lambda a: (a + 1).T + a.reshape(4, 3),
    "of a reduction": lambda a: a.T[..., None].sum(-1),
    "a copy that reshape makes": lambda a: a.T.reshape(-1),
    "a copy": lambda a: np.copy(a.T),
    "a copy by columns": lambda a: a.copy("F"),
    "a copy of the same dtype": lambda a: a.T.astype(a.dtype),
    "another dtype by rows": lambda a: a.T.astype(np.float32, order="C"),
    "zeros": lambda a: np.zeros_like(a.T),
    "zeros by columns": lambda a: np.zeros_like(a, order="F"),
    "at indices": lambda a: a[..., [0, 1]],
    "taken": lambda a: np.take(a.T, [0, 1], 0),
    "sorted": lambda a: np.sort(a.T, 0),
    "the order": lambda a: np.argsort(a, 0),
    "rolled": lambda a: np.roll(a.T, 1, 0),
    "padded": lambda a: np.pad(a.T, 1),
    "selected": lambda a: np.select([a.T > 3], [a.T], 0),
    "transformed": lambda a: np.fft.fft(a, axis=0),
    "bits of another size": lambda a: a.view(np.int32)[::-1],
    "imaginary parts": lambda a: np.imag(a.T),
    "a broadcast view": lambda a: np.broadcast_to(a + 1, a.shape),
}


@pytest.mark.usefixtures("compiler")
def test_layouts_are_numpys() -> None:
    read_only, layouts = A.copy(), []
    read_only.setflags(write=False)
    device = Array(FakeBuffer(A.copy(), "fake:0"))

    def laid_out(a: Any) -> Any:
        layouts[:] = [(views.strides_of(x), x.is_local) for x in (f(a) for f in LAYOUTS.values())]
        return a

    laid_out(device)
    on_device = [*layouts]
    tracegraph.jit(laid_out, device="host")(A)
    for (name, made), eager, traced in zip(LAYOUTS.items(), on_device, layouts, strict=True):
        x = made(read_only)
        assert eager == traced == (tuple(s // x.itemsize for s in x.strides), x.flags.writeable), (
            name
        )


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_what_is_written_on_a_device_is_converted_as_by_numpy(dtype: Any) -> None:
    text, big = np.array(["7", "8", "x"]), [1, 2, 2**70]
    for value in ("a", "3", b"4", None, object(), {}, 1 + 2j, 2**70, big, text, text[:1], [None]):

        def written(x: Any, value: Any = value) -> Any:
            try:
                x[1, 1:] = value
            except (TypeError, ValueError, OverflowError) as error:
                return type(error), str(error)
            return np.asarray(x).tolist()

        given = A.astype(dtype)
        found, host = written(Array(FakeBuffer(given.copy(), "fake:0")).copy()), given.copy()
        assert repr(found) == repr(written(host)), value
