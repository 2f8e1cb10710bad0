"""How long tracing a gradient takes: the function, its derivative, nothing of what follows.

Functions are new at each run, as no cache knows them, and give one number.
"""

from __future__ import annotations

import numpy as np

import tracegraph
from benchmarks.harness.row import PER_EQUATION, Row

from .building import COUNTS, chain, chain_inputs, nothing_of


def _total(xp, equations):
    function = chain(xp, equations)
    return lambda x, y: sum(part.sum() for part in function(x, y))


def _trace(equations):
    def prepare(*inputs):
        return nothing_of(
            lambda: tracegraph.jit(tracegraph.grad(_total(np, equations))).trace(*inputs)
        )

    return prepare


def _trace_jax(equations):
    def prepare(*inputs):
        import jax

        return nothing_of(lambda: jax.make_jaxpr(jax.grad(_total(jax.numpy, equations)))(*inputs))

    return prepare


ROWS = tuple(
    Row(
        name=f"trace_gradient_{count}",
        title=f"trace the gradient of {count} equations; for jax, make_jaxpr",
        inputs=chain_inputs,
        contestants={"tracegraph": _trace(count), "jax": _trace_jax(count)},
        unit=PER_EQUATION,
        computes=False,
        work=lambda inputs, results, count=count: count,
    )
    for count in COUNTS
)
