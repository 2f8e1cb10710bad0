"""A program with every kind of node, launched often: values, calls of the host, and memory held."""

from __future__ import annotations

import gc
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.held_memory import DEVICE_SLACK, HOST_SLACK, device_bytes, host_bytes
from tests.programs.every_kind import (
    CALLS,
    POSTS,
    PRINTS,
    QUESTIONS,
    VECTOR,
    Outside,
    arguments,
    program_of,
)

pytestmark = pytest.mark.usefixtures("fresh")

HELD = ("arrays", "arenas", "constants", "graph_bytes", "graphs")
"""What of `memory_stats` is the same whenever nothing runs."""


class Doubles:
    """Enqueues a memset, a copy and a kernel: what it writes is twice what it reads."""

    def __init__(self) -> None:
        from cuda.core import Program, ProgramOptions

        from lowering.cuda.open_devices import open_device

        text = 'extern "C" __global__ void doubled(double* y) { y[threadIdx.x] *= 2; }'
        options = ProgramOptions(arch=open_device(0).driver.arch)
        self.kernel = Program(text, "c++", options=options).compile("cubin").get_kernel("doubled")

    def __call__(self, stream: Any, x: Any, y: Any) -> None:
        from cuda.bindings import driver  # noqa: TID251 - in place of another library
        from cuda.core import LaunchConfig, Stream, launch

        (cleared,) = driver.cuMemsetD8Async(y.pointer, 0xFF, y.nbytes, stream.handle)
        (copied,) = driver.cuMemcpyDtoDAsync(y.pointer, x.pointer, x.nbytes, stream.handle)
        assert cleared == copied == driver.CUresult.CUDA_SUCCESS
        config = LaunchConfig(grid=1, block=y.size)
        launch(Stream.from_handle(stream.handle), config, self.kernel, np.uint64(y.pointer))


def outside_on_device() -> Outside:
    """A graph, a function to capture and events, where a GPU is."""
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    at = tracegraph.asarray(np.zeros(VECTOR.shape), device="cuda")
    exported = tracegraph.jit(lambda x: 2 * x, device="cuda").lower(at).compile().export_graph(at)
    return Outside(
        graph=exported.definition,
        at=at,
        out=exported.results,
        doubles=Doubles(),
        done=stream.record(),
        ready=stream.record(),
    )


class Lines(io.TextIOBase):
    """A file that counts lines, and keeps none."""

    count = 0

    def write(self, text: str) -> int:
        """Count the ends of lines."""
        self.count += text.count("\n")
        return len(text)


@contextmanager
def counted_lines() -> Iterator[Lines]:
    lines = Lines()
    with redirect_stdout(lines):
        yield lines


@dataclass
class Run:
    """The program on the device, its arguments and what they give, and what has happened."""

    outside: Outside
    run: Any
    given: Sequence[Any]
    expected: Sequence[Any]
    lines: Lines
    launches: int = 0
    last: Any = None

    @classmethod
    def of(cls, lines: Lines, **options: Any) -> Run:
        outside = outside_on_device()
        run = tracegraph.jit(program_of(outside), device="cuda", **options)
        given, expected = [], []
        for k in range(6):  # at more addresses than graphs are kept for
            x, a, branch = arguments(k)
            moved = [tracegraph.asarray(each, device="cuda") for each in (x, a)]
            given.append((*moved, branch))
            expected.append(program_of(Outside())(x, a, branch))
        lines.count = 0
        return cls(outside, run, given, expected, lines)

    def launch(self, count: int, every: int) -> None:
        """Launch it `count` times; compare results of each `every`-th launch and of the last."""
        for number in range(count):
            self.last = self.run(*self.given[self.launches % len(self.given)])
            self.launches += 1
            if number % every == 0 or number == count - 1:
                self.compare()
        gc.collect()

    def compare(self) -> None:
        expected = self.expected[(self.launches - 1) % len(self.expected)]
        for ours, theirs in zip(self.last, expected, strict=True):
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-9, atol=1e-9)

    def compare_counts(self) -> None:
        """Each launch has called what it calls."""
        outside, launches = self.outside, self.launches
        assert (outside.calls, outside.questions) == (launches * CALLS, launches * QUESTIONS)
        assert outside.semaphore.value == launches * POSTS
        assert self.lines.count == launches * PRINTS
        assert self.run.stats()["launches"] == launches


def held() -> dict[str, int]:
    stats = tracegraph.memory_stats("cuda")
    return {name: stats[name] for name in HELD}


@pytest.mark.parametrize("options", [{}, {"scratch": "per_launch"}], ids=["kept", "per_launch"])
def test_launches_compute_the_same_and_hold_the_same(options: dict[str, Any]) -> None:
    with counted_lines() as lines:
        run = Run.of(lines, **options)
        run.launch(12, every=1)
        before = held()
        run.launch(200, every=20)
        run.compare_counts()
    assert held() == before
    assert set(run.run.timings()) == {"linear algebra"}


@pytest.mark.soak
@pytest.mark.parametrize("options", [{}, {"scratch": "per_launch"}], ids=["kept", "per_launch"])
def test_a_hundred_thousand_launches_hold_memory_flat(options: dict[str, Any]) -> None:
    with counted_lines() as lines:
        run = Run.of(lines, **options)
        run.launch(5_000, every=500)
        before, host, device = held(), host_bytes(), device_bytes()
        run.launch(100_000, every=1_000)
        run.compare_counts()
    assert held() == before
    assert host_bytes() - host < HOST_SLACK
    assert device_bytes() - device < DEVICE_SLACK
    assert run.run.stats()["builds"] == 1
