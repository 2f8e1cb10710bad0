"""Contractions as nests beside library calls: ``python -m benchmarks.contractions``, on a GPU.

Each shape in both forms, in µs a step of a loop that makes one product and changes an element, so
that little of the call is counted; and the form that is chosen. The `ContractionPolicy` of
`lowering.backends.cuda` is right if that is the faster one. Dtypes are arguments:
``python -m benchmarks.contractions float16``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tracegraph
from benchmarks.harness.measure import medians
from lowering.backends.cuda import TARGET
from lowering.plan.target.overrides import override
from lowering.planning.expansion.contractions import ProductForm, is_thin
from tracegraph.ir.types import ArrayType

STEPS = 256
"""Products of a call."""

SECONDS = 0.2
DTYPES = ("float32", "float64", "float16", "complex64")

SHAPES = [
    *((1, 1 << e, 1, 1) for e in (10, 16, 20, 24)),
    *((n, n, 1, 1) for n in (64, 200, 512, 1024, 2048, 4096)),
    *((1, n, n, 1) for n in (64, 200, 512, 1024, 2048, 4096)),
    *((m, 1024, 1024, 1) for m in (2, 3, 4, 6, 8, 16)),
    *((1024, 1024, n, 1) for n in (2, 3, 4, 6, 8, 16)),
    *((1024, k, 1024, 1) for k in (1, 2, 4, 8, 16, 32)),
    *((4096, k, 64, 1) for k in (2, 4, 8, 16, 32)),
    (1, 9, 262_144, 1),
    *((n, n, n, 1) for n in (8, 16, 24, 32, 40, 48, 64, 96, 128)),
    *((n, n, n, 1 << 10) for n in (3, 4, 8, 16, 32)),
    *((n, n, n, 1 << 16) for n in (3, 4, 8, 16)),
]
"""m, k, n and the products of a batch."""


def _chain(x: Any, y: Any, out: Any) -> Any:
    """Products one after the other: an element of each is used before the next."""

    def step(_: Any, state: Any) -> Any:
        x, out = state
        x = x.copy()
        x[0, 0, 0] += out[-1, -1, -1] * 0
        return x, x @ y

    return tracegraph.fori_loop(0, STEPS, step, (x, out), schedule="unrolled", unroll=8)


def _products(form: ProductForm, types: Sequence[ArrayType]) -> Callable[[], Any]:
    """Runs the chain with its products in this form."""
    with override(products=form):
        compiled = tracegraph.jit(_chain, device="cuda").lower(*types).compile()
    given = [tracegraph.asarray(np.ones(t.shape, t.dtype), device="cuda") for t in types]
    return lambda: compiled(*given)[1]


def main(dtypes: Sequence[str]) -> None:
    """Print the table of each dtype."""
    for dtype in dtypes or DTYPES:
        print(f"{dtype}, µs a step: batch, m, k, n, library, nest, chosen", flush=True)
        for m, k, n, batch in SHAPES:
            shapes = (batch, m, k), (batch, k, n), (batch, m, n)
            types = [ArrayType(dtype, shape) for shape in shapes]
            runs = [_products("library", types), _products("nests", types)]
            times = medians(runs, tracegraph.Array.synchronize, SECONDS)
            call, nest = (microseconds / STEPS for microseconds in times)
            chosen = "nest" if is_thin(*types[:2], TARGET.contractions) else "library"
            slower = "  <- slower" if (chosen == "nest") != (nest <= call) else ""
            sizes = f"{batch:6} {m:5} {k:9} {n:7}"
            print(f"{sizes} {call:9.2f} {nest:9.2f}  {chosen}{slower}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
