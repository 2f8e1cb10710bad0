"""Checks of results: calls whose results have a NaN or an infinity say what made it.

Results are looked at after each call. Only where one has a NaN is the program run again, op by op
on the host, from copies of the arguments. So programs and graphs are those of other calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from tracegraph import errors, tree
from tracegraph.modes import process
from tracegraph.staging.calls.signature import FlatCall, Signature
from tracegraph.staging.stages import Traced

R = TypeVar("R")

_counting = Lock()

_infinities: ContextVar[bool | None] = ContextVar("tracegraph_checked_results", default=None)


@contextmanager
def results_checked(infinities: bool) -> Iterator[None]:
    """Check the results of calls inside of the block for NaNs, and for infinities if asked for."""
    process.entered = True
    with _counting:
        process.checks += 1
    token = _infinities.set(infinities)
    try:
        yield
    finally:
        _infinities.reset(token)
        with _counting:
            process.checks -= 1


def checked(
    run: Callable[[], R],
    signature: Signature,
    bind: Callable[[], FlatCall],
    trace: Callable[[FlatCall], Traced],
) -> R:
    """The result of a call, which is checked if the caller is in such a block.

    Raises:
        NonFiniteError: a result has a NaN, or an infinity if these are checked for.
    """
    infinities = _infinities.get()
    if infinities is None:
        return run()
    call = bind()
    kept = {k: _on_host(call.leaves[k]) for k in signature.donated_leaves(call.key.structure)}
    leaves = [kept.get(k, leaf) for k, leaf in enumerate(call.leaves)]
    call = call._replace(passed=[], leaves=leaves)  # no owner of what is donated
    del leaves
    result = run()
    found, structure = tree.flatten(result)
    for leaf, path in zip(found, tree.paths(structure, "result"), strict=True):
        _check(leaf, path, infinities, signature, call, trace)
    return result


def _check(
    leaf: Any,
    path: str,
    infinities: bool,
    signature: Signature,
    call: FlatCall,
    trace: Callable[[FlatCall], Traced],
) -> None:
    from tracegraph.ir.first_nonfinite import (  # imported where something is checked
        first_made,
        has_nonfinite,
        made_text,
        what_text,
    )

    array = np.asarray(leaf)
    if not has_nonfinite(array, infinities):
        return
    kind = "a NaN or an infinity" if infinities else "a NaN"
    said = f"{path} of {signature.function} has {kind}: {what_text(array, infinities)}"
    traced = trace(call)
    if traced.sharding is not None:
        raise errors.NonFiniteError(f"{said}; what made it is not looked for in functions of shard")
    program = traced.program
    inputs = _inputs(call.leaves, program.in_types)
    made = first_made(program, inputs, infinities)
    if made is not None:
        raise errors.NonFiniteError(f"{said}\n  {made_text(program, made, infinities)}")
    paths = signature.paths(call.key.structure)
    given = [p for p, x in zip(paths, inputs, strict=True) if has_nonfinite(x, infinities)]
    given += ["a constant" for x in program.constants if has_nonfinite(x, infinities)]
    where = f"it is in {', '.join(given)}" if given else "the host computes none from the arguments"
    raise errors.NonFiniteError(f"{said}\n  no operation makes one of finite operands: {where}")


def _inputs(leaves: Sequence[Any], types: Sequence[Any]) -> list[Any]:
    pairs = zip(leaves, types, strict=True)
    return [np.asarray(_on_host(leaf), type_.dtype) for leaf, type_ in pairs]


def _on_host(leaf: Any) -> Any:
    return np.array(leaf.to_host() if hasattr(leaf, "to_host") else leaf)
