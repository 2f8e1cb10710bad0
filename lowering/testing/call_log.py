"""The log: calls of a driver in order, one of which can be made to fail."""

from __future__ import annotations

import threading
from dataclasses import field
from typing import Any

from tracegraph.generated.dataclass import dataclass


class InjectedError(RuntimeError):
    """The failure of a call that was asked to fail."""


@dataclass(frozen=True, slots=True)
class DriverCall:
    """One call of the driver: the operation, what it was about, and on which stream it was."""

    operation: str
    detail: tuple[Any, ...] = ()
    stream: int = 1

    def __str__(self) -> str:
        return " ".join([self.operation, *map(str, self.detail)])


@dataclass(eq=False, repr=False)
class CallLog:
    """The calls of a driver, on all of its streams.

    Args:
        fail_at: the number of the call, from 1, that raises; None for never.
    """

    fail_at: int | None = None
    stream: int = field(default=1, init=False)
    calls: list[DriverCall] = field(default_factory=list, init=False)
    _logging: threading.RLock = field(default_factory=threading.RLock, init=False)

    def _log(self, operation: str, *detail: Any) -> int:
        """Enter a call; its position."""
        with self._logging:
            call = DriverCall(operation, detail, self.stream)
            self.calls.append(call)
            if len(self.calls) == self.fail_at:
                raise InjectedError(f"call {self.fail_at} fails as asked: {call}")
            return len(self.calls) - 1

    def count(self, operation: str) -> int:
        """How often an operation was called."""
        return sum(call.operation == operation for call in self.calls)
