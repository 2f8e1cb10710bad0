"""Program -> JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numpy as np

from tracegraph.errors import UnsavableError
from tracegraph.ir.callbacks import HostCall, HostFunction
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.op import DeclaredOp, find
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Region, Value, walk
from tracegraph.ir.stored.attributes import to_json, type_to_json
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import Source

Functions = Callable[[DeclaredOp | KernelCall], int | None]
"""Numbers of functions of users in the file; None: it cannot hold this one."""


def program_to_json(program: Program, functions: Functions | None = None) -> dict[str, Any]:
    """A program as JSON, but for the elements of its constants and the functions of users.

    Files of sources are named without their folders, which are the writer's own affair.

    Raises:
        UnsavableError: an equation calls Python, or a function of the user's that `functions` does
            not know; it has the line.
    """
    writer = _Writer(functions)
    body = writer.region(program.body)
    eqns = (eqn for eqn in walk(program.body) if not isinstance(eqn.op, DeclaredOp))
    ops = sorted({eqn.op.name: eqn.op.version for eqn in eqns}.items())
    constants = [writer.type(ArrayType(c.dtype, c.shape)) for c in program.constants]
    return {
        "name": program.name,
        "effects": program.effects,
        "paths": list(program.paths()),
        "ops": dict(ops),
        "types": [type_to_json(type_) for type_ in writer.types],
        "sources": [[os.path.basename(s.file), s.line, s.function] for s in writer.sources],
        "constants": constants,
        "body": body,
    }


def text_of(document: Any) -> bytes:
    """JSON as the bytes of a file, without blanks. The keys of attributes stay in their order."""
    return json.dumps(document, separators=(",", ":")).encode()


def program_key(program: Program) -> tuple[bytes, tuple[Source, ...]]:
    """The SHA-256 of what a program computes, and the lines that it comes from.

    Names of functions and files, and numbers of lines, are not part of the digest, but which
    equations share a line is: programs of one digest differ in the names of these alone.

    Raises:
        UnsavableError: an equation holds what is no data.
    """
    writer = _Writer()
    document = {
        "effects": program.effects,
        "body": writer.region(program.body),
        "types": [type_to_json(type_) for type_ in writer.types],
        "constants": [[c.dtype.name, list(c.shape)] for c in program.constants],
    }
    digest = sha256(json.dumps(document, sort_keys=True).encode())
    for constant in program.constants:
        digest.update(np.ascontiguousarray(constant).reshape(-1).view(np.uint8).data)
    return digest.digest(), tuple(writer.sources)


class _Writer:
    """What regions share: the types and the lines that were met so far, by number."""

    def __init__(self, functions: Functions | None = None) -> None:
        self._functions = functions
        self.types: dict[ArrayType, int] = {}
        self.sources: dict[Source, int] = {}

    def type(self, type_: ArrayType) -> int:
        return self.types.setdefault(type_, len(self.types))

    def source(self, source: Source) -> int:
        return self.sources.setdefault(source, len(self.sources))

    def region(self, region: Region) -> dict[str, Any]:
        numbers: dict[Value, int] = {}

        def define(value: Value) -> int:
            numbers[value] = len(numbers)
            return self.type(value.type)

        def atom(given: Atom) -> Any:
            if isinstance(given, Literal):
                return {"literal": given.value.tobytes().hex(), "type": self.type(given.type)}
            return numbers[given]

        params = [define(value) for value in region.params]
        eqns = []
        for eqn in region.eqns:
            operands = [atom(given) for given in eqn.operands]
            written = self._equation(eqn)
            eqns.append({**written, "in": operands, "out": [define(v) for v in eqn.outputs]})
        return {"params": params, "eqns": eqns, "results": [atom(a) for a in region.results]}

    def _equation(self, eqn: Eqn) -> dict[str, Any]:
        written: dict[str, Any] = {"op": eqn.op.name}
        if isinstance(eqn.op, DeclaredOp):
            written["function"] = self._function(eqn, eqn.op)
        elif find(eqn.op.name) is not eqn.op:
            raise unsavable(eqn, "the op is in no registry")
        if eqn.attrs:
            written["attrs"] = {name: self._attribute(eqn, name) for name in eqn.attrs}
        if eqn.regions:
            written["regions"] = [self.region(inner) for inner in eqn.regions]
        if eqn.source is not None:
            written["source"] = self.source(eqn.source)
        if given := eqn.hints.given():
            written["hints"] = given
        return written

    def _attribute(self, eqn: Eqn, name: str) -> Any:
        value = eqn.attrs[name]
        if isinstance(value, Exception):  # of a rule that cannot be traced
            raise value
        if isinstance(value, KernelCall):
            return {"function": self._function(eqn, value)}
        try:
            return to_json(value)
        except UnsavableError as error:
            if isinstance(value, (HostCall, HostFunction)):
                why = "a file cannot hold the function that it calls"
            else:
                why = f"its {name}: {error}"
            raise unsavable(eqn, f"{why}; leave it out of the function that you export") from None

    def _function(self, eqn: Eqn, called: DeclaredOp | KernelCall) -> int:
        number = None if self._functions is None else self._functions(called)
        if number is None:
            raise unsavable(eqn, "is a function with a text of its own, made by the user")
        return number


def unsavable(eqn: Eqn, why: str) -> UnsavableError:
    """The error of an equation, with its line."""
    where = "" if eqn.source is None else f" at {eqn.source}, in {eqn.source.function}"
    return UnsavableError(f"the operation {eqn.op.name}{where} cannot be saved: {why}")
