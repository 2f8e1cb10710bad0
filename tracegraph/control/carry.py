"""The carry of a loop: each iteration returns it with the structure and types that it had."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tracegraph import errors, tree
from tracegraph.arrays.eager import apply
from tracegraph.control.ownership import owned
from tracegraph.control.regions import TracedRegion, Tree, Types, flatten_checked, join
from tracegraph.control.widening import meeting
from tracegraph.ir.op import get
from tracegraph.ir.program import Region
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType, mixes_signs
from tracegraph.tracing.parameters import parameters_of
from tracegraph.tracing.trace import Trace

Function = Callable[..., Any]
T = TypeVar("T")


def parameter_name(function: Function, position: int = 0) -> str:
    """The name of a function's parameter, for paths in errors: `state`."""
    names = parameters_of(function).all
    return names[position] if position < len(names) else "carry"


def detached(carry: Tree, kept: Sequence[Any] = ()) -> Tree:
    """The carry with leaves that are its own, so that the body may write to them; see `owned`."""
    return replace(carry, leaves=owned(carry.leaves, kept))


def advance(
    construct: str,
    function: Function,
    carry: Tree,
    returned: Any,
    name: str,
    trace_body: Callable[[], Any],
) -> Tree:
    """The carry for the next iteration of an eager loop.

    Where it has other types, the body is traced, by `trace_body`: that raises the same error with
    the operation that gives them.

    Raises:
        LeafTypeError, StructureError, LeafMismatchError: what the body returned is no such carry.
    """
    after = flatten_checked(returned, construct, name, function)
    _check_structure(construct, function, carry.structure, after.structure, name)
    after = detached(after, carry.leaves)
    if after.types == carry.types:
        return after
    try:
        joined = _joined(construct, function, carry, after.types, name)
    except errors.LeafMismatchError:
        if_traceable(trace_body)
        raise
    return converted(after, joined)


def converted(carry: Tree, types: Types) -> Tree:
    """The carry with its leaves converted to these types, as weak leaves may be."""
    leaves = (
        leaf if have == needed else _converted(leaf, needed)
        for leaf, have, needed in zip(carry.leaves, carry.types, types, strict=True)
    )
    return Tree(tuple(leaves), types, carry.structure)


def settled(carry: Tree, trace_body: Callable[[Trace], tuple[TracedRegion, Types]]) -> Tree:
    """The last carry of an eager loop, in the types that it would have if traced.

    A loop may end before weak types have settled; its body is traced to find the types.
    `trace_body` returns what `traced_until_stable` does. A body that only plain Python can run has
    no such types: the carry stays as it is.

    Raises:
        ControlFlowError: what the body returns is no such carry.
    """
    if not any(type_.weak for type_ in carry.types):
        return carry
    found = if_traceable(lambda: trace_body(Trace(None)))
    return carry if found is None else converted(carry, found[1])


def if_traceable(trace: Callable[[], T]) -> T | None:
    """What tracing a body finds in an eager run; None for a body that only plain Python can run.

    It branches on values, or calls functions that NumPy alone has: whatever they raise on traced
    values says nothing about the eager run.

    Raises:
        ControlFlowError: the body does not return what it has to.
    """
    try:
        return trace()
    except errors.ControlFlowError:
        raise
    except Exception:
        return None


def require_whole(
    construct: str,
    function: Function,
    before: Tree,
    after: Tree,
    name: str,
    types_of: Callable[[], Types],
) -> None:
    """Check Python ints that have outgrown int64 in an iteration of an eager loop.

    They may if the traced loop carries uint64, which the types of its carry, by `types_of`, tell.

    Raises:
        IntegerRangeError: it carries int64.
    """
    pairs = list(zip(before.types, after.types, strict=True))
    if not any(was != now and mixes_signs((was, now)) for was, now in pairs):
        return
    traced = if_traceable(types_of)
    if traced is None:
        return
    for i, (leaf, type_, (_, now)) in enumerate(zip(after.leaves, traced, pairs, strict=True)):
        if mixes_signs((now, type_)) and leaf >= 2**63:
            path = tree.paths(before.structure, name)[i]
            what = f"{construct}: {path}, as {errors.function_text(function)} returns it,"
            raise errors.IntegerRangeError(leaf, type_.dtype, what)


def traced_until_stable(
    construct: str,
    trace_body: Callable[[Types], TracedRegion],
    function: Function,
    carry: Tree,
    name: str,
) -> tuple[TracedRegion, Types]:
    """The fixed point of the carry's types: the body traced with types that it returns, and these.

    Where the body returns another type for a weak leaf, the leaf takes that type, and the body is
    traced again. Types only widen, so this ends. `trace_body` returns the carry first of a pair.

    Raises:
        StructureError, LeafMismatchError: what the body returned is no such carry.
    """
    types = carry.types
    while True:
        traced = trace_body(types)
        _check_structure(construct, function, carry.structure, traced.structure.children()[0], name)
        given = carry if types is carry.types else replace(carry, types=types)
        returned = traced.types[: len(types)]
        joined = _joined(construct, function, given, returned, name, traced.region)
        if joined == types:
            return traced, types
        types = joined


def _converted(leaf: Any, type_: ArrayType) -> Any:
    if type_.weak or (type(leaf) is int and type_.dtype.kind in "iu"):
        try:
            exact = np.asarray(leaf, type_.dtype)
        except OverflowError:
            raise errors.IntegerRangeError(leaf, type_.dtype) from None
        return exact.item() if type_.weak else exact[()]
    result = apply(get("cast"), leaf, dtype=type_.dtype)
    return result[()] if isinstance(result, np.ndarray) else result


def _check_structure(
    construct: str,
    function: Function,
    given: tree.Structure,
    returned: tree.Structure,
    name: str,
) -> None:
    if given != returned:
        raise errors.StructureError(
            construct,
            f"{errors.function_text(function)} must return a carry of the structure it was given",
            [("given", given), ("returned", returned)],
            name,
        )


def _joined(
    construct: str,
    function: Function,
    carry: Tree,
    returned: Sequence[ArrayType],
    name: str,
    region: Region | None = None,
) -> Types:
    """The types in which the carry and what the body returned meet; `region` is the traced body."""
    pairs = list(zip(carry.types, returned, strict=True))
    joined = [join(*pair) for pair in pairs]
    if None in joined:
        paths = tree.paths(carry.structure, name)
        results = () if region is None else region.results
        met = {
            path: meeting(region, result)
            for path, result, type_ in zip(paths, results, joined, strict=False)
            if region is not None and type_ is None
        }
        raise errors.LeafMismatchError(
            construct,
            f"{errors.function_text(function)} must return a carry of the types it was given",
            [],
            [
                (path, list(zip(("given", "returned"), pair, strict=True)))
                for path, pair, type_ in zip(paths, pairs, joined, strict=True)
                if type_ is None
            ],
            met,
        )
    return tuple(t for t in joined if t is not None)
