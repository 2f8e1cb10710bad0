"""Timing: all contestants of a row take turns, and the median of many samples counts.

Turns spread what disturbs a machine over all contestants, and each is taken on a quiet core. A
sample is as many runs as last a fifth of a millisecond, so that reading the clock does not count; a
run ends when its results are there. In a row that does not wait, a sample is the calls alone, and
the wait comes after it.
"""

from __future__ import annotations

import gc
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from .quiet import QuietCores

ROUNDS = 12
FEWEST_ROUNDS = 3
SAMPLE_SECONDS = 2e-4
WARM_UP_SECONDS = 0.02
QUEUED_CALLS = 100
"""Fewer than the launches that a driver queues before a further one blocks."""


@dataclass
class Contestant:
    """What is timed: `run` starts a run, `wait` returns when it is done.

    Samples are seconds a run; `first` is the first run, which compiles. One that raises takes no
    further turns, and keeps the error.
    """

    label: str
    run: Callable[[], Any]
    wait: Callable[[Any], object]
    work: float
    first: float = 0.0
    samples: list[float] = field(default_factory=list)
    runs_per_sample: int = QUEUED_CALLS
    error: Exception | None = None

    def waited(self, runs: int) -> float:
        start = perf_counter()
        for _ in range(runs):
            self.wait(self.run())
        return (perf_counter() - start) / runs

    def queued(self, runs: int) -> float:
        result = None
        start = perf_counter()
        for _ in range(runs):
            result = self.run()
        elapsed = perf_counter() - start
        self.wait(result)
        return elapsed / runs


def first_run(run: Callable[[], Any], wait: Callable[[Any], object]) -> tuple[Any, float]:
    """Its result, and the seconds it took."""
    start = perf_counter()
    result = run()
    wait(result)
    return result, perf_counter() - start


def contest(contestants: Sequence[Contestant], seconds: float, waits: bool) -> list[float]:
    """Take samples of all contestants in turns, for about `seconds` altogether.

    Returns, for each turn, the seconds that a call in Python took on its core.

    Where the contestants are slow, it takes longer: up to twice as long for a few rounds, and
    always long enough for one.
    """
    turn = seconds / (ROUNDS * max(len(contestants), 1))
    cores = QuietCores()
    gc.collect()
    gc.disable()
    try:
        for contestant in contestants if waits else ():
            _guard(contestant, _warm_up)
        start = perf_counter()
        for done in range(ROUNDS):
            elapsed = perf_counter() - start
            if done and elapsed > (seconds if done >= FEWEST_ROUNDS else 2 * seconds):
                break
            # Another one begins each round, so that nobody always follows the same neighbour.
            for i in range(len(contestants)):
                with cores.turn():
                    _guard(contestants[(i + done) % len(contestants)], _take_turn, turn, waits)
    finally:
        gc.enable()
    return cores.paces


def medians(
    runs: Sequence[Callable[[], Any]], wait: Callable[[Any], object], seconds: float
) -> list[float]:
    """Microseconds of a run of each, timed in turns; errors are raised."""
    contestants = [Contestant("", run, wait, 1) for run in runs]
    contest(contestants, seconds, waits=True)
    for contestant in contestants:
        if contestant.error is not None:
            raise contestant.error
    return [statistics.median(c.samples) * 1e6 for c in contestants]


def _guard(contestant: Contestant, step: Callable[..., None], *arguments: Any) -> None:
    if contestant.error is None:
        try:
            step(contestant, *arguments)
        except Exception as error:  # the others go on
            contestant.error = error


def _warm_up(contestant: Contestant) -> None:
    """Also finds how many runs make a sample."""
    start = perf_counter()
    fastest = math.inf
    while perf_counter() - start < WARM_UP_SECONDS:
        fastest = min(fastest, contestant.waited(1))
    contestant.runs_per_sample = max(1, math.ceil(SAMPLE_SECONDS / fastest))


def _take_turn(contestant: Contestant, seconds: float, waits: bool) -> None:
    sample = contestant.waited if waits else contestant.queued
    start = perf_counter()
    while True:
        contestant.samples.append(sample(contestant.runs_per_sample))
        if perf_counter() - start > seconds:
            return
