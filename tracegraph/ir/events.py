"""Events of other code, as attributes of equations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, eq=False)
class EventUse:
    """A record of an event, or a wait for it: by handle, which `owner` keeps valid."""

    action: Literal["record", "wait"]
    handle: int
    owner: Any

    def __str__(self) -> str:
        return f"{self.action} {self.handle:#x}"
