"""Exported graphs are instantiated and updated as a whole; refusals name node and line."""

import gc
import weakref

import numpy as np
import pytest

import tracegraph
from lowering.errors import RefusedGraphError
from lowering.testing.call_log import InjectedError
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.programs.hand_made_plans import (
    ALL,
    VECTOR,
    diamond,
    memory_for,
    nested_loops,
    products,
    products_per_launch,
)
from tracegraph.errors import (
    ClosedError,
    ExportError,
    InstantiationError,
    NotInstantiatedError,
)
from tracegraph.staging.exported import UpdateResult


class Refusing(RecordingDriver):
    """A driver that refuses to instantiate graphs, at the node that `chosen` selects."""

    chosen = None

    def instantiate(self, graph, *, hosts=False):
        if self.chosen is None:
            return super().instantiate(graph)
        node = next(filter(self.chosen, graph.walk()), None)
        raise RefusedGraphError("this device does not support what the node does", node)


def exported(make, backend=None):
    backend = backend or RecordingBackend()
    made = make()
    compiled = backend.compile(made)
    return compiled.export_graph(memory_for(made, backend)), compiled, backend


def values(executable):
    return {value for passed in executable.values.values() for value in passed}


@pytest.mark.parametrize("make", [diamond, nested_loops, products], ids=lambda m: m.__name__)
def test_an_update_takes_over_addresses_and_owners(make):
    one, compiled, backend = exported(make)
    other = compiled.export_graph(memory_for(compiled.plan, backend))
    executable = one.instantiate()
    before = [weakref.ref(result) for result in one.results]
    result = one.update(other)
    assert result == UpdateResult(True)
    assert str(result) == "updated"
    (made,) = [e for e in backend.device.driver.live_executables if e.graph is other.definition]
    assert {array.pointer for array in other.results if array.type.size} <= values(made)
    backend.device.driver.graphs.clear()
    after = [weakref.ref(result) for result in other.results]
    del one, other, result
    gc.collect()
    assert not any(reference() for reference in before)
    assert all(reference() is not None for reference in after)
    executable.launch()
    executable.close()
    del made
    gc.collect()
    assert not any(reference() for reference in after)


def test_another_graph_is_refused_with_node_and_line():
    one, _, backend = exported(diamond)
    executable = one.instantiate()
    (made,) = [e for e in backend.device.driver.live_executables if e.graph is one.definition]
    passed = values(made)
    other, _, _ = exported(diamond, backend)
    other.definition.nodes[-1].kind = "memcpy"
    result = executable.update(other)
    assert not result
    assert result.reason == "the node was of another type"
    assert result.node.startswith("the kernel node tg_")
    assert result.line == "model.py:7"
    assert str(result) == f"refused at {result.node}, model.py:7: the node was of another type"
    assert values(made) == passed


def test_a_graph_of_another_function_is_refused_without_a_node():
    one, _, backend = exported(diamond)
    executable = one.instantiate()
    other, _, _ = exported(products, backend)
    result = one.update(other)
    assert result == UpdateResult(False, "the graphs have other nodes or edges")
    assert str(result) == "refused: the graphs have other nodes or edges"
    assert not executable.closed


def test_all_open_executables_are_updated_and_the_first_refusal_counts():
    one, compiled, backend = exported(diamond)
    first, second, third = (one.instantiate() for _ in range(3))
    third.close()
    other = compiled.export_graph(memory_for(compiled.plan, backend))
    assert one.update(other).ok
    assert backend.device.driver.count("update_whole") == 2
    assert not first.closed
    assert not second.closed
    strange, _, _ = exported(products, backend)
    assert not one.update(strange).ok


def test_an_executable_of_other_code_is_updated_too():
    one, compiled, backend = exported(diamond)
    foreign = backend.device.driver.instantiate(one.definition)
    other = compiled.export_graph(memory_for(compiled.plan, backend))
    assert one.update(other, foreign).ok
    assert foreign.graph is other.definition


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_every_node_has_a_name(make):
    try:
        given, _, _ = exported(make)
    except ExportError:
        pytest.skip("its launches report something")
    names = given.given.names
    assert len(names) == len(list(given.definition.walk()))
    for node in given.definition.walk():
        named = names.of(node)
        assert named is not None
        if node.kind == "kernel":
            assert named.name == node.name


