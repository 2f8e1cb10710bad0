"""Devices by name, and the backend of each: two of our own, others by entry points."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from lowering.backends import Backend
from lowering.backends.gpus import count_gpus
from tracegraph.devices import canonical_device, is_mesh, other_backends
from tracegraph.distributed.membership import own_device
from tracegraph.sharding.mesh import mesh_of
from tracegraph.staging.interfaces import DeviceStream

if TYPE_CHECKING:
    from lowering.plan.plan import Plan
    from lowering.plan.target.rates import Rates
    from lowering.plan.target.target import Target
    from tracegraph.inspection.tables import Report

_VARIABLE = "TRACEGRAPH_DEVICE"

_made: list[Backend] = []
"""The backends that were asked for."""


@cache
def backend(device: str) -> Backend:
    """The backend of a device such as ``"host"``, ``"cuda"`` or ``"cuda:1"``.

    Raises:
        ValueError: there is no backend of that name, or the part after the colon is not a number.
    """
    made = _make(device)
    _made.append(made)
    return made


def _make(device: str) -> Backend:
    canonical_device(device)  # refuses what is none
    name, _, number = device.partition(":")
    if is_mesh(device):
        from lowering.backends.mesh import MeshBackend

        return MeshBackend(mesh_of(device))
    # Imported here, so that the host needs nothing of CUDA.
    if name == "host":
        from lowering.backends.host import HostBackend

        return HostBackend()
    if name == "cuda":
        from lowering.backends.cuda_backend import CudaBackend

        return CudaBackend(int(number or 0))
    made: Backend = other_backends()[name].load()(device)
    return made


def target_of(device: str) -> Target:
    """What planning needs to know of a device; raises as `backend` does."""
    target: Target = backend(device).target
    return target


def rates_on(device: str) -> Rates | None:
    """The limits of a device, where they are known; raises as `backend` does."""
    made = backend(device)
    found: Rates | None = getattr(made, "rates", made.target.rates)
    return found


def source(plan: Plan, device: str) -> str:
    """The text of the kernels of a Plan: CUDA C++, but LLVM IR for native code of the host."""
    if _is_on_host(device):
        from lowering.backends.host import host_source

        return host_source(plan)
    from lowering.backends.cuda_backend import CudaBackend

    return CudaBackend().source(plan)


def explain(plan: Plan, device: str, details: bool = False) -> Report:
    """A table of every loop and branch, one of the work of nodes, and on the host the loops of
    native code. Without `details`, long tables are cut.
    """
    from lowering.plan.reports.explain import explain as explanation
    from lowering.plan.reports.rooflines import rooflines
    from tracegraph.inspection.tables import Report, ReportSection

    sections = [*explanation(plan).sections, *rooflines(plan, rates_on(device)).sections]
    if _is_on_host(device):
        from lowering.backends.host import host_notes

        sections.append(ReportSection(notes=host_notes(plan)))
    return Report.of(sections, details)


def _is_on_host(device: str) -> bool:
    return device == "host" or (is_mesh(device) and mesh_of(device).kind == "host")


def create_stream(device: str, priority: int | None = None) -> DeviceStream | None:
    """A new stream of a device; None where there are none.

    Raises:
        ValueError: there is no such device.
        RuntimeError: the device cannot be used.
    """
    return backend(device).create_stream(priority)


def synchronize() -> None:
    """Wait for all work of the backends in use."""
    for each in tuple(_made):
        each.synchronize()


def trim() -> None:
    """Wait for all work of the backends in use, and give back what is kept for later."""
    for each in tuple(_made):
        each.trim()


def reset() -> None:
    """Wait for all work of the backends in use, close all executables, and free memory.

    Raises:
        Exception: the first failure of a check in a program, after the rest is done.
    """
    failures = []
    for each in tuple(_made):
        try:
            each.reset()
        except Exception as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


@cache
def default_device() -> str:
    """The device in the environment variable TRACEGRAPH_DEVICE, or the first GPU, or the host. Of
    several processes, each has a GPU of its own.

    Raises:
        ValueError: the variable names no device.
    """
    chosen = os.environ.get(_VARIABLE)
    if chosen:
        try:
            return canonical_device(chosen)
        except ValueError as error:
            raise ValueError(f"{_VARIABLE} in the environment: {error}") from None
    return f"cuda:{own_device()}" if count_gpus() else "host"
