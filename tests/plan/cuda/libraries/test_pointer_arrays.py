"""Pointer arrays of products: which nodes write them, what waits for that, what calls update."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import lowering
import tracegraph
from lowering.cuda.calls.executable import CudaExecutable
from lowering.cuda.libraries.pointer_arrays import (
    ARRAYS_KERNEL,
    pointer_arrays,
    pointers,
    pointers_bytes,
)
from lowering.plan.calls.matrix_product import MatrixOperand, MatrixProduct
from lowering.plan.launch_graph import MOST_ARRAYS, moving_calls, pointer_parts
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import LibraryNode, walk
from lowering.plan.reports.explain import explain
from lowering.plan.target.overrides import override
from lowering.testing.recorded_objects import RecordedNode
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.fakes.foreign_arrays import Foreign
from tests.helpers.compiled import plan_of
from tracegraph import ArrayType

SQUARE = ArrayType("float32", (64, 64))


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> RecordingBackend:
    backend = RecordingBackend(RecordingDriver())
    monkeypatch.setattr(lowering, "backend", lambda device: backend)
    return backend


IN_PLACE = {"products": "library", "operands": "in_place"}
NODES = {"loops": "conditional", "branches": "conditional"}
planned = partial(plan_of, choices=IN_PLACE | NODES)


def product(x: Any, y: Any) -> Any:
    return x @ y


def power(a: Any, x: Any, n: Any) -> Any:
    return tracegraph.fori_loop(0, n, lambda _, v: a @ v, x)


def given(backend: RecordingBackend, executable: CudaExecutable) -> list[Any]:
    types = [b.type.strong() for b in executable.plan.inputs]
    return [backend.device.pool.buffer(t) if t.shape else 3 for t in types]


def roots(backend: RecordingBackend) -> list[RecordedNode]:
    (graph,) = backend.device.driver.graphs
    return [node for node in graph.nodes if node.name == ARRAYS_KERNEL]


def operations(backend: RecordingBackend) -> list[str]:
    return [call.operation for call in backend.device.driver.calls]


def test_a_call_updates_the_kernel_that_writes_the_arrays(backend: RecordingBackend) -> None:
    executable = backend.compile(planned(product, SQUARE, SQUARE))
    driver = backend.device.driver
    (graph,) = driver.graphs
    (root,) = roots(backend)
    assert [node.kind for node in graph.nodes] == ["kernel", "library"]
    assert root.dependencies == ()
    assert graph.nodes[1].dependencies == (root,)
    for _ in range(3):
        arguments = given(backend, executable)
        before = len(driver.calls)
        (result,) = executable(arguments)
        updated = [c.detail[0] for c in driver.calls[before:] if c.operation == "update_kernel"]
        assert set(updated) <= {ARRAYS_KERNEL}
        assert root.values[1::4] == [*(a.pointer for a in arguments), result.pointer]
    assert executable.stats()["bytes_copied"] == 0
    assert driver.count("instantiate") == 1


def test_the_plan_shows_what_loads_pointers() -> None:
    plan = planned(product, SQUARE, SQUARE)
    node, _ = plan.launch_graph.nodes
    assert (node.kind, node.graph_nodes) == ("pointers", ("kernel",))
    assert plan.launch_graph.edges == {(0, 1)}
    assert "load pointers to input[0], input[1], output[0]" in str(plan)
    assert "loads the addresses of matrices for 1 library call" in explain(plan)
    looped = planned(power, SQUARE, SQUARE, ArrayType("int64", ()))
    kinds = [node.kind for node in looped.launch_graph.nodes]
    assert (kinds.index("pointers"), kinds.index("while")) in looped.launch_graph.edges
    names = {b: Buffer("scratch", b.number, b.type) for b in plan.inputs}
    renamed = node.with_buffers(names)
    assert set(renamed.contents) == {"scratch[0], scratch[1], output[0]"}


def test_products_of_fixed_matrices_take_their_addresses(backend: RecordingBackend) -> None:
    plan = planned(lambda x, y: np.sin(x * 2 @ (y + 1)), SQUARE, SQUARE)
    (node,) = [n for n in plan.graph.nodes if isinstance(n, LibraryNode)]
    assert {b.space for b in node.accessed_buffers} == {"scratch"}
    backend.compile(plan)
    assert roots(backend) == []
    assert "multiply" in operations(backend)
    assert "multiply_by_pointer" not in operations(backend)


def test_the_run_before_a_capture_points_to_spare_memory(backend: RecordingBackend) -> None:
    backend.compile(planned(product, SQUARE, SQUARE))
    driver = backend.device.driver
    written = [c.detail for c in driver.calls if c.operation == "copy_to_device"]
    assert [nbytes for _, nbytes in written] == [24]  # three addresses, and none by the host later
    assert operations(backend).count("multiply_by_pointer") == 2


def test_loops_wait_for_what_writes_the_arrays_of_their_bodies(backend: RecordingBackend) -> None:
    plan = planned(power, SQUARE, SQUARE, ArrayType("int64", ()))
    assert plan.copied == ()
    executable = backend.compile(plan)
    (graph,) = backend.device.driver.graphs
    (root,) = roots(backend)
    (loop,) = [node for node in graph.nodes if node.kind == "while"]
    assert root in loop.behind()
    arguments = given(backend, executable)
    executable(arguments)
    matrices = {argument.pointer for argument in arguments[:2]}
    assert matrices.isdisjoint(v for n in graph.walk() if n not in graph.nodes for v in n.values)
    assert arguments[0].pointer in root.values


def test_without_updates_in_bodies_nothing_else_is_needed() -> None:
    backend = RecordingBackend(lacks=["body_updates"])
    plan = planned(lambda a, x: power(a, x, 1000), SQUARE, SQUARE)
    executable = backend.compile(plan)
    assert len(roots(backend)) == 1
    assert executable.plan.indirect == ()
    assert executable.plan.copied == ()
    assert executable.plan.fallbacks == ()


def test_exported_graphs_have_the_addresses_themselves(backend: RecordingBackend) -> None:
    executable = backend.compile(planned(product, SQUARE, SQUARE))
    arguments = given(backend, executable)
    before = len(backend.device.driver.calls)
    exported = executable.export_graph(arguments)
    made = backend.device.driver.calls[before:]
    assert "multiply_by_pointer" not in {call.operation for call in made}
    assert [node.kind for node in exported.definition.walk()] == ["library"]
    (node,) = [node for node in exported.slots.nodes if node.kind == "library"]
    whats = {slot.what for slot in node.slots}
    assert {"argument 0 f32[64,64]", "argument 1 f32[64,64]", "result 0 f32[64,64]"} <= whats


def test_each_stream_has_arrays_of_its_own(backend: RecordingBackend) -> None:
    with override(products="library", operands="in_place"):
        f = tracegraph.jit(product, device="cuda:0")
        x = tracegraph.asarray(np.ones((64, 64), np.float32), device="cuda:0")
        f(x, x)
        with tracegraph.stream(7):
            f(x, x)
    nodes = [node for graph in backend.device.driver.graphs for node in graph.nodes]
    one, other = (node for node in nodes if node.name == ARRAYS_KERNEL)
    assert one.values[0] != other.values[0]
    assert f.stats()["bytes_copied"] == 0


def test_matrices_that_are_not_aligned_are_copied(backend: RecordingBackend) -> None:
    with override(products="library", operands="in_place"):
        f = tracegraph.jit(product, device="cuda:0")
        memory = backend.device.driver.allocate(2 * SQUARE.nbytes)
        owned = tracegraph.owned(memory.pointer + 4, SQUARE, owner=memory, device="cuda")
        f(owned, Foreign(memory.pointer + 16, None, "<f4", SQUARE.shape))
        assert f.stats()["bytes_copied"] == SQUARE.nbytes
        f(owned, Foreign(memory.pointer + 8, None, "<f4", SQUARE.shape))
    assert f.stats()["bytes_copied"] == 3 * SQUARE.nbytes
    (root,) = roots(backend)
    assert all(address % 16 == 0 for address in root.values[1::4])
    assert memory.pointer + 4 not in root.values


def test_arrays_of_strided_batches() -> None:
    buffers = [Buffer("input", i, ArrayType("float64", (1000,))) for i in range(3)]
    left = MatrixOperand(buffers[0], 2, 0, 4, 1)
    right = MatrixOperand(buffers[1], 0, 12, 3, 1)
    target = MatrixOperand(buffers[2], 4, 6, 3, 1)
    call = MatrixProduct(5, 2, 3, 4, left, right, target, by_pointer=True)
    starts = dict(zip(buffers, (1000, 20000, 30000), strict=True))
    expected = [
        *[1016] * 5,
        *(20000 + 96 * i for i in range(5)),
        *(30032 + 48 * i for i in range(5)),
    ]
    found = pointers(call, starts.__getitem__)
    assert found.tolist() == expected
    assert found.nbytes == pointers_bytes(call)
    assert [each.count for each in pointer_arrays(call)] == [5, 5, 5]
    assert call.fixed_buffers == frozenset()


def test_many_products_are_written_by_several_kernels_of_one_text(
    backend: RecordingBackend,
) -> None:
    rows = ArrayType("float32", (70 * 64, 64))
    plan = planned(lambda x, y: tuple(x[i : i + 64] @ y for i in range(0, 4480, 64)), rows, SQUARE)
    nodes = moving_calls(plan.graph)
    assert [*nodes] == [node for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    assert [len(part) for part in pointer_parts(nodes)] == [32, 32, 6]
    backend.compile(plan)
    first, second, last = roots(backend)
    assert second.values[0] == first.values[0] + 8 * MOST_ARRAYS
    assert len(first.values) == len(last.values) == 1 + 4 * MOST_ARRAYS
    assert set(last.values[1 + 4 * 18 :]) == {0}
