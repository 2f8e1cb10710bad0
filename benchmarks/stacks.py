"""Sources of stacks in both forms: ``python -m benchmarks.stacks``, on a GPU.

Microseconds a call with maps unrolled along the axis of the sources, and with sources selected by
their position: a step of the D2Q9 lattice Boltzmann method on 512² points, ten of its steps in a
loop, and 16 arrays of 2**16 elements stacked, and joined end to end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph
from benchmarks.harness.measure import medians
from benchmarks.programs.lattice import DIRECTIONS, OPPOSITE, WEIGHTS
from lowering.plan.target.overrides import SourceForm, override

SECONDS = 0.5


def streamed(f: Any) -> Any:
    """The populations after they moved."""
    return np.stack([np.roll(f[q], DIRECTIONS[q], (0, 1)) for q in range(9)])


def step(f: Any, solid: Any) -> Any:
    """One step: populations move, and collide or bounce back."""
    f = streamed(f)
    density = f.sum(0)
    x_speed = sum(x * f[q] for q, (x, _) in enumerate(DIRECTIONS) if x) / density
    y_speed = sum(y * f[q] for q, (_, y) in enumerate(DIRECTIONS) if y) / density
    energy = 1.5 * (x_speed * x_speed + y_speed * y_speed)
    relaxed = []
    for q, (x, y) in enumerate(DIRECTIONS):
        along = 3 * (x * x_speed + y * y_speed)
        balance = WEIGHTS[q] * density * (1 + along + 0.5 * along * along - energy)
        relaxed.append(f[q] + 1.2 * (balance - f[q]))
    return np.where(solid, np.stack([f[q] for q in OPPOSITE]), np.stack(relaxed))


def steps(f: Any, solid: Any) -> Any:
    """Ten steps."""
    return tracegraph.fori_loop(0, 10, lambda k, f: step(f, solid), f)


def stacked(*pieces: Any) -> Any:
    """Arrays as rows."""
    return np.stack(pieces)


def joined(*pieces: Any) -> Any:
    """Arrays one after the other."""
    return np.concatenate(pieces)


def main() -> None:
    """Print a line for each program."""
    draw = np.random.default_rng(0)
    flow = (1 + 0.1 * draw.random((9, 512, 512))) * np.array(WEIGHTS)[:, None, None]
    fluid = (flow.astype(np.float32), draw.random((512, 512)) < 0.1)
    pieces = tuple(draw.random((16, 1 << 16)))
    programs: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (streamed, fluid[:1]),
        (step, fluid),
        (steps, fluid),
        (stacked, pieces),
        (joined, pieces),
    ]
    print("program, µs: unrolled, selected")
    for function, arguments in programs:
        given = [tracegraph.asarray(x, device="cuda") for x in arguments]

        def run(
            sources: SourceForm | None,
            function: Callable[..., Any] = function,
            given: list[Any] = given,
        ) -> Callable[[], Any]:
            with override(sources=sources):
                compiled = tracegraph.jit(function, device="cuda").lower(*given).compile()
            return lambda: compiled(*given)

        forms: tuple[SourceForm | None, ...] = (None, "selected")
        times = medians(list(map(run, forms)), tracegraph.Array.synchronize, SECONDS)
        print(f"{function.__name__:10} {times[0]:9.1f} {times[1]:9.1f}", flush=True)


if __name__ == "__main__":
    main()
