"""Targets of files on a GPU: results have the bits that jit gives, wherever arguments are."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import cond, debug, errors, fori_loop, switch, while_loop

RNG = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def loops(x: Any, y: Any) -> Any:
    found = while_loop(
        lambda s: np.any(s[1] > 1e-3) & (s[0] < 30),
        lambda s: (s[0] + 1, np.sort(np.abs(s[1])) * 0.5 + y * 0),
        (0, x),
        schedule="conditional",
    )
    return fori_loop(0, 7, lambda i, c: np.cumsum(c) * 0.1 + i, found[1])


def branches(i: Any, x: Any) -> Any:
    chosen = switch(i, [np.sort, np.cumsum, lambda x: x[::-1] * 2], x, schedule="conditional")
    return cond(i > 1, np.sin, np.cumsum, chosen, schedule="conditional")


def libraries(a: Any, b: Any, z: Any) -> Any:
    solved = np.linalg.solve(a @ a.T + 100 * np.eye(100, dtype=np.float32), b)
    return solved, np.fft.ifft2(np.fft.fft2(z) * 2), np.einsum("ij,kj->ki", a, b.T)


def scalars(x: Any, k: Any, v: Any) -> Any:
    return x * k + v.sum(), np.sort(x - k)


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "loops": (loops, lambda: (normal(5000), normal(5000))),
    "branches": (branches, lambda: (np.int32(RNG.integers(3)), normal(20_000))),
    "libraries": (
        libraries,
        lambda: (normal(100, 100), normal(100, 40), normal(64, 64) + 1j * normal(64, 64)),
    ),
    "scalars": (scalars, lambda: (normal(3000), float(RNG.normal()), normal(3))),
}


def architecture() -> str:
    from cuda.core import Device

    return f"sm_{Device(0).arch}"


def bits(found: Any) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in tracegraph.tree.leaves(found)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_those_of_jit_wherever_arguments_are(name: str) -> None:
    function, make = PROGRAMS[name]
    data = bytes(tracegraph.export(function, *make(), targets=(architecture(),)))
    loaded = tracegraph.load(data, device="cuda")
    jitted, kept = tracegraph.jit(function, device="cuda"), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(6):
            arguments = make()
            if number % 2:
                arguments = tuple(
                    [tracegraph.asarray(x, device="cuda") if np.ndim(x) else x for x in arguments]
                )
            kept.append(tracegraph.asarray(normal(1000 * (number + 1)), device="cuda"))
            assert bits(loaded(*arguments)) == bits(jitted(*arguments))
            with tracegraph.stream(tracegraph.Stream(device="cuda")):
                assert bits(loaded(*arguments)) == bits(jitted(*arguments))
    assert loaded.jitted.stats()["traces"] == 0


def test_donation_prints_and_failures(capsys: pytest.CaptureFixture[str]) -> None:
    def function(x: Any) -> Any:
        debug.print("total {}", x.sum())
        return while_loop(lambda c: c.sum() < 100, lambda c: c * 2, x, max_steps=20)

    donating = tracegraph.jit(function, donate_argnums=0)
    ones = np.ones(4, np.float32)
    data = bytes(tracegraph.export(donating, ones, targets=(architecture(),)))
    loaded = tracegraph.load(data, device="cuda")
    x = tracegraph.asarray(ones, device="cuda")
    x = loaded(x)
    np.testing.assert_array_equal(x, np.full(4, 32, np.float32))
    with pytest.raises(errors.StepLimitError):
        np.asarray(loaded(tracegraph.asarray(-ones, device="cuda")))
    np.testing.assert_array_equal(loaded(ones), np.full(4, 32, np.float32))
    tracegraph.block_until_ready(x)
    assert capsys.readouterr().out.count("total") == 3
    assert loaded.jitted.stats()["traces"] == 0


CHILD = """
import sys
import numpy as np
import tracegraph

loaded = tracegraph.load(sys.argv[1], device="cuda")
found = np.asarray(loaded(np.arange(3000, dtype=np.float32), 0.5, np.ones(3, np.float32))[0])
unwanted = ("codegen", "planning", "scheduling", "fusion", "legalization", "native", "lower")
names = tuple(f"lowering.{name}." for name in unwanted)
with open("/proc/self/maps") as mapped:
    print([m for m in sys.modules if f"{m}.".startswith(names)], "libnvrtc" in mapped.read())
print(found.tobytes().hex())
"""


def test_another_process_runs_it_without_a_planner_and_a_compiler(tmp_path: Path) -> None:
    arguments = np.arange(3000, dtype=np.float32), 0.5, np.ones(3, np.float32)
    path = tmp_path / "scalars.tg"
    tracegraph.export(scalars, *arguments, targets=(architecture(),)).save(path)
    run = [sys.executable, "-c", CHILD, str(path)]
    found = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    expected = tracegraph.jit(scalars, device="cuda")(*arguments)[0]
    assert found == ["[] False", np.asarray(expected).tobytes().hex()]
