"""The cache on disk: programs that were compiled, kernels and machine code, for later processes.

A program is found again by what it computes: its operations, types and constants, with what the
device can do, the schedules that were asked for, and the version of tracegraph. Names of functions
and numbers of lines do not count. What is found is neither planned nor compiled.

    settings   the folder, its size, and counts

A user who can write to the folder can run code in the processes that use it: folders that others
may write to are not used.
"""

from __future__ import annotations

import os
from typing import TypedDict

from tracegraph.cache import settings as _settings
from tracegraph.cache.settings import Miss as Miss
from tracegraph.errors.keywords import required_bool as _required_bool
from tracegraph.errors.keywords import required_int as _required_int
from tracegraph.errors.tracebacks import entry_point as _entry_point
from tracegraph.staging.compiler import compiler as _compiler

__all__ = ["clear", "misses", "set", "stats"]


class CacheStats(TypedDict):
    """The use of the cache. `directory` is None where nothing is kept, and `problem` says why.

    `hits` and `misses` count programs of this process that were planned before, or were not;
    `seconds_saved` is the time that planning and compiling the hits has taken. `bytes` and
    `entries` are those of the folder, of all processes.
    """

    directory: str | None
    problem: str
    hits: int
    misses: int
    seconds_saved: float
    bytes: int
    entries: int


@_entry_point
def set(
    *,
    directory: str | os.PathLike[str] | None = None,
    max_bytes: int | None = None,
    enabled: bool | None = None,
    programs: bool | None = None,
) -> None:
    """Change settings of the cache for this process. What is not given stays.

    Args:
        directory: the folder, made if it is missing. By default, and with "", that of the
            environment variable TRACEGRAPH_CACHE_DIR, or else one in the user's cache folder.
        max_bytes: the most that all entries take together; the least recently used are deleted. By
            default TRACEGRAPH_CACHE_BYTES, or else 1 GiB. With 0, nothing is kept.
        enabled: whether anything is read or written.
        programs: whether whole programs are kept, or compiled code alone. By default
            TRACEGRAPH_CACHE_PROGRAMS, 0 or 1, or else True.

    Raises:
        TypeError: a setting is of another type.
        ValueError: `max_bytes` is negative.

    >>> import tracegraph
    >>> tracegraph.cache.set(max_bytes=1 << 28)
    """
    if max_bytes is not None and _required_int("max_bytes", max_bytes, "a number of bytes") < 0:
        raise ValueError(f"max_bytes is at least 0, got {max_bytes}")
    for option, value in {"enabled": enabled, "programs": programs}.items():
        if value is not None:
            _required_bool(option, value)
    if directory is not None:
        _settings.chosen.directory = os.fsdecode(directory)
    if max_bytes is not None:
        _settings.chosen.max_bytes = max_bytes
    if enabled is not None:
        _settings.chosen.enabled = enabled
    if programs is not None:
        _settings.chosen.programs = programs


def stats() -> CacheStats:
    """The folder, what it holds, and how this process has used it.

    >>> import tracegraph
    >>> sorted(tracegraph.cache.stats())
    ['bytes', 'directory', 'entries', 'hits', 'misses', 'problem', 'seconds_saved']
    """
    folder, problem, nbytes, entries = _compiler().cache_contents()
    return CacheStats(
        directory=folder,
        problem=problem,
        hits=_settings.counts.hits,
        misses=_settings.counts.misses,
        seconds_saved=_settings.counts.seconds_saved,
        bytes=nbytes,
        entries=entries,
    )


def misses() -> tuple[Miss, ...]:
    """The programs that this process has not found, with the reason: what differs from the last
    program of the same function. They are the last 1,000.

    >>> from tracegraph import cache
    >>> texts = [f"{program} was planned, as {reason}" for program, reason in cache.misses()]
    """
    return tuple(_settings.counts.reasons)


def clear() -> None:
    """Delete all entries of the folder, those of other processes included.

    Raises:
        OSError: one cannot be deleted.

    >>> import tempfile
    >>> import tracegraph
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tracegraph.cache.set(directory=folder)
    ...     tracegraph.cache.clear()
    ...     print(tracegraph.cache.stats()["entries"])
    ...     tracegraph.cache.set(directory="")
    0
    """
    _compiler().clear_cache()
