"""Executables: updates of their kernel nodes, and launches, as functions for many calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuda.bindings import driver

from lowering.driver.captured_kernels import CapturedKernel
from lowering.driver.error_checks import SUCCESS, check
from lowering.driver.graph_nodes import DriverKernelNode
from lowering.driver.handles import CudaExecutableGraph


def updater(
    executable: CudaExecutableGraph, kernel: DriverKernelNode | CapturedKernel
) -> Callable[[], None]:
    """The driver's call with its arguments, also for nodes in bodies; it keeps their values."""
    update = driver.cuGraphExecKernelNodeSetParams

    def run() -> None:
        result = update(executable.handle, kernel.node, kernel.params)
        if result[0] != SUCCESS:
            executable.require_open()
            check("cuGraphExecKernelNodeSetParams", result)

    return run


def launcher(executable: CudaExecutableGraph, stream: Any) -> Callable[[], None]:
    """The driver's call with its arguments; it refuses the handle of a closed executable."""
    launch = driver.cuGraphLaunch

    def run() -> None:
        result = launch(executable.handle, stream)
        if result[0] != SUCCESS:
            executable.require_open()
            check("cuGraphLaunch", result)

    return run
