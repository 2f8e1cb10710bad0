"""Thread: makes a device current in each thread that calls its driver."""

from __future__ import annotations

import threading
from typing import Any

from cuda.bindings import driver

from lowering.driver.error_checks import called


class _Current(threading.local):
    context: Any = None


_current = _Current()
"""The context that was made current last in each thread."""


class Thread:
    """The state of a device's driver in each thread.

    To read `ready` makes the primary context current, if that of another device is, or none.

    Not by cuda.core: its C++ code takes the GIL again as it returns, which calls std::terminate in
    a thread that the interpreter ends meanwhile.
    """

    __slots__ = ("_context",)

    def __init__(self, context: Any) -> None:
        self._context = context
        self.ready  # noqa: B018 - to read it makes the context current

    @property
    def ready(self) -> bool:
        """True."""
        if _current.context is not self._context:
            called(driver.cuCtxSetCurrent, self._context)
            _current.context = self._context
        return True
