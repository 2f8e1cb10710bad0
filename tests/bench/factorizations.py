"""Factorizations in both forms: ``python -m tests.bench.factorizations``, on a GPU.

Each op in milliseconds a call, by algorithms of our own and by calls of cuSOLVER and cuBLAS; and
the form that is chosen. The `LapackPolicy` of `lowering.backends.cuda` is right if that is the
faster one. Ops and dtypes are arguments: ``python -m tests.bench.factorizations lu float32``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tracegraph
from lowering.backends.cuda import TARGET
from lowering.planning.factorizations import FactorizationForm
from lowering.scheduling.overrides import override
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ir.types import ArrayType

from .measure import medians

SECONDS = 0.3
OPS = ("cholesky", "lu", "qr", "triangular_solve")
DTYPES = ("float32", "float64")
SIZES = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192)
BATCHES = ((2, 64), (4, 64), (8, 64), (16, 64), (2, 256), (4, 256), (8, 256), (16, 256), (64, 256))
"""Matrices, and the rows of each."""

LONGEST = {"qr": 2048}
"""The most rows of our own algorithms: those that go column by column take too long beyond."""


def _given(op: str, batch: int, n: int, dtype: str) -> list[Any]:
    """Well conditioned operands, on the GPU."""
    shape = (n, n) if batch == 1 else (batch, n, n)
    rng = np.random.default_rng(n)
    a = (rng.standard_normal(shape) / n**0.5 + 3 * np.eye(n)).astype(dtype)
    if op == "cholesky":
        a = a + np.swapaxes(a, -1, -2)
    operands = [a, a[..., :1].copy()] if op == "triangular_solve" else [a]
    return [tracegraph.asarray(x, device="cuda") for x in operands]


def _call(op: str, form: FactorizationForm, given: Sequence[Any]) -> Callable[[], Any]:
    """Runs the op in this form."""
    attrs = {"lower": True} if op == "triangular_solve" else {}

    def function(*operands: Any) -> Any:
        found = apply(get(op), *operands, **attrs)
        return found[0] if isinstance(found, tuple) else found

    with override(factorizations=form):
        compiled = tracegraph.jit(function, device="cuda").lower(*given).compile()
    return lambda: compiled(*given)


def main(words: Sequence[str]) -> None:
    """Print the table of each op and dtype."""
    assert TARGET.lapack is not None
    for op in [op for op in OPS if op in words] or OPS:
        for dtype in [dtype for dtype in DTYPES if dtype in words] or DTYPES:
            print(f"{op} {dtype}, ms: matrices, rows, own, library, chosen", flush=True)
            for batch, n in (*((1, n) for n in SIZES), *BATCHES):
                given = _given(op, batch, n, dtype)
                is_timed = n <= LONGEST.get(op, n)
                forms: list[FactorizationForm] = ["library", "own"] if is_timed else ["library"]
                calls = [_call(op, form, given) for form in forms]
                times = medians(calls, tracegraph.Array.synchronize, SECONDS)
                library, own = (times[0], times[1] if is_timed else np.inf)
                matrix = ArrayType(dtype, given[0].shape)
                chosen = "library" if TARGET.lapack.prefers(op, matrix) else "own"
                slower = "  <- slower" if (chosen == "own") != (own <= library) else ""
                figures = f"{own / 1e3:10.4f} {library / 1e3:10.4f}"
                print(f"{batch:5} {n:6} {figures}  {chosen}{slower}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
