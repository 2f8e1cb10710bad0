"""How many GPUs there are."""

from __future__ import annotations

import ctypes
import sys

_DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def count_gpus() -> int:
    """The GPUs that this process sees."""
    if not _driver_sees_any():
        return 0
    try:
        from cuda.core import Device

        return len(Device.get_all_devices())
    except Exception:  # no package, no device: each raises its own class
        return 0


def _driver_sees_any() -> bool:
    """Whether there is a driver, and a GPU for it: `cuda.core`, which takes 0.1 s to import, is not
    asked without.
    """
    try:
        driver = ctypes.CDLL(_DRIVER)
        count = ctypes.c_int(0)
        failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError):
        return False
    return not failed and count.value > 0
