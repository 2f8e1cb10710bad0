"""Device report: what `tracegraph.features` says of a GPU, by probes.

Conditional nodes, clusters and cooperative launches are not probed for Plans: every supported
driver has the first, and the compute capability decides about clusters. A report tries them, so
that it tells what a faulty or restricted driver refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from lowering.codegen.preamble import preamble
from lowering.cuda.interface import Driver, Launch
from lowering.cuda.open_devices import OpenDevice
from lowering.plan.conditional_nodes import ConditionalKind
from lowering.plan.owners import SlotTable
from lowering.plan.target.features import Feature, declared
from tracegraph.staging.device_features import DeviceFeatures

_ONE = (1, 1, 1)
_ARM, _REST = "tracegraph_report_arm", "tracegraph_report_rest"

_SOURCE = f"""\
extern "C" __global__ void {_ARM}(unsigned long long handle) {{
  cudaGraphSetConditional(handle, 0u);
}}
extern "C" __global__ void {_REST}() {{}}
"""


def device_features(device: OpenDevice) -> DeviceFeatures:
    """What the device can do; each feature is tried once in the life of the device.

    Raises:
        MemoryError: there is not enough memory to try.
        DeviceLostError: an earlier launch has failed on the device.
    """
    driver = device.driver
    driver.activate()
    found: dict[Feature, bool] = {name: device.supports(name) for name in get_args(Feature)}
    found["conditional_nodes"] = device.tried("conditional_nodes", _conditional_nodes)
    missing = declared()
    capability = int(driver.arch.removeprefix("sm_").rstrip("af"))
    return DeviceFeatures(
        device=device.name,
        name=driver.name,
        compute_capability=divmod(capability, 10),
        cuda_version=driver.cuda_version,
        clusters=device.tried("clusters", _clusters),
        cooperative_launches=device.tried("cooperative_launches", _cooperation),
        declared_missing=tuple(name for name, has in missing.items() if not has),
        **{**found, **missing},
    )


def _conditional_nodes(driver: Driver, compile_: Callable[[str], Any]) -> bool:
    """Whether graphs with a node of each kind are instantiated; they are not launched."""
    module = driver.load(compile_(preamble(_SOURCE) + _SOURCE))
    arm = Launch(driver.kernel(module, _ARM), _ONE, _ONE)
    kinds: tuple[tuple[ConditionalKind, int], ...] = (("if_else", 2), ("switch", 3), ("while", 1))
    for kind, branches in kinds:
        graph, slots = driver.new_graph(), SlotTable()
        slots.retain(module)
        condition, handle = driver.create_condition(graph)
        root = driver.add_kernel(graph, [], arm, [handle])
        _, bodies = driver.add_conditional(graph, [root.node], kind, condition, branches)
        driver.add_kernel(bodies[0], [], arm, [handle])
        driver.close(driver.instantiate(driver.tie(graph, slots)))
    return True


def _clusters(driver: Driver, compile_: Callable[[str], Any]) -> bool:
    return _launches(driver, compile_, {"cluster": (2, 1, 1)})


def _cooperation(driver: Driver, compile_: Callable[[str], Any]) -> bool:
    return _launches(driver, compile_, {"cooperative": True})


def _launches(driver: Driver, compile_: Callable[[str], Any], how: dict[str, Any]) -> bool:
    """Whether a graph with a kernel of two blocks that is launched like this is instantiated."""
    module, slots = driver.load(compile_(preamble(_SOURCE) + _SOURCE)), SlotTable()
    slots.retain(module)
    graph = driver.new_graph()
    driver.add_kernel(graph, [], Launch(driver.kernel(module, _REST), (2, 1, 1), _ONE, **how), [])
    driver.close(driver.instantiate(driver.tie(graph, slots)))
    return True
