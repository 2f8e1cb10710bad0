"""Factorizations in all forms: ``python -m benchmarks.factorizations``, on a GPU.

Each op in milliseconds a call, by algorithms of our own, by calls of cuSOLVER and cuBLAS and by
kernels for small matrices; and the form that is chosen. The `LapackPolicy` of
`lowering.backends.cuda` is right if that is the fastest one. Ops and dtypes are arguments:
``python -m benchmarks.factorizations lu float32``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import tracegraph
from benchmarks.harness.measure import medians
from lowering.algorithms import BY_LIBRARY, SMALL, are_small
from lowering.backends.cuda import TARGET
from lowering.plan.target.overrides import override
from lowering.planning.factorizations import FactorizationForm, form_of
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ir.types import ArrayType

SECONDS = 0.3
OPS = ("cholesky", "eigh", "lu", "qr", "triangular_solve")
DTYPES = ("float32", "float64")
SIZES = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192)
FEW = ((2, 64), (4, 64), (2, 256), (4, 256), (2, 1024), (4, 1024))
MANY = (*((10_000, n) for n in (4, 8, 16, 32)), *((100, n) for n in (16, 32, 64, 128, 256)))
BATCHES = (*FEW, *MANY, (8, 64), (8, 256))
"""Matrices, and the rows of each: one after the other, or at once."""

LONGEST = {"eigh": 128, "qr": 2048}
"""The most rows of our own algorithms: those that go column by column take too long beyond."""


def _given(op: str, batch: int, n: int, dtype: str) -> list[Any]:
    """Well conditioned operands, on the GPU."""
    shape = (n, n) if batch == 1 else (batch, n, n)
    rng = np.random.default_rng(n)
    a = (rng.standard_normal(shape) / n**0.5 + 3 * np.eye(n)).astype(dtype)
    if op in ("cholesky", "eigh"):
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


def _forms(op: str, types: Sequence[ArrayType]) -> Iterator[FactorizationForm]:
    """Those that can be, and do not take too long."""
    if types[0].shape[-1] <= LONGEST.get(op, types[0].shape[-1]):
        yield "own"
    if op in BY_LIBRARY:
        yield "library"
    if op in SMALL and are_small(op, types):
        yield "small"


def main(words: Sequence[str]) -> None:
    """Print the table of each op and dtype."""
    for op in [op for op in OPS if op in words] or OPS:
        for dtype in [dtype for dtype in DTYPES if dtype in words] or DTYPES:
            print(
                f"{op} {dtype}, ms: matrices, rows, time of each form, the one chosen", flush=True
            )
            for batch, n in (*((1, n) for n in SIZES), *BATCHES):
                given = _given(op, batch, n, dtype)
                types = [ArrayType(dtype, x.shape) for x in given]
                forms = list(_forms(op, types))
                if not forms:
                    continue
                calls = [_call(op, form, given) for form in forms]
                times = medians(calls, tracegraph.Array.synchronize, SECONDS)
                chosen = form_of(op, types, TARGET.lapack).replace("at once", "library")
                best = min(zip(times, forms, strict=True))[1]
                figures = "  ".join(
                    f"{form} {time / 1e3:.4f}" for form, time in zip(forms, times, strict=True)
                )
                slower = f"  <- {best} is faster" if best != chosen else ""
                print(f"{batch:5} {n:6}  {figures}  {chosen}{slower}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
