"""Executables of recipes run whole programs, with kernels on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowering.cuda.recipe.targets import load_target
from lowering.testing.recording_backend import RecordingDevice
from tests.emulation.emulated_driver import EmulatedDriver, Module, on_device
from tests.emulation.emulator import COMPILER
from tests.emulation.text_code import stored, uncompiled
from tracegraph import ArrayType, jit

__all__ = ["uncompiled"]

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="needs g++"),
    pytest.mark.usefixtures("uncompiled"),
]


class TextDriver(EmulatedDriver):
    """Code is text in the bytes of cubins."""

    def load(self, code: Any) -> Module:
        return super().load(code if isinstance(code, str) else bytes(code.code).decode())


class Backend:
    def __init__(self, device: RecordingDevice) -> None:
        self.device = device


def loaded(folder: Path, function: Any, *types: Any, **options: Any) -> Any:
    device = RecordingDevice(TextDriver(folder))
    plan = jit(function, device="cuda", **options).lower(*types).plan
    found = load_target({"sm_90": stored(plan)}, device, lambda: None)
    assert not isinstance(found, str), found
    return found, Backend(device)


def test_results_are_those_of_numpy_at_any_addresses(tmp_path: Path) -> None:
    def function(x: Any, k: Any, v: Any) -> Any:
        return np.cumsum(x * k + TABLE), np.sort(v), (x @ x + v[0]) * k

    table = np.arange(500.0)
    TABLE[:] = table
    types = ArrayType("float64", (500,)), 1.0, ArrayType("float64", (7,))
    executable, backend = loaded(tmp_path, function, *types)
    for seed in range(3):
        x, v = (np.random.default_rng(seed).normal(size=n) for n in (500, 7))
        k = float(seed) + 0.5
        here, there = on_device(backend, x, v)
        by_address = executable([here, k, there])
        by_value = executable([x, k, v])
        for results in (by_address, by_value):
            found = [buffer.to_host() for buffer in results]
            for one, other in zip(found, function(x, k, v), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)
    assert executable.stats()["launches"] == 6


TABLE = np.zeros(500)


def test_an_argument_is_written_over(tmp_path: Path) -> None:
    wide = ArrayType("float32", (300,))
    executable, backend = loaded(tmp_path, lambda x: x * 2 + 1, wide, donate_argnums=0)
    x = np.arange(300, dtype=np.float32)
    (argument,) = on_device(backend, x)
    (result,) = executable([argument])
    assert executable.stats()["launches"] == 1
    np.testing.assert_array_equal(result.to_host(), x * 2 + 1)
    np.testing.assert_array_equal(argument.to_host(), x)  # it was not donated, and is a copy
