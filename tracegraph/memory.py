"""Memory of compiled functions: what is held, a budget for it, and giving it all back."""

from __future__ import annotations

import os

from tracegraph.staging import executable_cache as residents
from tracegraph.staging.executable_cache import Resident

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
    bytes, or else there is none.

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
        residents.shrink(nbytes)


def get_budget() -> int | None:
    """The limit in bytes that is in force, or None.

    Raises:
        ValueError: the environment variable TRACEGRAPH_MEMORY_BUDGET is no number of bytes.

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


def keep_within_budget(built: Resident) -> None:
    """Make a resident known that was just built, and room for it."""
    residents.enter(built)
    budget = get_budget()
    if budget is not None:
        residents.shrink(budget, built)


def memory_stats(device: str | None = None) -> dict[str, int]:
    """Bytes of memory on a device, by what holds them.

    ``arrays``: Arrays and arguments of calls in flight. ``cached``: freed, and kept for the next
    arrays. ``arenas``: scratch, which executables share. ``constants``: constants, counters and
    values of executables. ``graph_memory``: what the driver keeps for launches that allocate their
    scratch. ``graph_bytes``: code and node parameters of graphs; what the driver adds
    is not known. ``high_water``: the most that arrays, cached, arenas and constants together have
    ever been. ``graphs`` is the number of executables. A GPU also has ``free`` and ``total``, the
    bytes of the whole device, of which other programs hold some.

    On the host, arrays are NumPy's, and count as 0; what is cached there is not in ``high_water``.

    Args:
        device: ``"host"``, ``"cuda"`` or ``"cuda:1"``; without it, the one that functions run on.

    Raises:
        ValueError: there is no such device.
        RuntimeError: the GPU cannot be used.

    >>> memory_stats("host")["arrays"]
    0
    """
    from tracegraph.arrays.creation import canonical_device
    from tracegraph.staging.compiler import compiler, default_device

    chosen = default_device() if device is None else canonical_device(device)
    return dict(compiler().backend(chosen).memory_stats())


def trim() -> None:
    """Wait for all work on GPUs, and give back memory that is kept for later.

    That is memory of arrays that are gone, and on GPUs scratch of launches that have ended, of
    functions jitted with ``scratch="per_launch"``. Executables stay.

    Raises:
        Exception: what reading a result of the work that was waited for raises.

    >>> trim()
    """
    from tracegraph.staging.compiler import compiler

    compiler().trim()


def reset() -> None:
    """Wait for all work, close all executables, and give all memory that is not in use back.

    Arrays stay valid. Jitted functions are traced and built again when they are next called; a
    `Compiled` that a program holds itself has to be compiled anew. What is waited for may raise:
    then the rest is still done. A program that is running is waited for, so that its own callbacks
    must not call this.

    Raises:
        Exception: the first failure of a check in a program that was waited for.

    >>> import tracegraph
    >>> double = tracegraph.jit(lambda x: 2 * x)
    >>> int(double(4)), tracegraph.reset(), int(double(4)), double.stats()["builds"]
    (8, None, 8, 2)
    """
    from tracegraph.staging.compiler import compiler
    from tracegraph.staging.jitted import forget_builds

    try:
        forget_builds()
    finally:
        compiler().reset()
