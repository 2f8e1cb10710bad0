"""GPUs before one is open: how many there are, and the driver, which starts beside other work.

To start the driver takes 0.2 s, and to make the context of a GPU 0.15 s. Both happen in C: threads
do it while modules are imported and the first function is traced. They are waited for at the end of
the process, which would end in the middle of the driver otherwise.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from threading import Thread
from typing import Any

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
    if not (driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), ordinal)):
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


def _driver() -> Any:
    """The library of the driver; None where there is none."""
    try:
        return ctypes.CDLL(_DRIVER)
    except OSError:
        return None
