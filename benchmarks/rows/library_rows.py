"""Single calls of what libraries do: ``--rows fft`` and ``--rows linalg``.

Matrices have eigenvalues in a disc around 3, so that all libraries come close to each other; of
orthogonal factors, whose signs may differ, the sizes of elements are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.agreement import within
from benchmarks.harness.own import eager, jitted
from benchmarks.harness.row import Draw, Inputs, Prepare, Row

SIZES = (64, 1024, 8192)
NUMPY_TAKES = 2000
"""Larger matrices would keep NumPy busy for minutes; the first peer's results count there."""

DTYPES = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}


def _contestants(write: Callable[[Any], Callable[..., Any]], size: int) -> Mapping[str, Prepare]:
    """How each library does what `write` writes in its array namespace."""

    def jax(*inputs: Any) -> Callable[[], Any]:
        import jax

        return partial(jax.jit(write(jax.numpy)), *inputs)

    def torch(*inputs: Any) -> Callable[[], Any]:
        import torch

        return partial(write(torch), *inputs)

    def cupy(*inputs: Any) -> Callable[[], Any]:
        import cupy

        return partial(write(cupy), *inputs)

    numpy = {"numpy": eager(write(np))} if size <= NUMPY_TAKES else {}
    return {"tracegraph": jitted(write(np)), **numpy, "jax": jax, "torch": torch, "cupy": cupy}


def _signal(shape: tuple[int, ...], dtype: np.dtype, draw: Draw) -> Inputs:
    parts = (draw.rng.standard_normal(shape, dtype) for _ in range(2))
    real, imaginary = parts
    return ((real + 1j * imaginary).astype(np.result_type(dtype, np.complex64)),)


def _transforms() -> Iterator[Row]:
    cases: tuple[tuple[str, tuple[int, ...], str], ...] = (
        ("1mi", (1 << 20,), "fft"),
        ("4096x4096", (4096, 4096), "fft2"),
        ("1000x1000", (1000, 1000), "fft"),
    )
    for label, shape, function in cases:
        for precision, dtype in DTYPES.items():
            yield Row(
                name=f"{function}_{label}_{precision}",
                title=f"{function} of complex numbers, {label}",
                inputs=partial(_signal, shape, dtype),
                contestants=_contestants(lambda xp, name=function: getattr(xp.fft, name), 0),
            )


def _matrices(batch: tuple[int, ...], n: int, dtype: np.dtype, draw: Draw) -> np.ndarray:
    noise = draw.rng.standard_normal((*batch, n, n), dtype) / dtype.type(n**0.5)
    return 3 * np.eye(n, dtype=dtype) + noise


def _system(batch: tuple[int, ...], n: int, dtype: np.dtype, draw: Draw) -> Inputs:
    return _matrices(batch, n, dtype, draw), draw.rng.standard_normal((*batch, n, 1), dtype)


def _positive(batch: tuple[int, ...], n: int, dtype: np.dtype, draw: Draw) -> Inputs:
    a = _matrices(batch, n, dtype, draw)
    return (a + np.swapaxes(a, -1, -2),)  # eigenvalues around 6, by less than 3


def _matrix(batch: tuple[int, ...], n: int, dtype: np.dtype, draw: Draw) -> Inputs:
    return (_matrices(batch, n, dtype, draw),)


def _qr(xp: Any) -> Callable[[Any], Any]:
    def sizes(a: Any) -> Any:
        q, r = xp.linalg.qr(a)
        return xp.abs(q), xp.abs(r)

    return sizes


def _eigh(xp: Any) -> Callable[[Any], Any]:
    def sizes(a: Any) -> Any:
        values, vectors = xp.linalg.eigh(a)
        return values, xp.abs(vectors)

    return sizes


FACTORIZATIONS: Mapping[str, tuple[Callable[..., Inputs], Callable[[Any], Callable[..., Any]]]] = {
    "cholesky": (_positive, lambda xp: xp.linalg.cholesky),
    "solve": (_system, lambda xp: xp.linalg.solve),
    "qr": (_matrix, _qr),
    "eigh": (_positive, _eigh),
}


def _factorizations() -> Iterator[Row]:
    cases = [(name, (), n) for name in ("cholesky", "solve", "qr") for n in SIZES]
    cases += [(name, (10_000,), 16) for name in ("cholesky", "solve", "eigh")]
    for name, batch, n in cases:
        inputs, write = FACTORIZATIONS[name]
        label = "x".join(map(str, (*batch, n, n) if batch else (n,)))
        for precision, dtype in DTYPES.items():
            yield Row(
                name=f"{name}_{label}_{precision}",
                title=f"linalg.{name}, {label}",
                inputs=partial(inputs, batch, n, dtype),
                contestants=_contestants(write, n),
                agrees=within(5e-3, 1e-9),
            )


FFT = tuple(_transforms())
LINALG = tuple(_factorizations())
