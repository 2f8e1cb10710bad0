"""Attributes of equations as JSON: each value that is not one of JSON's own has a tag."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from tracegraph.dtypes import SHORT_NAMES
from tracegraph.errors import MalformedProgramError, UnsavableError, value_text
from tracegraph.ir.effects import Failure, PrintFormat
from tracegraph.ir.types import ArrayType, canonical_type
from tracegraph.progress import Monitor
from tracegraph.user_source import Source

DTYPES: Mapping[str, np.dtype[Any]] = {dtype.name: dtype for dtype in SHORT_NAMES}
"""Every dtype that arrays may have, by the name that files have for it."""

MOST_AXES = 64
MOST_BYTES = 1 << 62
"""Axes and bytes of an array: more cannot be."""

RECORDS: Mapping[str, type] = {
    kind.__name__: kind for kind in (Failure, Monitor, PrintFormat, Source)
}
"""Records that are data, by the tag that they have in files. Their fields are attributes again."""


def to_json(value: Any) -> Any:
    """A value of an attribute as JSON.

    Raises:
        UnsavableError: it is a function, or anything else that is no data.

    >>> to_json((1, 2.5, np.dtype("int8"), None))
    [1, {'float': '0x1.4000000000000p+1'}, {'dtype': 'int8'}, None]
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind in _WRITERS:
        return _WRITERS[kind](value)
    if isinstance(value, np.dtype):
        return {"dtype": value.name}
    if isinstance(value, np.generic) and value.dtype in SHORT_NAMES:
        return {"number": value.tobytes().hex(), "dtype": value.dtype.name}
    if kind.__name__ in RECORDS and RECORDS[kind.__name__] is kind:
        return {kind.__name__: [to_json(getattr(value, name)) for name in _names(kind)]}
    raise UnsavableError(f"{value_text(value)} is no data")


_WRITERS: Mapping[type, Callable[[Any], Any]] = {
    float: lambda value: {"float": value.hex()},
    complex: lambda value: {"complex": [value.real.hex(), value.imag.hex()]},
    tuple: lambda value: [to_json(item) for item in value],
    slice: lambda value: {"slice": [to_json(x) for x in (value.start, value.stop, value.step)]},
    ArrayType: lambda value: {"type": type_to_json(value)},
}


def _names(kind: type) -> tuple[str, ...]:
    if kind is Source:
        return Source._fields[:3]  # lowering alone sets the rest
    return tuple(field.name for field in fields(kind))


def from_json(value: Any) -> Any:
    """The value of an attribute.

    Raises:
        MalformedProgramError: it is not what `to_json` gives.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, list):
        return tuple([from_json(item) for item in value])
    if isinstance(value, dict):
        for tag, read in _READERS.items():
            if tag in value:
                try:
                    return read(value)
                except (KeyError, TypeError, ValueError, OverflowError) as error:
                    raise MalformedProgramError(f"a bad {tag}: {_short(value)}") from error
    raise MalformedProgramError(f"no attribute can be {_short(value)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _number(value: Any) -> Any:
    return scalar(value["number"], dtype(value["dtype"]))


def _record(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        found = kind(*[from_json(each) for each in value[kind.__name__]])
        _check_record(found)
        return found

    return read


def _check_record(found: Any) -> None:
    """Raise ValueError unless the fields of a record are of their types."""
    match found:
        case Source(str(), int(), str()):
            return
        case Failure(str(error), str(), None | Source()):
            from tracegraph import errors

            kind = getattr(errors, error, None)
            if isinstance(kind, type) and issubclass(kind, Exception):
                return
        case Monitor(str(), None | int(), None, None | Source()):
            return
        case PrintFormat(str(), int(), tuple(names), None | Source()):
            if all(isinstance(name, str) for name in names):
                return
    raise ValueError(f"fields of {type(found).__name__}")


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "float": lambda value: float.fromhex(value["float"]),
    "complex": lambda value: complex(*map(float.fromhex, value["complex"])),
    "number": _number,
    "dtype": lambda value: dtype(value["dtype"]),
    "slice": lambda value: slice(*map(from_json, value["slice"])),
    "type": lambda value: type_from_json(value["type"]),
    **{name: _record(kind) for name, kind in RECORDS.items()},
}


def dtype(name: Any) -> np.dtype[Any]:
    """The dtype of a name in a file.

    Raises:
        MalformedProgramError: arrays cannot have it.
    """
    found = DTYPES.get(name) if isinstance(name, str) else None
    if found is None:
        raise MalformedProgramError(f"there is no dtype {_short(name)}")
    return found


def scalar(digits: Any, of: np.dtype[Any]) -> Any:
    """The NumPy scalar with these bytes.

    Raises:
        MalformedProgramError: they are not as many as the dtype has.
    """
    if not isinstance(digits, str) or len(digits) != 2 * of.itemsize:
        raise MalformedProgramError(f"{_short(digits)} is no {of.name} in hexadecimal digits")
    try:
        return np.frombuffer(bytes.fromhex(digits), of)[0]
    except ValueError as error:
        raise MalformedProgramError(f"{_short(digits)} are no hexadecimal digits") from error


def type_to_json(type_: ArrayType) -> list[Any]:
    """A type: dtype, shape, and true if it is weak."""
    return [type_.dtype.name, list(type_.shape), *([True] if type_.weak else [])]


def type_from_json(value: Any) -> ArrayType:
    """The type that `type_to_json` has written.

    Raises:
        MalformedProgramError: it is none, or has a dimension without an extent.
    """
    match value:
        case [str(name), list(shape)] | [str(name), list(shape), True]:
            of = dtype(name)
        case _:
            raise MalformedProgramError(f"{_short(value)} is no type")
    if len(shape) > MOST_AXES:
        raise MalformedProgramError(f"a type has {len(shape)} axes")
    size = of.itemsize
    for extent in shape:
        if isinstance(extent, dict):
            raise MalformedProgramError(f"the extent {_short(extent)} is a name, and no number")
        if type(extent) is not int or extent < 0:
            raise MalformedProgramError(f"an extent is {_short(extent)}")
        size *= max(extent, 1)
        if size > MOST_BYTES:
            raise MalformedProgramError(f"a type of the shape {_short(shape)} is too large")
    return canonical_type(ArrayType(of, tuple(shape), len(value) > 2))
