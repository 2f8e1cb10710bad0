"""Scratch: memory for intermediate results, and how long it is held."""

from __future__ import annotations

from typing import Literal, cast, get_args

Scratch = Literal["kept", "per_launch"]
"""Held between calls, or allocated by each launch and freed at its end."""


def checked(scratch: str) -> Scratch:
    """The option `scratch` of `jit`, checked.

    Raises:
        ValueError: there is no such choice.

    >>> checked("kept")
    'kept'
    """
    known = get_args(Scratch)
    if scratch not in known:
        raise ValueError(f"scratch={scratch!r}: it is {' or '.join(map(repr, known))}")
    return cast(Scratch, scratch)
