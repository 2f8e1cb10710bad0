"""Planning makes no reference cycles: what it used goes at once, with no garbage collection.

So none takes place meanwhile.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import tracegraph
from tests.corpus import CASES


@pytest.mark.parametrize("name", list(CASES)[::3])
def test_a_program_is_planned_without_cyclic_garbage(name: str) -> None:
    case = CASES[name]

    def plan() -> None:
        tracegraph.jit(case.function, device="host").lower(*case.arguments)

    plan()  # what is remembered for good is made now
    gc.disable()
    gc.freeze()  # what is there already is not looked at
    try:
        plan()
        assert gc.collect() == 0
    finally:
        gc.unfreeze()
        gc.enable()


@contextmanager
def _collections() -> Iterator[list[str]]:
    """The phases of collections that take place."""
    phases: list[str] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        phases.append(phase)

    gc.callbacks.append(note)
    try:
        yield phases
    finally:
        gc.callbacks.remove(note)


def _long(x: Any) -> Any:
    for _ in range(2000):
        x = x * 2 + x
    return x


@pytest.mark.parametrize("enabled", [True, False])
def test_nothing_is_collected_while_a_program_is_planned(enabled: bool) -> None:
    traced = tracegraph.jit(_long, device="host").trace(tracegraph.ArrayType("float32", (3,)))
    meanwhile: list[list[str]] = []

    def lower(*args: Any, **options: Any) -> Any:
        with _collections() as phases:
            plan = traced.compiler().plan_of(*args, **options)
            meanwhile.append(phases.copy())
        return plan

    observed = replace(traced, compiler=lambda: SimpleNamespace(plan_of=lower))
    if not enabled:
        gc.disable()
    try:
        observed.lower()
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
    assert meanwhile == [[]]


def test_the_collector_goes_on_after_a_plan_that_fails() -> None:
    def unschedulable(x: Any) -> Any:
        return tracegraph.cond(
            x.sum() > 0,
            lambda x: tracegraph.while_loop(lambda x: x.sum() > 0, lambda x: x - 1, x),
            lambda x: x,
            x,
            schedule="predicated",
        )

    traced = tracegraph.jit(unschedulable, device="host").trace(
        tracegraph.ArrayType("float32", (3,))
    )
    with pytest.raises(tracegraph.errors.UnschedulableError):
        traced.lower()
    assert gc.isenabled()
