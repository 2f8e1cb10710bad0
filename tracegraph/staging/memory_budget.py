"""The memory budget: what executables may hold between calls, before idle ones are closed."""

from __future__ import annotations

import os

from tracegraph.staging import executable_cache
from tracegraph.staging.executable_cache import CachedExecutable

BUDGET_VARIABLE = "TRACEGRAPH_MEMORY_BUDGET"

_budget: int | None = None
_chosen = False


def set_budget(nbytes: int | None) -> None:
    """Limit the memory that the executables of all jitted functions hold between calls.

    Scratch, constants and graphs count, of all devices together; arrays do not. When a build makes
    it more, executables that are idle are closed, the least recently used first; the one just built
    always stays. A function whose executable was closed builds it again at its next call, from the
    same plan, without tracing; `jitted.stats()["evictions"]` counts how often.

    Without a call, the budget is that of the environment variable TRACEGRAPH_MEMORY_BUDGET, in
    bytes; else there is none.

    Args:
        nbytes: the limit in bytes; None for no limit.

    Raises:
        TypeError: `nbytes` is not an integer.
        ValueError: it is negative.

    >>> set_budget(1 << 30)
    >>> get_budget()
    1073741824
    >>> set_budget(None)
    """
    global _budget, _chosen
    if nbytes is not None:
        if isinstance(nbytes, bool) or not isinstance(nbytes, int):
            raise TypeError(
                f"set_budget takes a number of bytes, or None for no limit, got {nbytes!r}"
            )
        if nbytes < 0:
            raise ValueError(f"set_budget takes at least 0 bytes, got {nbytes}")
    _budget, _chosen = nbytes, True
    if nbytes is not None:
        executable_cache.shrink(nbytes)


def get_budget() -> int | None:
    """The limit in bytes that is in force, or None.

    Raises:
        ValueError: the environment variable TRACEGRAPH_MEMORY_BUDGET is not a number of bytes.

    >>> get_budget() is None
    True
    """
    if _chosen:
        return _budget
    text = os.environ.get(BUDGET_VARIABLE)
    if not text:
        return None
    if not text.isdecimal():
        raise ValueError(
            f"{BUDGET_VARIABLE} is {text!r}; set it to a number of bytes, such as "
            f"{8 << 30} for 8 GiB, or unset it"
        )
    return int(text)


def keep_within_budget(built: CachedExecutable) -> None:
    """Enter an executable that was just built, and evict others to make room for it."""
    executable_cache.enter(built)
    budget = get_budget()
    if budget is not None:
        executable_cache.shrink(budget, built)
