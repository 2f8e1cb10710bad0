"""GPUs before one is open: how many there are, and the driver, which starts beside other work.

To start the driver takes 0.2 s, to make the context of a GPU 0.15 s, and the first allocation from
its pool of memory 9 ms. All happen in C: threads do it while modules are imported and the first
function is traced. They are waited for at the end of the process, which would end in the middle of
the driver otherwise.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from threading import Thread
from typing import Any

_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_RELEASE_THRESHOLD = 4  # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_ONE_BYTE = ctypes.c_size_t(1)

_DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def count_gpus() -> int:
    """The GPUs that this process sees."""
    driver = _driver()
    if driver is None:  # `cuda.core`, which takes 0.1 s to import, is not asked
        return 0
    start = Thread(target=driver.cuInit, args=(0,), name="tracegraph starts the driver")
    start.start()
    try:
        from cuda.core import Device
    except Exception:  # no package, or one for another driver: each raises its own class
        return 0
    finally:
        start.join()
    try:
        return len(Device.get_all_devices())
    except Exception:  # no device
        return 0


def open_early(device: str) -> None:
    """Begin to make the context of a GPU, in a thread. Of other devices, do nothing.

    An error is raised when the device is opened, which uses the context that is there.
    """
    name, _, number = device.partition(":")
    if name == "cuda" and (not number or number.isdecimal()):
        _begin_context(int(number or 0))


@cache
def _begin_context(ordinal: int) -> None:
    driver = _driver()
    if driver is not None:
        name = f"tracegraph opens cuda:{ordinal}"
        Thread(target=_make_context, args=(driver, ordinal), name=name).start()


def _make_context(driver: Any, ordinal: int) -> None:
    device, context = ctypes.c_int(), ctypes.c_void_p()
    made = _succeed(
        lambda: driver.cuInit(0),
        lambda: driver.cuDeviceGet(ctypes.byref(device), ordinal),
        lambda: driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
    )
    if made:
        _grow_pool(driver, device, context)


def _grow_pool(driver: Any, device: ctypes.c_int, context: ctypes.c_void_p) -> None:
    """Allocate from the pool of a device, which keeps the memory, as cuda.core would have it.

    The thread allocates on a stream of its own, and lets somebody's capture of another go on.
    """
    pool, stream, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    mode, kept = ctypes.c_int(_RELAXED), ctypes.c_uint64((1 << 64) - 1)
    _succeed(
        lambda: driver.cuCtxSetCurrent(context),
        lambda: driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)),
        lambda: driver.cuDeviceGetMemPool(ctypes.byref(pool), device),
        lambda: driver.cuMemPoolSetAttribute(pool, _RELEASE_THRESHOLD, ctypes.byref(kept)),
        lambda: driver.cuStreamCreate(ctypes.byref(stream), _NON_BLOCKING),
        lambda: driver.cuMemAllocFromPoolAsync(ctypes.byref(memory), _ONE_BYTE, pool, stream),
        lambda: driver.cuMemFreeAsync(memory, stream),
    )
    if stream:
        driver.cuStreamDestroy_v2(stream)


def _succeed(*calls: Callable[[], int]) -> bool:
    """Whether calls of the driver, one after the other, return no error; the first one ends it."""
    return not any(call() for call in calls)


def _driver() -> Any:
    """The library of the driver; None where there is none."""
    try:
        return ctypes.CDLL(_DRIVER)
    except OSError:
        return None
