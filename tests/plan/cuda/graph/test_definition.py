"""Graphs, slot tables and captures take their steps in one order; every other order raises."""

import gc
import threading
import weakref
from contextlib import suppress
from functools import partial
from typing import get_args

import pytest

from lowering.codegen import unit_source
from lowering.cuda.compilation.modules import load_modules
from lowering.cuda.compilation.plan_code import PlanCode
from lowering.cuda.graph.definition import Definition, State
from lowering.cuda.graph.emit import emit
from lowering.cuda.graph.placement import place, upload
from lowering.cuda.interface import Launch
from lowering.cuda.libraries.capture_lock import CaptureLock
from lowering.errors import (
    BuildStateError,
    ClosedGraphError,
    EmittedTwiceError,
    ForeignNodeError,
    FrozenSlotsError,
    InstantiatedTwiceError,
    NestedCaptureError,
    NoExecutableError,
    NotOpenError,
    UnfinishedError,
    UnownedAddressError,
)
from lowering.plan.owners import NodeSlots, SlotTable
from lowering.testing.call_log import InjectedError
from lowering.testing.recorded_objects import RecordedGraphMemory, RecordedNode
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.programs.hand_made_plans import VECTOR, diamond, products, small_input
from tracegraph.errors import ClosedError, UpdateError

LAUNCH = Launch("kernel", (1, 1, 1), (1, 1, 1))
NODE = NodeSlots("kernel", "kernel", "model.py:7")
PRODUCT = NodeSlots("library", "product", "model.py:8")
MEMORY = RecordedGraphMemory(RecordedNode("memory", "allocate 256", ()), 4096, 256)


@pytest.fixture
def driver():
    return RecordingDriver()


@pytest.fixture
def definition(driver):
    return Definition(driver, SlotTable(), "step")


def add(definition, graph):
    return definition.add_kernel(graph, [], LAUNCH, [0], [False], NODE)


def built(driver, name="step"):
    definition = Definition(driver, SlotTable(), name)
    with definition.building() as graph:
        kernel = add(definition, graph)
    return definition, kernel


def test_a_definition_is_built_frozen_and_instantiated(driver, definition):
    assert definition.state == "new"
    with definition.building() as graph:
        assert definition.state == "open"
        add(definition, graph)
        definition.capture(graph, [], lambda: None, PRODUCT, [])
    assert definition.state == "frozen"
    assert [node.kind for node in definition.slots.report("step").nodes] == ["kernel", "library"]
    for count in (1, 2):
        definition.instantiate()
        assert definition.state == "instantiated"
        assert driver.count("instantiate") == count
    assert definition.size == 2


def test_a_complete_graph_keeps_its_frozen_slots_alive_by_itself(driver):
    slots = SlotTable()
    definition = Definition(driver, slots, "step")
    with definition.building() as graph:
        add(definition, graph)
        assert graph.tied is None
    assert graph.tied is slots
    assert slots.frozen
    executable = definition.instantiate()
    held = weakref.ref(slots)
    definition.close()
    driver.graphs.clear()
    del slots, definition, graph
    gc.collect()
    assert held() is not None
    driver.close(executable)
    gc.collect()
    assert held() is None


def test_a_graph_that_cannot_be_tied_is_given_up(driver, definition):
    driver.fail_at = 2  # behind "new_graph"
    with pytest.raises(InjectedError), definition.building():
        pass
    assert definition.state == "given up"
    assert driver.count("tie") == 1


def test_with_conditional_nodes_it_is_instantiated_once(driver, definition):
    with definition.building() as graph:
        condition, _ = driver.create_condition(graph)
        _, (body,) = definition.add_conditional(graph, [], "while", condition, 1, NODE)
        add(definition, body)
    definition.instantiate()
    with pytest.raises(InstantiatedTwiceError, match="step is instantiated already"):
        definition.instantiate()
    assert (driver.count("instantiate"), definition.size) == (1, 2)


def test_without_room_for_another_executable_the_first_goes_on(driver, definition):
    with definition.building() as graph:
        kernel = add(definition, graph)
    executable = definition.instantiate()
    driver.fail_at = len(driver.calls) + 1
    with pytest.raises(InjectedError):
        definition.instantiate()
    assert definition.state == "instantiated"
    definition.updater(executable, kernel)()
    driver.launcher(executable)()


