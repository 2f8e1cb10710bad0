"""Programs in C on a GPU: results have the bits that jit gives, however arguments are passed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph

SOURCE = Path(__file__).parents[2] / "fakes" / "c" / "run_arrays.c"
RNG = np.random.default_rng(5)


@pytest.fixture(scope="session")
def run_arrays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no compiler of C")
    program = tmp_path_factory.mktemp("c") / "run_arrays"
    folder = tracegraph.Exported.c_loader().parent
    subprocess.run([compiler, "-O1", f"-I{folder}", SOURCE, "-o", program, "-ldl"], check=True)
    return program


def written(folder: Path, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    from cuda.core import Device

    exported = tracegraph.export(function, *arguments)
    exported.save_flat(folder / "program.tgf", f"sm_{Device(0).arch}", **options)
    leaves = tracegraph.tree.leaves(arguments)
    for number, (leaf, type_) in enumerate(zip(leaves, exported.types[0], strict=True)):
        np.asarray(leaf, type_.dtype).tofile(folder / f"in{number}")


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def nested_loops(x: np.ndarray, y: np.ndarray) -> Any:
    def outer(state: Any) -> Any:
        inner = tracegraph.while_loop(
            lambda s: s[0] < 3,
            lambda s: (s[0] + 1, np.sort(s[1]) * 0.9 + y),
            (0, state[1]),
            schedule="conditional",
        )
        return state[0] + 1, inner[1]

    return tracegraph.while_loop(lambda s: s[0] < 4, outer, (0, x), schedule="conditional")


def branches(x: np.ndarray, which: int) -> Any:
    chosen = tracegraph.switch(
        which,
        [np.sort, np.cumsum, lambda x: x[::-1] * 2],
        x,
        schedule="conditional",
    )
    return chosen, tracegraph.cond(which > 1, np.sin, np.cumsum, x, schedule="conditional")


CONSTANT = normal(3000)

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "nested loops": (nested_loops, (normal(300), normal(300))),
    "branches": (branches, (normal(1 << 16), 1)),
    "one kernel": (
        lambda x, k: tracegraph.fori_loop(
            0, 30, lambda i, x: x * k + np.roll(x, 1), x, schedule="one_kernel"
        ),
        (normal(1 << 17), 0.25),
    ),
    "tree and constants": (
        lambda p: {"s": np.argsort(p["x"] + CONSTANT), "m": (p["x"] * p["k"]).sum()},
        ({"x": normal(3000), "k": np.arange(3, dtype=np.int32).sum()},),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_have_the_bits_of_jit(run_arrays: Path, tmp_path: Path, name: str) -> None:
    function, arguments = PROGRAMS[name]
    written(tmp_path, function, *arguments)
    found = subprocess.run([run_arrays, tmp_path], capture_output=True, text=True)
    assert not found.returncode, found.stdout
    expected = tracegraph.tree.leaves(tracegraph.jit(function, device="cuda")(*arguments))
    for number, result in enumerate(map(np.asarray, expected)):
        made = np.fromfile(tmp_path / f"out{number}", result.dtype)
        np.testing.assert_array_equal(made.reshape(result.shape), result)


def test_own_kernels_take_the_place_of_libraries(run_arrays: Path, tmp_path: Path) -> None:
    a, b = normal(96, 512), normal(512, 96)

    def solved(a: np.ndarray, b: np.ndarray) -> Any:
        return np.linalg.solve(a @ b + 200 * np.eye(96, dtype=a.dtype), b[:96]), np.fft.rfft2(a)

    written(tmp_path, solved, a, b, libraries=False)
    subprocess.run([run_arrays, tmp_path], check=True)
    for number, expected in enumerate(solved(a.astype(float), b.astype(float))):
        dtype = np.float32 if number == 0 else np.complex64
        made = np.fromfile(tmp_path / f"out{number}", dtype).reshape(expected.shape)
        np.testing.assert_allclose(made, expected, atol=1e-6 * 96**2)


def test_a_failed_check_is_told(run_arrays: Path, tmp_path: Path) -> None:
    with tracegraph.check_indices():
        written(tmp_path, lambda x, i: x[i] * 2, normal(10), np.int64(77))
    found = subprocess.run([run_arrays, tmp_path], capture_output=True, text=True)
    assert found.stdout.startswith("error 8: IndexRangeError: an index")


@pytest.mark.parametrize("schedule", ["conditional", "one_kernel"])
def test_loops_are_ended(run_arrays: Path, tmp_path: Path, schedule: Any) -> None:
    def endless(x: np.ndarray) -> Any:
        return tracegraph.while_loop(lambda s: s.sum() >= 0, lambda s: s + 0, x, schedule=schedule)

    written(tmp_path, endless, np.ones(10))
    command = [run_arrays, tmp_path, "stop"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert found.returncode == 1, found.stdout
    assert found.stdout.startswith("error 9: endless was stopped")
