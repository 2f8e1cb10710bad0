"""Callbacks: functions of the host that a program calls, as attributes of its equations.

Both records are compared by identity: each belongs to one call in the user's code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import Source

Array = np.ndarray[Any, Any]

VmapMethod = Literal["sequential", "expand_dims", "broadcast_all"]
"""How a function that answers is called for many lanes: once for each; once, with the lanes as
axis 0 of each argument, of extent 1 where lanes share a value; once, with the lanes in all."""


@dataclass(frozen=True, slots=True, eq=False)
class HostFunction:
    """A Python function, from arrays to arrays of the types in `results`.

    `call` gets arrays of its own, which it may keep, and returns the leaves of what the user's
    function returns, which are not checked yet; `paths` names them in messages. A function without
    results is called for its effect. A device waits at most `time_limit` seconds for an answer, for
    ever if that is None.
    """

    name: str
    call: Callable[..., Sequence[Any]]
    results: tuple[ArrayType, ...] = ()
    paths: tuple[str, ...] = ()
    vmap_method: VmapMethod | None = None
    time_limit: float | None = None
    source: Source | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class HostCall:
    """A C function `void (*)(void *)` at an address, and what it is called with.

    That is the address `argument`, or if there is `data`, the address of a copy of it, which each
    executable has for itself. `owner` keeps the function loaded, and what the argument points to.
    """

    name: str
    function: int
    argument: int
    data: bytes | None
    owner: Any
    source: Source | None

    def __str__(self) -> str:
        return self.name
