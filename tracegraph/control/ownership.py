"""Ownership: what branches and bodies are given and return shares no memory with arrays outside.

So a body may write to its carry, and a branch to its operands, and nothing else changes; what is
written to a result later changes no operand and no captured array. It is the same when traced: a
copy of a traced value is another tracer of the same value, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

import numpy as np

from tracegraph import tree
from tracegraph.arrays.array import Array
from tracegraph.tracing.trace import current_trace
from tracegraph.tracing.tracer import Tracer


def own(leaf: Any) -> Any:
    """A copy of an array or a traced value that may be written to; else the leaf itself."""
    if isinstance(leaf, Tracer):
        trace = current_trace()
        return leaf if trace is None else Tracer(trace, trace.read(leaf))
    if type(leaf) is Array:
        return leaf.own()
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def owned(leaves: Sequence[Any], kept: Sequence[Any] = ()) -> tuple[Any, ...]:
    """Each leaf as the function's own. Arrays among `kept` are that already: each is kept once."""
    if not kept:
        return tuple(map(own, leaves))
    free = {id(leaf) for leaf in kept}
    found = []
    for leaf in leaves:
        if id(leaf) in free:
            free.remove(id(leaf))
            found.append(leaf)
        else:
            found.append(own(leaf))
    return tuple(found)


def call_owned(
    function: Callable[..., Any], structure: tree.Structure, operands: Sequence[Any]
) -> Any:
    """Call a branch without tracing it; `structure` is that of its arguments."""
    given = owned(operands)
    result = function(*tree.unflatten(structure, given))
    leaves, returned = tree.flatten(result)
    detached = owned(leaves, given)
    return result if all(map(is_, leaves, detached)) else tree.unflatten(returned, detached)


def read_only(leaves: Sequence[Any]) -> list[Any]:
    """Views of arrays that a condition cannot write through."""
    return [_read_only(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    view = array.view()
    view.setflags(write=False)
    return view