def test_a_definition_is_not_built_twice():
    definition, _ = built(RecordingDriver())
    with pytest.raises(EmittedTwiceError, match="step"), definition.building():
        pass
    assert definition.state == "frozen"


def test_a_plan_is_not_emitted_into_a_definition_that_is_complete():
    backend = RecordingBackend()
    plan = diamond()
    unit = unit_source(plan)
    modules, _ = load_modules(unit.functions, backend.device)
    code = PlanCode(plan, unit, modules, {}, {}, pdl=True)
    constants = upload(plan, backend.device)
    default = backend.device.default_stream
    definition = Definition(backend.device.driver, SlotTable(), plan.name)
    with definition.building() as graph:
        placement = place(code, {}, constants, default, definition, graph, share=True, fixed={})
        emit(code, {}, placement, {}, definition, graph)
    with pytest.raises(FrozenSlotsError):
        emit(code, {}, placement, {}, definition, graph)
    assert len(graph.nodes) == len(plan.graph.nodes)
    assert definition.state == "frozen"


def test_nodes_are_added_only_while_it_is_open(definition):
    with pytest.raises(NotOpenError, match="it is new"):
        add(definition, None)
    with definition.building() as graph:
        pass
    for step in (
        lambda: add(definition, graph),
        lambda: definition.add_conditional(graph, [], "while", 1, 1, NODE),
        lambda: definition.capture(graph, [], lambda: None, PRODUCT, []),
    ):
        with pytest.raises(NotOpenError, match="it is frozen"):
            step()
    definition.close()
    with pytest.raises(NotOpenError, match="it is closed"):
        add(definition, graph)


def test_it_is_not_instantiated_before_it_is_complete(definition):
    with pytest.raises(UnfinishedError, match="it is new"):
        definition.instantiate()
    with definition.building(), pytest.raises(UnfinishedError, match="it is open"):
        definition.instantiate()
    definition.instantiate()


ADDING = ("add_kernel", "add_conditional", "add_memory", "add_free", "capture")

TURNS = {
    "building": "new",
    **dict.fromkeys(ADDING, "open"),
    "instantiate": "frozen",
    "give_away": "frozen",
    "updater": "instantiated",
}
"""The state that each step is taken in, of a definition with conditional nodes."""

OUT_OF_TURN = {
    **dict.fromkeys(ADDING, (NotOpenError, "it is {}")),
    **dict.fromkeys(["instantiate", "give_away"], (UnfinishedError, "it is {}")),
    "updater": (NoExecutableError, "it is {}"),
    "building": (EmittedTwiceError, "is emitted already"),
    ("instantiate", "instantiated"): (InstantiatedTwiceError, "is instantiated already"),
}


def in_state(state, definition, act):
    """Act on the graph of a definition that is in a state, and on its executable, if it has one."""
    if state == "new":
        return act(definition.driver.new_graph())
    with suppress(InjectedError), definition.building() as graph:
        condition, _ = definition.driver.create_condition(graph)
        definition.add_conditional(graph, [], "while", condition, 1, NODE)
        add(definition, graph)
        if state == "open":
            return act(graph)
        if state == "capturing":
            return definition.capture(graph, [], lambda: act(graph), PRODUCT, [])
        if state == "given up":
            raise InjectedError
    match state:
        case "instantiated":
            return act(graph, definition.instantiate())
        case "given away":
            definition.give_away()
        case "closed":
            definition.close()
    return act(graph)


def take(step, definition, graph, executable):
    match step:
        case "building":
            with definition.building():
                pass
        case "add_kernel":
            add(definition, graph)
        case "add_conditional":
            condition, _ = definition.driver.create_condition(graph)
            definition.add_conditional(graph, [], "while", condition, 1, NODE)
        case "add_memory":
            definition.add_memory(graph, MEMORY.nbytes, NODE)
        case "add_free":
            free = partial(definition.driver.add_free, graph, [], MEMORY)
            definition.add(NODE, "mem_free", free)
        case "capture":
            definition.capture(graph, [], lambda: None, PRODUCT, [])
        case "updater":
            definition.updater(executable, graph.nodes[-1] if executable else None)()
        case _:
            getattr(definition, step)()


