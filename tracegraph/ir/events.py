"""Events of other code, and the ends of timed sections, as attributes of equations."""

from __future__ import annotations

from typing import Any, Literal

from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class EventUse:
    """A record of an event, or a wait for it: by handle, which `owner` keeps valid."""

    action: Literal["record", "wait"]
    handle: int
    owner: Any

    def __str__(self) -> str:
        return f"{self.action} {self.handle:#x}"


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """A part of a program whose time is measured; each block of `debug.timed` is one of its own."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class TimeMark:
    """The start or the end of a section."""

    action: Literal["start", "end"]
    section: Section

    def __str__(self) -> str:
        return f"{self.action} {self.section.name!r}"
