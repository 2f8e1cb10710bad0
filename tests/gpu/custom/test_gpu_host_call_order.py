"""C functions among kernels, loops, branches and library calls, on memory that the graph reads."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.cuda.open_devices import open_device
from lowering.plan.target.features import override
from tests.helpers.forced import FORCED
from tests.helpers.parameters import in_turn
from tests.programs.host_calls import COMPILER, PROGRAMS, Memory, N
from tracegraph import tree
from tracegraph.errors import FallbackWarning
from tracegraph.testing.ways import using

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++")

CALLS = 20


@pytest.fixture
def memory() -> Memory:
    """Memory that both the GPU and the C function read and write."""
    pinned = open_device(0).driver.allocate_host(8 * N)
    return Memory(pinned.bytes[: 8 * N].view(np.float64), pinned)


def on_host(name: str) -> tuple[list[Any], list[float]]:
    """What a program gives on the host, jitted: eagerly, one in it would run on the GPU."""
    memory = Memory()
    jitted = tracegraph.jit(lambda x: PROGRAMS[name](x, memory.call), device="host")
    found = jitted(memory.owned("host"))
    return [np.array(leaf) for leaf in tree.leaves(found)], memory.noted


def assert_right(name: str, memory: Memory) -> None:
    """Call the jitted program again and again, and compare what both sides have read."""
    wanted, noted = on_host(name)
    jitted = tracegraph.jit(lambda x: PROGRAMS[name](x, memory.call), device="cuda")
    x = memory.owned("cuda")
    for _ in range(CALLS):
        memory.clear()
        found = [np.array(leaf) for leaf in tree.leaves(jitted(x))]
        assert memory.noted == noted
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("name", "way"), in_turn(PROGRAMS, ["as_estimated", "both", "one_kernel"]))
def test_both_read_what_the_other_has_written(name: str, way: str, memory: Memory) -> None:
    with using(FORCED[way]):
        assert_right(name, memory)


@pytest.mark.parametrize("name", PROGRAMS)
def test_so_they_do_where_the_device_lacks_features(name: str, memory: Memory) -> None:
    lacking = {"body_updates": False, "library_updates": False, "memory_nodes": False}
    with override(**lacking), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        assert_right(name, memory)


@pytest.mark.parametrize("name", PROGRAMS)
def test_so_they_do_where_the_host_drives_loops(name: str, memory: Memory) -> None:
    with override(conditional_nodes=False), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        assert_right(name, memory)


def test_an_eager_call_waits_for_the_device(memory: Memory) -> None:
    x = memory.owned("cuda")
    for _ in range(CALLS):
        memory.clear()
        found = []
        for _ in range(5):
            found.append(x.sum())
            memory.call()
        assert [float(each) for each in found] == [0.0, N, 2.0 * N, 3.0 * N, 4.0 * N]
        assert memory.noted == [0.0, N, 2.0 * N, 3.0 * N, 4.0 * N]


@pytest.mark.parametrize("name", ["equal_reads", "between_conditional_loops"])
def test_an_exported_graph_has_the_call_in_its_place(
    name: str, memory: Memory, stream: Any
) -> None:
    x, (wanted, noted) = memory.owned("cuda"), on_host(name)
    function = tracegraph.jit(lambda x: PROGRAMS[name](x, memory.call), device="cuda")
    exported = function.lower(x).compile().export_graph(x)
    executable = exported.definition.instantiate()
    for _ in range(CALLS):
        memory.clear()
        executable.launch(stream)
        stream.sync()
        assert memory.noted == noted
        for one, other in zip(tree.leaves(exported.results), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-11)
