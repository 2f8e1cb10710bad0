"""Signals of nests while a plan runs: failed checks and progress."""

from __future__ import annotations

from collections.abc import Callable

from lowering.host.arena import Array
from lowering.plan.nests.kernel import Publish, Require
from lowering.plan.plan import Plan
from tracegraph import progress
from tracegraph.ir.effects import Failure
from tracegraph.progress import Monitor

Report = Callable[[Array], object]
"""A function of the value of a signal, a scalar."""


def report_function(signal: Publish | Require, plan: Plan) -> Report:
    """The function that a signal calls with its value."""
    match signal:
        case Require(failure=number):
            return _require(plan.failures[number])
        case Publish(monitor=number):
            return _publish(plan.monitors[number])


def _require(failure: Failure) -> Report:
    def check(value: Array) -> None:
        if not value.item():
            raise failure.exception()

    return check


def _publish(monitor: Monitor) -> Report:
    return lambda value: progress.report(monitor, int(value.item()))
