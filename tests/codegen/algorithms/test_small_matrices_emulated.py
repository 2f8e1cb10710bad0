"""Kernels for many small matrices: on the CPU they give what the ops' references give."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

from lowering.algorithms import are_small
from lowering.algorithms.small_matrices import small
from tests.cases.hard_matrices import MATRICES
from tests.emulation.emulator import (
    ARGUMENT,
    COMPILER,
    FILL,
    SHIM,
    for_host,
    host_library,
    kernel_wrapper,
)
from tests.emulation.front_end import assert_front_end_accepts
from tracegraph.ir.custom_kernels import CudaText
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.op import get
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.ops.custom_kernels import custom_kernel
from tracegraph.tracing.trace import trace_program

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

SQUARE = [
    *(("float32", 16), ("float64", 5), ("float64", 32), ("complex64", 2), ("complex128", 9)),
    *(("float32", 37), ("float64", 33), ("complex64", 40), ("complex128", 34)),
]
"""Dtypes and rows: a warp or less, or a block for each."""

SIDES = [("float64", 130, 5), ("complex64", 130, 6), ("float64", 7, 33), ("complex128", 5, 34)]
"""Dtypes, right-hand sides and rows of systems."""

RECTANGLES = [("float32", 40, 7), ("float64", 33, 9), ("complex64", 3, 5), ("complex128", 6, 6)]
COUNT = 6
"""Matrices: the last block is not full."""


Call = tuple[Callable[..., Any], str, dict[str, Any]]
CALLS: list[Call] = [
    (small.cholesky, "cholesky", {}),
    (small.lu, "lu", {}),
    (small.eigh, "eigh", {"vectors": True}),
    (small.eigh, "eigh", {"vectors": False}),
    (small.rotated, "orthogonal_columns", {}),
]
SOLVES: list[Call] = [
    (small.triangular_solve, "triangular_solve", {"lower": True, "unit": False}),
    (small.triangular_solve, "triangular_solve", {"lower": False, "unit": True}),
]
CALLS += SOLVES


EVERY = 4
"""One kernel of this many runs its threads in both orders."""

MOST_ROTATED = 33
"""Rows of matrices whose columns are rotated, which takes most of the time here."""


def has_case(dtype: str, n: int, call: Call) -> bool:
    types = [ArrayType(np.dtype(dtype), (COUNT, n, each)) for each in (n, 3)]
    name = "svd" if call[1] == "orthogonal_columns" else call[1]
    if name in ("svd", "eigh") and n > MOST_ROTATED:
        return False
    return are_small(name, types[: 2 if name == "triangular_solve" else 1])


def operands(name: str, dtype: str, m: int, n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((COUNT, max(m, n) if name == "triangular_solve" else m, n))
    a = (a + 1j * rng.standard_normal(a.shape) if "c" in dtype else a).astype(dtype)
    a[1] = 0
    a[4, 0, 0] = np.nan if name == "eigh" else 1
    if name == "cholesky":
        return (
            (
                np.where(np.eye(n), n * 4, 1) * (a + np.conj(a.mT)) / 4
                + 4 * n * np.eye(n) * (np.arange(COUNT) != 3)[:, None, None]
            ).astype(dtype),
        )
    if name == "triangular_solve":
        a, columns = a[:, :n], 3 if m == n else m
        return a + 2 * np.eye(n, dtype=dtype), np.ones((COUNT, n, columns), dtype) + a[..., :1]
    if name in ("eigh", "orthogonal_columns"):
        hard = [np.asarray(kind(n, dtype), dtype) for kind in MATRICES.values()]
        if name == "eigh":
            return (np.concatenate([a, hard]),)
        hard += [a[2], a[3] * np.finfo(dtype).eps ** np.linspace(0, 3, n)]
        hard[-2][:, -1] = a[2, :, 0] * 1j if "c" in dtype else a[2, :, 0]
        return (np.stack([x / (np.abs(x).max() or 1) for x in hard]),)
    a[5] *= 1e30  # scaled, so that no square overflows
    return (a,)


def calls(function: Any, arrays: tuple[Any, ...], attrs: dict[str, Any]) -> KernelCall:
    """The call that a program of the algorithm has."""
    program = trace_program(lambda *xs: function(*xs, **attrs), [*map(type_of, arrays)], "small")
    (call,) = [eqn.attrs["call"] for eqn in program.body.eqns if eqn.op is custom_kernel]
    assert isinstance(call, KernelCall)
    return call


MACROS = ("N", "LANES", "THREADS", "EPS", "TINY", "SWEEPS", "ROWS", "COLUMNS", "GROUP")
UNDEFINED = "".join(f"#undef {each}\n" for each in MACROS)

CASES = [
    *((dtype, n, n, *call) for dtype, n in SQUARE for call in CALLS if has_case(dtype, n, call)),
    *((dtype, m, n, small.qr, "qr", {}) for dtype, m, n in RECTANGLES),
    *((dtype, m, n, *call) for dtype, m, n in SIDES for call in SOLVES),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All of them, each in a namespace and with a name of its own."""
    parts = []
    for number, (dtype, m, n, function, name, attrs) in enumerate(CASES):
        arrays = operands(name, dtype, m, n)
        call = calls(function, arrays, attrs)
        launch = call.launch([type_of(x) for x in arrays])
        text = launch.text.replace(f"{call.kernel.name}(", f"run_of_{number}(")
        count = len(call.kernel.parameters) + len(launch.out_types)
        parts.append(f"namespace n{number} {{\n{for_host(text, False)}")
        parts.append(kernel_wrapper(f"run_of_{number}", count) + "}\n")
        parts.append(UNDEFINED)
    folder = tmp_path_factory.mktemp("small")
    return host_library(SHIM, ARGUMENT + "".join(parts), folder / "small.cpp")


