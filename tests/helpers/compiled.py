"""Functions planned, compiled and run for a device, and arrays on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

import tracegraph
from lowering.plan.plan import Plan
from lowering.plan.target.overrides import override
from lowering.plan.target.scope import Scope
from tracegraph import tree

Function = Callable[..., Any]


def plan_of(
    function: Function,
    *arguments: Any,
    device: str = "cuda",
    choices: Mapping[str, Any] = MappingProxyType({}),
    **options: Any,
) -> Plan:
    """The Plan of a function for arguments or types, by choices; options are those of `jit`."""
    with override(**choices) if choices else nullcontext():
        plan: Plan = tracegraph.jit(function, device=device, **options).lower(*arguments).plan
    return plan


def nodes_planned_for(function: Function, *arguments: Any, **options: Any) -> Plan:
    """The Plan without what a launch does for arguments."""
    return replace(plan_of(function, *arguments, **options), as_graph=False)


def host_plan_of(function: Function, *arguments: Any, **options: Any) -> Plan:
    """The Plan of a function for the host."""
    return plan_of(function, *arguments, device="host", **options)


def compiled_for(
    function: Function, *arguments: Any, device: str = "cuda", **options: Any
) -> tracegraph.Compiled:
    """What is compiled of a function for arguments or types."""
    return tracegraph.jit(function, device=device, **options).lower(*arguments).compile()


def host_jit(function: Function, **options: Any) -> Any:
    """The function jitted for the host."""
    return tracegraph.jit(function, device="host", **options)


def gpu_jit(function: Function, **options: Any) -> Any:
    """The function jitted for a GPU."""
    return tracegraph.jit(function, device="cuda", **options)


def on_host(function: Function, *arguments: Any) -> Any:
    """What the jitted function gives on the host, as NumPy arrays."""
    return tree.map(np.asarray, host_jit(function)(*arguments))


def on_gpu(function: Function, *arguments: Any) -> Any:
    """What the jitted function gives on a GPU, as NumPy arrays."""
    return tree.map(np.asarray, gpu_jit(function)(*arguments))


def in_scope(function: Function, scope: Scope, *arguments: Any) -> tracegraph.Compiled:
    """The function compiled for arguments on a GPU, each of its loops one kernel of a scope."""
    with override(loops="one_kernel", scope=scope):
        return compiled_for(function, *arguments)


def on_device(array: Any) -> tracegraph.Array:
    """A copy of an array on the GPU."""
    return tracegraph.asarray(array, device="cuda")


def all_on_device(*arrays: Any) -> list[tracegraph.Array]:
    """Copies of arrays on the GPU."""
    return list(map(on_device, arrays))
