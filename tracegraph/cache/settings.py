"""Settings of the cache on disk, and counts of its use in this process."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from dataclasses import field
from threading import Lock
from typing import NamedTuple

from tracegraph.generated.dataclass import dataclass

DIRECTORY_VARIABLE = "TRACEGRAPH_CACHE_DIR"
BYTES_VARIABLE = "TRACEGRAPH_CACHE_BYTES"
PROGRAMS_VARIABLE = "TRACEGRAPH_CACHE_PROGRAMS"

DEFAULT_BYTES = 1 << 30

MOST_REASONS = 1000


@dataclass(slots=True)
class CacheSettings:
    """What was set by a call; None: what the environment says."""

    directory: str | None = None
    max_bytes: int | None = None
    enabled: bool = True
    programs: bool | None = None


chosen = CacheSettings()


def directory() -> str | None:
    """The folder that was set, by a call or in the environment; None for the user's own."""
    return chosen.directory or os.environ.get(DIRECTORY_VARIABLE) or None


def max_bytes() -> int:
    """The most bytes of all entries; nothing is kept if it is 0.

    Raises:
        ValueError: the environment variable is not a number of bytes.
    """
    if not chosen.enabled:
        return 0
    if chosen.max_bytes is not None:
        return chosen.max_bytes
    asked = os.environ.get(BYTES_VARIABLE, "")
    if not asked:
        return DEFAULT_BYTES
    if not asked.isdecimal():
        raise ValueError(f"{BYTES_VARIABLE} is {asked!r}; it takes a number of bytes")
    return int(asked)


def keeps_programs() -> bool:
    """Whether plans are kept, and not compiled code alone.

    Raises:
        ValueError: the environment variable is neither 0 nor 1.
    """
    if not max_bytes():
        return False
    if chosen.programs is not None:
        return chosen.programs
    asked = os.environ.get(PROGRAMS_VARIABLE, "1")
    if asked not in ("0", "1"):
        raise ValueError(f"{PROGRAMS_VARIABLE} is {asked!r}; it takes 0 or 1")
    return asked == "1"


class Miss(NamedTuple):
    """A program that was not found: its name, and why."""

    program: str
    reason: str


@dataclass(slots=True)
class CacheUses:
    """Uses of the cache in this process."""

    hits: int = 0
    misses: int = 0
    seconds_saved: float = 0.0
    reasons: deque[Miss] = field(default_factory=lambda: deque(maxlen=MOST_REASONS))
    lock: Lock = field(default_factory=Lock)

    def hit(self, seconds: float) -> None:
        """Count a program that was found, and the time that it took to make it."""
        with self.lock:
            self.hits += 1
            self.seconds_saved += seconds

    def miss(self, program: str, reasons: Iterable[str]) -> None:
        """Count a program that was not found."""
        with self.lock:
            self.misses += 1
            self.reasons.append(Miss(program, ", ".join(reasons)))


counts = CacheUses()
