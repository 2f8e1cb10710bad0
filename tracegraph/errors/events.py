"""Errors of events of other code, recorded and waited for in programs."""

from __future__ import annotations

from tracegraph.errors.wording import user_line
from tracegraph.user_source import Source

__all__ = ["EventError", "EventInBodyError"]


class EventError(TypeError):
    """`event.record` or `event.wait` got something other than an event or an array."""

    def __init__(self, function: str, problem: str) -> None:
        super().__init__(f"{function}: {problem}{user_line()}")


class EventInBodyError(ValueError):
    """An event or a timed section is in a branch or a loop, whose graphs hold no event nodes."""

    def __init__(self, function: str, construct: str, source: Source | None) -> None:
        at = "" if source is None else f"\n  at {source}, in {source.function}"
        super().__init__(
            f"{function} is called inside {construct}, and graphs of branches and loops hold no "
            f"event nodes; call it before or after {construct}{at}"
        )
