"""Without conditional nodes, the host launches the parts of a graph as the conditions say."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.codegen import ConditionHandle, unit_source
from lowering.cuda.calls.executable import CudaExecutable
from lowering.plan.nodes import KernelNode, walk
from lowering.plan.plan import Plan
from lowering.plan.target.features import override
from lowering.testing.call_log import InjectedError
from lowering.testing.recorded_objects import RecordedExecutable, RecordedHostMemory, RecordedMemory
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.programs.hand_made_plans import diamond, nested_loops, products, small_input
from tracegraph.errors import TimeLimitError
from tracegraph.limits import time_limit


class ScriptedDriver(RecordingDriver):
    """A kernel sets its conditions to what a script says, and the nodes of each launch are noted.

    It sets those whose address in host memory is among its parameters.
    """

    def __init__(self, script: Iterable[int] = ()) -> None:
        super().__init__()
        self.script = list(script)
        self.words: list[RecordedHostMemory] = []
        self.launched: list[list[str]] = []

    def allocate_host(self, nbytes: int) -> RecordedHostMemory:
        self.words.append(super().allocate_host(nbytes))
        return self.words[-1]

    def _launch(self, executable: RecordedExecutable) -> None:
        super()._launch(executable)
        self.launched.append([node.name for node in executable.graph.nodes])
        for node in executable.graph.nodes:
            for address in node.values:
                self.store(address)

    def store(self, address: int) -> None:
        for memory in self.words:
            place = address - memory.pointer
            if 0 <= place < memory.bytes.size:
                memory.bytes[place : place + 4].view(np.uint32)[...] = self.script.pop(0)


def driven(plan: Plan, script: Iterable[int] = ()) -> tuple[CudaExecutable, ScriptedDriver]:
    driver = ScriptedDriver(script)
    return RecordingBackend(driver, lacks=["conditional_nodes"]).compile(plan), driver


def test_the_words_of_conditions_belong_to_the_slots():
    executable, driver = driven(nested_loops())
    kernels = [node for node in executable.slots.nodes if node.kind == "kernel"]
    told = {slot.nbytes for node in kernels for slot in node.slots if slot.what == "conditions"}
    assert told == {4 * nested_loops().conditions}
    executables = list(driver.live_executables)
    assert all(driver.words[0] in made.slots for made in executables)
    assert executables


def names(plan: Plan) -> dict[str, str]:
    """The functions of hand-made kernels by the name in the Plan."""
    unit = unit_source(plan)
    return {
        node.kernel.name: unit.kernels[node].name
        for node in walk(plan.graph)
        if isinstance(node, KernelNode)
    }


def run(plan: Plan, script: Iterable[int], arguments: Any = ()) -> list[list[str]]:
    executable, driver = driven(plan, script)
    executable(arguments)
    assert driver.script == []
    return driver.launched


def test_a_plan_without_control_flow_is_one_graph() -> None:
    executable, driver = driven(diamond())
    assert driver.count("new_graph") == driver.count("instantiate") == 1
    executable([np.ones(1000)])
    assert driver.count("launch") == 1
    assert driver.graphs[0].edges == diamond().graph.edges


def test_loops_and_branches_run_as_the_conditions_say() -> None:
    plan = nested_loops()
    of = names(plan)

    def launch(*kernels: str) -> list[str]:
        return [of[kernel] for kernel in kernels]

    outer = [launch("arm_outer")]
    skipped = run(plan, [0, 2])
    assert skipped == [*outer, launch("arm_switch"), launch("case2")]

    once = run(plan, [1, 2, 1, 0, 1, 0, 0])
    assert once == [
        *outer,
        launch("arm_inner"),
        *[launch("inner_body")] * 2,
        launch("arm_branch"),
        launch("then"),
        launch("again"),
        launch("arm_switch"),
        launch("case0"),
    ]

    otherwise = run(plan, [1, 0, 0, 0, 1])
    assert otherwise == [
        *outer,
        launch("arm_inner"),
        launch("arm_branch"),
        launch("again"),
        launch("arm_switch"),
        launch("case1"),
    ]


def test_kernels_store_each_condition_where_the_host_reads_it() -> None:
    plan = nested_loops()
    executable, driver = driven(plan, [1, 1, 0, 1, 0, 2])
    unit = unit_source(plan)
    handles: dict[int, set[int]] = {}
    planned = [node for node in walk(plan.graph) if isinstance(node, KernelNode)]
    built = [node for graph in driver.graphs for node in graph.nodes]
    for kernel, node in zip(planned, built, strict=True):
        parameters = unit.kernels[kernel].parameters
        for parameter, value in zip(parameters, node.values, strict=True):
            if isinstance(parameter, ConditionHandle):
                handles.setdefault(parameter.condition, set()).add(value)
    assert [len(addresses) for addresses in handles.values()] == [1] * 4
    assert len({address for (address,) in handles.values()}) == 4
    assert executable([])
    assert not driver.script


def test_no_graph_has_conditional_nodes_and_edges_stay_inside_their_graph() -> None:
    _, driver = driven(products())
    assert not driver.count("add_conditional")
    assert not driver.count("create_condition")
    for graph in driver.graphs:
        for node in graph.nodes:
            assert set(node.dependencies) <= set(graph.nodes)
    top, body, last = driver.graphs
    assert [n.kind for n in top.nodes] == ["kernel", "library", "library", "kernel"]
    assert top.edges == {(0, 1), (0, 2), (1, 2)}
    assert [n.kind for n in body.nodes] == ["library", "kernel"]
    assert [n.kind for n in last.nodes] == ["kernel"]


def test_calls_update_the_kernels_of_whichever_graph_holds_them() -> None:
    def power(x: Any, n: Any) -> Any:
        return tracegraph.fori_loop(0, n, lambda i, c: c * x, x)

    plan = tracegraph.jit(power, device="host").lower(np.ones(1000), 3).plan
    executable, driver = driven(plan, [1, 1, 0, 0])
    executable([np.ones(1000), 3])
    first = {c.detail[0] for c in driver.calls if c.operation == "update_kernel"}
    assert "tracegraph_load" in first
    assert len(first) > 1
    assert executable.stats()["launches"] == 1
    executable([np.ones(1000), 3])
    assert driver.script == []


def test_a_traced_program_of_every_construct() -> None:
    def everything(x: Any, n: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            y = tracegraph.cond(i > 1, lambda y: y + 1, lambda y: y * 2, y)
            return tracegraph.switch(i, [lambda y: -y, lambda y: y @ x, lambda y: y], y)

        return tracegraph.fori_loop(0, n, body, x)

    plan = tracegraph.jit(everything, device="cuda").lower(np.ones((64, 64)), 3).plan
    executable, driver = driven(plan, [1, 0, 1, 1, 1, 2, 0])
    (result,) = executable([np.ones((64, 64)), 3])
    assert result.type == plan.out_types[0].strong()
    assert driver.script == []


def test_the_time_limit_stops_a_loop_between_two_trips() -> None:
    executable, driver = driven(nested_loops(), [1])
    with pytest.raises(TimeLimitError), time_limit(0):
        executable([])
    assert driver.count("launch") == 1


def test_closing_frees_every_graph() -> None:
    executable, driver = driven(nested_loops())
    alive = list(driver.live_executables)
    assert len(alive) == driver.count("instantiate") > 1
    executable.close()
    assert all(e.closed for e in alive)
    with pytest.raises(RuntimeError, match="closed"):
        executable([])


def test_a_build_that_fails_anywhere_leaves_nothing() -> None:
    _, complete = driven(nested_loops())
    for number in range(1, len(complete.calls) + 1):
        driver = RecordingDriver(fail_at=number)
        with pytest.raises(InjectedError):
            RecordingBackend(driver, lacks=["conditional_nodes"]).compile(nested_loops())
        driver.graphs.clear()
        gc.collect()
        assert not driver.live_memory
        assert not driver.live_executables


def test_the_kernels_are_told_to_store_conditions() -> None:
    sources: list[str] = []

    class Loading(RecordingDriver):
        def load(self, code: Any) -> Any:
            sources.append(code)
            return super().load(code)

    RecordingBackend(Loading()).compile(nested_loops())
    RecordingBackend(Loading(), lacks=["conditional_nodes"]).compile(nested_loops())
    assert "#define TRACEGRAPH_STORED_CONDITIONS" not in sources[0]
    assert sources[1] == "#define TRACEGRAPH_STORED_CONDITIONS\n" + sources[0]


def test_the_override_chooses_the_host() -> None:
    driver = ScriptedDriver([0, 0])
    with override(conditional_nodes=False):
        executable = RecordingBackend(driver).compile(nested_loops())
    executable([])
    assert not driver.count("add_conditional")
    assert isinstance(driver.allocate(1), RecordedMemory)


def test_small_inputs_are_written_before_everything_else() -> None:
    executable, driver = driven(small_input())
    executable([np.int64(4), np.ones(1000)])
    assert driver.launched[0][0] == "tracegraph_load"
