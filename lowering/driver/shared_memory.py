"""Device memory that kernels of other processes of this machine reach, by CUDA's handles for that.

Memory of pools has no such handles, and pieces of one block have a handle in common: each piece is
a block of its own. It is never freed before the process ends: another process may still write into
it, which does not know that this one has dropped it.
"""

from __future__ import annotations

import ctypes

from cuda.bindings import driver

from lowering.driver.error_checks import CudaError, called, scarce
from lowering.plan.nests.rounding import round_up
from tracegraph.generated.dataclass import dataclass

BLOCK = 2 << 20
"""Bytes of the smallest block that the driver takes from the system."""

_HANDLE = 64
"""Bytes of a handle."""

_PEER_ACCESS = 1
"""CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS."""

_kept: list[SharedBlock] = []


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class SharedBlock:
    """Memory by the `name` of which other processes of the machine open it."""

    pointer: int
    nbytes: int
    name: bytes


def allocate_block(nbytes: int) -> SharedBlock:
    """A block of the current device.

    Raises:
        MemoryError: there is not enough.
    """
    whole = round_up(max(nbytes, 1), BLOCK)
    with scarce(f"not enough free memory for {whole} bytes that processes share"):
        pointer = int(called(driver.cuMemAlloc, whole))
    handle = called(driver.cuIpcGetMemHandle, pointer)
    block = SharedBlock(pointer, nbytes, ctypes.string_at(handle.getPtr(), _HANDLE))
    _kept.append(block)
    return block


def opened_block(name: bytes) -> int:
    """Where kernels of the current device find the block of another process.

    Raises:
        RuntimeError: they cannot reach it.
    """
    handle = driver.CUipcMemHandle()
    ctypes.memmove(handle.getPtr(), name, _HANDLE)
    try:
        return int(called(driver.cuIpcOpenMemHandle, handle, _PEER_ACCESS))
    except CudaError as error:
        raise RuntimeError(
            f"this process cannot reach the GPU memory of another one ({error}), as in containers "
            "that hide processes from one another; set TRACEGRAPH_SCHEDULES=library-collectives,"
            "conditional-loops in the environment of all processes, so that NCCL exchanges arrays"
        ) from error
