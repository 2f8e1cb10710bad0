"""JSON -> Program. What is read may be anything: each part is checked before it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from tracegraph.errors import ExportFormatError, MalformedProgramError, VerificationError
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.op import DeclaredOp, get
from tracegraph.ir.program import (
    NO_ATTRS,
    NO_HINTS,
    Atom,
    Eqn,
    Hints,
    Literal,
    Program,
    Region,
    Value,
)
from tracegraph.ir.stored.attributes import from_json, scalar, type_from_json
from tracegraph.ir.stored.upgrades import upgrades_for
from tracegraph.ir.types import ArrayType
from tracegraph.ir.verify import verify
from tracegraph.user_source import Source

DEEPEST = 60
"""Regions inside of regions."""

_HINTS: Mapping[str, type] = {
    **dict.fromkeys(("schedule", "construct"), str),
    **dict.fromkeys(("unroll", "checkpoints"), int),
    **dict.fromkeys(("in_order", "grouped"), bool),
}
assert set(_HINTS) == {each.name for each in fields(Hints)}


def constant_types(document: Any) -> list[ArrayType]:
    """The types of the constants of a program.

    Raises:
        MalformedProgramError: it is no program.
    """
    types = [type_from_json(each) for each in _list(document, "types")]
    return [_at(types, number, "type") for number in _list(document, "constants")]


def program_from_json(
    document: Any,
    constants: Sequence[np.ndarray[Any, Any]],
    functions: Sequence[DeclaredOp | KernelCall] = (),
) -> Program:
    """The program of a document, with these constants, and these functions of users.

    It is well formed: `verify` has passed.

    Raises:
        ExportVersionError: it has an op that this package does not know in this version.
        MalformedProgramError: it is no program.
    """
    name, effects = _field(document, "name", str), _field(document, "effects", bool)
    try:
        body = _Reader(document, functions).region(document.get("body"), 0)
        return verify(Program(name, body, tuple(constants), effects, _paths(document)))
    except VerificationError as error:
        raise MalformedProgramError(str(error)) from error
    except (ExportFormatError, MemoryError):
        raise
    except Exception as error:  # a type rule takes the attributes that it knows for granted
        raise MalformedProgramError(f"{type(error).__name__}: {error}") from error


class _Reader:
    def __init__(self, document: Any, functions: Sequence[DeclaredOp | KernelCall]) -> None:
        self._functions = functions
        self._types = [type_from_json(each) for each in _list(document, "types")]
        self._sources = [_source(each) for each in _list(document, "sources")]
        self._upgrades = upgrades_for(document.get("ops"))

    def region(self, given: Any, depth: int) -> Region:
        if depth > DEEPEST:
            raise MalformedProgramError(f"regions are nested more than {DEEPEST} deep")
        values = [Value(self._type(number)) for number in _list(given, "params")]
        params = tuple(values)

        def atom(written: Any) -> Atom:
            if isinstance(written, dict):
                type_ = self._type(written.get("type"))
                return Literal(scalar(written.get("literal"), type_.dtype), type_)
            found: Value = _at(values, written, "value")
            return found

        eqns = []
        for written in _list(given, "eqns"):
            eqn = self._equation(written, atom, depth)
            values += eqn.outputs
            eqns.append(eqn)
        results = tuple([atom(each) for each in _list(given, "results")])
        return Region(params, tuple(eqns), results)

    def _type(self, number: Any) -> ArrayType:
        found: ArrayType = _at(self._types, number, "type")
        return found

    def _equation(self, written: Any, atom: Any, depth: int) -> Eqn:
        op = None
        if "function" in written:
            op = self._function(written, DeclaredOp)
        else:
            written = self._upgraded(written)
        operands = tuple([atom(each) for each in _list(written, "in")])
        outputs = tuple([Value(self._type(each)) for each in _list(written, "out")])
        attrs: Mapping[str, Any] = NO_ATTRS
        if "attrs" in written:
            given = _field(written, "attrs", dict)
            attrs = {key: self._attribute(value) for key, value in given.items()}
        regions = (self.region(each, depth + 1) for each in written.get("regions", ()))
        source = None
        if "source" in written:
            source = _at(self._sources, written["source"], "line")
        op = op or get(_field(written, "op", str))
        return Eqn(op, operands, outputs, attrs, tuple(regions), source, _hints(written))

    def _upgraded(self, written: Any) -> Any:
        name = _field(written, "op", str)
        if name not in self._upgrades:
            raise MalformedProgramError(f"the op {name!r} is not among those that it lists")
        for upgrade in self._upgrades[name]:
            written = upgrade(dict(written))
        return written

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, dict) and "function" in value:
            return self._function(value, KernelCall)
        return from_json(value)

    def _function(self, written: Any, kind: type) -> Any:
        found = _at(self._functions, written["function"], "function")
        if not isinstance(found, kind):
            raise MalformedProgramError(f"function {written['function']} is none of its kind")
        return found


def _hints(written: Mapping[str, Any]) -> Hints:
    if "hints" not in written:
        return NO_HINTS
    given = _field(written, "hints", dict)
    for name, value in given.items():
        if type(value) is not _HINTS.get(name):
            raise MalformedProgramError(f"no hint {name!r} is {value!r}")
    return Hints(**given)


def _paths(document: Any) -> Callable[[], Sequence[str]]:
    """The names of the inputs: "paths" is missing in files of 0.1.0."""
    found = tuple([name for name in document.get("paths", ()) if isinstance(name, str)])
    return lambda: found


def _source(given: Any) -> Source:
    match given:
        case [str(file), int(line), str(function)]:
            return Source(file, line, function)
    raise MalformedProgramError("a line is not a file, a number and a function")


def _at(items: Sequence[Any], number: Any, what: str) -> Any:
    if type(number) is not int or not 0 <= number < len(items):
        raise MalformedProgramError(f"{number!r} is no {what} of {len(items)}")
    return items[number]


def _list(given: Any, name: str) -> list[Any]:
    found: list[Any] = _field(given, name, list)
    return found


def _field(given: Any, name: str, kind: type) -> Any:
    found = given.get(name) if isinstance(given, dict) else None
    if type(found) is not kind:
        raise MalformedProgramError(f"{name!r} is no {kind.__name__}")
    return found
