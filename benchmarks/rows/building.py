"""What comes before the first result: tracing, planning, compiling."""

from __future__ import annotations

import itertools

import numpy as np

import tracegraph
from benchmarks.harness.row import MILLISECONDS, PER_CONSTRUCT, PER_EQUATION, Row
from benchmarks.programs.control_programs import constructs
from benchmarks.programs.control_programs import function as control_function
from benchmarks.programs.mixed_programs import EXTENT, equations, function, steps

COUNTS = (10, 100, 1_000, 10_000)
_KINDS = 5


def chain(xp, equations):
    """A new function of a number of equations of a few kinds, which no cache knows."""

    def function(x, y):
        for _ in range(equations // _KINDS):
            x = xp.sin(x)
            x = x * y
            y = y - x
            x = x + y
            y = xp.maximum(y, x)
        return x, y

    return function


def chain_inputs(draw):
    n, dtype = draw.size(1024), draw.dtype("float32", "float64")
    return [draw.uniform(n, dtype) for _ in range(2)]


def nothing_of(build):
    """Runs `build` for what it costs: there is no array, so nothing is compared."""

    def run():
        build()
        return ()

    return run


def _plan(equations):
    def prepare(*inputs):
        return nothing_of(lambda: tracegraph.jit(chain(np, equations)).lower(*inputs))

    return prepare


def _lower_jax(equations):
    def prepare(*inputs):
        import jax

        return nothing_of(lambda: jax.jit(chain(jax.numpy, equations)).lower(*inputs))

    return prepare


PLAN_ROWS = tuple(
    Row(
        name=f"plan_{count}",
        title=f"trace and plan {count} equations; for jax, trace and lower to StableHLO",
        inputs=chain_inputs,
        contestants={"tracegraph": _plan(count), "jax": _lower_jax(count)},
        unit=PER_EQUATION,
        computes=False,
        work=lambda inputs, results, count=count: count,
    )
    for count in COUNTS
)


def _seed(draw):
    """Of the program: always the same, unless inputs are drawn at random."""
    return int(draw.rng.integers(1 << 30)) if draw.random else 0


def _mixed_inputs(draw):
    shapes = [EXTENT, EXTENT, (EXTENT, EXTENT), (EXTENT, EXTENT)]  # two vectors, two matrices
    return [*(draw.uniform(shape, np.dtype("float32")) for shape in shapes), _seed(draw)]


def _plan_mixed(count):
    def prepare(*inputs):
        *arrays, seed = inputs
        program = steps(count, seed)
        return nothing_of(lambda: tracegraph.jit(function(np, program)).lower(*arrays))

    return prepare


def _lower_mixed_jax(count):
    def prepare(*inputs):
        import jax

        *arrays, seed = inputs
        program = steps(count, seed)
        return nothing_of(lambda: jax.jit(function(jax.numpy, program)).lower(*arrays))

    return prepare


MIXED_ROWS = tuple(
    Row(
        name=f"plan_mixed_{2 * count}",
        title=f"trace and plan a random program of {count} steps, about two equations each",
        inputs=_mixed_inputs,
        contestants={"tracegraph": _plan_mixed(count), "jax": _lower_mixed_jax(count)},
        unit=PER_EQUATION,
        computes=False,
        work=lambda inputs, results, count=count: equations(count, inputs[-1]),
    )
    for count in (5, 50, 500, 5_000)
)


def _control_inputs(draw):
    return [*(draw.uniform(EXTENT, np.dtype("float32")) for _ in range(2)), _seed(draw)]


def _plan_loops(count):
    def prepare(x, y, seed):
        program, run = constructs(count, seed), control_function
        return nothing_of(lambda: tracegraph.jit(run(np, tracegraph, program)).lower(x, y))

    return prepare


def _lower_loops_jax(count):
    def prepare(x, y, seed):
        import jax

        program, run = constructs(count, seed), control_function
        return nothing_of(lambda: jax.jit(run(jax.numpy, jax.lax, program)).lower(x, y))

    return prepare


LOOP_ROWS = tuple(
    Row(
        name=f"plan_loops_{count}",
        title=f"trace and plan a random program of {count} loops and branches, small bodies",
        inputs=_control_inputs,
        contestants={"tracegraph": _plan_loops(count), "jax": _lower_loops_jax(count)},
        unit=PER_CONSTRUCT,
        computes=False,
        work=lambda inputs, results, count=count: count,
    )
    for count in (10, 100, 1_000)
)


HALVINGS = 10


def _first_inputs(draw):
    """An array, and a threshold that its sum falls below at the tenth halving, and at no other.

    No earlier run has used that threshold, whatever the seed: so no cache of kernels has it.
    """
    x = draw.uniform(draw.size(1024), draw.dtype("float32", "float64"), 1.0, 2.0)
    part = np.random.default_rng().uniform(1.2, 1.5)
    return x, float(np.sum(x, dtype=np.float64)) * 0.5**HALVINGS * part


def _fresh(threshold):
    """Constants that no earlier run has used, and that give the same result."""
    return (threshold * (1 + i * 1e-5) for i in itertools.count())


def _halving(while_loop, xp, threshold):
    """A new function, which halves its argument until the sum is small."""
    return lambda x: while_loop(lambda x: xp.sum(x) > threshold, lambda x: x * 0.5, x)


def _first_call(x, threshold):
    thresholds = _fresh(threshold)
    return lambda: tracegraph.jit(_halving(tracegraph.while_loop, np, next(thresholds)))(x)


def _first_call_jax(x, threshold):
    import jax

    thresholds = _fresh(threshold)
    return lambda: jax.jit(_halving(jax.lax.while_loop, jax.numpy, next(thresholds)))(x)


def _first_call_torch(x, threshold):
    import torch
    from torch._higher_order_ops import while_loop

    thresholds = _fresh(threshold)

    def run():
        torch._dynamo.reset()
        threshold = next(thresholds)

        @torch.compile(fullgraph=True)
        def f(x):
            return while_loop(lambda x: x.sum() > threshold, lambda x: (x * 0.5,), (x,))

        return f(x)

    return run


FIRST_CALL = Row(
    name="first_call",
    title="jit of a small while_loop and its first call, nothing cached",
    inputs=_first_inputs,
    contestants={
        "tracegraph": _first_call,
        "jax": _first_call_jax,
        "torch": _first_call_torch,
    },
    unit=MILLISECONDS,
)

ROWS = (*PLAN_ROWS, *MIXED_ROWS, *LOOP_ROWS, FIRST_CALL)