@pytest.mark.parametrize("state", get_args(State))
@pytest.mark.parametrize("step", TURNS)
def test_each_step_is_taken_in_its_turn_or_refused_by_name(driver, definition, step, state):
    def act(graph, executable=None):
        assert definition.state == state
        if state == TURNS[step]:
            take(step, definition, graph, executable)
            return
        error, told = OUT_OF_TURN.get((step, state)) or OUT_OF_TURN[step]
        instantiated, graphs = driver.count("instantiate"), len(driver.graphs)
        with pytest.raises(error, match=told.format(state)):
            take(step, definition, graph, executable)
        assert definition.state == state
        assert (driver.count("instantiate"), len(driver.graphs)) == (instantiated, graphs)

    in_state(state, definition, act)


@pytest.mark.parametrize("failing", ["add_kernel", "instantiate"])
def test_after_a_failure_it_is_given_up(failing):
    reference = RecordingDriver()
    built(reference)[0].instantiate()
    number = 1 + [call.operation for call in reference.calls].index(failing)
    driver = RecordingDriver(fail_at=number)
    definition = Definition(driver, SlotTable(), "step")

    def build():
        with definition.building() as graph:
            add(definition, graph)
        definition.instantiate()

    with pytest.raises(InjectedError):
        build()
    assert definition.state == "given up"
    with pytest.raises(UnfinishedError, match="given up"):
        definition.instantiate()
    assert len(definition.slots.report("step").nodes) == 0


def test_a_failure_that_is_caught_while_building_still_gives_it_up(definition):
    def build():
        with definition.building() as graph:
            with pytest.raises(UnownedAddressError):
                definition.add_kernel(graph, [], LAUNCH, [4096], [True], NODE)
            add(definition, graph)

    with pytest.raises(NotOpenError, match="given up"):
        build()


def test_owned_memory_must_be_in_the_table(driver):
    memory = driver.allocate(256)
    table = SlotTable()
    table.retain(memory)
    table.attach(NODE, [memory.pointer, memory.pointer + 255])
    with pytest.raises(UnownedAddressError, match=r"kernel node kernel at model\.py:7.*0x"):
        table.attach(NODE, [memory.pointer + 256])
    assert len(table.report("step").nodes) == 1
    table.freeze()
    with pytest.raises(FrozenSlotsError):
        table.attach(NODE)
    with pytest.raises(FrozenSlotsError):
        table.retain(memory)


def test_what_is_closed_during_a_capture_stays_unusable(definition):
    def build():
        with definition.building() as graph:
            definition.capture(graph, [], definition.close, PRODUCT, [])

    with pytest.raises(NotOpenError):
        build()
    with pytest.raises(UnfinishedError):
        definition.instantiate()


def test_a_capture_is_not_begun_inside_another(driver, definition):
    def nested():
        driver.capture(driver.new_graph(), [], lambda: None)

    def build(issue):
        with definition.building() as graph:
            definition.capture(graph, [], issue, PRODUCT, [])

    with pytest.raises(NestedCaptureError):
        build(nested)
    assert driver.open_captures == 0
    driver.capture(driver.new_graph(), [], lambda: None)


def test_nodes_are_not_added_by_hand_while_a_library_adds_them(definition):
    def build():
        with definition.building() as graph:
            definition.capture(graph, [], lambda: add(definition, graph), PRODUCT, [])

    with pytest.raises(NotOpenError, match="it is capturing"):
        build()
    assert definition.driver.open_captures == 0


@pytest.mark.parametrize("raised", [KeyError, KeyboardInterrupt, GeneratorExit])
def test_no_capture_is_left_open_by_an_exception(driver, definition, raised):
    def fail():
        assert driver.open_captures == 1
        raise raised

    def build():
        with definition.building() as graph:
            definition.capture(graph, [], fail, PRODUCT, [])

    with pytest.raises(raised):
        build()
    assert definition.state == "given up"
    assert driver.open_captures == 0
    assert len(definition.slots) == 0


def test_a_build_that_is_collected_during_a_capture_is_given_up_and_the_capture_ends(driver):
    collected = Definition(driver, SlotTable(), "collected")
    definition = Definition(driver, SlotTable(), "step")

    def steps():
        with collected.building():
            yield

    def drop():
        nonlocal building
        assert driver.open_captures == 1
        del building
        gc.collect()
        assert collected.state == "given up"
        assert driver.open_captures == 1

    building = steps()
    next(building)
    with definition.building() as graph:
        definition.capture(graph, [], drop, PRODUCT, [])
        assert driver.open_captures == 0
    assert definition.state == "frozen"


