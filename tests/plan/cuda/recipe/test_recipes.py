"""A recipe builds the graph of its Plan: the same nodes, edges, launches and addresses."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegraph
from lowering.cuda.compilation.compile import cubin
from lowering.cuda.libraries.library_calls import CAPTURED
from lowering.cuda.recipe.calls import KINDS
from lowering.cuda.recipe.recipe import FORMAT, Base
from lowering.cuda.recipe.stored import recipe_from_json
from lowering.cuda.recipe.targets import load_target, recipe_of
from lowering.plan.calls.captured_call import CapturedCall
from lowering.plan.calls.collectives import CollectiveCall
from lowering.plan.target.features import override
from lowering.testing.recording_backend import RecordingBackend, RecordingDevice
from lowering.testing.recording_driver import RecordingDriver
from tests.emulation.text_code import stored, uncompiled
from tests.unit.saving.mutations import VALUES
from tracegraph import ArrayType, cond, debug, fori_loop, jit, switch, while_loop
from tracegraph.errors import (
    ExportFormatError,
    ExportVersionError,
    MalformedTargetError,
    UnsavableError,
)
from tracegraph.staging.program_function import StoredTarget

__all__ = ["uncompiled"]

LONG, MATRIX = ArrayType("float32", (20_000,)), ArrayType("float64", (64, 64))


def scalars(x: Any, k: Any, v: Any) -> Any:
    return x * k + v.sum(), x - k


def branches(i: Any, x: Any) -> Any:
    y = switch(i, [np.sort, np.cumsum, lambda x: x[::-1]], x)
    return cond(y[0] > 0, np.sort, lambda y: y + 1, y)


def loops(x: Any) -> Any:
    def step(state: Any) -> Any:
        return (np.sort(state[0]) * 2, state[1] + 1)

    found = while_loop(lambda s: s[0].sum() < 1e9, step, (x, 0), max_steps=10)
    return fori_loop(0, 5, lambda i, c: np.sort(c) * i, found[0], progress="sorts")


def libraries(a: Any, z: Any) -> Any:
    spectrum = np.fft.fft2(z)
    debug.print("spectrum {}", spectrum[0, 0])
    return np.linalg.solve(a @ a.T + np.eye(64), a), spectrum


def overwritten(x: Any, y: Any) -> Any:
    return np.cumsum(x) + y


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "scalars": (scalars, (LONG, 1.0, ArrayType("float32", (3,))), {}),
    "branches": (branches, (ArrayType("int32", ()), LONG), {}),
    "loops": (loops, (LONG,), {}),
    "libraries": (libraries, (MATRIX, ArrayType("complex64", (32, 32))), {}),
    "overwritten": (overwritten, (LONG, LONG), {"donate_argnums": 0}),
    "per launch": (loops, (LONG,), {"scratch": "per_launch"}),
}


def plan_of(name: str) -> Any:
    function, types, options = PROGRAMS[name]
    return jit(function, device="cuda", **options).lower(*types).plan


def replayed(target: StoredTarget) -> Any:
    """The driver of a device that has loaded a target."""
    device = RecordingDevice(RecordingDriver())  # type: ignore[abstract]
    found = load_target({"sm_90": target}, device, lambda: None)
    assert not isinstance(found, str), found
    found.upload()
    return device.driver


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_graph_is_that_of_the_plan(name: str) -> None:
    plan = plan_of(name)
    backend = RecordingBackend()
    backend.compile(plan)
    before = list(backend.device.driver.graphs[-1].walk())
    after = list(replayed(stored(plan)).graphs[-1].walk())
    numbers = [{node: number for number, node in enumerate(nodes)} for nodes in (before, after)]
    addresses: dict[int, int] = {}
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        assert (old.kind, old.name, old.launch) == (new.kind, new.name, new.launch)
        for edges in ("dependencies", "pdl"):
            positions = [
                sorted(known[each] for each in getattr(node, edges))
                for node, known in zip((old, new), numbers, strict=True)
            ]
            assert positions[0] == positions[1]
        if old.kind == "kernel":
            for one, other in zip(old.values, new.values, strict=True):
                if one >> 32:
                    assert addresses.setdefault(one, other) == other
                else:
                    assert one == other
    assert len(set(addresses.values())) == len(addresses)


def test_recipes_have_all_calls_but_those_of_this_process() -> None:
    # code on pages of the docs adds others
    ours = {call for call in CAPTURED if call.__module__.startswith("lowering.")}
    assert {*KINDS.values()} == ours - {CapturedCall, CollectiveCall}


@pytest.mark.usefixtures("uncompiled")
def test_the_same_program_makes_the_same_target() -> None:
    one, other = (stored(plan_of("loops")) for _ in range(2))
    assert (one.recipe, one.data) == (other.recipe, other.data)
    recipe = recipe_of(one)
    held = {p.base for node in recipe.nodes for p in getattr(node, "parameters", ())}
    assert {Base.INPUT, Base.OUTPUT, Base.ARENA, Base.STOP_FLAG, Base.FAILURE, Base.STEPS} <= held


@pytest.mark.usefixtures("uncompiled")
def test_what_does_not_fit_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    target = stored(plan_of("branches"))
    device = RecordingDevice(RecordingDriver())  # type: ignore[abstract]

    def why(targets: dict[str, StoredTarget] | None = None) -> Any:
        return load_target(targets or {"sm_90": target}, device, lambda: None)

    assert why({"sm_100": target}) == "the file has code for sm_100, and cuda:0 is sm_90"
    assert "it is for sm_90, and cuda:0 is" not in str(why())
    with override(conditional_nodes=False):
        assert "conditional_nodes" in why()
    with monkeypatch.context() as patched:
        patched.setenv("TRACEGRAPH_SCHEDULES", "unrolled-loops=4")
        assert "asks for schedules" in why()
    device.driver.cuda_version = (12, 9)
    assert why().startswith("its code was compiled by CUDA 13")
    lacking = RecordingDevice(RecordingDriver(), ["body_updates"])  # type: ignore[abstract]
    found = load_target({"sm_90": target}, lacking, lambda: None)
    assert found == "it needs body_updates, which cuda:0 lacks"


def test_what_is_of_this_process_is_refused() -> None:
    f64 = ArrayType("float64", (3,))

    def calls(x: Any) -> Any:
        return tracegraph.pure_callback(lambda x: x + 1, f64, x)

    with pytest.raises(UnsavableError, match="calls functions of this process"):
        stored(jit(calls, device="cuda").lower(f64).plan)


def test_a_compiler_that_is_missing_or_too_new_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    double = tracegraph.export(lambda x: 2 * x, 1.0)
    with pytest.raises(
        RuntimeError, match=r"NVRTC 1\d\.\d does not compile for sm_20, but for sm_"
    ):
        double.add_target("sm_20")

    def missing(*_: Any, **__: Any) -> None:
        raise RuntimeError("no such library")

    monkeypatch.setattr("cuda.bindings.nvrtc.nvrtcVersion", missing)
    monkeypatch.setattr("cuda.core.Program", missing)
    for compiles in (lambda: double.add_target("sm_90"), lambda: cubin("int missing;", "sm_90")):
        with pytest.raises(RuntimeError, match=r"NVRTC.* pip install 'tracegraph\[cu13\]'"):
            compiles()


def places(document: Any) -> list[tuple[Any, Any]]:
    """Every container in a document, with a key of each of its parts."""
    found = []
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, part in items:
        found.append((document, key))
        if isinstance(part, dict | list):
            found += places(part)
    return found


@pytest.mark.usefixtures("uncompiled")
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_malformed_recipes_are_refused_by_our_errors(seed: int) -> None:
    random = Random(seed)
    target = mutated.setdefault("target", stored(plan_of("libraries")))
    document = tracegraph.tree.map(lambda leaf: leaf, target.recipe)
    for _ in range(random.randint(1, 3)):
        container, key = random.choice(places(document))
        old = container[key]
        if random.random() < 0.2 and isinstance(container, list):
            del container[key]
        elif type(old) is int and random.random() < 0.7:
            container[key] = old + random.choice((-1, 1, 1 << 20, 1 << 63))
        else:
            container[key] = random.choice(VALUES)
    device = RecordingDevice(RecordingDriver())  # type: ignore[abstract]
    try:
        load_target({"sm_90": StoredTarget(document, target.data)}, device, lambda: None)
    except ExportFormatError:
        return


mutated: dict[str, StoredTarget] = {}


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("part", ["codes", "constants"])
def test_what_a_recipe_names_must_be_there(part: str) -> None:
    target = stored(plan_of("libraries"))
    ending = ".cubin" if part == "codes" else ".bin"
    data = {name: value for name, value in target.data.items() if not name.endswith(ending)}
    with pytest.raises(MalformedTargetError, match=r"there is no code|has another size"):
        recipe_of(StoredTarget(target.recipe, data))


@pytest.mark.parametrize(("newer", "instead"), [(1, "install a newer"), (-1, "save it again")])
def test_recipes_of_another_format_say_what_to_do(newer: int, instead: str) -> None:
    with pytest.raises(ExportVersionError, match=instead):
        recipe_from_json({"format": FORMAT + newer, "recipe": []})
