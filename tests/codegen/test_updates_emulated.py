"""Updates at indices that are data, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.cuda.compilation.compile import cubin
from lowering.plan.target.overrides import Choices, override
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.forced import scheduled
from tests.helpers.running import lowered
from tracegraph import grad, vmap
from tracegraph.dtypes import bfloat16

emulated = pytest.mark.skipif(COMPILER is None, reason="needs g++")

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


@emulated
@pytest.mark.parametrize("name", PROGRAMS)
def test_updates_are_those_of_the_host(name: str, plans: EmulatedPlans) -> None:
    expected = tracegraph.jit(PROGRAMS[name], device="host")(*ARGUMENTS)
    for seed in range(2):
        found = plans.run(name, *ARGUMENTS, order=Random(seed))
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


# updates that need an order, sorted by element

COUNT = 400
BINS = RANDOM.integers(-60, 60, COUNT)  # some are out of range, and some count from the end
FEW = np.where(RANDOM.random(COUNT) < 0.5, 7, BINS)  # half of them change one element


def in_order(method: str) -> Callable[..., Any]:
    def function(x: Any, i: Any, v: Any) -> Any:
        with tracegraph.deterministic():
            return [getattr(x.at[i], method)(v)]

    return function


def numbers(dtype: Any, *shape: int) -> Any:
    found = RANDOM.uniform(0.9, 1.1, shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * RANDOM.uniform(-0.1, 0.1, shape)
    return found.astype(dtype)


def rows_and_columns(x: Any, i: Any, v: Any) -> Any:
    with tracegraph.deterministic():
        rows = x.at[i].add(v)
        return [
            rows,
            x.at[:, i % 4].set(v[:50, :1]),
            rows.at[i].set(v),
            x.at[i, ::2].add(v[:, ::2]),
        ]


def of_two_axes(x: Any, i: Any, v: Any) -> Any:
    j = (i * 7) % 6 - 1  # 4 is out of range
    with tracegraph.deterministic():
        pairs = x.at[i.reshape(20, 20), j.reshape(20, 20)].add(v[:, 0].reshape(20, 20))
        return [pairs, pairs.at[i, j].set(v[:, 1]), x.T.at[j, i].add(v[:, 2])]


def repeated(x: Any, i: Any, v: Any) -> Any:
    def step(k: Any, x: Any) -> Any:
        x = tracegraph.cond(k % 2 == 0, lambda x: x.at[i].add(v), lambda x: x.at[i - 1].set(v), x)
        return x.at[i + k].add(x[i] * 0.5)

    with tracegraph.deterministic():
        return [tracegraph.fori_loop(0, 3, step, x)]


def in_lanes(x: Any, i: Any, v: Any) -> Any:
    with tracegraph.deterministic():
        one = vmap(lambda i, v: x.at[i].add(v))(np.stack([i, i[::-1]]), np.stack([v, v]))
        return [one, vmap(lambda x: x.at[i].set(v))(np.stack([x, x + 1]))]


def with_unsigned_indices(x: Any, i: Any, v: Any) -> Any:
    with tracegraph.deterministic():
        bytes_, words = i.astype(np.uint8), i.astype(np.uint64)
        return [x.at[bytes_].add(v), x.at[words].set(v), x.at[i.astype(np.int8)].add(v)]


FLOATS = ("float16", bfloat16, "float32", "float64", "complex64", "complex128")

SORTED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{
        f"{method} {np.dtype(dtype)}": (
            in_order(method),
            (numbers(dtype, 50), FEW, numbers(dtype, COUNT)),
        )
        for dtype in FLOATS
        for method in ("add", "multiply", "set")
    },
    "extremes of complex numbers": (
        lambda x, i, v: [x.at[i].min(v), x.at[i].max(v)],
        (numbers("complex64", 50), BINS, numbers("complex64", COUNT)),
    ),
    "rows": (rows_and_columns, (numbers("f4", 50, 5), BINS, numbers("f4", COUNT, 5))),
    "two axes": (of_two_axes, (numbers("f4", 50, 5), BINS, numbers("f4", COUNT, 5))),
    "bytes": (in_order("set"), (np.zeros(50, "i1"), FEW, RANDOM.integers(0, 99, COUNT, "i1"))),
    "repeated": (repeated, (numbers("f8", 50), BINS, numbers("f8", COUNT))),
    "lanes": (in_lanes, (numbers("f4", 50), BINS, numbers("f4", COUNT))),
    "unsigned": (with_unsigned_indices, (numbers("f4", 50), BINS, numbers("f4", COUNT))),
    "many elements": (
        in_order("add"),
        (numbers("f4", 70_000), BINS * 1500, numbers("f4", COUNT)),
    ),
}


@pytest.fixture(scope="module")
def sorted_plans(tmp_path_factory: pytest.TempPathFactory) -> EmulatedPlans:
    planned = partial(scheduled, chosen=Choices(updates="sorted"))
    return EmulatedPlans(SORTED, tmp_path_factory.mktemp("sorted"), planned)


@emulated
@pytest.mark.parametrize("name", SORTED)
def test_sorted_updates_have_the_bits_of_the_sequence(
    name: str, sorted_plans: EmulatedPlans
) -> None:
    function, arguments = SORTED[name]
    expected = tracegraph.jit(function, device="host")(*arguments)
    for seed in range(2):
        found = sorted_plans.run(name, *arguments, order=Random(seed))
        for got, wanted in zip(found, expected, strict=True):
            assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()


@pytest.mark.parametrize("dtype", [*FLOATS, "int8"], ids=str)
def test_sorted_updates_compile(dtype: Any) -> None:
    def of_all_kinds(x: Any, i: Any, v: Any) -> Any:
        updates = [in_order(method)(x[:, 0], i, v[:, 0]) for method in ("add", "multiply", "set")]
        return [*updates, in_order("add")(x, i, v), in_order("set")(x, i, v)]

    given = (numbers(dtype, 50, 3), BINS, numbers(dtype, COUNT, 3))
    with override(updates="sorted"):
        source = lowered(of_all_kinds, *given, device="cuda").source
        assert source.count("place_of = ") == (2 if dtype == "int8" else 5)
    assert len(cubin(source, "sm_90").code) > 0
