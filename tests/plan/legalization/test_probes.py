"""Probes find what a device lacks, ask once, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import pytest

from lowering.cuda.open_devices import OpenDevice
from lowering.plan.target.features import Feature
from lowering.testing.recorded_objects import RecordedExecutable, RecordedNode
from lowering.testing.recording_driver import RecordingDriver

ALL: tuple[Feature, ...] = get_args(Feature)


class PartialDriver(RecordingDriver):
    """A driver that refuses some kinds of nodes, and may ignore or refuse body updates.

    It has one word of memory, which the kernel that takes an address and a value stores to.
    """

    def __init__(self, refused: Sequence[str] = (), updates: str = "work") -> None:
        super().__init__()
        self.refused = refused
        self.updates = updates
        self.word = 0

    def add_conditional(self, graph: Any, dependencies: Any, kind: Any, *rest: Any) -> Any:
        if kind in self.refused:
            raise RuntimeError("CUDA_ERROR_NOT_SUPPORTED")
        return super().add_conditional(graph, dependencies, kind, *rest)

    def add_memory(self, graph: Any, nbytes: int) -> Any:
        if "memory" in self.refused:
            raise RuntimeError("CUDA_ERROR_NOT_SUPPORTED")
        return super().add_memory(graph, nbytes)

    def instantiate(self, graph: Any, *, hosts: bool = False) -> RecordedExecutable:
        executable = super().instantiate(graph)
        self.passed = [list(n.values) for node in graph.nodes for b in node.bodies for n in b.nodes]
        return executable

    def _update(self, executable: RecordedExecutable, kernel: RecordedNode) -> None:
        super()._update(executable, kernel)
        if self.updates == "refused":
            raise RuntimeError("CUDA_ERROR_NOT_SUPPORTED")
        if self.updates == "work":
            self.passed = [list(kernel.values)]

    def _launch(self, executable: RecordedExecutable) -> None:
        super()._launch(executable)
        ((_, self.word),) = self.passed

    def copy_to_host(self, target: np.ndarray[Any, Any], pointer: int) -> None:
        target[...] = self.word


class Device(OpenDevice):
    driver: PartialDriver

    def compile(self, source: str) -> str:
        return source


@pytest.mark.parametrize("feature", ALL)
def test_a_complete_device_has_every_feature(feature: Feature) -> None:
    driver = PartialDriver()
    assert Device(driver).supports(feature)
    assert not [e for e in driver.live_executables if not e.closed]
    driver.graphs.clear()
    assert not driver.live_memory


@pytest.mark.parametrize(
    ("refused", "missing"),
    [
        (["if_else"], {"body_updates"}),
        (["memory"], {"memory_nodes"}),
        (["if_else", "memory"], {"body_updates", "memory_nodes"}),
    ],
)
def test_what_is_refused_is_missing(refused: list[str], missing: set[Feature]) -> None:
    device = Device(PartialDriver(refused))
    assert {feature for feature in ALL if not device.supports(feature)} == missing


@pytest.mark.parametrize(
    ("arch", "waits"), [("sm_75", False), ("sm_89", False), ("sm_90", True), ("sm_100", True)]
)
def test_edges_are_programmatic_where_code_can_wait(arch: str, waits: bool) -> None:
    driver = PartialDriver()
    driver.arch = arch
    assert Device(driver).supports("programmatic_edges") == waits


@pytest.mark.parametrize("updates", ["refused", "ignored"])
def test_updates_in_bodies_must_take_effect(updates: str) -> None:
    device = Device(PartialDriver(updates=updates))
    assert not device.supports("body_updates")
    assert device.supports("memory_nodes")


def test_a_device_is_asked_once() -> None:
    driver = PartialDriver()
    device = Device(driver)
    for _ in range(3):
        assert device.supports("memory_nodes")
    assert driver.count("instantiate") == 1


def test_no_memory_is_no_answer() -> None:
    class Full(PartialDriver):
        def allocate(self, nbytes: int) -> Any:
            raise MemoryError("full")

    device = Device(Full())
    with pytest.raises(MemoryError):
        device.supports("body_updates")
