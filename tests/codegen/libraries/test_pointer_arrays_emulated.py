"""Products find arguments and results by pointer: whole executables, with kernels on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.nodes import LibraryNode, MemcpyNode, walk
from lowering.plan.target.overrides import override
from lowering.testing.recording_backend import RecordingBackend
from tests.cases.kernels.products import DTYPES, PRODUCTS, chosen, halves, power
from tests.emulation.emulated_driver import EmulatedDriver, on_device
from tests.emulation.emulator import COMPILER

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


def planned(function: Any, *given: Any, donate: Any = (), **choices: Any) -> Any:
    with override(products="library", operands="in_place", **choices):
        jitted = tracegraph.jit(function, device="cuda", donate_argnums=donate)
        return jitted.lower(*given).plan


@pytest.fixture
def backend(tmp_path: Path) -> RecordingBackend:
    return RecordingBackend(EmulatedDriver(tmp_path), lacks=["conditional_nodes"])


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, d) for n, name in enumerate(PRODUCTS) for i, d in enumerate(DTYPES, n) if i % 3 == 0],
    ids=lambda value: value if isinstance(value, str) else np.dtype(value).name,
)
def test_each_call_multiplies_what_is_at_its_addresses(
    name: str, dtype: Any, backend: RecordingBackend
) -> None:
    function, left, right = PRODUCTS[name]
    plan = planned(function, halves(0, dtype, *left), halves(1, dtype, *right))
    assert plan.copied == ()
    assert not any(isinstance(node, MemcpyNode) for node in plan.graph.nodes)
    executable = backend.compile(plan)
    kept = []
    for seed in range(3):
        x, y = halves(seed, dtype, *left), halves(seed + 10, dtype, *right)
        given = on_device(backend, x, y)
        results = executable(given)
        kept += [*given, *results]
        expected = tracegraph.tree.leaves(function(x, y))
        for found, value in zip(results, expected, strict=True):
            assert found.type.dtype == dtype
            np.testing.assert_array_equal(found.to_host(), value.astype(dtype))
    counts = executable.stats()
    assert counts["bytes_copied"] == 0
    assert counts["launches"] == 3


@pytest.mark.parametrize("donate", [(), 1])
def test_products_in_loops_read_the_arguments_of_the_call(
    donate: Any, backend: RecordingBackend
) -> None:
    types = [halves(0, float, 64, 64)] * 2
    plan = planned(power, *types, 3, donate=donate, loops="conditional")
    assert plan.copied == ()
    executable = backend.compile(plan)
    for n in (3, 0, 2):
        a, x = halves(n, float, 64, 64), halves(n + 10, float, 64, 64)
        (result,) = executable([*on_device(backend, a, x), n])
        np.testing.assert_array_equal(result.to_host(), np.linalg.matrix_power(a, n) @ x)
    assert executable.stats()["bytes_copied"] == (3 * x.nbytes if donate else 0)  # it is not given


def test_products_in_branches(backend: RecordingBackend) -> None:
    types = [halves(0, float, 64, 64)] * 2
    plan = planned(chosen, True, *types, branches="conditional")
    assert plan.copied == ()
    executable = backend.compile(plan)
    for p in (True, False, True):
        a, x = halves(p, float, 64, 64), halves(p + 10, float, 64, 64)
        (result,) = executable([p, *on_device(backend, a, x)])
        np.testing.assert_array_equal(result.to_host(), a @ x if p else x @ a.T)
    assert executable.stats()["bytes_copied"] == 0


def test_small_matrices_travel_by_value(backend: RecordingBackend) -> None:
    x, y = halves(0, float, 4, 4), halves(1, float, 4, 60)
    executable = backend.compile(planned(lambda x, y: x @ y, x, y))
    (small, _) = executable.plan.inputs
    for seed in range(2):
        x = halves(seed, float, 4, 4)
        (there,) = on_device(backend, y)
        (result,) = executable([x, there])
        np.testing.assert_array_equal(result.to_host(), x @ y)
        (result,) = executable([*on_device(backend, x), there])
        np.testing.assert_array_equal(result.to_host(), x @ y)
    assert small.type.nbytes == 128
    assert executable.stats()["bytes_copied"] == 0


def test_many_products_have_several_kernels_that_write_their_arrays(
    backend: RecordingBackend,
) -> None:
    def chain(x: Any, y: Any) -> Any:
        return tuple(np.transpose(x[8 * i : 8 * i + 8]) @ y for i in range(70))

    x, y = halves(0, float, 560, 8), halves(1, float, 8, 8)
    plan = planned(chain, x, y)
    products = [node for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    assert len(products) == 70
    executable = backend.compile(plan)
    results = executable(on_device(backend, x, y))
    for found, value in zip(results, chain(x, y), strict=True):
        np.testing.assert_array_equal(found.to_host(), value)
