"""The type checker of Programs.

A program is well formed if in every region each operand and result is a literal, a parameter, or
an output of an earlier equation of the same region; each value is defined once; literals are
scalars of exactly their type's dtype; and every equation's output types are those that its op
computes, which for ops with regions includes the signatures of the regions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracegraph.errors import VerificationError
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Region, Value
from tracegraph.ir.text import program_text


class _FaultError(Exception):
    def __init__(self, problem: str, eqn: Eqn | None) -> None:
        super().__init__(problem)
        self.eqn = eqn


def verify(program: Program) -> Program:
    """The program itself, if it is well formed.

    Raises:
        VerificationError: it is not. The message holds the program's text with the equation marked.

    >>> from tracegraph.ir.types import ArrayType
    >>> x, y = (Value(ArrayType("float64", (8,))) for _ in range(2))
    >>> verify(Program("wrong", Region((x,), (), (y,))))
    Traceback (most recent call last):
    ...
    tracegraph.errors.VerificationError: program wrong: result 0 is not defined in its region
    program wrong(a: f64[8]) {
      return <undefined>
    }
    """
    try:
        _check_constants(program)
        if program.effects and program.body.result_types[-1:] != (TOKEN,):
            raise _FaultError(f"its last result must be the token of its effects, {TOKEN}", None)
        _check_region(program.body, None)
    except _FaultError as fault:
        text = program_text(program, mark=fault.eqn)
        raise VerificationError(program.name, str(fault), text) from fault.__cause__
    return program


def _check_constants(program: Program) -> None:
    if len(program.constants) > len(program.body.params):
        raise _FaultError(
            f"{len(program.constants)} constants have no parameter to stand for them", None
        )
    values = program.body.params[len(program.inputs) :]
    for i, (value, data) in enumerate(zip(values, program.constants, strict=True)):
        if (data.dtype, data.shape) != (value.type.dtype, value.type.shape):
            got = f"{data.dtype}{list(data.shape)}"
            raise _FaultError(f"constant {i} holds {got}, its parameter is {value.type}", None)


def _check_region(region: Region, around: Eqn | None) -> None:
    defined: set[Value] = set()
    _define(defined, region.params, "parameter", around)
    for eqn in region.eqns:
        for i, atom in enumerate(eqn.operands):
            _check_atom(defined, atom, f"operand {i}", eqn)
        for inner in eqn.regions:
            _check_region(inner, eqn)
        _check_types(eqn)
        _define(defined, eqn.outputs, "output", eqn)
    for i, atom in enumerate(region.results):
        _check_atom(defined, atom, f"result {i}", around)


def _define(defined: set[Value], values: Sequence[Value], what: str, eqn: Eqn | None) -> None:
    for i, value in enumerate(values):
        if value in defined:
            raise _FaultError(f"{what} {i} is defined a second time", eqn)
        defined.add(value)


def _check_atom(defined: set[Value], atom: Atom, what: str, eqn: Eqn | None) -> None:
    if not isinstance(atom, Literal):
        if atom not in defined:
            raise _FaultError(f"{what} is not defined in its region", eqn)
    elif atom.type.shape != () or not isinstance(atom.value, np.generic):
        raise _FaultError(f"{what} is a literal and must be a NumPy scalar: {atom.value!r}", eqn)
    elif atom.value.dtype != atom.type.dtype:
        raise _FaultError(f"{what} is a literal {atom.value.dtype} of type {atom.type}", eqn)


def _check_types(eqn: Eqn) -> None:
    try:
        types = eqn.op.result_types([a.type for a in eqn.operands], eqn.attrs, eqn.regions)
    except (TypeError, ValueError) as error:
        raise _FaultError(f"{eqn.op.name}: {error}", eqn) from error
    recorded = tuple(v.type for v in eqn.outputs)
    if types != recorded:
        computed, found = (f"({', '.join(map(str, ts))})" for ts in (types, recorded))
        raise _FaultError(f"{eqn.op.name} yields {computed}, recorded are {found}", eqn)
