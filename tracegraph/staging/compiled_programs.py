"""Programs: what a jitted function has compiled, entry by entry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.tabulated import Tabulated
from tracegraph.ir.types import ArrayType
from tracegraph.modes import PLAIN, Modes
from tracegraph.staging.calls.clock import clock
from tracegraph.staging.calls.signature import CallKey, Signature
from tracegraph.staging.executable_cache import CachedExecutable

if TYPE_CHECKING:
    from tracegraph.inspection.tables import Report

_ZERO = datetime.now(UTC) - timedelta(seconds=clock())
"""When the clock of uses was zero."""


class LoopSchedule(NamedTuple):
    """A loop or branch of a program: the user's line, what was called, how the graph runs it."""

    line: str
    construct: str
    schedule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledProgram:
    """One program of a jitted function: what it was compiled for, and its use so far.

    It is a report: holding it keeps no memory of the program.
    """

    function: str
    """The function, with file and line."""
    arguments: str
    """The types of the arguments as they were passed, static values included."""
    types: tuple[ArrayType, ...]
    """The types of the arrays and numbers among the arguments, in order."""
    device: str
    modes: tuple[str, ...]
    """The modes it was traced in, such as ``("check_indices",)``."""
    launches: int
    updates: int
    bytes_copied: int
    bytes_held: int
    """Constants, and scratch that is kept between calls; 0 while evicted."""
    evicted: bool
    """Whether it was closed because memory was short; the next call builds it again."""
    last_used: datetime
    """When it was last called, warmed or built, in local time."""
    schedules: tuple[LoopSchedule, ...]
    """Its loops and branches, outer ones before those inside them."""

    def __repr__(self) -> str:
        name = self.function.partition(" ")[0]
        count = "1 launch" if self.launches == 1 else f"{self.launches:,} launches"
        state = "evicted" if self.evicted else f"{self.bytes_held:,} B held"
        return f"<{name}({self.arguments}) on {self.device}: {count}, {state}>"


class Programs(Tabulated, tuple[CompiledProgram, ...]):
    """The programs of a function, in the order they were first built; prints as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} programs>" if len(self) != 1 else "<1 program>"

    def report(self) -> Report:
        """A row for each program."""
        from tracegraph.inspection.tables import Report, ReportSection, TextTable

        return Report.of([ReportSection("", TextTable(_COLUMNS, list(map(_row, self))))])


_COLUMNS = ("arguments", "device", "launches", "bytes held", "last used", "schedules")


def _row(program: CompiledProgram) -> tuple[str, ...]:
    modes = f" [{', '.join(program.modes)}]" if program.modes else ""
    schedules = (
        f"{schedule.construct} {schedule.line}: {schedule.schedule}"
        for schedule in program.schedules
    )
    return (
        program.arguments + modes,
        program.device,
        f"{program.launches:,}",
        "evicted" if program.evicted else f"{program.bytes_held:,}",
        f"{program.last_used:%Y-%m-%d %H:%M:%S}",
        ", ".join(schedules) or "-",
    )


def compiled_program(
    signature: Signature, key: CallKey, device: str, modes: Modes, cached: CachedExecutable
) -> CompiledProgram:
    """The report of one entry."""
    compiled, counts = cached.compiled, cached.stats()
    plan = cached.lowered.plan if compiled is None else compiled.plan
    differing = zip(Modes._fields, modes, PLAIN, strict=True)
    return CompiledProgram(
        function=signature.function,
        arguments=signature.shown(key, fold=True),
        types=signature.types(key),
        device=device,
        modes=tuple(name for name, mode, plain in differing if mode != plain),
        launches=counts["launches"],
        updates=counts["updates"],
        bytes_copied=counts["bytes_copied"],
        bytes_held=0 if compiled is None else compiled.bytes_held,
        evicted=compiled is None or compiled.executable.closed,
        last_used=(_ZERO + timedelta(seconds=cached.used)).astimezone(),
        schedules=tuple(
            LoopSchedule(*schedule) for schedule in cached.lowered.traced.compiler().schedules(plan)
        ),
    )
