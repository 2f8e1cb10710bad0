"""Feature probes: small graphs that try what a device can do.

A feature is missing if its node cannot be added or instantiated, or an update has no effect; the
reason does not matter, since there is another way. Programmatic edges are not tried: code for
devices before sm_90 does not wait at them, even if the driver accepts the edges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowering.cuda.interface import Driver, Launch
from lowering.plan.owners import SlotTable
from lowering.plan.target.features import Feature
from tracegraph.errors import DeviceLostError

FIRST_WAITING = 90
"""The compute capability, times ten, from which kernels can wait for their primaries."""

_ONE = (1, 1, 1)
_ARM, _STORE = "tracegraph_probe_arm", "tracegraph_probe_store"

KERNELS = f"""\
extern "C" __global__ void {_ARM}(unsigned long long handle) {{
  cudaGraphSetConditional(handle, 1u);
}}
extern "C" __global__ void {_STORE}(unsigned long long* target, unsigned long long value) {{
  *target = value;
}}
"""
"""What the probes run, behind a preamble."""


def supports(feature: Feature, driver: Driver, code: Callable[[], Any]) -> bool:
    """Whether the device behind `driver` has a feature; `code` gives the compiled `KERNELS`."""
    try:
        match feature:
            case "conditional_nodes":
                return True  # in every supported driver
            case "body_updates":
                return _updates_bodies(driver, code)
            case "memory_nodes":
                return _allocates(driver)
            case "library_updates":
                return True  # each call is checked when it is captured
            case "programmatic_edges":  # where kernels can wait for each other, by the manual
                return int(driver.arch.removeprefix("sm_")) >= FIRST_WAITING
    except (MemoryError, DeviceLostError):
        raise
    except Exception:
        return False


def _allocates(driver: Driver) -> bool:
    """Whether a graph that allocates and frees memory is instantiated; it is not launched."""
    graph = driver.new_graph()
    memory = driver.add_memory(graph, 8)
    driver.add_free(graph, [memory.node], memory)
    driver.close(driver.instantiate(driver.tie(graph, SlotTable())))
    return True


def _updates_bodies(driver: Driver, code: Callable[[], Any]) -> bool:
    """Whether a kernel in a body that was given a new value stores that one."""
    module = driver.load(code())
    memory, slots = driver.allocate(8), SlotTable()
    slots.retain(module, memory)
    graph = driver.new_graph()
    condition, handle = driver.create_condition(graph)
    arm = driver.add_kernel(graph, [], Launch(driver.kernel(module, _ARM), _ONE, _ONE), [handle])
    _, (body, _) = driver.add_conditional(graph, [arm.node], "if_else", condition, 2)
    launch = Launch(driver.kernel(module, _STORE), _ONE, _ONE)
    store = driver.add_kernel(body, [], launch, [memory.pointer, 1])
    executable = driver.instantiate(driver.tie(graph, slots))
    store.values[1] = 2
    driver.updater(executable, store)()
    driver.launcher(executable)()
    stored = np.zeros((), np.uint64)
    driver.copy_to_host(stored, memory.pointer)
    driver.close(executable)
    return int(stored) == 2