def test_threads_take_turns_to_capture_and_one_thread_does_not_wait_for_itself():
    lock, order = CaptureLock(), []

    def other():
        with lock.hold():
            order.append("other")

    with lock.hold():
        thread = threading.Thread(target=other)
        thread.start()
        with pytest.raises(NestedCaptureError), lock.hold():
            pass
        order.append("first")
    thread.join()
    with lock.hold():
        assert order == ["first", "other"]


def test_a_closed_graph_is_neither_launched_nor_updated(driver):
    definition, kernel = built(driver)
    executable = definition.instantiate()
    driver.updater(executable, kernel)()
    driver.launcher(executable)()
    driver.close(executable)
    with pytest.raises(ClosedGraphError):
        driver.launcher(executable)()
    with pytest.raises(ClosedGraphError):
        driver.updater(executable, kernel)()
    assert (driver.count("launch"), driver.count("update_kernel")) == (1, 1)


def test_a_graph_is_not_updated_by_a_node_of_another(driver):
    definition, kernel = built(driver)
    other, foreign = built(driver, "other")
    executable = definition.instantiate()
    other.instantiate()
    with pytest.raises(ForeignNodeError, match=r"^a kernel node does"):
        definition.updater(executable, foreign)
    with pytest.raises(ForeignNodeError, match=r"^the kernel node kernel at model\.py:7 does"):
        other.updater(executable, foreign)
    definition.updater(executable, kernel)()
    driver.launcher(executable)()
    assert driver.count("update_kernel") == 1


def test_a_graph_is_not_updated_by_one_that_is_closed(driver):
    definition, kernel = built(driver)
    executable = definition.instantiate()
    definition.close()
    with pytest.raises(NoExecutableError, match=r"step has no executable .* it is closed"):
        definition.updater(executable, kernel)
    driver.launcher(executable)()


def test_a_graph_is_not_updated_by_one_of_another_topology(driver):
    definition, kernel = built(driver)
    larger = Definition(driver, SlotTable(), "larger")
    with larger.building() as graph:
        condition, _ = driver.create_condition(graph)
        _, (body,) = larger.add_conditional(graph, [], "while", condition, 1, NODE)
        inner = add(larger, body)
    executable = definition.instantiate()
    with pytest.raises(ForeignNodeError):
        definition.updater(executable, inner)
    larger.instantiate()
    with pytest.raises(ForeignNodeError):
        larger.updater(executable, inner)
    definition.updater(executable, kernel)()
    driver.launcher(executable)()


def test_every_error_of_a_state_is_one_class():
    for error in (ClosedGraphError(), NestedCaptureError(), FrozenSlotsError()):
        assert isinstance(error, BuildStateError)
        assert isinstance(error, RuntimeError)


def test_a_failed_update_names_the_node_and_the_line_and_the_next_call_works():
    backend = RecordingBackend()
    driver = backend.device.driver
    executable = backend.compile(diamond())
    x, y = (backend.device.pool.buffer(VECTOR) for _ in range(2))
    executable([x])
    launches = driver.count("launch")
    driver.fail_at = len(driver.calls) + 1
    told = r"graph of 'diamond' .* kernel node \w+ at .*model\.py:7.*: call \d+ fails as asked"
    with pytest.raises(UpdateError, match=told) as raised:
        executable([y])
    assert isinstance(raised.value.__cause__, InjectedError)
    assert driver.count("launch") == launches
    executable([y])
    assert y.pointer in driver.graphs[0].nodes[0].values
    assert driver.count("launch") == launches + 1
    assert driver.count("instantiate") == 1


def test_a_closed_executable_refuses_calls_and_holds_nothing():
    backend = RecordingBackend()
    driver = backend.device.driver
    executable = backend.compile(products())
    assert executable.slots.nbytes > 0
    report = executable.slots
    executable.close()
    executable.close()
    assert executable.slots.nodes == ()
    driver.graphs.clear()
    gc.collect()
    assert {node.kind for node in report.nodes} == {"kernel", "library", "while"}
    assert len(driver.live_executables) == 0
    with pytest.raises(ClosedError, match="closed"):
        executable([backend.device.pool.buffer(t) for t in executable.plan.in_types])


def test_two_builds_of_one_plan_are_two_definitions():
    backend = RecordingBackend()
    plan = small_input()
    one, two = backend.compile(plan), backend.compile(plan)
    one.close()
    two([3, backend.device.pool.buffer(VECTOR)])
    assert backend.device.driver.count("launch") == 1
