"""Functions planned, compiled and run for a device, and arrays on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph
from lowering.plan.plan import Plan
from tracegraph import tree

Function = Callable[..., Any]


def plan_of(function: Function, *arguments: Any, device: str = "cuda", **options: Any) -> Plan:
    """The Plan of a function for arguments or types; options are those of `jit`."""
    plan: Plan = tracegraph.jit(function, device=device, **options).lower(*arguments).plan
    return plan


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


def on_device(array: Any) -> tracegraph.Array:
    """A copy of an array on the GPU."""
    return tracegraph.asarray(array, device="cuda")
