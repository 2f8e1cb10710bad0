"""Outcome: the figures of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .library import library_of
from .measure import Contestant
from .rooflines import part_of_limits
from .row import NANOSECONDS, Row, Unit

OURS = "tracegraph"


@dataclass(frozen=True)
class Figure:
    """The median of samples in the unit of their row, and the quartiles beside it."""

    median: float
    low: float
    high: float
    samples: int

    @classmethod
    def of(cls, seconds: Sequence[float], unit: Unit, work: float) -> Figure:
        figures = [unit.figure(s, work) for s in seconds]
        low, median, high = np.quantile(figures, (0.25, 0.5, 0.75)).tolist()
        return cls(median, low, high, len(figures))


@dataclass(frozen=True)
class Outcome:
    """What one row gave: figures by contestant, the limit's, and why others have none."""

    row: Row
    inputs: Sequence[str]
    figures: Mapping[str, Figure]
    first_runs: Mapping[str, float]
    """Milliseconds that the first run took, compilation included."""
    limits: Mapping[str, Figure]
    failures: Mapping[str, str]
    roofline: float | None
    """The part of the device's limits that tracegraph's plan reaches, where it is known."""
    pace: Figure | None
    """What a call in Python took on the cores of the turns; None if there was no turn."""

    @classmethod
    def of(
        cls,
        row: Row,
        inputs: Sequence[str],
        contestants: Sequence[Contestant],
        limits: Sequence[Contestant],
        failures: Mapping[str, str],
        paces: Sequence[float],
    ) -> Outcome:
        ours = next((c for c in contestants if c.label == OURS), None)
        return cls(
            row,
            inputs,
            {c.label: Figure.of(c.samples, row.unit, c.work) for c in contestants},
            {c.label: c.first * 1e3 for c in contestants},
            {c.label: Figure.of(c.samples, row.unit, c.work) for c in limits},
            failures,
            None if ours is None else part_of_limits(ours),
            Figure.of(paces, NANOSECONDS, 1) if paces else None,
        )

    @property
    def best_peer(self) -> str | None:
        """The peer that is ahead of all others."""
        peers = {label: f for label, f in self.figures.items() if library_of(label) != OURS}
        return self._best(peers)

    @property
    def best_limit(self) -> str | None:
        """The limit that is furthest."""
        return self._best(self.limits)

    def _best(self, figures: Mapping[str, Figure]) -> str | None:
        order = max if self.row.unit.rate else min
        return order(figures, key=lambda label: figures[label].median, default=None)

    @property
    def against_peer(self) -> float | None:
        """How many times as fast as the best peer tracegraph is."""
        return self._advantage(self.figures.get(self.best_peer or ""))

    @property
    def against_limit(self) -> float | None:
        """The part of the furthest limit that tracegraph reaches."""
        return self._advantage(self.limits.get(self.best_limit or ""))

    @property
    def against_peers(self) -> dict[str, float]:
        """How many times as fast as each peer tracegraph is."""
        peers = {label: f for label, f in self.figures.items() if library_of(label) != OURS}
        times = {label: self._advantage(figure) for label, figure in peers.items()}
        return {label: ratio for label, ratio in times.items() if ratio is not None}

    @property
    def first_against_peers(self) -> dict[str, float]:
        """The same for first runs."""
        ours = self.first_runs.get(OURS)
        if ours is None:
            return {}
        return {label: self.first_runs[label] / ours for label in self.against_peers}

    def _advantage(self, other: Figure | None) -> float | None:
        ours = self.figures.get(OURS)
        if ours is None or other is None:
            return None
        return self.row.unit.advantage(ours.median, other.median)

    def record(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "name": self.row.name,
            "title": self.row.title,
            "unit": self.row.unit.label,
            "higher_is_better": self.row.unit.rate,
            "inputs": list(self.inputs),
            "contestants": {
                label: {**vars(figure), "first_run_ms": self.first_runs[label]}
                for label, figure in self.figures.items()
            },
            "limits": {label: vars(figure) for label, figure in self.limits.items()},
            "best_limit": self.best_limit,
            "best_peer": self.best_peer,
            "times_best_peer": self.against_peer,
            "part_of_limit": self.against_limit,
            "part_of_roofline": self.roofline,
            "failures": dict(self.failures),
            "python_call_ns": self.pace and vars(self.pace),
        }


def reason(error: Exception) -> str:
    """The class and the first line of an error."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:200]}" if text else type(error).__name__
