"""Updates at indices that are data, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from emulator import COMPILER
from plan_emulator import EmulatedPlans

import tracegraph
from tracegraph import grad, vmap

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

RANDOM = np.random.default_rng(0)
X = RANDOM.integers(-9, 10, 700).astype(np.float32)
V = RANDOM.integers(-9, 10, 500).astype(np.float32)
I = RANDOM.permutation(700)[:500]
I[100:150] = 900  # dropped


def unique(method: str) -> Callable[..., Any]:
    return lambda x, i, v: [getattr(x.at[i], method)(v, unique=True)]


def unique_in_a_loop(x: Any, i: Any, v: Any) -> Any:
    def step(k: Any, x: Any) -> Any:
        return x.at[i - k].add(v, unique=True)

    return [tracegraph.fori_loop(0, 4, step, x)]


def read_uniquely(x: Any, i: Any, v: Any) -> Any:
    return grad(lambda x: (x.at[i[:90]].get(unique=True) * v[:90]).sum())(x)


PROGRAMS: dict[str, Callable[..., Any]] = {
    **{f"unique {m}": unique(m) for m in ("set", "add", "multiply", "min", "max")},
    "unique in a loop": unique_in_a_loop,
    "unique in lanes": lambda x, i, v: [
        vmap(lambda i: x.at[i].add(v, unique=True))(np.stack([i, i[::-1]]))
    ],
    "gradient of unique reads": lambda x, i, v: [read_uniquely(x, i, v)],
}
ARGUMENTS = (X, I, V)


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    programs = {name: (function, ARGUMENTS) for name, function in PROGRAMS.items()}
    return EmulatedPlans(programs, tmp_path_factory.mktemp("updates"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_updates_are_those_of_the_host(name: str, plans: EmulatedPlans) -> None:
    expected = tracegraph.jit(PROGRAMS[name], device="host")(*ARGUMENTS)
    for seed in range(2):
        found = plans.run(name, *ARGUMENTS, order=Random(seed))
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
