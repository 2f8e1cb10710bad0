"""What nests tell while a plan runs (conditions, failures, progress), and when its loops stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from lowering.host.arena import Array
from lowering.host.frame import Step
from lowering.kernel import Publish, Require, SetCondition, Signal
from lowering.plan import Plan
from tracegraph import limits, progress
from tracegraph.effects import Failure, Monitor

Told = Callable[[Array], object]
"""A function of the value of a signal, a scalar."""


class Effects:
    """What signals do, and how loops run, in one executable. Its runs exclude each other."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.conditions = [0] * plan.conditions
        self._deadline: float | None = None
        self._exceeded: Exception | None = None

    @contextmanager
    def limited(self) -> Iterator[None]:
        """One run, under the caller's time limit: the steps of the plan have another context."""
        self._deadline = limits.deadline()
        if self._deadline is not None:
            self._exceeded = limits.exceeded()
        try:
            yield
        finally:
            self._deadline = self._exceeded = None

    def signal(self, signal: Signal) -> Told:
        """What a signal does with its value."""
        match signal:
            case SetCondition(condition=number):
                return self._set_condition(number)
            case Require(failure=number):
                return _require(self.plan.failures[number])
            case Publish(monitor=number):
                return _publish(self.plan.monitors[number])

    def _set_condition(self, number: int) -> Told:
        conditions = self.conditions

        def set_condition(value: Array) -> None:
            conditions[number] = value.item()

        return set_condition

    def loop(self, number: int, body: Sequence[Step]) -> Step:
        """The body, for as long as a condition holds and there is time."""
        conditions = self.conditions

        def run() -> None:
            deadline = self._deadline
            while conditions[number]:
                if deadline is not None and time.monotonic() >= deadline:
                    assert self._exceeded is not None
                    raise self._exceeded
                for step in body:
                    step()

        return run


def _require(failure: Failure) -> Told:
    def check(value: Array) -> None:
        if not value.item():
            raise failure.exception()

    return check


def _publish(monitor: Monitor) -> Told:
    return lambda value: progress.report(monitor, int(value.item()))
