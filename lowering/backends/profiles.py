"""Profiles of Plans: compiled with clocks, and run."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from lowering.backends.registry import backend, rates_on
from lowering.plan.clocks import Timed, with_clocks
from lowering.plan.nests.work import least_seconds
from lowering.plan.plan import Plan
from lowering.plan.reports.mesh_profile import MeshProfile
from lowering.plan.reports.node_times import NodeTime
from lowering.plan.reports.profile import Profile
from lowering.plan.reports.rooflines import work_inside
from lowering.plan.target.rates import Rates
from tracegraph.sharding.sharded_buffer import ShardedBuffer
from tracegraph.staging.interfaces import Executable
from tracegraph.user_source import lines_of

_WARM_UP = 2


def profile(
    plan: Plan, device: str, arguments: Sequence[Any], executable: Executable, launches: int
) -> Profile | MeshProfile:
    """The times of a Plan's nodes in some launches with these arguments; `executable` runs the Plan
    as it is. On a mesh, they are those of each device of this process; all processes call it.

    Raises:
        RuntimeError: the device cannot be used.
        OutOfMemoryError: it has not enough memory for a second copy of what the Plan needs.
    """
    rates = rates_on(device)
    calls = _call_seconds(executable, device, arguments, launches)
    mesh = plan.sharding.mesh if plan.sharding is not None else None
    on_host = device == "host" if mesh is None else mesh.kind == "host"
    clocked, timed = with_clocks(plan, each_nest=on_host)
    timing = backend(device).compile(clocked)
    try:
        timing.upload()
        for _ in range(_WARM_UP):
            timing(arguments)
        # of each launch, those of each device
        times = [_blocks(timing(arguments)[-1]) for _ in range(launches)]
    finally:
        timing.close()
    profiles = []
    for own in zip(*times, strict=True):
        nodes = tuple([_node_time(each, own, rates) for each in timed])
        profiles.append(Profile(plan.name, nodes, launches, calls, rates, plan))
    if mesh is None:
        return profiles[0]
    return MeshProfile(plan.name, dict(zip(mesh.local_devices, profiles, strict=True)))


def _call_seconds(
    executable: Executable, device: str, arguments: Sequence[Any], launches: int
) -> float:
    seconds = []
    for _ in range(_WARM_UP + launches):
        start = perf_counter()
        executable(arguments)
        backend(device).synchronize()
        seconds.append(perf_counter() - start)
    return median(seconds[_WARM_UP:])


def _node_time(
    timed: Timed, times: Sequence[np.ndarray[Any, Any]], rates: Rates | None
) -> NodeTime:
    runs = float(np.mean([timed.runs(each) for each in times]))
    seconds = median([timed.seconds(each) for each in times])
    work, is_all = work_inside(timed.node)
    least = runs * least_seconds(work, rates) if rates is not None and is_all else None
    line = lines_of(timed.node.sources) or "-"
    node, number = timed.node, timed.number
    return NodeTime(node.title, line, timed.depth, runs, seconds, work, least, number)


def _blocks(result: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(result, ShardedBuffer):
        return [np.array(block) for block in result.blocks_on_host()]
    return [np.array(result.to_host() if hasattr(result, "to_host") else result)]
