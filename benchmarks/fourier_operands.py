"""Operands of transforms in both forms: ``python -m benchmarks.fourier_operands``, on a GPU.

Each line has microseconds a call of complex64, until the result is there: with copies, and captured
again where arguments move. First with one argument, so that addresses come back at once; then with
arguments that take turns, more than a graph has executables, for which nodes are updated; and with
more than parameters are kept for, so that each call is captured again. `transformed` of the
`OperandPolicy` of `lowering.backends.cuda` is right if it chooses the faster form where arguments
take turns. Ranks are arguments.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tracegraph
from benchmarks.harness.measure import medians
from lowering.backends.cuda import TARGET
from lowering.cuda.calls.replicas import MOST
from lowering.cuda.libraries.recapture import KEPT
from lowering.plan.target.overrides import override
from lowering.plan.target.target import OperandForm

SECONDS = 0.3
SIDES = (32, 64, 128, 192, 256, 384, 512, 1024, 2048, 4096)
FORMS: tuple[OperandForm, ...] = ("copied", "in_place")
ARGUMENTS = (1, MOST + 2, KEPT + 4)
"""Arguments that take turns."""


def _call(side: int, rank: int, form: OperandForm, count: int) -> Callable[[], Any]:
    """A transform of side² elements, of arguments in turn."""
    shape = (side, side) if rank == 2 else (side * side,)
    x = np.random.default_rng(0).standard_normal((2, *shape)).astype(np.float32)
    given = [
        tracegraph.asarray(x[0] + np.complex64(1j) * x[1], device="cuda") for _ in range(count)
    ]
    function = np.fft.fft2 if rank == 2 else np.fft.fft
    with override(operands=form):
        compiled = tracegraph.jit(function, device="cuda").lower(given[0]).compile()
    turns = itertools.cycle(given)
    return lambda: compiled(next(turns))


def main(words: Sequence[str]) -> None:
    """Print the table of each rank."""
    policy = TARGET.operands
    assert policy is not None
    for rank in map(int, words or ("2", "1")):
        print(f"rank {rank}, µs: side, KiB, then copied and in place: ", end="")
        print("one argument, in turn, new addresses; chosen", flush=True)
        for side in SIDES:
            pairs = []
            for count in ARGUMENTS:
                calls = [_call(side, rank, form, count) for form in FORMS]
                pairs.append(medians(calls, tracegraph.Array.synchronize, SECONDS))
            nbytes = 16 * side * side
            copied, in_place = pairs[1]
            chosen = "in place" if nbytes >= policy.transformed else "copied"
            slower = "  <- slower" if (chosen == "in place") != (in_place <= copied) else ""
            figures = "   ".join(f"{one:8.1f} {other:8.1f}" for one, other in pairs)
            print(f"{side:6} {nbytes >> 10:8}   {figures}  {chosen}{slower}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
