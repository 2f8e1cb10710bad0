"""Fallbacks: what legalization replaced is data, and one warning for each function."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import lowering
import tracegraph
from lowering.legalization.legalize import legalize
from lowering.plan.reports.explain import explain
from lowering.plan.target import overrides as choices
from lowering.plan.target.features import Feature, Features, override
from lowering.testing.recording_backend import RecordingBackend
from tracegraph.errors import FallbackWarning
from tracegraph.staging import fallbacks

V = np.ones(300)
NONE = Features(body_updates=False)


@pytest.fixture(autouse=True)
def nothing_was_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallbacks, "_warned", set())


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> RecordingBackend:
    backend = RecordingBackend()
    monkeypatch.setattr(lowering, "backend", lambda device: backend)
    return backend


def halve(x: Any) -> Any:
    return tracegraph.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)


@tracegraph.kernel(
    source='extern "C" __global__ void twice(const double* x, double* y) { y[0] = 2 * x[0]; }',
    out=lambda x: x,
    grid=1,
    block=1,
)
def twice(x: Any) -> Any:
    return x * 2


def chosen(x: Any, n: Any) -> Any:
    return tracegraph.cond(n > 0, twice, lambda x: x, x)


def plan_of(function: Any, *arguments: Any, **options: Any) -> Any:
    with choices.override(loops="conditional", branches="conditional"):
        return tracegraph.jit(function, device="cuda", **options).lower(*arguments).plan


def called(function: Any, *arguments: Any) -> Any:
    jitted = tracegraph.jit(function, device="cuda:0")
    with choices.override(loops="conditional", branches="conditional"):
        jitted(*arguments)
    return jitted


def test_a_plan_that_fits_has_none() -> None:
    assert legalize(plan_of(halve, V), Features()).fallbacks == ()


def test_a_loop_that_the_host_drives() -> None:
    plan = legalize(plan_of(halve, V), Features(conditional_nodes=False))
    (fallback,) = plan.fallbacks
    assert fallback.what == "the host drives while_loop"
    assert fallback.why == "no conditional nodes here"
    assert {source.function for source in fallback.sources} == {"halve"}


def test_addresses_in_a_table() -> None:
    plan = legalize(plan_of(lambda x, n: tracegraph.cond(n > 0, np.sin, np.cos, x), V, 1), NONE)
    (fallback,) = plan.fallbacks
    assert str(fallback).startswith("kernels of cond read addresses from a table at test_fallb")


def test_scratch_copies_are_named_with_their_bytes() -> None:
    plan = legalize(plan_of(chosen, V, 1), NONE)
    assert plan.copied == (plan.inputs[0], plan.outputs[0])
    assert plan.copied_bytes == 2 * V.nbytes
    assert plan.fallbacks[0].what == "each launch copies 4,800 B for cond"
    text = explain(plan)
    assert "each launch copies 2,400 B to scratch: input[0] f64[300] moves" in text
    assert "each launch copies 2,400 B from scratch: output[0] f64[300] moves" in text


def test_scratch_that_each_launch_was_to_allocate() -> None:
    plan = plan_of(lambda x: np.sort(x)[::-1] + np.cumsum(x)[0], V, scratch="per_launch")
    (fallback,) = legalize(plan, Features(memory_nodes=False)).fallbacks
    assert str(fallback) == "scratch is kept between launches: no memory nodes here"


def test_a_function_is_warned_of_once_at_its_line(backend: RecordingBackend) -> None:
    with override(body_updates=False), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        jitted = called(chosen, V, 1)
        jitted(np.ones(7), 1)
        called(chosen, np.ones(8), 1)
    (warning,) = seen
    assert warning.category is FallbackWarning
    assert warning.filename == __file__
    assert warning.lineno == chosen.__code__.co_firstlineno + 1
    text = str(warning.message)
    assert text.startswith("chosen")
    assert "each launch copies 4,800 B for cond at test_fallbacks.py:" in text
    assert "tracegraph.features('cuda:0')" in text


def test_other_functions_are_warned_of_themselves(backend: RecordingBackend) -> None:
    with override(body_updates=False), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        called(chosen, V, 1)
        called(lambda x, n: chosen(x, n) + 1, V, 1)
    assert [warning.category for warning in seen] == [FallbackWarning] * 2


def test_without_a_fallback_nothing_is_warned_of(backend: RecordingBackend) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        called(chosen, V, 1)


def test_a_warning_that_is_an_error_is_raised_at_each_build(backend: RecordingBackend) -> None:
    with override(body_updates=False), warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for _ in range(2):
            with pytest.raises(FallbackWarning, match="each launch copies"):
                called(chosen, V, 1)
    assert not [e for e in backend.device.driver.live_executables if not e.closed]


def test_launches_count_what_they_copy(backend: RecordingBackend) -> None:
    array = backend.device.pool.buffer(tracegraph.ArrayType("float64", (300,)))
    with override(body_updates=False), choices.override(branches="conditional"):
        compiled = tracegraph.jit(chosen, device="cuda:0").lower(V, 1).compile()
    for _ in range(3):
        compiled.executable([array, 1])
    assert compiled.stats()["bytes_copied"] == 3 * 4800
    assert "each launch copies 2,400 B to scratch" in compiled.explain()


def test_products_count_the_arguments_that_launches_copy(backend: RecordingBackend) -> None:
    with choices.override(products="library", operands="copied"):
        lowered = tracegraph.jit(lambda x, y: x @ y, device="cuda:0").lower(
            *[np.ones((256, 256))] * 2
        )
    plan = lowered.plan
    assert plan.copied == plan.inputs
    assert plan.fallbacks == ()
    compiled = lowered.compile()
    arrays = [backend.device.pool.buffer(buffer.type.strong()) for buffer in plan.inputs]
    compiled.executable(arrays)
    assert compiled.stats()["bytes_copied"] == 2 * 256 * 256 * 8
    assert compiled.explain().count("each launch copies 524,288 B to scratch") == 2


@pytest.mark.parametrize("feature", ["conditional_nodes", "memory_nodes"])
def test_fallbacks_of_every_missing_feature_end_in_a_warning(
    feature: Feature, backend: RecordingBackend
) -> None:
    jitted = tracegraph.jit(halve, device="cuda:0", scratch="per_launch")
    with choices.override(loops="conditional"):
        lowered = jitted.lower(V)
    with (
        override(**{feature: False}),
        pytest.warns(FallbackWarning, match="scratch is kept between launches"),
    ):
        lowered.compile()
