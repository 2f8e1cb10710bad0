"""The halves of a vjp as functions of their own: one that keeps values, one that uses them later.

Between them, the values may be anywhere: another library stores them as its own arrays. What is
kept is chosen as loops choose it (`residuals.cut`): arguments and results are there anyway, cheap
values are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from tracegraph import tree
from tracegraph.ir.program import Atom, Eqn, Value
from tracegraph.tracing.trace import Trace, current_trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.derivatives.residuals import cut, repeated
from tracegraph.transforms.derivatives.reverse import vjp


class ValuePlace(NamedTuple):
    """Where a value is that the second half takes: the number of an argument of the function, of
    one of its results, or of what was kept.
    """

    kind: Literal["argument", "result", "kept"]
    number: int


class SecondHalf:
    """The second half: a traced function of the values at its `places`, and of cotangents.

    Compared by identity: a trace of the first half makes one.
    """

    def __init__(
        self,
        pullback: tree.Structure,
        residuals: Sequence[Atom],
        again: Sequence[Eqn],
        places: Mapping[Value, ValuePlace],
        constants: Mapping[Value, Any],
    ) -> None:
        self.places = tuple(places.values())
        self._values = tuple(places)
        self._pullback, self._residuals = pullback, tuple(residuals)
        self._again, self._constants = tuple(again), constants

    def __call__(self, values: Sequence[Any], cotangents: Any) -> tuple[Any, ...]:
        """The cotangents of the arguments."""
        trace = _traced()
        known = {**self._constants, **dict(zip(self._values, values, strict=True))}
        source = trace.source
        known = repeated(trace, self._again, known)
        trace.source = source
        found = [known[a] if isinstance(a, Value) else Tracer(trace, a) for a in self._residuals]
        cotangents = tree.unflatten(self._pullback, found)(cotangents)
        return tuple(cotangents)


class Kept:
    """Values that the first half keeps, and the second half; a tree of the values."""

    def __init__(self, half: SecondHalf, values: Sequence[Any]) -> None:
        self.half, self.values = half, tuple(values)


tree.register(
    Kept,
    lambda kept: (kept.values, kept.half),
    Kept,  # type: ignore[arg-type]
)


def first_half(
    fun: Callable[..., tuple[Any, Sequence[Any]]], primals: Sequence[Any], arguments: Sequence[Any]
) -> tuple[tuple[Any, ...], Kept] | None:
    """The results of a function that is being traced, and what its derivative keeps.

    None if values would be kept whose dtypes adapt to others, which arrays cannot do.

    Args:
        fun: takes the primals; returns what is differentiated, and all results.
        primals: what is differentiated by.
        arguments: what the second half can be given without keeping it.
    """
    trace = _traced()
    _, pullback, results = vjp(fun, *primals, has_aux=True)
    leaves, structure = tree.flatten(pullback)
    residuals = [trace.read(x) for x in leaves]
    there: dict[Value, ValuePlace] = {}
    for kind, values in (("argument", arguments), ("result", results)):
        for number, x in enumerate(values):
            atom = trace.read(x)
            if isinstance(atom, Value) and (kind == "argument" or not atom.type.weak):
                there.setdefault(atom, ValuePlace(kind, number))  # type: ignore[arg-type]
    constants = {
        value: np.frombuffer(content, type_.dtype).reshape(type_.shape)
        for (type_, content), value in trace.constants.items()
    }
    needed = [a for a in residuals if isinstance(a, Value)]
    found = cut(trace.eqns, needed, {*there, *constants})
    if any(value.type.weak for value in found.kept):
        return None
    used = {a for eqn in found.again for a in eqn.operands if isinstance(a, Value)} | {*needed}
    places = {value: place for value, place in there.items() if value in used}
    places |= {value: ValuePlace("kept", number) for number, value in enumerate(found.kept)}
    half = SecondHalf(structure, residuals, found.again, places, constants)
    return tuple(results), Kept(half, [Tracer(trace, value) for value in found.kept])


def _traced() -> Trace:
    trace = current_trace()
    assert trace is not None, "halves are traced"
    return trace
