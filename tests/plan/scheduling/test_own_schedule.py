"""A loop schedule from outside: the record of docs/extending.md, chosen, run and pinned for all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.cuda import TARGET as CUDA
from lowering.host.executable import HostExecutable
from lowering.lower import lower
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nodes import walk
from lowering.scheduling import schedule as scheduling
from lowering.scheduling.schedule_records import Schedule
from lowering.testing.recording_backend import RecordingBackend
from tests.helpers.compiled import plan_of
from tests.helpers.running import traced
from tracegraph import tree

DOCS = Path(__file__).parents[3] / "docs" / "extending.md"


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> Schedule[Any]:
    """The schedule of the page, beside the one that is always possible."""
    text = DOCS.read_text("utf-8").partition("## A loop schedule")[2]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:1]
    names: dict[str, Any] = {"np": np, "tracegraph": tracegraph}
    exec(compile(code.partition("@tracegraph.jit")[0], "schedule.py", "exec"), names)
    monkeypatch.setattr(
        scheduling, "LOOP_SCHEDULES", (scheduling.LOOP_SCHEDULES[0], names["pairs"])
    )
    return names["pairs"]


def smoothed(steps: int) -> Any:
    return lambda x: tracegraph.fori_loop(0, steps, lambda i, x: (x + np.roll(x, 1)) / 2, x)


def test_it_is_chosen_where_it_is_possible(pairs: Schedule[Any]) -> None:
    x = np.ones(1000)
    loops = {
        steps: [n for n in walk(plan_of(smoothed(steps), x).graph) if isinstance(n, WhileNode)]
        for steps in (30, 31)
    }
    (even,), (odd,) = loops[30], loops[31]
    assert even.construct is not None
    assert odd.construct is not None
    assert (even.construct.schedule, odd.construct.schedule) == (pairs.name, "conditional")


@pytest.mark.parametrize("steps", [2, 30, 31])
def test_its_plans_give_the_same_bits(pairs: Schedule[Any], steps: int) -> None:
    x = np.linspace(-1, 1, 1000)
    stage = traced(smoothed(steps), x)
    plan = lower(stage.optimized, CUDA)
    (result,) = HostExecutable(plan, poison=True)([x])
    expected = tree.leaves(smoothed(steps)(x))[0]
    assert np.asarray(result).tobytes() == np.asarray(expected).tobytes()


def test_its_plans_are_emitted(pairs: Schedule[Any]) -> None:
    backend = RecordingBackend()
    backend.compile(plan_of(smoothed(30), np.ones(1000)))
    (graph,) = backend.device.driver.graphs
    assert [node.kind for node in graph.walk()].count("while") == 1
