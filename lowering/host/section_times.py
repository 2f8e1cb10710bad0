"""SectionTimes: how long the timed sections of a plan took in its last call on the host."""

from __future__ import annotations

from time import perf_counter_ns

from tracegraph.ir.events import Section, TimeMark


class SectionTimes:
    """The clock at the start and the end of each section that was reached."""

    def __init__(self) -> None:
        self._marks: dict[Section, dict[str, int]] = {}

    def mark(self, mark: TimeMark) -> None:
        """Note the time."""
        self._marks.setdefault(mark.section, {})[mark.action] = perf_counter_ns()

    def milliseconds(self) -> dict[str, float]:
        """The times by name, in the order of the plan; those of one name are added."""
        found: dict[str, float] = {}
        for section, marks in list(self._marks.items()):
            if "end" in marks:  # else an error came before
                time = max(marks["end"] - marks["start"], 0) / 1e6
                found[section.name] = found.get(section.name, 0.0) + time
        return found
