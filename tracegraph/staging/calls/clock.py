"""The clock by which uses of executables are ordered, in seconds."""

from __future__ import annotations

import time

clock = time.perf_counter
