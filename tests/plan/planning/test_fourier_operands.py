"""Which Fourier transforms have arguments and results where they are, and which get copies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends import cuda, host
from lowering.host.executable import HostExecutable
from lowering.legalization.legalize import legalize, needed_features
from lowering.plan.calls.fourier import FourierTransform
from lowering.plan.launch_graph import moving_buffers, recaptured_calls
from lowering.plan.nodes import LibraryNode, MemcpyNode, walk
from lowering.plan.plan import Plan
from lowering.plan.reports.explain import explain
from lowering.plan.target.features import Features
from lowering.plan.target.overrides import override
from tracegraph import ArrayType

POLICY = cuda.TARGET.operands
assert POLICY is not None
LARGE = ArrayType("complex64", (1024, 1024))


def planned(
    function: Any,
    *types: Any,
    device: str = "cuda",
    donated: tuple[int, ...] = (),
    **choices: Any,
) -> Plan:
    with override(**choices):
        jitted = tracegraph.jit(function, device=device, donate_argnums=donated)
        plan: Plan = jitted.lower(*types).plan
    return plan


def transforms(plan: Plan) -> list[FourierTransform]:
    calls = [node.call for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    return [call for call in calls if isinstance(call, FourierTransform)]


def kinds(plan: Plan) -> list[str]:
    return [node.kind for node in plan.graph.nodes]


def test_arguments_and_results_of_large_transforms_are_where_they_are() -> None:
    plan = planned(np.fft.fft2, LARGE)
    (call,) = transforms(plan)
    assert call.recaptured
    assert (call.source.buffer, call.target.buffer) == (plan.inputs[0], plan.outputs[0])
    assert kinds(plan) == ["library"]
    assert plan.copied_bytes == plan.arena_bytes == 0
    assert "captured at the addresses of each call" in str(plan)
    where = "a Fourier transform of input[0] and output[0] where they are"
    assert f"{where}, captured again if they move" in explain(plan)
    assert recaptured_calls(plan.graph) == plan.graph.nodes
    assert recaptured_calls(plan.graph, [*plan.inputs, *plan.outputs]) == ()
    (node,) = recaptured_calls(plan.graph, plan.inputs)
    assert moving_buffers(node, plan.inputs) == plan.outputs


def test_small_transforms_get_copies_as_these_are_cheaper() -> None:
    half = int(POLICY.transformed) // 2
    for nbytes, recaptured in ((half, True), (half - 16, False)):
        plan = planned(np.fft.fft, ArrayType("complex128", (nbytes // 16,)))
        (call,) = transforms(plan)
        assert call.recaptured is recaptured
        assert bool(plan.copied) is not recaptured
    assert "each launch copies 4,194,288 B to scratch" in explain(plan)
    assert "captured" not in f"{plan} {explain(plan)}"


def test_both_forms_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    small = ArrayType("complex64", (64,))
    assert transforms(planned(np.fft.fft, small, operands="in_place"))[0].recaptured
    copied = planned(np.fft.fft, LARGE, operands="copied")
    assert copied.copied == copied.inputs
    jitted = tracegraph.jit(np.fft.fft, device="cuda")
    monkeypatch.setenv("TRACEGRAPH_SCHEDULES", "copied-operands")
    assert jitted.lower(LARGE).plan.copied
    monkeypatch.setenv("TRACEGRAPH_SCHEDULES", "in-place-operands")
    assert transforms(jitted.lower(small).plan)[0].recaptured


def test_the_host_captures_nothing() -> None:
    assert host.TARGET.operands is None
    (call,) = transforms(planned(np.fft.fft2, LARGE, device="host"))
    assert not call.recaptured


def test_only_what_is_between_two_transforms_is_in_scratch() -> None:
    plan = planned(lambda x, h: np.fft.fft2(np.fft.fft2(x) * h), LARGE, LARGE)
    first, last = transforms(plan)
    assert (first.source.buffer, last.target.buffer) == (plan.inputs[0], plan.outputs[0])
    assert kinds(plan) == ["library", "kernel", "library"]
    assert plan.arena_bytes == 2 * LARGE.nbytes
    direct = planned(lambda x: np.fft.fft2(np.fft.fft2(x)), LARGE)
    assert kinds(direct) == ["library", "library"]
    assert direct.arena_bytes == LARGE.nbytes


@pytest.mark.parametrize("where", ["loop", "branch"])
@pytest.mark.parametrize("operands", [None, "in_place"])
def test_bodies_have_copies_at_fixed_addresses(where: str, operands: Any) -> None:
    def function(x: Any, h: Any, n: Any) -> Any:
        if where == "loop":
            return tracegraph.fori_loop(0, n, lambda i, y: y + np.fft.fft2(h), x)
        return tracegraph.cond(
            n > 3, lambda h: np.fft.fft2(h), lambda h: h + 1, h, schedule="conditional"
        )

    plan = planned(function, LARGE, LARGE, ArrayType("int64", ()), operands=operands)
    assert not any(call.recaptured for call in transforms(plan))
    assert plan.inputs[1] in plan.copied
    assert recaptured_calls(plan.graph) == ()


def test_a_transform_at_the_top_has_its_argument_in_place_beside_a_loop_with_a_copy() -> None:
    def function(x: Any, n: Any) -> Any:
        return np.fft.fft2(x), tracegraph.fori_loop(0, n, lambda i, y: y + np.fft.fft2(x), x)

    plan = planned(function, LARGE, ArrayType("int64", ()), loops="conditional")
    (top,) = (node.call for node in plan.graph.nodes if isinstance(node, LibraryNode))
    assert top.reads == {plan.inputs[0]}
    assert plan.copied == plan.inputs[:1]


def test_what_the_library_overwrites_is_a_copy() -> None:
    def function(x: Any) -> Any:
        return np.fft.irfft2(x), x.real

    plan = planned(function, ArrayType("complex64", (1024, 2049)), donated=(0,))
    calls = transforms(plan)
    overwriting = [call for call in calls if call.overwrites]
    assert overwriting
    for call in overwriting:
        assert call.recaptured
        assert call.source.buffer.space == "scratch"
        assert call.source.buffer in call.fixed_buffers
    assert not plan.copied


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.fft.fft(x, axis=0),
        lambda x: np.fft.fft(x.T),
        lambda x: np.fft.fft(x[3:, 2:]),
        lambda x: np.fft.fft(x[::2], axis=0),
    ],
)
def test_strided_parts_of_arguments_are_read_where_they_are(function: Any) -> None:
    plan = planned(function, ArrayType("complex128", (1024, 1024)))
    assert plan.inputs[0] in transforms(plan)[0].reads
    assert not plan.copied


def test_what_the_library_cannot_describe_is_copied_by_a_kernel() -> None:
    plan = planned(lambda x: np.fft.fft(x[:, ::-1]), LARGE)
    (call,) = transforms(plan)
    assert call.source.buffer.space == "scratch"
    assert call.target.buffer is plan.outputs[0]


def test_a_result_takes_the_memory_of_a_donated_argument_that_is_read_before() -> None:
    one = planned(np.fft.fft2, LARGE, donated=(0,))
    assert one.outputs[0].space == "output", "a transform reads its argument to the end"
    two = planned(lambda x: np.fft.fft2(np.fft.fft2(x)), LARGE, donated=(0,))
    first, last = transforms(two)
    assert first.source.buffer is last.target.buffer is two.inputs[0]
    assert two.outputs == two.inputs


FUNCTIONS = {
    "several": lambda x, y: (np.fft.fft2(x), np.fft.ifft(y), np.fft.fft(x + y, axis=0), x * y),
    "real": lambda x, y: (np.fft.rfft2(x.real), np.fft.irfft(y), np.fft.rfft(y.imag * 2)),
    "chained": lambda x, y: np.fft.ifft2(np.fft.fft2(x) * np.fft.fft2(y)),
    "read again": lambda x, y: (np.fft.fft(x), np.sin(np.fft.fft(x)), y),
    "twice": lambda x, y: (np.fft.fft(x), np.fft.fft(x), np.fft.fft(x.T)),
    "shapes": lambda x, y: (np.fft.fftn(x.reshape(2, 4, 8), axes=(0, 2)), np.fft.fft(y[1:, 2:])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("donated", [(), (0,), (0, 1)])
@pytest.mark.parametrize("library_updates", [True, False])
def test_both_forms_give_the_same(
    name: str, donated: tuple[int, ...], library_updates: bool
) -> None:
    rng = np.random.default_rng(len(name))
    x, y = rng.standard_normal((2, 8, 8)) + 1j * rng.standard_normal((2, 8, 8))
    function = FUNCTIONS[name]
    found = []
    for operands in ("in_place", "copied"):
        plan = planned(function, x, y, donated=donated, operands=operands)
        assert all(call.recaptured is (operands == "in_place") for call in transforms(plan))
        assert not (plan.copied and operands == "in_place")
        plan = legalize(plan, Features(library_updates=library_updates))
        found.append(HostExecutable(plan)([x.copy(), y.copy()]))
    for got, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(got, wanted, 1e-12, 1e-12)


def test_without_updates_of_library_nodes_the_plan_copies_to_scratch_and_says_so() -> None:
    plan = planned(lambda x: (np.fft.fft2(x), x + 1), LARGE)
    assert "library_updates" in needed_features(plan)
    assert "library_updates" not in needed_features(planned(np.fft.fft2, LARGE, operands="copied"))
    rewritten = legalize(plan, Features(library_updates=False))
    assert "library_updates" not in needed_features(rewritten)
    assert rewritten.copied == (plan.inputs[0], plan.outputs[0])
    copies = [node for node in rewritten.graph.nodes if isinstance(node, MemcpyNode)]
    assert [copy.is_scratch_copy for copy in copies] == [True, True]
    (fallback,) = rewritten.fallbacks
    assert fallback.what == "each launch copies 16,777,216 B for a Fourier transform"
    assert fallback.why == "no updates of library calls here"
    assert fallback.sources == plan.graph.nodes[0].sources
    assert "each launch copies 8,388,608 B from scratch: output[0]" in explain(rewritten)
    assert legalize(rewritten, Features(library_updates=False)) is rewritten


def test_the_form_is_part_of_the_call() -> None:
    (call,) = transforms(planned(np.fft.fft2, LARGE))
    (still,) = transforms(planned(np.fft.fft2, LARGE, operands="copied"))
    assert call.movable_arrays == call.operands
    assert call.fixed_buffers == frozenset()
    assert still.movable_arrays == ()
    assert still.fixed_buffers == still.reads | still.writes
    target = replace(cuda.TARGET, operands=replace(POLICY, transformed=float("inf")))
    assert not transforms(tracegraph_lower(target))[0].recaptured


def tracegraph_lower(target: Any) -> Plan:
    from lowering.lower import lower

    program = tracegraph.make_program(np.fft.fft2)(LARGE)
    return lower(program, target)
