"""Loops around one that ends at its limit of steps end, too, and the error is raised; as generated
CUDA C++ that runs on the CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.devices import Device
from tracegraph import cond, fori_loop, scan, switch, while_loop
from tracegraph.errors import StepLimitError


def stuck(x: Any) -> Any:
    """Ends at its limit where x is above 1."""
    return while_loop(lambda y: y > 1, lambda y: y * 1.0, x, max_steps=5)


def until_small(body: Any) -> Any:
    """A loop that waits for what the body makes of its carry."""
    return lambda x: while_loop(lambda c: c > 1, body, x)


LOOPS = {
    "body": until_small(stuck),
    "cond": until_small(lambda c: cond(c > 1.5, stuck, lambda v: v - 1, c)),
    "switch": until_small(lambda c: switch((c > 1.5) * 1, [lambda v: v - 1, stuck], c)),
    "fori_loop": until_small(lambda c: fori_loop(0, 3, lambda i, v: stuck(v), c)),
    "scan": until_small(
        lambda c: scan(lambda v, x: (stuck(v), v + x), c, np.arange(3.0))[0],
    ),
    "while_loop": until_small(until_small(stuck)),
    "twice": until_small(lambda c: stuck(c) + stuck(c * 0)),
    "limit": lambda x: while_loop(lambda c: c > 1, stuck, x, max_steps=50),
}
PROGRAMS = {name: (function, (np.float64(2),)) for name, function in LOOPS.items()}


@pytest.mark.parametrize("name", LOOPS)
def test_outer_loops_end_and_the_inner_one_is_blamed(name: str, device: Device) -> None:
    with pytest.raises(StepLimitError, match="max_steps=5"):
        LOOPS[name](2.0)
    with pytest.raises(StepLimitError, match="max_steps=5"):
        device.run(name, np.float64(2))
    assert float(device.run(name, np.float64(0.5))) == 0.5


@pytest.mark.parametrize("name", LOOPS)
def test_the_host_does_the_same(name: str) -> None:
    jitted = tracegraph.jit(LOOPS[name], device="host")
    with pytest.raises(StepLimitError, match="max_steps=5"):
        jitted(2.0)
    assert float(jitted(0.5)) == 0.5


def test_nothing_is_carried_where_no_loop_waits() -> None:
    def flags(function: Any) -> int:
        plan = tracegraph.jit(function, device="host").lower(np.float64(2)).plan
        return sum(buffer.type.dtype == np.bool_ for buffer in plan.offsets)

    def stepped(v: Any) -> Any:
        return stuck(v * 0.9)  # which varies: of what does not, a host keeps the condition

    assert flags(until_small(stepped))
    assert not flags(lambda x: fori_loop(0, 3, lambda i, v: stepped(v), x))
