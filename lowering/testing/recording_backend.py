"""Recording backend: the CUDA backend against a driver that only logs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from lowering.backends.cuda_backend import CudaBackend
from lowering.cuda.open_devices import OpenDevice
from lowering.plan.target.features import Feature
from lowering.testing.recording_driver import RecordingDriver


class RecordingDevice(OpenDevice):
    """A device that compiles nothing, and has all features but those in `lacks`."""

    driver: RecordingDriver

    def __init__(self, driver: RecordingDriver, lacks: Collection[Feature] = ()) -> None:
        super().__init__(driver)
        self.compilers = 2
        self._lacks = frozenset(lacks)

    def supports(self, feature: Feature, code: Callable[[], Any] | None = None) -> bool:
        """Nothing runs, so nothing is tried."""
        return feature not in self._lacks

    def code_bytes(self, code: Any) -> int:
        """The length of the text."""
        return len(getattr(code, "source", code))

    def compile(self, source: str) -> str:
        """The source, in place of code."""
        return source

    def program_store(self) -> None:
        """There is no code to keep."""

    def kept(self, functions: Mapping[str, str]) -> list[tuple[list[str], Any]]:
        """Nothing is kept."""
        return []

    def note(self, functions: Iterable[str], source: str) -> None:
        """Nothing is kept."""

    def compile_custom(self, source: str, name: str, include_paths: Sequence[str]) -> str:
        """The source, in place of code."""
        return source


class RecordingBackend(CudaBackend):
    """Compiles Plans against a `RecordingDriver`, in `device.driver`."""

    name = "recording"

    def __init__(
        self, driver: RecordingDriver | None = None, lacks: Collection[Feature] = ()
    ) -> None:
        super().__init__()
        if driver is None:
            driver = RecordingDriver()  # type: ignore[abstract] # what it lacks is derived
        self.device = self._opened = RecordingDevice(driver, lacks)

    def _device(self) -> OpenDevice:
        return self.device
