"""Thread: makes a device current in each thread that calls its driver."""

from __future__ import annotations

import threading

from cuda.core import Device


class Thread(threading.local):
    """What the driver of a device has done in this thread.

    Python makes the attributes anew in each thread that looks at them: so a look at `ready` makes
    the primary context current at its first time, and costs 40 ns after that.
    """

    def __init__(self, ordinal: int) -> None:
        Device(ordinal).set_current()
        self.ready = True
