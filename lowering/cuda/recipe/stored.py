"""Recipes as JSON, and back: each record is the list of its fields in order.

A relocation of a number is that number, others are [base, index, offset]. Nodes, which are of
several classes, have the name of their class, without "Recipe", before their fields. Types are as
in programs.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import IntEnum
from functools import cache
from operator import attrgetter
from typing import Any, NoReturn, Union, get_args, get_origin

from lowering.cuda.recipe.checks import require_sound
from lowering.cuda.recipe.recipe import FORMAT, Base, Node, Recipe, Relocation
from tracegraph.errors import ExportVersionError, MalformedProgramError, MalformedTargetError
from tracegraph.ir.effects import Failure, PrintFormat
from tracegraph.ir.stored.attributes import from_json, to_json, type_from_json, type_to_json
from tracegraph.ir.types import ArrayType
from tracegraph.progress import Monitor

Document = Any
Write = Callable[[Any], Document]
Read = Callable[[Document], Any]

_WORDS = (int, str, bool)
"""The types whose values are in documents as they are."""

_NODES: Mapping[str, type] = {kind.__name__.removeprefix("Recipe"): kind for kind in get_args(Node)}


def recipe_to_json(recipe: Recipe) -> Document:
    """A recipe as a document."""
    return {"format": FORMAT, "recipe": _writer(Recipe)(recipe)}


def recipe_from_json(document: Document) -> Recipe:
    """The recipe of a document, which is checked.

    Raises:
        MalformedTargetError: it is none.
        ExportVersionError: it is of another format.
    """
    match document:
        case {"format": int(format_), "recipe": written}:
            pass
        case _:
            raise MalformedTargetError("it is no recipe")
    if format_ != FORMAT:
        needed = f"format {format_} of targets"
        raise ExportVersionError(needed, f"{FORMAT}", is_older=format_ < FORMAT)
    try:
        recipe: Recipe = _reader(Recipe)(written)
    except MalformedProgramError as error:
        raise MalformedTargetError(str(error)) from error
    except RecursionError as error:
        raise MalformedTargetError("it is nested too deeply") from error
    require_sound(recipe)
    return recipe


def _same(value: Any) -> Any:
    return value


def _write_place(place: Relocation) -> Document:
    if place.base is Base.NUMBER:
        return place.offset
    return [int(place.base), place.index, place.offset]


def _write_node(node: Any) -> Document:
    name = type(node).__name__.removeprefix("Recipe")
    return [name, *_writer(_NODES[name])(node)]


@cache
def _writer(kind: Any) -> Write:
    """What writes values of a type."""
    if kind in _WORDS:
        return _same
    if kind is Relocation:
        return _write_place
    if kind is ArrayType:
        return type_to_json
    if kind in (Failure, Monitor, PrintFormat):
        return to_json
    if kind == Node:
        return _write_node
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return int
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        inner = [_writer(each) for each in arguments if each is not Ellipsis]
        if Ellipsis in arguments:
            return lambda values: [inner[0](value) for value in values]
        return lambda values: [w(value) for w, value in zip(inner, values, strict=True)]
    if origin in (Union, types.UnionType):
        write = _writer(_only(arguments))
        return lambda value: None if value is None else write(value)
    if origin is not None and issubclass(origin, Mapping):
        return dict
    names = [each.name for each in fields(kind)]
    writers = [_writer(each) for each in _types(kind)]
    values_of = attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
    return lambda value: [w(each) for w, each in zip(writers, values_of(value), strict=True)]


def _types(kind: type) -> list[Any]:
    """The types of the fields of a record."""
    return [each.type for each in fields(kind)]


def _only(arguments: tuple[Any, ...]) -> Any:
    (kind,) = [each for each in arguments if each is not type(None)]
    return kind


def _exactly(kind: type) -> Read:
    def read(value: Document) -> Any:
        if type(value) is not kind:
            raise MalformedTargetError(f"{str(value)[:40]} is no {kind.__name__}")
        return value

    return read


def _refuse_place(value: Document) -> NoReturn:
    if type(value) is int:
        raise MalformedTargetError(f"the word {value} has more than 64 bits")
    raise MalformedTargetError(f"{str(value)[:40]} is no place")


def _read_place(value: Document) -> Relocation:
    if type(value) is int:
        return Relocation(Base.NUMBER, 0, value) if 0 <= value < 1 << 64 else _refuse_place(value)
    if type(value) is not list or len(value) != 3 or not {*map(type, value)} <= _INT:
        _refuse_place(value)
    base, index, offset = value
    return Relocation(_BASES[base], index, offset) if base in _BASES else _refuse_place(value)


_INT = {int}
_BASES: Mapping[int, Base] = {int(base): base for base in Base if base is not Base.NUMBER}


def _read_node(value: Document) -> Any:
    kind = _NODES.get(value[0]) if type(value) is list and value and type(value[0]) is str else None
    if kind is None:
        raise MalformedTargetError(f"{str(value)[:40]} is no node")
    return _reader(kind)(value[1:])


def _read_dict(value: Document) -> Any:
    if type(value) is not dict:
        raise MalformedTargetError(f"{str(value)[:40]} has no names")
    return value


@cache
def _reader(kind: Any) -> Read:
    """What reads values of a type."""
    if kind in _WORDS:
        return _exactly(kind)
    if kind is Relocation:
        return _read_place
    if kind is ArrayType:
        return type_from_json
    if kind in (Failure, Monitor, PrintFormat):
        return _record(kind)
    if kind == Node:
        return _read_node
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return _enumerated(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        inner = [each for each in arguments if each is not Ellipsis]
        return _sequence(inner[0]) if Ellipsis in arguments else _fixed(inner)
    if origin in (Union, types.UnionType):
        read = _reader(_only(arguments))
        return lambda value: None if value is None else read(value)
    if origin is not None and issubclass(origin, Mapping):
        return _read_dict
    items = _fixed(_types(kind))
    return lambda value: kind(*items(value))


def _record(kind: type) -> Read:
    def read(value: Document) -> Any:
        found = from_json(value)
        if type(found) is not kind:
            raise MalformedTargetError(f"{str(value)[:40]} is no {kind.__name__}")
        return found

    return read


def _enumerated(kind: type[IntEnum]) -> Read:
    members = {int(each): each for each in kind}

    def read(value: Document) -> Any:
        found = members.get(value) if type(value) is int else None
        if found is None:
            raise MalformedTargetError(f"{str(value)[:40]} is no {kind.__name__}")
        return found

    return read


def _sequence(kind: Any) -> Read:
    """What reads a tuple of values of one type."""
    read, words = _reader(kind), {kind} if kind in _WORDS else None

    def sequence(value: Document) -> Any:
        if type(value) is not list:
            raise MalformedTargetError(f"{str(value)[:40]} is no list")
        if words is not None and {*map(type, value)} <= words:
            return tuple(value)
        return tuple([read(each) for each in value])

    return sequence


def _fixed(kinds: Sequence[Any]) -> Read:
    """What reads a tuple with values of these types."""
    count = len(kinds)
    words = [(place, kind) for place, kind in enumerate(kinds) if kind in _WORDS]
    others = [(place, _reader(kind)) for place, kind in enumerate(kinds) if kind not in _WORDS]

    def fixed(value: Document) -> Any:
        if type(value) is not list or len(value) != count:
            raise MalformedTargetError(f"{str(value)[:40]} has not {count} fields")
        found = [*value]
        for place, kind in words:
            if type(found[place]) is not kind:
                _reader(kind)(found[place])  # raises
        for place, read in others:
            found[place] = read(found[place])
        return tuple(found)

    return fixed
