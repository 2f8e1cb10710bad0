"""Thread: makes a device current in each thread that calls its driver."""

from __future__ import annotations

import threading

from cuda.core import Device


class Thread(threading.local):
    """The state of a device's driver in each thread.

    Python makes the attributes anew in each thread that reads them. So the first read of `ready` in
    a thread makes the primary context current, and later ones cost 40 ns.
    """

    def __init__(self, ordinal: int) -> None:
        Device(ordinal).set_current()
        self.ready = True
