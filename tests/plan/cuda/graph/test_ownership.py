"""What `compiled.slots` names is what the graph holds, to the byte."""

from itertools import pairwise

import pytest

from lowering.errors import FrozenSlotsError, UnownedAddressError
from lowering.plan.nests.rounding import round_up
from lowering.plan.owners import NodeSlots, Slot, SlotTable, size_of
from lowering.plan.target.hardware import ALIGNMENT
from lowering.testing.recording_backend import RecordingBackend
from tests.corpus import CASES
from tests.helpers.running import lowered
from tests.programs.hand_made_plans import ALL
from tracegraph.errors import ExportError

NODE = NodeSlots("kernel", "k0", "model.py:7", (Slot("module", 100),))


def assert_exact(table, report, plan):
    """The pieces that are named are disjoint, and make up all memory that the table holds.

    An arena is as large as another graph may need that shares it.
    """
    pieces = sorted((pointer, slot) for pointer, slot in table._named if slot.nbytes)
    for (first, slot), (second, _) in pairwise(pieces):
        assert first + slot.nbytes <= second, "two pieces overlap"
    memory = [owner for owner in table._owners if hasattr(owner, "pointer")]
    for owner in memory:
        end = owner.pointer + size_of(owner)
        inside = [slot for pointer, slot in pieces if owner.pointer <= pointer < end]
        named = sum(slot.nbytes for slot in inside)
        padded = sum(round_up(slot.nbytes, ALIGNMENT) for slot in inside)
        assert inside, "memory without a name"
        if {slot.what for slot in inside} <= {"arena", "library workspace"}:
            assert named <= size_of(owner)
        else:
            assert named <= size_of(owner) <= padded
    assert report.nbytes == sum(map(size_of, memory))
    expected = {f"constant {b.number} {b.type}": b.type.nbytes for b, _ in plan.constants}
    if not plan.per_launch:
        expected["arena"] = plan.arena_bytes
    named = {slot.what: slot.nbytes for slot in report.memory}
    assert {what: nbytes for what, nbytes in expected.items() if nbytes}.items() <= named.items()
    assert sorted(map(str, report.memory)) == sorted(str(slot) for _, slot in table._named)


def assert_named_by_addresses(graph, table, report):
    """Each node names the pieces that it points to, and no other."""
    names = {slot for _, slot in table._named}
    recorded = [node for node in graph.walk() if node.kind == "kernel"]
    reported = [node for node in report.nodes if node.kind == "kernel"]
    for node, slots in zip(recorded, reported, strict=True):
        held = {
            slot
            for pointer, slot in table._named
            if any(pointer <= value < pointer + slot.nbytes for value in node.added)
        }
        assert {slot for slot in slots.slots if slot in names} == held


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_a_hand_made_plan(make):
    backend = RecordingBackend()
    executable = backend.compile(make())
    (graph,) = backend.device.driver.graphs
    table = executable._default_graph.definition.slots
    assert_exact(table, executable.slots, executable.plan)
    assert_named_by_addresses(graph, table, executable.slots)
    needed = executable.memory()
    assert executable.slots.nbytes >= needed["constants"]


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_an_exported_graph(make):
    backend = RecordingBackend()
    executable = backend.compile(make())
    arguments = [backend.device.pool.buffer(b.type.strong()) for b in executable.plan.inputs]
    try:
        given = executable.export_graph(arguments)
    except ExportError:
        pytest.skip("its launches report something")
    graph = given.definition
    assert_named_by_addresses(graph, graph.tied, given.slots)
    expected = {f"argument {b.number} {b.type}": b.type.nbytes for b in executable.plan.inputs}
    named = {slot.what: slot.nbytes for slot in given.slots.memory}
    assert expected.items() <= named.items()


@pytest.mark.parametrize("name", list(CASES)[1::2])
def test_every_second_program(name):
    case = CASES[name]
    backend = RecordingBackend()
    executable = backend.compile(lowered(case.function, *case.arguments, device="cuda").plan)
    (graph,) = backend.device.driver.graphs
    table = executable._default_graph.definition.slots
    assert_exact(table, executable.slots, executable.plan)
    assert_named_by_addresses(graph, table, executable.slots)


def table_with(driver, *pieces):
    memory, table = driver.allocate(1024), SlotTable()
    table.retain(memory)
    for what, start, nbytes in pieces:
        table.name(what, memory.pointer + start, nbytes)
    return table, memory.pointer


def test_a_node_gets_the_pieces_that_its_addresses_are_in():
    driver = RecordingBackend().device.driver
    table, start = table_with(driver, ("one", 0, 100), ("two", 256, 8))
    table.attach(NODE, [start + 99, start + 256, start + 98, start + 100])
    (node,) = table.report("f").nodes
    assert node.slots == (Slot("module", 100), Slot("one", 100), Slot("two", 8))
    assert table.report("f").memory == (Slot("one", 100), Slot("two", 8))
    assert table.report("f").nbytes == 1024


def test_a_piece_is_inside_the_memory_of_one_owner():
    driver = RecordingBackend().device.driver
    table, start = table_with(driver)
    with pytest.raises(UnownedAddressError, match="large"):
        table.name("large", start, 1025)
    with pytest.raises(UnownedAddressError, match="outside"):
        table.name("outside", start + 1024, 1)
    table.freeze()
    with pytest.raises(FrozenSlotsError):
        table.name("late", start, 1)
