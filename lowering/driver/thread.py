"""Thread: makes a device current in each thread that calls its driver."""

from __future__ import annotations

import threading
from typing import Any

from cuda.bindings import driver

from lowering.driver.error_checks import called


class Thread(threading.local):
    """The state of a device's driver in each thread.

    Python makes the attributes anew in each thread that reads them. So the first read of `ready` in
    a thread makes the primary context current, and later ones cost 40 ns.

    Not by cuda.core: its C++ code takes the GIL again as it returns, which calls std::terminate in
    a thread that the interpreter ends meanwhile.
    """

    def __init__(self, context: Any) -> None:
        called(driver.cuCtxSetCurrent, context)
        self.ready = True
