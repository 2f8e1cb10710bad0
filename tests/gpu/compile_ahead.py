"""Compiles what this folder runs into the cache of kernels: most of a run is NVRTC's time.

Usage: python -O compile_ahead.py ARCH COMPILERS PROCESSES MARKERS. Each process runs a part of
the tests against the recording driver, and writes down the units that a device with this
architecture would be given. Meanwhile, as many processes compile these units, each one once. The
real run selects tests by MARKERS, and compiles COMPILERS units at a time, into which programs are
divided.

Nothing is launched, so results are wrong: `-O` leaves assertions out, and comparisons of NumPy and
of `tracegraph.testing` are replaced.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import pickle
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import lowering
import lowering.cuda.open_devices
import tracegraph.testing.agreement
from lowering.cuda.compilation.compile import cubin, custom_cubin
from lowering.testing.recording_backend import RecordingBackend, RecordingDevice
from lowering.testing.recording_driver import RecordingDriver

FOLDER = Path(__file__).parent

FILES = (
    *("alignment", "array_api", "check_indices", "contractions", "custom_derivatives"),
    *("custom_kernels", "derivatives", "exact_derivatives", "fourier", "gradients"),
    *("host_call_order", "invariants", "kernels", "launch_graph", "legalization"),
    *("linear_algebra", "linear_functions", "nodes", "one_kernel", "orders", "product_operands"),
    *("random", "scatters", "schedules", "sorting", "sparse", "special", "special_values"),
    *("stacks", "testing", "vmap", "writes"),
)
"""Files whose tests run many programs. Others use the driver and other libraries themselves, or
start processes."""

ONE_UNIT = ("alignment",)
"""Files all of whose tests have the kernels of one unit."""

SECONDS = 10
"""Time of one test, after which the next one is begun."""

SECONDS_IN_ALL = 60
"""Time of a process to write units down, after which it shows where it is and ends. The tests
compile what is left."""

POLL_SECONDS = 0.1
"""Time after which new units are looked for."""


@dataclass(frozen=True, slots=True)
class CompilingUnit:
    """A unit for NVRTC; one that a user wrote has a name."""

    source: str
    arch: str
    name: str | None = None

    def keep_in(self, folder: Path) -> None:
        """Write the unit down, in a file that two processes may write."""
        key = sha256(repr(self).encode()).hexdigest()
        if not (folder / key).exists():
            partial = folder / f"{key}.{multiprocessing.current_process().pid}"
            partial.write_bytes(pickle.dumps(self))
            partial.rename(folder / key)

    def compile(self) -> None:
        """Put its code into the cache. What does not compile is the business of a test."""
        try:
            if self.name is None:
                cubin(self.source, self.arch)
            else:
                custom_cubin(self.source, self.arch, self.name)
        except RuntimeError:
            pass


class NotingDevice(RecordingDevice):
    """A device that writes down what it is to compile, and runs nothing."""

    def __init__(self, folder: Path, arch: str, compilers: int) -> None:
        super().__init__(RecordingDriver())
        self.compilers = compilers
        self._folder, self._arch = folder, arch

    def compile(self, source: str) -> str:
        """The source, once it is written down."""
        CompilingUnit(source, self._arch).keep_in(self._folder)
        return source

    def compile_custom(self, source: str, name: str, include_paths: Sequence[str]) -> str:
        """The same for a unit that a user wrote. With headers nothing is kept in the cache."""
        if not include_paths:
            CompilingUnit(source, self._arch, name).keep_in(self._folder)
        return source


class NotingBackend(RecordingBackend):
    """Compiles Plans for such a device."""

    def __init__(self, device: NotingDevice) -> None:
        super().__init__()
        self.device = self._opened = device


class Ahead:
    """A plugin of pytest: one part of the tests, with devices that write units down."""

    def __init__(self, folder: Path, arch: str, compilers: int, part: int, parts: int) -> None:
        self.device = folder, arch, compilers
        self.part, self.parts = part, parts
        self.real_backend = lowering.backend

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
        """Each test has a backend of its own, and little time. What is for the host runs there."""
        noting = NotingBackend(NotingDevice(*self.device))

        def backend(device: str) -> Any:
            return noting if device.startswith("cuda") else self.real_backend(device)

        lowering.backend = backend  # type: ignore[assignment]
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


def note(folder: Path, arch: str, compilers: int, part: int, parts: int, markers: str) -> None:
    """Run one part; whether its tests pass does not matter."""
    faulthandler.dump_traceback_later(SECONDS_IN_ALL, exit=True)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, out_of_time)
    for name in ("allclose", "array_equal", "equal", "array_less", "array_almost_equal_nulp"):
        setattr(np.testing, f"assert_{name}", lambda *args, **options: None)
    tracegraph.testing.agreement.differences = lambda *args, **options: []  # type: ignore
    device = NotingDevice(folder, arch, compilers)
    lowering.cuda.open_devices.open_device = lambda ordinal: device
    names = [*(f"test_gpu_{name}.py" for name in FILES), "test_corpus_on_device.py", "test_ops.py"]
    files = [str(path) for path in FOLDER.rglob("test_*.py") if path.name in names]
    options = [
        "-m",
        markers,
        "-k",
        "not interrupt and not limit",
        "-q",
        "-q",
        "--no-header",
        "--tb=no",
    ]
    options += ["--assert=plain", "-p", "no:cacheprovider", "-p", "no:warnings"]
    options += ["-p", "no:faulthandler"]  # it takes the time limit away at the first failure
    pytest.main([*options, *files], plugins=[Ahead(folder, arch, compilers, part, parts)])


def main(arch: str, compilers: int, processes: int, markers: str) -> None:
    """Compile units while others are being written down."""
    spawning = multiprocessing.get_context("spawn")
    with TemporaryDirectory() as directory, ProcessPoolExecutor(processes, spawning) as pool:
        folder = Path(directory)
        noting = [
            spawning.Process(target=note, args=(folder, arch, compilers, part, processes, markers))
            for part in range(processes)
        ]
        for process in noting:
            process.start()
        seen: set[Path] = set()
        running, started = True, monotonic()
        while running:
            sleep(POLL_SECONDS)
            running = any(process.is_alive() for process in noting)
            if running and monotonic() - started > 2 * SECONDS_IN_ALL:
                for process in noting:
                    process.kill()  # where it has not ended itself
            new = {path for path in folder.iterdir() if not path.suffix} - seen
            for path in sorted(new, key=lambda path: path.stat().st_size, reverse=True):
                pool.submit(pickle.loads(path.read_bytes()).compile)
            seen |= new


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
