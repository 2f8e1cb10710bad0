"""A device opened for use: its driver, its pool of memory, and code loaded for all Plans."""

from __future__ import annotations

import atexit
import threading
from functools import cache
from typing import Any

from lowering.cuda.compile import cubin
from lowering.cuda.interface import Driver
from lowering.cuda.memory import Pool
from lowering.cuda.probes import supports
from lowering.cuda.timeline import Timeline
from lowering.features import Feature


class OpenDevice:
    """What all executables on one device share."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.timeline = Timeline(driver)
        self.pool = Pool(self.timeline)
        self.name = f"cuda:{driver.ordinal}"
        self._kernels: dict[str, Any] = {}
        self._features: dict[Feature, bool] = {}

    def standalone_kernel(self, source: str, name: str) -> Any:
        """A kernel that belongs to no Plan, compiled at its first use."""
        if name not in self._kernels:
            module = self.driver.load(self.compile(source))
            self._kernels[name] = self.driver.kernel(module, name)
        return self._kernels[name]

    def supports(self, feature: Feature) -> bool:
        """Whether graphs have a feature; found by trying at the first question."""
        if feature not in self._features:
            if self.timeline.busy:
                self.timeline.settle()  # the try waits in the driver
            self._features[feature] = supports(feature, self.driver, self.compile)
        return self._features[feature]

    def compile(self, source: str) -> Any:
        """The cubin of `source` for this device."""
        return cubin(source, self.driver.arch)


_opening = threading.Lock()


def open_device(ordinal: int) -> OpenDevice:
    """The device with this number, opened at the first call.

    Raises:
        RuntimeError: there is no such GPU, or no driver.
    """
    with _opening:
        return _open(ordinal)


@cache
def _open(ordinal: int) -> OpenDevice:
    try:
        from lowering.driver import CudaDriver

        driver = CudaDriver(ordinal)
    except Exception as error:
        raise RuntimeError(
            f"cuda:{ordinal} cannot be used: {error}; without an NVIDIA GPU and its driver, use "
            'the device "host"'
        ) from error
    device = OpenDevice(driver)
    atexit.register(device.timeline.finish)
    return device
