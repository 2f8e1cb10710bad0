"""Keys of each device."""

from __future__ import annotations

from typing import Any

from tracegraph.errors.tracebacks import entry_point
from tracegraph.random.keys import fold_in
from tracegraph.sharding.collectives import axis_index

__all__ = ["per_device"]


@entry_point
def per_device(key: Any, axis_name: str) -> Any:
    """A key of this device along an axis, of a key that all devices have.

    With the same key, all devices draw the same numbers; with these, each draws its own. It is
    ``fold_in(key, axis_index(axis_name))``.

    Shape: (2,).
    Dtype: uint32.

    Args:
        key: a key, as `tracegraph.random.key` makes it.
        axis_name: the name of an axis of a mesh, or of lanes of `vmap`.

    Raises:
        CollectiveOutsideShardError, UnknownAxisError: as in `psum`.

    >>> from tracegraph.random import key, uniform
    >>> draw = lambda _: uniform(per_device(key(0), "x"))
    >>> first, second = tracegraph.vmap(draw, axis_name="x")(np.zeros(2))
    >>> bool(first != second)
    True
    """
    return fold_in(key, axis_index(axis_name))
