"""The trace of a body of a derivative: closed, so that constants of rules are literals in it."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tracegraph import errors
from tracegraph.ir.program import Atom, Literal
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.trace import Trace
from tracegraph.transforms.trace_emitter import Emit

MOST_LITERALS = 64
"""Elements of an array that are written out, where they are not all the same."""


class BodyTrace(Trace):
    """A trace that captures nothing: all that it needs are parameters.

    A rule that a user wrote is traced inside of it. A small array around the rule is made of
    literals there.
    """

    def __init__(self, parent: Trace | None) -> None:
        super().__init__(parent)
        self.literals: dict[tuple[ArrayType, bytes], Atom] = {}

    def _capture(self, outer: Atom) -> Atom:
        if isinstance(outer, Literal):
            return outer
        return _refuse(outer.type)

    def _constant(self, x: Any, type_: ArrayType) -> Atom:
        array = np.asarray(x, type_.dtype)
        key = type_, array.tobytes()
        if key not in self.literals:
            self.literals[key] = self.read(self._made(array))
        return self.literals[key]

    def _made(self, array: np.ndarray[Any, Any]) -> Any:
        """The equations that make an array."""
        emit, elements = Emit(self), array.ravel()
        words = elements.view(np.uint8).reshape(elements.size, array.itemsize)
        if (words == words[:1]).all():
            element = elements[0] if elements.size else array.dtype.type(0)
            return emit.broadcast_to(element, shape=array.shape)
        if array.size > MOST_LITERALS:
            return _refuse(ArrayType(array.dtype, array.shape))
        parts = [emit.broadcast_to(element, shape=(1,)) for element in elements]
        return emit.reshape(emit.concatenate(*parts, axis=0), shape=array.shape)


def _refuse(type_: ArrayType) -> NoReturn:
    raise errors.CustomRuleError(
        "derivative",
        f"a rule in a loop or branch uses {type_}, which is none of its arguments; there, rules "
        f"use their arguments, numbers, and arrays of at most {MOST_LITERALS} elements: pass it as "
        "an argument of the kernel or function",
    )
