"""Transforms read arguments and write results where these are: whole executables, on the CPU."""

from __future__ import annotations

import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowering
import tracegraph
from lowering.cuda.calls import stream_graph
from lowering.cuda.libraries import recapture
from lowering.plan.target.overrides import override
from lowering.testing.recording_backend import RecordingBackend
from tests.emulation.emulated_driver import EmulatedDriver, on_device
from tests.emulation.emulator import COMPILER
from tests.fakes.foreign_arrays import Foreign
from tracegraph import tree

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


@pytest.fixture
def backend(tmp_path: Path) -> RecordingBackend:
    return RecordingBackend(EmulatedDriver(tmp_path), lacks=["conditional_nodes"])


def planned(function: Any, *given: Any, donate: Any = (), **options: Any) -> Any:
    with override(operands="in_place"):
        jitted = tracegraph.jit(function, device="cuda", donate_argnums=donate, **options)
        return jitted.lower(*given).plan


def numbers(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def assert_close(found: Any, wanted: Any) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, 1e-11, 1e-11)


FUNCTIONS = {
    "alone": lambda x, y: np.fft.fft2(x),
    "inverse": lambda x, y: (np.fft.ifft(x), np.fft.irfft(y), np.fft.irfft2(x), y),
    "real": lambda x, y: (np.fft.rfft(x.real), np.fft.rfft2(y.imag)),
    "several": lambda x, y: (np.fft.fft(x), np.fft.fft(y, axis=0), np.fft.fft(x.T), x + y),
    "chained": lambda x, y: np.fft.ifft2(np.fft.fft2(x) * np.fft.fft2(y)),
    "in a row": lambda x, y: np.fft.fft(np.fft.fft(np.fft.fft(x))),
    "read again": lambda x, y: (np.fft.fft(x), np.abs(np.fft.fft(x))),
    "parts": lambda x, y: (np.fft.fft(x[1:, 2:]), np.fft.fft(y[::2], axis=0), np.fft.fft(y[3])),
}


@pytest.mark.parametrize("donate", [(), (0,)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_call_transforms_what_is_at_its_addresses(
    name: str, donate: Any, backend: RecordingBackend
) -> None:
    function, kept = FUNCTIONS[name], []
    plan = planned(function, numbers(8, 8), numbers(8, 8), donate=donate)
    assert plan.copied == ()
    executable = backend.compile(plan)
    assert executable.plan.fallbacks == ()
    for seed in range(4):
        x, y = numbers(8, 8, seed=seed), numbers(8, 8, seed=seed + 10)
        given = on_device(backend, x, y)
        results = executable(given)
        kept += [*given, *results]
        expected = tree.leaves(function(x, y))
        for found, value in zip(results, expected, strict=True):
            assert_close(found.to_host(), value)
        if not donate:
            np.testing.assert_array_equal(given[0].to_host(), x)
        np.testing.assert_array_equal(given[1].to_host(), y)
    assert executable.stats()["bytes_copied"] == (4 * x.nbytes if plan.aliases else 0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [1, 4])
def test_addresses_that_come_back_in_any_order(
    seed: int, most: int, backend: RecordingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_graph, "MOST", most)
    monkeypatch.setattr(recapture, "KEPT", 3)
    choose, function = random.Random(seed), FUNCTIONS["several"]
    executable = backend.compile(planned(function, numbers(8, 8), numbers(8, 8)))
    values = [numbers(8, 8, seed=k) for k in range(5)]
    there, kept = on_device(backend, *values), []
    for turn in range(120):
        picked = [choose.randrange(1 + turn // 25) for _ in range(2)]
        results = executable([there[k] for k in picked])
        kept = [results, *kept[: choose.randrange(3)]]
        expected = tree.leaves(function(*(values[k] for k in picked)))
        for found, value in zip(results, expected, strict=True):
            assert_close(found.to_host(), value)
    assert executable.stats()["bytes_copied"] == 0


def test_small_arguments_by_value_and_by_address(backend: RecordingBackend) -> None:
    executable = backend.compile(planned(np.fft.fft, numbers(8)))
    for seed in range(4):
        x = numbers(8, seed=seed)
        given = x if seed % 2 else on_device(backend, x)[0]
        (result,) = executable([given])
        assert_close(result.to_host(), np.fft.fft(x))


def test_loops_that_the_host_drives(backend: RecordingBackend) -> None:
    def function(x: Any, n: Any) -> Any:
        y = tracegraph.fori_loop(0, n, lambda i, y: np.fft.ifft(y) * 3, np.fft.fft(x))
        return y, np.fft.fft2(x)

    with override(operands="in_place", loops="conditional"):
        plan = tracegraph.jit(function, device="cuda").lower(numbers(8, 8), 3).plan
    executable = backend.compile(plan)
    for n in (2, 0, 3):
        x = numbers(8, 8, seed=n)
        expected = function(x, n)
        for found, value in zip(
            executable([*on_device(backend, x), n]), tree.leaves(expected), strict=True
        ):
            assert_close(found.to_host(), value)


def test_exported_and_called_graphs(backend: RecordingBackend) -> None:
    executable = backend.compile(planned(FUNCTIONS["several"], numbers(8, 8), numbers(8, 8)))
    x, y = numbers(8, 8), numbers(8, 8, seed=1)
    given = on_device(backend, x, y)
    exported = executable.export_graph(given)
    executable(on_device(backend, y, x))
    driver = backend.device.driver
    made = driver.instantiate_given(exported.definition)
    driver.launcher(made)()
    for found, value in zip(exported.results, FUNCTIONS["several"](x, y), strict=True):
        assert_close(found.to_host(), value)


def test_without_updates_of_library_nodes(
    backend: RecordingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEGRAPH_FEATURES", "no-library-updates")
    executable = backend.compile(planned(FUNCTIONS["inverse"], numbers(8, 8), numbers(8, 8)))
    assert executable.plan.fallbacks
    for seed in range(3):
        x, y = numbers(8, 8, seed=seed), numbers(8, 8, seed=seed + 10)
        results = executable(on_device(backend, x, y))
        for found, value in zip(results, FUNCTIONS["inverse"](x, y), strict=True):
            assert_close(found.to_host(), value)


def test_arrays_of_others(backend: RecordingBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering, "backend", lambda device: backend)
    x = np.random.default_rng(0).standard_normal(100)
    with override(operands="in_place"):
        f = tracegraph.jit(np.fft.rfft, device="cuda:0")
        memory = backend.device.driver.allocate(x.nbytes)
        backend.device.driver.copy_to_device(memory.pointer, x)
        for offset in (0, 2, 4):
            found = f(Foreign(memory.pointer + 8 * offset, shape=(90,)))
            assert_close(np.asarray(found), np.fft.rfft(x[offset : offset + 90]))
    assert f.stats()["bytes_copied"] == 0


def test_streams_have_workspaces_of_their_own(
    backend: RecordingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lowering, "backend", lambda device: backend)
    with override(operands="in_place"):
        f = tracegraph.jit(lambda x: np.fft.fft2(np.fft.fft(x)), device="cuda:0")
        arrays = [numbers(8, 8, seed=k) for k in range(4)]
        there = [tracegraph.Array(buffer) for buffer in on_device(backend, *arrays)]
        for turn in range(12):
            x, given = arrays[turn % 4], there[turn % 4]
            with tracegraph.stream(7 + turn % 3) if turn % 3 else nullcontext():
                found = f(given)
            assert_close(np.asarray(found), np.fft.fft2(np.fft.fft(x)))
    assert f.stats()["bytes_copied"] == 0
