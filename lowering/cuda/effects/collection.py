"""Putting off garbage collection while a kernel may wait for what a thread of the host does.

What is collected may be freed by the driver, which waits for the device: that of this package, and
of any other. In the thread that a kernel waits for, neither would ever go on.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_holders = 0
_was_enabled = False


@contextmanager
def collection_put_off() -> Iterator[None]:
    """No cycles are collected in the process meanwhile. Several threads may be inside."""
    global _holders, _was_enabled  # noqa: PLW0603 - the collector is the process's, too
    with _lock:
        if _holders == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0 and _was_enabled:
                gc.enable()
