"""The driver starts in threads, beside other work; without one, nothing is asked or imported."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends import gpus

_MODE = "cuThreadExchangeStreamCaptureMode"


class Driver:
    """CUDA's driver: notes its calls, and whether they are made by other threads."""

    def __init__(self, fails: bool = False, full: bool = False) -> None:
        self.calls: list[str] = []
        self._fails, self._full, self._caller = fails, full, threading.get_ident()

    def cuInit(self, flags: int) -> int:
        assert threading.get_ident() != self._caller
        self.calls.append("init")
        return int(self._fails)

    def cuDeviceGet(self, device: object, ordinal: int) -> int:
        self.calls.append(f"device {ordinal}")
        return 0

    def cuDevicePrimaryCtxRetain(self, context: object, device: object) -> int:
        self.calls.append("context")
        return 0

    def cuStreamCreate(self, stream: Any, flags: int) -> int:
        stream._obj.value = 7
        return 0

    def cuMemAllocFromPoolAsync(self, memory: object, size: Any, pool: object, stream: Any) -> int:
        assert (size.value, stream.value) == (1, 7)
        self.calls.append("memory")
        return int(self._full)

    def cuMemFreeAsync(self, memory: object, stream: object) -> int:
        self.calls.append("free")
        return 0

    def cuStreamDestroy_v2(self, stream: Any) -> int:
        assert stream.value == 7
        self.calls.append("end")
        return 0

    def __getattr__(self, name: str) -> Any:
        assert name in ("cuCtxSetCurrent", "cuDeviceGetMemPool", "cuMemPoolSetAttribute", _MODE)
        return lambda *arguments: 0


@pytest.fixture(autouse=True)
def begun() -> Iterator[None]:
    gpus._begin_context.cache_clear()
    yield
    gpus._begin_context.cache_clear()


def ended() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("tracegraph opens"):
            thread.join()


def test_a_context_is_begun_once_for_each_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setattr(gpus, "_driver", lambda: driver)
    for device in ("host", "cuda:x", "mine:1"):
        gpus.open_early(device)
    assert driver.calls == []
    for device in ("cuda", "cuda:0", "cuda:2"):
        gpus.open_early(device)
        ended()
    grown = ["memory", "free", "end"]
    assert driver.calls == [
        "init",
        "device 0",
        "context",
        *grown,
        "init",
        "device 2",
        "context",
        *grown,
    ]


def test_a_full_gpu_is_no_error_before_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(full=True)
    monkeypatch.setattr(gpus, "_driver", lambda: driver)
    gpus.open_early("cuda")
    ended()
    assert driver.calls == ["init", "device 0", "context", "memory", "end"]


def test_what_fails_is_told_when_the_device_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(fails=True)
    monkeypatch.setattr(gpus, "_driver", lambda: driver)
    gpus.open_early("cuda:1")
    ended()
    assert driver.calls == ["init"]


def test_a_call_begins_to_open_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    monkeypatch.setattr("lowering.open_early", found.append)
    function = tracegraph.jit(lambda x: x + 1, device="host")
    function.lower(np.ones(3))
    assert found == []
    for _ in range(2):
        function(np.ones(3))
    assert found == ["host"]


def test_without_a_driver_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "_driver", lambda: None)
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    assert gpus.count_gpus() == 0
    gpus.open_early("cuda")


def test_a_driver_without_the_package_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setattr(gpus, "_driver", lambda: driver)
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    assert (gpus.count_gpus(), driver.calls) == (0, ["init"])
