"""SavedProgram: a program with the types and the trees that it is for; as JSON and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from tracegraph import tree
from tracegraph.errors import MalformedProgramError, MalformedTargetError
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.argument_ranges import ArgumentRange
from tracegraph.ir.program import Program
from tracegraph.ir.stored.attributes import (
    DTYPES,
    from_json,
    to_json,
    type_from_json,
    type_to_json,
)
from tracegraph.ir.types import ArrayType
from tracegraph.saving.trees import (
    Document,
    leaf_count,
    namedtuples_in,
    structure_from_json,
    structure_to_json,
)
from tracegraph.staging.calls.signature import CallKey, StaticValue
from tracegraph.staging.program_function import StoredTarget
from tracegraph.user_source import Source


@dataclass(frozen=True, slots=True, eq=False)
class SavedTargets:
    """A program compiled for some architectures, and what calls need to know of it besides."""

    results: tuple[ArrayType, ...]
    ranges: tuple[ArgumentRange, ...]
    by_arch: Mapping[str, StoredTarget] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """All but the targets."""
        return {
            "results": [type_to_json(type_) for type_ in self.results],
            "ranges": [_range_to_json(each) for each in self.ranges],
        }

    @classmethod
    def from_json(cls, written: Any, by_arch: Mapping[str, StoredTarget]) -> SavedTargets:
        """What `to_json` has written, with the targets.

        Raises:
            ExportFormatError: it is something else.
        """
        match written:
            case {"results": list(results), "ranges": list(ranges)}:
                types = tuple([type_from_json(each) for each in results])
                return cls(types, tuple(map(_range_from_json, ranges)), by_arch)
        raise MalformedTargetError("its results are missing")


def _range_to_json(each: ArgumentRange) -> list[Any]:
    values = each.values
    return [each.position, values.start, values.stop, each.dtype.name, to_json(each.source)]


def _range_from_json(written: Any) -> ArgumentRange:
    match written:
        case [int(position), int(start), int(stop), str(dtype), source] if dtype in DTYPES:
            line = from_json(source)
            if line is None or isinstance(line, Source):
                return ArgumentRange(position, range(start, stop), DTYPES[dtype], line)
    raise MalformedTargetError("a range of an argument is none")


@dataclass(frozen=True, slots=True, eq=False)
class SavedProgram:
    """One program of a function: for arguments of these types, trees and static values."""

    source: Program | Callable[[], Program] = field(repr=False)
    """The program, or what reads it."""
    types: tuple[ArrayType, ...]
    """Those of the leaves of the arguments."""
    arguments: Document = field(repr=False)
    """The tree of ``(args, kwargs)``, static values left out."""
    result: Document = field(repr=False)
    static: tuple[tuple[int | str, Any], ...] = ()
    """Static values by position or name."""
    targets: SavedTargets | None = field(default=None, repr=False)

    @property
    def program(self) -> Program:
        """The program. That of a file with targets is read once it is asked for.

        Raises:
            MalformedProgramError: it is not well formed.
        """
        source = self.source
        if not isinstance(source, Program):
            source = source()
            object.__setattr__(self, "source", source)
        return source

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
        read: Callable[[], Program],
        targets: SavedTargets | None = None,
    ) -> SavedProgram:
        """What `to_json` has written, and what reads the program: now, if there are no targets.

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
        in_types = tuple([type_from_json(each) for each in types])
        match arguments:
            case {"tuple": [{"tuple": _}, {"dict": _}]} if leaf_count(arguments) == len(in_types):
                pass
            case _:
                raise MalformedProgramError("the tree of its arguments is none of a call")

        def checked() -> Program:
            program = read()
            if in_types != program.in_types:
                raise MalformedProgramError("its types are not those of its parameters")
            if leaf_count(result) != len(program.out_types):
                raise MalformedProgramError("the tree of its result has another number of leaves")
            return program

        if targets is not None and leaf_count(result) != len(targets.results):
            raise MalformedTargetError("the tree of its result has another number of leaves")
        if targets is not None and any(
            not 0 <= each.position < len(in_types) for each in targets.ranges
        ):
            raise MalformedTargetError("a range is of no argument")
        source = checked() if targets is None else checked
        return cls(
            source, in_types, arguments, result, tuple(map(_static_from_json, static)), targets
        )


def _static_to_json(where: int | str, value: Any) -> list[Any]:
    return [where, to_json(value)]


def _static_from_json(written: Any) -> tuple[int | str, Any]:
    match written:
        case [int() | str() as where, value]:
            return where, from_json(value)
    raise MalformedProgramError("a static value has no place")
