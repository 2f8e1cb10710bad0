"""SavedProgram: a program with the types and the trees that it is for; as JSON and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from tracegraph import tree
from tracegraph.errors import MalformedProgramError
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.op import DeclaredOp
from tracegraph.ir.program import Program
from tracegraph.ir.stored.attributes import from_json, to_json, type_from_json, type_to_json
from tracegraph.ir.stored.reading import program_from_json
from tracegraph.ir.types import ArrayType
from tracegraph.saving.trees import (
    Document,
    leaf_count,
    namedtuples_in,
    structure_from_json,
    structure_to_json,
)
from tracegraph.staging.calls.signature import CallKey, StaticValue


@dataclass(frozen=True, slots=True, eq=False)
class SavedProgram:
    """One program of a function: for arguments of these types, trees and static values."""

    program: Program
    types: tuple[ArrayType, ...]
    """Those of the leaves of the arguments."""
    arguments: Document = field(repr=False)
    """The tree of ``(args, kwargs)``, static values left out."""
    result: Document = field(repr=False)
    static: tuple[tuple[int | str, Any], ...] = ()
    """Static values by position or name."""

    @classmethod
    def of(cls, program: Program, key: CallKey, result: tree.Structure) -> SavedProgram:
        """A traced program for the call that it was traced for.

        Raises:
            UnsavableError: the trees or static values have what is no data.
        """
        static = tuple([(each.where, each.value) for each in key.static])
        for where, value in static:
            _static_to_json(where, value)  # refuses what cannot be written
        arguments = structure_to_json(key.structure, "an argument")
        types = program.in_types
        return cls(program, types, arguments, structure_to_json(result, "the result"), static)

    def fits(self, key: CallKey) -> bool:
        """Whether it is for calls with this key."""
        if self.types != tuple([ArrayType(*leaf) for leaf in key.leaves]):
            return False
        if self.static_values != key.static:
            return False
        known = namedtuples_in(key.structure)
        return structure_from_json(self.arguments, known, lambda name: None) == key.structure

    @property
    def static_values(self) -> tuple[StaticValue, ...]:
        """The static values as keys of calls have them."""
        return tuple([StaticValue(where, tree.kind_of(v), v) for where, v in self.static])

    def key(self) -> CallKey:
        """The key of the calls that it is for, with classes of its own for namedtuples."""
        structure = structure_from_json(self.arguments, {})
        leaves = tuple([(t.dtype, t.shape, t.weak) for t in self.types])
        return CallKey(structure, leaves, self.static_values)

    def result_structure(self, key: CallKey) -> tree.Structure:
        """The structure of the result of a call, with the classes of its arguments."""
        return structure_from_json(self.result, namedtuples_in(key.structure))

    def to_json(self) -> dict[str, Any]:
        """All but the program."""
        return {
            "types": [type_to_json(type_) for type_ in self.types],
            "arguments": self.arguments,
            "result": self.result,
            "static": [_static_to_json(where, value) for where, value in self.static],
        }

    @classmethod
    def from_json(
        cls,
        written: Any,
        program: Any,
        constants: list[np.ndarray[Any, Any]],
        functions: Sequence[DeclaredOp | KernelCall] = (),
    ) -> SavedProgram:
        """What `to_json` has written; the document and the constants of the program, and the
        functions of users that it calls.

        Raises:
            ExportFormatError: it is something else, or does not fit the program.
        """
        match written:
            case {
                "types": list(types),
                "arguments": arguments,
                "result": result,
                "static": list(static),
            }:
                pass
            case _:
                raise MalformedProgramError("its types and trees are missing")
        found = cls(
            program_from_json(program, constants, functions),
            tuple([type_from_json(each) for each in types]),
            arguments,
            result,
            tuple(map(_static_from_json, static)),
        )
        found._check()
        return found

    def _check(self) -> None:
        match self.arguments:
            case {"tuple": [{"tuple": _}, {"dict": _}]}:
                pass
            case _:
                raise MalformedProgramError("the tree of its arguments is none of a call")
        if leaf_count(self.arguments) != len(self.types) or self.types != self.program.in_types:
            raise MalformedProgramError("its types are not those of its parameters")
        if leaf_count(self.result) != len(self.program.out_types):
            raise MalformedProgramError("the tree of its result has another number of leaves")


def _static_to_json(where: int | str, value: Any) -> list[Any]:
    return [where, to_json(value)]


def _static_from_json(written: Any) -> tuple[int | str, Any]:
    match written:
        case [int() | str() as where, value]:
            return where, from_json(value)
    raise MalformedProgramError("a static value has no place")
