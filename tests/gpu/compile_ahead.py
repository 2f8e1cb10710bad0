"""Compiles what this folder runs into the cache of kernels: most of a run is NVRTC's time.

Usage: python -O compile_ahead.py ARCH COMPILERS PART PARTS. Each of several processes runs one part
of the tests against the recording driver, and compiles what a device with this architecture would
be given. Nothing is launched, so results are wrong: `-O` leaves assertions out, and those of NumPy
are replaced. COMPILERS is how many units at a time the device of the real run compiles.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import hypothesis
import numpy as np
import pytest

import lowering
import lowering.cuda.open_devices
from lowering.cuda.compilation.compile import cubin, custom_cubin
from lowering.testing.recording_backend import RecordingBackend, RecordingDevice
from lowering.testing.recording_driver import RecordingDriver

FOLDER = Path(__file__).parent

FILES = (
    *("alignment", "array_api", "contractions", "custom_derivatives", "custom_kernels"),
    *("derivatives", "fourier", "gradients", "kernels", "launch_graph", "legalization"),
    *("linear_algebra", "one_kernel", "orders", "product_operands", "random", "scatters"),
    *("schedules", "sorting", "sparse", "special", "special_values", "stacks", "vmap"),
)
"""Files whose tests run many programs. What others test is the driver, or takes time."""

ONE_UNIT = ("alignment",)
"""Files all of whose tests have the kernels of one unit."""

SECONDS = 20
"""Time of one test, after which the next one is begun."""


SECONDS_IN_ALL = 120
"""Time of a process, which then shows where it is and ends. The tests compile what is left."""


class CompilingDevice(RecordingDevice):
    """A device that compiles for an architecture, and runs nothing."""

    def __init__(self, arch: str, compilers: int) -> None:
        super().__init__(RecordingDriver())
        self.compilers = compilers
        self._arch = arch

    def compile(self, source: str) -> str:
        """The source, once its code is in the cache."""
        cubin(source, self._arch)
        return source

    def compile_custom(self, source: str, name: str, include_paths: Sequence[str]) -> str:
        """The same for a unit that a user wrote."""
        custom_cubin(source, self._arch, name, include_paths)
        return source


class CompilingBackend(RecordingBackend):
    """Compiles Plans for such a device."""

    def __init__(self, arch: str, compilers: int) -> None:
        super().__init__()
        self.device = self._opened = CompilingDevice(arch, compilers)


class Ahead:
    """A plugin of pytest: one part of the tests, with devices that compile."""

    def __init__(self, arch: str, compilers: int, part: int, parts: int) -> None:
        self.device = arch, compilers
        self.part, self.parts = part, parts

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """The tests of this part, which run although there is no device."""
        items[:] = [item for item in items if self._part_of(item) == self.part]
        for item in items:
            item.own_markers = [m for m in item.own_markers if m.name != "skip"]

    def _part_of(self, item: pytest.Item) -> int:
        has_unit = item.path.stem.removeprefix("test_gpu_") in ONE_UNIT
        return crc32((item.path.stem if has_unit else item.nodeid).encode()) % self.parts

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        """Each test has a backend of its own, and little time."""
        backend = CompilingBackend(*self.device)
        lowering.backend = lambda device: backend  # type: ignore[assignment]
        signal.alarm(SECONDS)
        try:
            return (yield)
        finally:
            signal.alarm(0)


class OutOfTimeError(BaseException):
    """A test takes longer than what it compiles is worth."""


def out_of_time(*_: Any) -> None:
    """End the test that runs."""
    raise OutOfTimeError


def main(arch: str, compilers: int, part: int, parts: int) -> None:
    """Run one part; whether its tests pass does not matter."""
    faulthandler.dump_traceback_later(SECONDS_IN_ALL, exit=True)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, out_of_time)
    for name in ("allclose", "array_equal", "equal", "array_less", "array_almost_equal_nulp"):
        setattr(np.testing, f"assert_{name}", lambda *args, **options: None)
    hypothesis.settings.register_profile(
        "ahead", phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate], database=None
    )
    device = CompilingDevice(arch, compilers)
    lowering.cuda.open_devices.open_device = lambda ordinal: device
    names = [*(f"test_gpu_{name}.py" for name in FILES), "test_corpus_on_device.py", "test_ops.py"]
    files = [str(path) for path in FOLDER.rglob("test_*.py") if path.name in names]
    options = [
        "-k",
        "not interrupt and not limit",
        "-q",
        "-q",
        "--no-header",
        "--tb=no",
        "--assert=plain",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:warnings",
    ]
    pytest.main([*options, *files], plugins=[Ahead(arch, compilers, part, parts)])


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
