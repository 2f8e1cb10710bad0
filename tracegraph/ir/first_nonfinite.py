"""The operation of a program that first makes a NaN or an infinity, found by running it again.

The reference interpreter runs it, op by op. An operation makes a NaN if a result has one and no
operand does; infinities likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracegraph.dtypes import type_text
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.control_forms import is_loop
from tracegraph.ir.interpret import Watch, run, watched_by
from tracegraph.ir.program import Eqn, Literal, Program, Region
from tracegraph.ir.text import atom_text, value_names

Array = np.ndarray[Any, Any]

_NOT_AGAIN = ("debug_print", "report_step", "debug_callback")
"""Effects without a result: the run before had them."""


@dataclass(frozen=True, slots=True)
class Made:
    """Where the first one was made: the equation, its operands, its result, and the loops around
    it with the steps that they were in, innermost first.
    """

    eqn: Eqn
    operands: tuple[Array, ...]
    result: Array
    steps: tuple[tuple[Eqn, int], ...]


class _FoundError(Exception):
    def __init__(self, made: Made) -> None:
        super().__init__()
        self.made = made


class _Finder(Watch):
    def __init__(self, infinities: bool) -> None:
        self.infinities = infinities
        self.around: list[tuple[Eqn, int]] = []  # loops and branches, and how often the body ran

    def skips(self, eqn: Eqn) -> bool:
        return eqn.op.name in _NOT_AGAIN

    def begin(self, eqn: Eqn) -> None:
        if eqn.regions:
            self.around.append((eqn, 0))

    def enter(self, region: Region) -> None:
        if self.around and region is self.around[-1][0].regions[-1]:
            eqn, count = self.around[-1]
            self.around[-1] = eqn, count + 1

    def end(self, eqn: Eqn, operands: Sequence[Array], results: Sequence[Array]) -> None:
        if eqn.regions:
            self.around.pop()
            return
        bad = [result for result in results if has_nonfinite(result, self.infinities)]
        if bad and not any(has_nonfinite(each, self.infinities) for each in operands):
            steps = [(each, count - 1) for each, count in reversed(self.around) if is_loop(each)]
            raise _FoundError(Made(eqn, tuple(operands), bad[0], tuple(steps)))


def first_made(program: Program, arrays: Sequence[Any], infinities: bool) -> Made | None:
    """Run a program for these inputs until an operation makes a NaN, or an infinity if asked for.

    >>> import numpy as np
    >>> from tracegraph import make_program
    >>> program = make_program(lambda x: np.log(x) + 1)(np.ones(2))
    >>> made = first_made(program, [np.array([1.0, -1.0])], False)
    >>> made.eqn.op.name, made.result
    ('log', array([ 0., nan]))
    """
    with watched_by(_Finder(infinities)):
        try:
            run(program, *arrays)
        except _FoundError as found:
            return found.made
    return None


def has_nonfinite(array: Any, infinities: bool) -> bool:
    """Whether an array has a NaN, or if asked for an infinity."""
    return bool(np.any(_nonfinite(np.asarray(array), infinities)))


def _nonfinite(array: Array, infinities: bool) -> Any:
    if array.dtype.kind not in "fcV":  # V: the narrow floats of ml_dtypes
        return False
    with np.errstate(all="ignore"):
        return ~np.isfinite(array) if infinities else np.isnan(array)


def made_text(program: Program, made: Made, infinities: bool) -> str:
    """Where it was made, with the line, the steps of loops, and what went in."""
    names = value_names(program)
    eqn = made.eqn
    called = " ".join((eqn.op.name, *[atom_text(a, names) for a in eqn.operands]))
    line = "" if eqn.source is None else f" at {eqn.source}, in {eqn.source.function}"
    lines = [f"{called}{line} made it: {what_text(made.result, infinities)}"]
    for loop, step in made.steps:
        place = "" if loop.source is None else f" at {loop.source}"
        lines.append(f"in step {step} of the {loop.hints.construct or loop.op.name}{place}")
    for atom, value in zip(eqn.operands, made.operands, strict=True):
        if not isinstance(atom, Literal):
            lines.append(f"{atom_text(atom, names)}: {_range_text(value)}")
    return "\n  ".join(lines)


def what_text(array: Any, infinities: bool) -> str:
    """How many elements are not finite, and the first: ``"2 of 3 elements, the first is [0]"``."""
    array = np.asarray(array)
    where = _nonfinite(array, infinities)
    if not array.shape:
        return str(array[()])
    first = tuple(map(int, np.unravel_index(int(np.argmax(where)), array.shape)))
    index = ", ".join(map(str, first))
    return f"{np.sum(where):,} of {array.size:,} elements, the first is [{index}], {array[first]}"


def _range_text(value: Array) -> str:
    type_ = type_text(value.dtype, value.shape)
    if not value.shape:
        return f"{type_} = {value[()]}"
    if value.size == 0 or value.dtype.kind == "c":
        return type_
    return f"{type_}, from {np.min(value)} to {np.max(value)}"
