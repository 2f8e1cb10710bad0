"""Threads of native code on a CPU: how many there may be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

VARIABLES = ("TRACEGRAPH_THREADS", "OMP_NUM_THREADS")
"""Environment variables that have the number of threads; the first that is set counts."""

_CGROUPS = "/sys/fs/cgroup"

_chosen: int | None = None


def set_threads(number: int | None) -> None:
    """Limit the threads that run native code on a CPU, of the whole process.

    A call uses as many threads as its large loops have work for, the calling one included. Its
    results have the same bits for any number of them. The limit holds from the next call of a
    compiled function on; a call that runs goes on with the threads that it has. Matrix products
    are not concerned: they are calls of BLAS, which has threads and a limit of its own.

    Without a call, the limit is that of the environment variable TRACEGRAPH_THREADS, else that of
    OMP_NUM_THREADS, else the number of processors that the process may use, by its affinity and
    by the quota of its control group. It is found out once, when it is first needed.

    Args:
        number: the limit, at least 1; None for that without a call.

    Raises:
        TypeError: `number` is not an integer.
        ValueError: it is less than 1.

    >>> set_threads(2)
    >>> get_threads()
    2
    >>> set_threads(None)
    """
    global _chosen  # noqa: PLW0603 - the limit is the process's
    if number is not None:
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"set_threads takes a number of threads, or None, got {number!r}")
        if number < 1:
            raise ValueError(
                f"set_threads takes at least 1, got {number}; 1 is the calling thread alone"
            )
    _chosen = number


def get_threads() -> int:
    """How many threads may run native code on a CPU, the calling one included.

    Raises:
        ValueError: TRACEGRAPH_THREADS or OMP_NUM_THREADS counts and is not a positive number.

    >>> get_threads() >= 1
    True
    """
    return _default() if _chosen is None else _chosen


@cache
def _default() -> int:
    for variable in VARIABLES:
        text = os.environ.get(variable, "").strip()
        if not text:
            continue
        first = text.split(",")[0].strip()  # OpenMP has one number for each level of nesting
        if not first.isdecimal() or int(first) < 1:
            raise ValueError(
                f"{variable} is {text!r}; set it to a number of threads, such as 4, or unset it"
            )
        return int(first)
    return processors()


def processors() -> int:
    """The processors that this process may use: those of its affinity, or fewer by a quota."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    return max(1, min([allowed, *_quotas()]))


def _quotas() -> Iterator[int]:
    """The quotas of processors of this process's control group and of those around it."""
    from pathlib import Path  # seldom needed, and not when the package is imported

    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:  # no Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, read = Path(_CGROUPS), _unified_quota
        elif "cpu" in controllers.split(","):
            root, read = Path(_CGROUPS, "cpu"), _separate_quota
        else:
            continue
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            quota = read(folder)
            if quota is not None:
                yield quota
            if folder == root:
                break


def _unified_quota(folder: Path) -> int | None:
    """The quota of a group of version 2, rounded up."""
    words = _text(folder / "cpu.max").split()
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return None  # "max", or no such file: the group at the root
    return -(-int(words[0]) // int(words[1]))


def _separate_quota(folder: Path) -> int | None:
    """The quota of a group of version 1, rounded up."""
    quota, period = (_text(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    if not quota.isdecimal() or not period.isdecimal():
        return None  # -1: no quota
    return -(-int(quota) // int(period))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
