"""Kernels of users in Plans and in graphs: nodes, parameters, owners, addresses, failures."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.cuda.interface import Launch
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.reports.explain import explain
from lowering.plan.target.overrides import override
from lowering.testing.call_log import InjectedError
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.cases.custom_kernels import (
    N,
    Program,
    each_program,
    in_branch,
    in_fori,
    in_while,
    incremented,
    once,
    saxpy,
    updated,
    updated_in_a_loop,
)
from tests.helpers.compiled import plan_of
from tests.helpers.plans import nodes_of
from tracegraph import errors

V = np.linspace(0, 2, N, dtype=np.float32)
X = np.arange(float(N))


@each_program
def test_each_call_is_one_kernel_node(program: Program) -> None:
    plan = plan_of(program.function, *program.arguments)
    backend = RecordingBackend()
    executable = backend.compile(plan)
    (graph,) = backend.device.driver.graphs
    nodes = nodes_of(plan, CustomKernelNode)
    assert nodes
    recorded = [node for node in graph.walk() if node.launch is not None]
    for node in nodes:
        code = node.code
        assert code is not None
        alike = [r for r in recorded if r.name == code.entry and r.launch.grid == node.launch.grid]
        assert any(len(r.values) == len(node.parameters) for r in alike)
        assert all(not r.pdl for r in alike)
    assert {node.name for node in nodes} <= {node.name for node in executable.slots.nodes}
    for node in nodes:
        assert node.text in str(plan)
        assert (
            node.title
            in tracegraph.jit(program.function, device="cuda").lower(*program.arguments).dot()
        )


def test_parameters_are_pointers_values_and_outputs() -> None:
    plan = plan_of(once, V, V)
    (node,) = nodes_of(plan, CustomKernelNode)
    backend = RecordingBackend()
    backend.compile(plan)
    (graph,) = backend.device.driver.graphs
    (recorded,) = [r for r in graph.walk() if r.name == "lif"]
    v, current, leak, n, after, spiked = recorded.values
    assert leak == int(np.float32(0.5).view(np.uint32))
    assert n == N
    assert current == 0  # an argument, whose address calls bring
    assert len({v, after, spiked}) == 3
    assert recorded.launch == Launch("lif", (8, 1, 1), (128, 1, 1))
    assert node.name == "lif"


def test_arguments_at_new_addresses_are_patched() -> None:
    driver = RecordingDriver()
    executable = RecordingBackend(driver).compile(plan_of(lambda x: incremented(x[:100]), X))
    first, second = (np.full(N, value) for value in (1.0, 2.0))
    earlier = executable.launch([first])
    (node,) = [node for graph in driver.graphs for node in graph.walk() if node.kind == "kernel"]
    before = list(node.values)
    kept = executable.launch([second])
    assert driver.count("update_kernel") > 0
    assert node.values[1] != before[1]
    assert node.values[1] == kept[0].pointer != earlier[0].pointer


def test_an_output_takes_the_place_of_what_is_not_needed_any_more() -> None:
    (node,) = nodes_of(plan_of(lambda x, y: saxpy(2.0, x, y + 1), X, X), CustomKernelNode)
    assert node.outputs == (node.arguments[1],)
    assert node.outputs[0].space == "output"
    plan = plan_of(updated, X, X)  # y is used later: it is copied
    assert [type(each).__name__ for each in plan.graph.nodes] == [
        "KernelNode",
        "CustomKernelNode",
        "KernelNode",
    ]


def test_donated_arguments_are_updated_in_place() -> None:
    plan = plan_of(lambda x, y: saxpy(2.0, x, y), X, X, donate_argnums=1)
    (node,) = plan.graph.nodes
    assert plan.aliases == {0: 1}
    assert node.writes == {plan.inputs[1]}
    once = {"loops": "conditional"}  # and not some steps in an iteration
    plan = plan_of(updated_in_a_loop, X, X, donate_argnums=1, choices=once)
    (node,) = nodes_of(plan, CustomKernelNode)
    assert node.writes == {plan.inputs[1]}
    assert plan.aliases == {0: 1}


def test_a_loop_updates_its_carry_in_place() -> None:
    plan = plan_of(updated_in_a_loop, X, X, choices={"loops": "conditional"})
    (loop,) = [node for node in plan.graph.nodes if isinstance(node, WhileNode)]
    kinds = [node.kind for node in loop.body.nodes]
    assert kinds == ["custom kernel", "kernel"]  # and the kernel counts steps


@pytest.mark.parametrize(("steps", "copies"), [(50, 25), (49, 7), (47, 1)])
def test_a_loop_whose_steps_are_counted_makes_several_in_an_iteration(
    steps: int, copies: int
) -> None:
    """A kernel may not run on values that are not used: none of the copies is skipped."""

    def looped(x: Any) -> Any:
        return tracegraph.fori_loop(0, steps, lambda _, x: incremented(x), x)

    plan = plan_of(looped, X)
    (loop,) = [node for node in plan.graph.nodes if isinstance(node, WhileNode)]
    kernels = [node for node in loop.body.nodes if isinstance(node, CustomKernelNode)]
    assert len(kernels) == copies
    with pytest.raises(errors.UnschedulableError, match="kernel incremented inside"):
        plan_of(
            lambda x, n: tracegraph.fori_loop(0, n, lambda _, x: incremented(x), x, unroll=2), X, 5
        )


@pytest.mark.parametrize("f", [in_fori, in_while])
def test_a_loop_with_one_is_no_single_kernel(f: Callable[..., Any]) -> None:
    with override(loops="one_kernel"):
        plan = plan_of(f, V, V)
    assert any(isinstance(node, WhileNode) for node in plan.graph.nodes)
    assert "kernel lif inside" in explain(plan)


def test_a_schedule_that_is_pinned_says_what_stands_in_the_way() -> None:
    def f(x: Any) -> Any:
        return tracegraph.fori_loop(0, 50, lambda i, x: incremented(x), x, schedule="one_kernel")

    with pytest.raises(errors.UnschedulableError, match="kernel incremented inside"):
        plan_of(f, X[:64])


@pytest.mark.parametrize("choice", ["predicated", "conditional"])
def test_a_branch_with_one_stays_a_node(choice: Any) -> None:
    with override(branches=choice):
        plan = plan_of(in_branch, V, V)
    assert [node.kind for node in plan.graph.nodes].count("if_else") == 1


def test_the_source_has_each_kernel_once() -> None:
    lowered = tracegraph.jit(lambda x: incremented(incremented(x[:100])) * 2, device="cuda").lower(
        X
    )
    assert lowered.source.count("y[threadIdx.x] = helper(x[threadIdx.x]);") == 1
    assert "// kernel incremented (custom_kernels.py:" in lowered.source


def test_nodes_of_one_unit_share_a_module() -> None:
    driver = RecordingDriver()
    f = lambda x: incremented(incremented(x[:100])) + saxpy(1.0, x, x)[:100]  # noqa: E731
    RecordingBackend(driver).compile(plan_of(f, X))
    assert driver.count("load") == 3  # the Plan's unit and two of users


@each_program
def test_a_build_that_fails_anywhere_leaves_nothing(program: Program) -> None:
    plan = plan_of(program.function, *program.arguments)
    driver = RecordingDriver()
    RecordingBackend(driver).compile(plan)
    for number in range(1, len(driver.calls) + 1):
        failing = RecordingDriver(fail_at=number)
        with pytest.raises(InjectedError):
            RecordingBackend(failing).compile(plan)
        failing.graphs.clear()
        gc.collect()
        assert len(failing.live_memory) == 0
        assert len(failing.live_executables) == 0


# launches


@dataclass
class Info:
    size: int


class Compiled:
    """Like a cuda.core.Kernel."""

    handle = 1

    def __init__(self, *sizes: int) -> None:
        self.arguments_info = [Info(size) for size in sizes]


def compiled_kernel(handle: Compiled, **options: Any) -> Any:
    given = {"grid": 1, "block": 64, "scalars": {"a": "float32"}, **options}
    return tracegraph.kernel(handle, out=lambda x, a: x, **given)(lambda x, a: x * a)


def test_a_compiled_kernel_lives_as_long_as_the_graph() -> None:
    handle = Compiled(8, 4, 8)
    kernel = compiled_kernel(handle)
    compiled = tracegraph.jit(lambda x: kernel(x, 2.0), device="cuda").lower(X)
    backend = RecordingBackend()
    executable = backend.compile(compiled.plan)
    (graph,) = backend.device.driver.graphs
    (node,) = graph.nodes
    assert node.launch.kernel is handle
    assert handle in graph.tied
    assert "compiled kernel" in str(executable.slots)


@pytest.mark.parametrize("sizes", [(), (8, 8), (8, 8, 8), (8, 4, 8, 8)])
def test_a_compiled_kernel_with_other_parameters(sizes: tuple[int, ...]) -> None:
    kernel = compiled_kernel(Compiled(*sizes))
    plan = plan_of(lambda x: kernel(x, 2.0), X)
    with pytest.raises(errors.KernelLaunchError, match=f"has {len(sizes)} parameters") as caught:
        RecordingBackend().compile(plan)
    assert "float a, double* out0" in str(caught.value)
    assert "called at test_custom_kernels.py:" in str(caught.value)


def test_attributes_of_launches() -> None:
    kernel = compiled_kernel(
        Compiled(8, 4, 8),
        grid=(4, 2),
        block=(8, 4, 2),
        cluster=2,
        shared_memory=lambda x, a: x.nbytes,
        cooperative=True,
    )
    backend = RecordingBackend()
    plan = plan_of(lambda x: kernel(x, 2.0), X)
    backend.compile(plan)
    ((node,),) = [graph.nodes for graph in backend.device.driver.graphs]
    expected = Launch(node.launch.kernel, (4, 2, 1), (8, 4, 2), 8 * N, True, (2, 1, 1))
    assert node.launch == expected
    text = "4x2 blocks of 8x4x2 threads, clusters of 2, 8000 shared bytes, cooperative"
    assert text in str(plan)


def test_a_cooperative_kernel_that_does_not_fit() -> None:
    kernel = compiled_kernel(Compiled(8, 4, 8), grid=5000, cooperative=True)
    plan = plan_of(lambda x: kernel(x, 2.0), X)
    with pytest.raises(errors.KernelLaunchError, match=r"cooperative, and has 5000 blocks; 4224"):
        RecordingBackend().compile(plan)


def test_clusters_where_there_are_none() -> None:
    driver = RecordingDriver()
    driver.arch = "sm_86"
    kernel = compiled_kernel(Compiled(8, 4, 8), grid=2, cluster=2)
    with pytest.raises(errors.KernelLaunchError, match="has clusters, which sm_86 lacks"):
        RecordingBackend(driver).compile(plan_of(lambda x: kernel(x, 2.0), X))


# other ways to run


def test_it_is_exported() -> None:
    backend = RecordingBackend()
    executable = backend.compile(plan_of(lambda x: incremented(x[:100]), X))
    exported = executable.export_graph([X])
    (node,) = backend.device.driver.graphs[-1].walk()
    assert node.name == "rows"
    assert all(node.values)
    assert "incremented" in str(exported.slots)


def test_only_kernels_that_wait_for_those_before_them_start_early() -> None:
    """Kernels for matrices do; users' kernels would read what is not written yet."""

    def solved(d: Any) -> Any:
        return tracegraph.linalg.tridiagonal_solve(d, d + 4, d, d[:, None] * 2) + 1

    def programmatic(f: Callable[..., Any], *arguments: Any) -> Any:
        executable = RecordingBackend().compile(plan_of(f, *arguments))
        return executable.view().programmatic

    assert programmatic(solved, np.ones(70)) == {(0, 1), (1, 2)}
    assert programmatic(lambda x: incremented(x + 1) * 2, X) == {(1, 2)}
