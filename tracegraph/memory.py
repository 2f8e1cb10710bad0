"""Memory of compiled functions: statistics, a budget, and giving it back."""

from __future__ import annotations

from tracegraph.devices import canonical_device
from tracegraph.staging.compiler import compiler, default_device
from tracegraph.staging.jitted import forget_builds
from tracegraph.staging.memory_budget import get_budget, set_budget

__all__ = ["get_budget", "memory_stats", "reset", "set_budget", "trim"]


def memory_stats(device: str | None = None) -> dict[str, int]:
    """Bytes of memory on a device, by what holds them.

    ``arrays``: Arrays and arguments of calls in flight. ``cached``: freed, and kept for the next
    arrays. ``arenas``: scratch, which executables share. ``constants``: constants, counters and
    values of executables. ``graph_memory``: what the driver keeps for launches that allocate their
    scratch. ``graph_bytes``: code and node parameters of graphs; what the driver adds
    is not known. ``high_water``: the most that arrays, cached, arenas and constants together have
    ever been. ``graphs`` is the number of executables. A GPU also has ``free`` and ``total``, the
    bytes of the whole device; other programs also hold some.

    On the host, arrays are NumPy's, and count as 0; what is cached there is not in ``high_water``.

    Args:
        device: ``"host"``, ``"cuda"`` or ``"cuda:1"``; without it, the one that functions run on.

    Raises:
        ValueError: there is no such device.
        RuntimeError: the GPU cannot be used.

    >>> memory_stats("host")["arrays"]
    0
    """
    chosen = default_device() if device is None else canonical_device(device)
    return dict(compiler().backend(chosen).memory_stats())


def trim() -> None:
    """Wait for all work on GPUs, and give back memory that is kept for later.

    That is memory of arrays that are gone, and on GPUs scratch of launches that have ended, of
    functions jitted with ``scratch="per_launch"``, and pinned memory of executables that are gone.
    Executables stay.

    Raises:
        Exception: what reading a result of the work that was waited for raises.

    >>> trim()
    """
    compiler().trim()


def reset() -> None:
    """Wait for all work, close all executables, and give all memory that is not in use back.

    Arrays stay valid. Jitted functions are traced and built again at their next calls; a `Compiled`
    that a program holds itself has to be compiled again. If what is waited for raises, the rest is
    still done. Callbacks of a running program must not call this: it would wait for itself.

    Raises:
        Exception: the first failure of a check in a program that was waited for.

    >>> import tracegraph
    >>> double = tracegraph.jit(lambda x: 2 * x)
    >>> int(double(4)), tracegraph.reset(), int(double(4)), double.stats()["builds"]
    (8, None, 8, 2)
    """
    try:
        forget_builds()
    finally:
        compiler().reset()