@pytest.mark.parametrize("kind", ["kernel", "while", "if_else", "library", "memory"])
def test_a_refusal_to_instantiate_names_node_and_line(kind):
    backend = RecordingBackend(Refusing())
    make = {"library": products, "memory": products_per_launch}.get(kind, nested_loops)
    given, _, _ = exported(make, backend)
    backend.device.driver.chosen = lambda node: node.kind == kind
    text = {"library": "product 8x8x8", "memory": "allocate"}.get(kind, kind)
    with pytest.raises(InstantiationError, match=f"could not be instantiated at the .*{text}"):
        given.instantiate()


def test_a_refusal_of_a_call_names_node_and_line():
    driver = Refusing()
    driver.chosen = lambda node: node.kind == "kernel"
    with pytest.raises(
        InstantiationError, match=r"at the kernel node tg_a_[0-9a-f]+ at model.py:7: this"
    ):
        RecordingBackend(driver).compile(diamond())
    assert not driver.live_executables


def test_a_refusal_without_a_node_has_the_reason():
    driver = Refusing()
    driver.chosen = lambda node: False
    with pytest.raises(InstantiationError, match="could not be instantiated: this device"):
        RecordingBackend(driver).compile(diamond())


def test_a_launch_is_on_the_current_stream():
    given, _, backend = exported(diamond)
    executable = given.instantiate()
    executable.upload()
    executable.launch()
    with tracegraph.stream(8):
        executable.launch()
    calls = [c for c in backend.device.driver.calls if c.operation in ("upload", "launch")]
    assert [(c.operation, c.stream) for c in calls] == [("upload", 1), ("launch", 1), ("launch", 8)]


def test_a_closed_executable_is_of_no_use():
    given, compiled, backend = exported(diamond)
    executable = given.instantiate()
    executable.close()
    executable.close()
    assert executable.handle is None
    assert repr(executable) == "<ExportedExecutable of diamond, closed>"
    for act in (executable.launch, executable.upload, lambda: executable.update(given)):
        with pytest.raises(ClosedError):
            act()
    with pytest.raises(NotInstantiatedError, match="call that first, or pass the executable"):
        given.update(given)
    assert compiled.plan.name == "diamond"
    assert backend.device.driver.count("launch") == 0


def test_misuse():
    given, _, backend = exported(diamond)
    executable = given.instantiate()
    with pytest.raises(TypeError, match="update takes another exported graph, got NoneType"):
        executable.update(None)
    elsewhere, _, _ = exported(diamond)
    with pytest.raises(ValueError, match="cannot be updated by a graph of cuda:0"):
        given.update(elsewhere)
    assert backend.device.driver.count("update_whole") == 0


def test_an_update_that_fails_leaves_the_executable_as_it_was():
    one, compiled, backend = exported(diamond)
    other = compiled.export_graph(memory_for(compiled.plan, backend))
    executable = one.instantiate()
    driver = backend.device.driver
    (made,) = [e for e in driver.live_executables if e.graph is one.definition]
    driver.fail_at = len(driver.calls) + 1
    with pytest.raises(InjectedError):
        one.update(other)
    assert made.graph is one.definition
    assert one.update(other).ok
    executable.close()


def test_the_public_way(backend):
    compiled = tracegraph.jit(lambda x: 2 * x, device="cuda:0").lower(np.ones(1000)).compile()
    x, y = (tracegraph.Array(backend.device.pool.buffer(VECTOR)) for _ in range(2))
    one, other = compiled.export_graph(x), compiled.export_graph(y)
    executable = one.instantiate()
    assert one.update(other)
    executable.launch()
    assert backend.device.driver.calls[-1].operation == "launch"
    assert {x.data.pointer, y.data.pointer} & set(other.definition.nodes[-1].added) == {
        y.data.pointer
    }
