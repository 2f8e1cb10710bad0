"""The reference interpreter, which defines what programs mean: each op runs its NumPy reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from tracegraph import progress
from tracegraph.dtypes import type_text
from tracegraph.errors import ResultTypeError
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Region, Value

Array = np.ndarray[Any, Any]


class Watch:
    """Told of what is run, equation by equation; those it skips yield their first operands."""

    def skips(self, eqn: Eqn) -> bool:
        """Whether an equation, an effect without results, is left out."""
        return False

    def begin(self, eqn: Eqn) -> None:
        """An equation is about to run."""

    def enter(self, region: Region) -> None:
        """A region is about to run, of the equation that began last."""

    def end(self, eqn: Eqn, operands: Sequence[Array], results: Sequence[Array]) -> None:
        """An equation has run."""


_watch: ContextVar[Watch | None] = ContextVar("tracegraph_watch", default=None)


@contextmanager
def watched_by(watch: Watch) -> Iterator[None]:
    """Tell it of what is run inside of the block."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def run(program: Program, *arrays: Any) -> tuple[Array, ...]:
    """The results of a program for these inputs, of exactly the types that it declares.

    Raises:
        TypeError: the number or the types of the inputs are not those of the program.
        ResultTypeError: an op's reference gave another type than the op's type rule.

    >>> import numpy as np
    >>> from tracegraph.ir.program import Program, Region, Value
    >>> from tracegraph.ir.types import ArrayType
    >>> x = Value(ArrayType(np.dtype(float), (2,)))
    >>> run(Program("same", Region((x,), (), (x,))), np.ones(2))
    (array([1., 1.]),)
    """
    given = [np.asarray(a) for a in arrays]
    got = ", ".join(type_text(a.dtype, a.shape) for a in given)
    if [(a.dtype, a.shape) for a in given] != [(t.dtype, t.shape) for t in program.in_types]:
        needed = ", ".join(map(str, program.in_types))
        raise TypeError(f"program {program.name} takes ({needed}), not ({got})")
    with progress.bars():
        results = run_region(program.body, (*given, *program.constants))
    return results[: len(program.outputs)]


def run_region(region: Region, arrays: Sequence[Any]) -> tuple[Array, ...]:
    """The results of a region whose parameters are bound to `arrays`."""
    watch = _watch.get()
    if watch is not None:
        watch.enter(region)
    env = {p: np.asarray(a) for p, a in zip(region.params, arrays, strict=True)}
    for eqn in region.eqns:
        env.update(
            zip(eqn.outputs, _apply(eqn, [_read(env, a) for a in eqn.operands]), strict=True)
        )
    return tuple(_read(env, a) for a in region.results)


def _read(env: dict[Value, Array], atom: Atom) -> Array:
    return np.asarray(atom.value) if isinstance(atom, Literal) else env[atom]


def _apply(eqn: Eqn, operands: Sequence[Array]) -> list[Array]:
    watch = _watch.get()
    if watch is not None:
        if watch.skips(eqn):
            return list(operands[: len(eqn.outputs)])
        watch.begin(eqn)
    regions = {"regions": eqn.regions} if eqn.regions else {}
    with np.errstate(all="ignore"):
        found = eqn.op.reference(*operands, **eqn.attrs, **regions)
    results = [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]
    needed = [v.type for v in eqn.outputs]
    if [(r.dtype, r.shape) for r in results] != [(t.dtype, t.shape) for t in needed]:
        got = [type_text(r.dtype, r.shape) for r in results]
        raise ResultTypeError(_applied(eqn), got, list(map(str, needed)), eqn.source)
    if watch is not None:
        watch.end(eqn, operands, results)
    return results


def _applied(eqn: Eqn) -> str:
    """An equation in messages: `add (f64[2], f64[2])`."""
    operands = ", ".join(str(a.type) for a in eqn.operands)
    attrs = f"[{', '.join(f'{k}={v}' for k, v in eqn.attrs.items())}]" if eqn.attrs else ""
    return f"{eqn.op.name}{attrs} ({operands})"
