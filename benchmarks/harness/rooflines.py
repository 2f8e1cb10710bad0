"""What part of the device's limits a plan reaches, by the bytes and operations of its nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from lowering.backends.registry import rates_on
from lowering.plan.reports.rooflines import least_time
from tracegraph.staging.jitted import Jitted

from .measure import Contestant


def part_of_limits(contestant: Contestant) -> float | None:
    """The least time for the nodes of a jitted function's plan, as a part of that measured.

    None where the limits of the device are not known, or what a kernel with a loop inside does. It
    is above 1 where arrays stay in a cache.
    """
    least = _least_time(contestant.run)
    return least / median(contestant.samples) if least and contestant.samples else None


def _least_time(run: Callable[[], Any]) -> float | None:
    """By the plan, or by a profile where steps of loops depend on data."""
    if not (isinstance(run, partial) and isinstance(run.func, Jitted)):
        return None
    lowered = run.func.lower(*run.args)
    rates = rates_on(lowered.traced.device)
    if rates is None:
        return None
    known = least_time(lowered.plan, rates)
    return lowered.compile().profile(*run.args).least if known is None else known
