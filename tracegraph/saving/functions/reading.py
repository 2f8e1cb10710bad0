"""JSON -> records, each field checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from tracegraph.errors import MalformedProgramError
from tracegraph.ir.stored.attributes import from_json
from tracegraph.ir.stored.reading import program_from_json
from tracegraph.ir.types import ArrayType
from tracegraph.saving.functions.rebuilt import made_of
from tracegraph.saving.functions.records import (
    ElementwiseRecord,
    FoldRecord,
    FunctionProgram,
    KernelRecord,
    Made,
    Record,
)
from tracegraph.saving.functions.writing import KINDS

Arrays = Callable[[Any, Sequence[str]], Sequence[np.ndarray[Any, Any]]]
"""The constants of a program's document, by the names of their entries."""


def functions_from_json(documents: Any, arrays: Arrays) -> list[Made]:
    """The ops and the calls of kernels that a file has.

    Raises:
        ExportFormatError: they are not well formed.
    """
    if not isinstance(documents, list):
        raise MalformedProgramError("its functions are no list")
    found: list[Made] = []
    for document in documents:
        try:
            record = _record(document, arrays, found)
            found.append(made_of(record))
        except MalformedProgramError:
            raise
        except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
            raise MalformedProgramError(f"a function of the user's: {error}") from error
    return found


def _record(document: Any, arrays: Arrays, known: Sequence[Made]) -> Record:
    kind = KINDS.get(document["kind"])
    if kind is None:
        raise MalformedProgramError(f"no function is a {document['kind']!r}")
    values = [_read(document[field.name], arrays, known) for field in fields(kind)]
    record: Record = kind(*values)
    if not _is_whole(record):
        raise MalformedProgramError(f"a field of a {kind.__name__} has a value that none can have")
    return record


def _read(value: Any, arrays: Arrays, known: Sequence[Made]) -> Any:
    match value:
        case {"rule": list(parts)}:
            return tuple([_read(part, arrays, known) for part in parts])
        case {"fault": str(fault)}:
            return FunctionProgram(None, fault)
        case {"program": document, "constants": list(names)}:
            zeros = value.get("zeros", [])
            if not all(isinstance(zero, bool) for zero in zeros):
                raise MalformedProgramError("results that are zero are not marked by bools")
            program = program_from_json(document, arrays(document, names), known)
            return FunctionProgram(program, zeros=tuple(zeros))
    return from_json(value)


def _is_whole(record: Record) -> bool:
    """Whether the fields are of their types, and programs fit what they are called with."""
    match record:
        case ElementwiseRecord(
            str(), str(), int(count), np.dtype() as dtype, np.dtype(), tuple(texts), str(), int()
        ) if 0 < count <= 64:
            one = [ArrayType(dtype, (1,))] * count
            return (
                _are_texts(texts, count)
                and _takes(record.function, one, 1)
                and _is_rule(record.rule, count, lambda each: _takes(each, one, 1))
            )
        case FoldRecord(
            "reduce" | "accumulate",
            str(),
            str(),
            np.dtype() as dtype,
            np.generic() as identity,
            tuple(texts),
            str(),
            FunctionProgram() as function,
            _,
            tuple(shape),
            tuple(axes),
        ):
            type_ = ArrayType(dtype, _extents(shape))
            one = [ArrayType(dtype, (1,))] * 2
            return (
                identity.dtype == dtype
                and _are_texts(texts, 2)
                and all(type(axis) is int and 0 <= axis < len(shape) for axis in axes)
                and _takes(function, one, 1)
                and _gives(function, dtype)
                and _is_rule(record.rule, 1, lambda each: _takes(each, [type_] * 2, None))
                and (record.form == "reduce" or not isinstance(record.rule, tuple))
            )
        case KernelRecord(
            name=str(),
            where=str(),
            parameters=tuple(parameters),
            scalars=tuple(scalars),
            text=str(),
            entry=str(entry),
            operands=tuple(operands),
            results=tuple(results),
        ):
            return _is_kernel(record, parameters, scalars, entry, operands, results)
    return False


def _is_kernel(
    record: KernelRecord,
    parameters: tuple[Any, ...],
    scalars: tuple[Any, ...],
    entry: str,
    operands: tuple[Any, ...],
    results: tuple[Any, ...],
) -> bool:
    names = [name for name, _ in scalars]
    moving = [type_ for type_ in operands if type_.dtype.kind in "fcV"]
    return (
        all(isinstance(type_, ArrayType) for type_ in (*operands, *results))
        and all(isinstance(name, str) for name in parameters)
        and len(set(parameters)) == len(parameters) == len(names) + len(operands)
        and names == [name for name in parameters if name in names]
        and all(isinstance(value, np.generic) and value.dtype.kind != "c" for _, value in scalars)
        and entry.isidentifier()
        and entry.isascii()
        and type(record.single) is type(record.cooperative) is type(record.batched) is bool
        and (not record.single or len(results) == 1)
        and all(
            type(out) is type(of) is int and 0 <= out < len(results) and 0 <= of < len(operands)
            for out, of in record.aliases
        )
        and len({of for _, of in record.aliases}) == len(record.aliases)
        and _takes(record.function, operands, len(results))
        and _is_rule(record.rule, 1, lambda each: _takes(each, [*operands, *moving], None))
        and all(
            len(each.zeros) == len(results)
            for each in (record.rule if isinstance(record.rule, tuple) else ())
            if isinstance(each, FunctionProgram) and each.program is not None
        )
    )


def _are_texts(texts: tuple[Any, ...], count: int) -> bool:
    """Whether they are expressions of `count` operands, by kinds of dtypes."""
    operands = [f"a{n}" for n in range(count)]
    for kind, text in texts:
        if kind not in "biufc" or len(kind) != 1:
            return False
        text.format(*operands, T="T")
    return bool(texts)


def _extents(shape: tuple[Any, ...]) -> tuple[int, ...]:
    if not all(type(extent) is int and extent >= 0 for extent in shape):
        raise MalformedProgramError("a shape has something else than extents")
    return shape


def _takes(traced: Any, types: Sequence[ArrayType], results: int | None) -> bool:
    """Whether a function, if there is a program of it, takes these types.

    `results` is the number of its results; None: those that are not marked as zero.
    """
    if not isinstance(traced, FunctionProgram):
        return False
    program = traced.program
    if program is None:
        return bool(traced.fault)
    count = traced.zeros.count(False) if results is None else results
    strong = [type_.strong() for type_ in types]
    return list(program.in_types) == strong and len(program.out_types) == count


def _gives(function: FunctionProgram, dtype: np.dtype[Any]) -> bool:
    """Whether a function, if there is a program of it, gives one element of a dtype."""
    program = function.program
    return program is None or (program.out_types[0].dtype, program.out_types[0].size) == (dtype, 1)


def _is_rule(rule: Any, count: int, is_part: Callable[[FunctionProgram], bool]) -> bool:
    if rule is None or rule == "reference":
        return True
    return (
        isinstance(rule, tuple)
        and len(rule) == count
        and all((type(each) is int and each in (-1, 0, 1)) or is_part(each) for each in rule)
    )
