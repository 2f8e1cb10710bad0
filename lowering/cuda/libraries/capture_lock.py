"""CaptureLock: one capture at a time on a device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lowering.errors import NestedCaptureError


class CaptureLock:
    """A device has one stream to capture on, and a library one workspace."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait until other threads are done, and keep them waiting.

        Raises:
            NestedCaptureError: this thread holds it already.
        """
        if self._thread == threading.get_ident():
            raise NestedCaptureError
        with self._lock:
            self._thread = threading.get_ident()
            try:
                yield
            finally:
                self._thread = None