@pytest.mark.parametrize("number", range(len(CASES)))
def test_kernels_give_what_the_references_give(number: int, library: Any) -> None:
    dtype, m, n, function, name, attrs = CASES[number]
    arrays = operands(name, dtype, m, n)
    call = calls(function, arrays, attrs)
    found = launched(library, number, call, arrays)
    if number % EVERY == 0:
        again = launched(library, number, call, arrays, backwards=True)
        for one, other in zip(found, again, strict=True):
            np.testing.assert_array_equal(one, other, "threads do not wait for each other")
    if name == "orthogonal_columns":
        assert_orthogonal(*arrays, *found)
        return
    expected = get(name).reference(*arrays, **attrs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    unit = 200 * n * float(np.finfo(dtype).eps)
    if name == "eigh":
        (a,) = arrays
        others = np.arange(len(a)) != 4
        least = 4 * np.finfo(dtype).smallest_subnormal
        w, wanted = found[0], expected[0]
        assert np.isnan(w[4]).all()
        size = np.abs(wanted[others]).max(-1, keepdims=True)
        assert (np.abs(w - wanted)[others] <= unit * size + least).all()
        if attrs["vectors"]:
            v = found[1][others]
            h = np.tril(a) + np.conj(np.tril(a, -1).mT)
            h[:, range(n), range(n)] = h[:, range(n), range(n)].real
            h, w = h[others], w[others]
            assert (np.abs(h @ v - v * w[:, None]) <= unit * size[..., None] + n * least).all()
            assert (np.abs(np.conj(v.mT) @ v - np.eye(n)) <= unit).all()
        return
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, unit, unit * np.nanmax(np.abs(wanted)))


def assert_orthogonal(a: Any, columns: Any, lengths: Any) -> None:
    """Columns of the lengths that are the singular values; the same product with themselves."""
    n = a.shape[-1]
    unit = 30 * n * float(np.finfo(a.dtype).eps)
    wide = columns.astype(complex)
    least = float(np.finfo(a.dtype).tiny) ** 0.5  # of squares that do not vanish
    np.testing.assert_allclose(lengths, np.linalg.norm(wide, axis=-2), 10 * unit, unit * least)
    wanted = np.linalg.svd(a.astype(complex), compute_uv=False)
    assert (np.abs(lengths - wanted) <= unit * wanted[:, :1]).all()
    products = np.abs(np.conj(wide.mT) @ wide) * (1 - np.eye(n))
    shortest = float(np.finfo(a.dtype).tiny / np.finfo(a.dtype).eps) ** 0.5  # that are rotated
    limit = unit * lengths[:, None] * lengths[..., None] + 2 * shortest * lengths.max()
    assert (products <= limit).all()
    assert (np.abs(wide @ np.conj(wide.mT) - a.astype(complex) @ np.conj(a.mT)) <= unit * n).all()


def test_nvrtc_takes_them() -> None:
    parts = []
    for number, (dtype, m, n, function, name, attrs) in enumerate(CASES):
        arrays = operands(name, dtype, m, n)
        call = calls(function, arrays, attrs)
        assert isinstance(call.kernel.code, CudaText)
        assert call.kernel.name == call.kernel.code.entry  # so that plans say what profilers do
        text = call.launch([type_of(x) for x in arrays]).text
        parts.append(f"namespace n{number} {{\n{text}}}\n{UNDEFINED}")
    assert_front_end_accepts("".join(parts))


def launched(
    library: Any, number: int, call: KernelCall, arrays: Any, backwards: bool = False
) -> list[Any]:
    ctypes.c_int.in_dll(library, "backwards").value = backwards
    launch = call.launch([type_of(x) for x in arrays])
    outs = [
        np.frombuffer(bytes([FILL]) * t.nbytes, t.dtype).reshape(t.shape).copy()
        for t in launch.out_types
    ]
    words = [*(x.ctypes.data for x in arrays), *(s.word for s in call.scalars)]
    words += [x.ctypes.data for x in outs]
    failed = library.launch(
        ctypes.cast(getattr(library, f"run_run_of_{number}"), ctypes.c_void_p),
        (ctypes.c_void_p * len(words))(*words),
        (ctypes.c_uint * launch.grid[0])(*range(launch.grid[0])),
        launch.grid[0],
        1,
        prod(launch.block),
    )
    assert not failed, "a barrier or shuffle that some threads never reach"
    return outs
