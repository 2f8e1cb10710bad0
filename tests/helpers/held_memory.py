"""What a process holds, on the host and on the device, for tests that it stays the same."""

from __future__ import annotations

import gc
import os
from pathlib import Path

HOST_SLACK, DEVICE_SLACK = 8 << 20, 4 << 20
"""Bytes: what allocators keep for themselves. 100 bytes lost in each launch would be 10 MB."""


def host_bytes() -> int:
    """The resident set of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def device_bytes() -> int:
    """What the device has in use, by all processes."""
    from cuda.bindings import driver  # noqa: TID251 - asks, and changes nothing

    result, free, total = driver.cuMemGetInfo()
    assert result == driver.CUresult.CUDA_SUCCESS
    return int(total - free)
