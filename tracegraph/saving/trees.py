"""Structures of arguments and results as JSON, and back.

    Tree := "*" | null | {"tuple": [Tree…]} | {"list": [Tree…]} | {"dict": [[key, Tree]…]}
          | {"namedtuple": name, "fields": [[name, Tree]…]}
          | {"dataclass": name, "fields": [[name, Tree]…], "static": [[name, attribute]…]}

Classes are found by name among those that are registered; nothing is imported for a file.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from keyword import iskeyword
from typing import Any

from tracegraph import tree
from tracegraph.errors import MalformedProgramError, UnknownTreeWarning, UnsavableError
from tracegraph.ir.stored.attributes import from_json, to_json

Document = Any

DEEPEST = 100
"""Containers inside of containers."""

_CONTAINERS: Mapping[str, type] = {
    "tuple": tuple,
    "list": list,
    "dict": dict,
    "ordered": OrderedDict,
}


class _Leaf:
    """What stands for a leaf."""


_LEAF = _Leaf()


def structure_to_json(structure: tree.Structure, what: str) -> Document:
    """A structure as JSON.

    Raises:
        UnsavableError: it has a class that has no name in files. Messages call the tree `what`.
    """
    return _written(tree.unflatten(structure, [_LEAF] * structure.num_leaves), what)


def _written(node: Any, what: str) -> Document:
    if node is _LEAF:
        return "*"
    kind = type(node)
    if node is None:
        return None
    if kind in (tuple, list):
        return {kind.__name__: [_written(child, what) for child in node]}
    if kind in (dict, OrderedDict):
        name = "dict" if kind is dict else "ordered"
        return {name: [[_key(key, what), _written(child, what)] for key, child in node.items()]}
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        fields = zip(kind._fields, node, strict=True)
        written = [[name, _written(child, what)] for name, child in fields]
        return {"namedtuple": kind.__name__, "fields": written}
    registered = tree.registered_name(kind)
    if registered is None:
        raise UnsavableError(
            f"{what} has a {kind.__module__}.{kind.__qualname__}, which files have no name for; "
            "they take tuples, lists, dicts, None, namedtuples and registered dataclasses"
        )
    values = [
        (field.name, getattr(node, field.name), field.metadata.get("static"))
        for field in dataclasses.fields(node)
    ]
    return {
        "dataclass": registered,
        "fields": [[n, _written(value, what)] for n, value, static in values if not static],
        "static": [[n, _static(value, what)] for n, value, static in values if static],
    }


def _key(key: Any, what: str) -> Any:
    return _static(key, f"a key of {what}")


def _static(value: Any, what: str) -> Any:
    try:
        return to_json(value)
    except UnsavableError as error:
        raise UnsavableError(f"{what} cannot be saved: {error}") from None


def warn_of_unknown(name: str) -> None:
    """Warn with an `UnknownTreeWarning` that a dataclass is not registered."""
    warnings.warn(UnknownTreeWarning(name), stacklevel=2)


def structure_from_json(
    document: Document,
    classes: Mapping[str, type],
    unknown: Callable[[str], object] = warn_of_unknown,
) -> tree.Structure:
    """The structure of a document. Namedtuples are of the class in `classes` that has their name
    and fields, or of one that is made. `unknown` is told the name of a dataclass that is not
    registered: a tuple takes its place.

    Raises:
        MalformedProgramError: it is no tree.
    """
    return tree.structure(_read(document, classes, unknown, 0))


def leaf_count(document: Document, depth: int = 0) -> int:
    """The number of leaves; checks all of the document, and makes no class.

    Raises:
        MalformedProgramError: it is no tree.
    """
    if document == "*":
        return 1
    if document is None:
        return 0
    if depth > DEEPEST:
        raise MalformedProgramError("a tree is nested too deeply")
    _, children = _parts(document)
    return sum(leaf_count(child, depth + 1) for child in children)


def _parts(document: Document) -> tuple[Any, list[Document]]:
    """What a node is, and its children."""
    match document:
        case {"tuple": list(items)} if len(document) == 1:
            return ("tuple", ()), items
        case {"list": list(items)} if len(document) == 1:
            return ("list", ()), items
        case {"dict": list(items)} if len(document) == 1:
            return ("dict", *_pairs(items, keys=True)[:1]), _pairs(items, keys=True)[1]
        case {"ordered": list(items)} if len(document) == 1:
            return ("ordered", *_pairs(items, keys=True)[:1]), _pairs(items, keys=True)[1]
        case {"namedtuple": str(name), "fields": list(fields)} if len(document) == 2:
            names, children = _pairs(fields)
            if not all(map(_is_name, (name, *names))):
                raise MalformedProgramError(f"no namedtuple has the names {name}, {names}")
            return ("namedtuple", name, names), children
        case {"dataclass": str(name), "fields": list(fields), "static": list(static)}:
            names, children = _pairs(fields)
            static_names, values = _pairs(static)
            kept = tuple(zip(static_names, map(from_json, values), strict=True))
            return ("dataclass", name, names, kept), children
    raise MalformedProgramError("a tree has something else than containers")


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier() and not iskeyword(name) and name[0] != "_"


def _pairs(items: list[Any], keys: bool = False) -> tuple[tuple[Any, ...], list[Any]]:
    """The names, or keys, and the values of pairs."""
    if not all(isinstance(item, list) and len(item) == 2 for item in items):
        raise MalformedProgramError("a tree has fields that are no pairs")
    names = tuple([from_json(name) for name, _ in items])
    try:
        distinct = len(set(names)) == len(names)
    except TypeError:
        distinct = False
    if not distinct or not (keys or all(isinstance(name, str) for name in names)):
        raise MalformedProgramError("a tree has a name twice, or a name that is none")
    return names, [value for _, value in items]


def _read(
    document: Document,
    classes: Mapping[str, type],
    unknown: Callable[[str], object],
    depth: int,
) -> Any:
    if document == "*":
        return 0
    if document is None:
        return None
    if depth > DEEPEST:
        raise MalformedProgramError("a tree is nested too deeply")
    (kind, *more), written = _parts(document)
    children = [_read(child, classes, unknown, depth + 1) for child in written]
    if kind in ("tuple", "list"):
        return _CONTAINERS[kind](children)
    if kind in ("dict", "ordered"):
        return _CONTAINERS[kind](zip(more[0], children, strict=True))
    if kind == "namedtuple":
        name, names = more
        return _namedtuple(name, names, classes)(*children)
    name, names, static = more
    cls = tree.registered_class(name)
    if cls is None or not _has_fields(cls, names, tuple(n for n, _ in static)):
        unknown(name)
        return tuple(children)
    instance: Any = object.__new__(cls)
    for field, value in (*zip(names, children, strict=True), *static):
        object.__setattr__(instance, field, value)
    return instance


def _has_fields(cls: type, names: tuple[str, ...], static: tuple[str, ...]) -> bool:
    fields = dataclasses.fields(cls)
    return (names, static) == (
        tuple(f.name for f in fields if not f.metadata.get("static")),
        tuple(f.name for f in fields if f.metadata.get("static")),
    )


def _namedtuple(name: str, names: tuple[str, ...], classes: Mapping[str, type]) -> Any:
    known = classes.get(name)
    if known is not None and getattr(known, "_fields", None) == names:
        return known
    return _made(name, names)


@lru_cache(256)
def _made(name: str, names: tuple[str, ...]) -> Any:
    """A class for namedtuples of a file: always the same one, so that structures are equal."""
    return namedtuple(name, names)


def namedtuples_in(structure: tree.Structure) -> Mapping[str, type]:
    """The classes of namedtuples in a structure, by name."""
    return {each.__name__: each for each in _classes(structure) if hasattr(each, "_fields")}


def _classes(structure: tree.Structure) -> Iterator[type]:
    if structure.type is not None:
        yield structure.type
    for child in structure.children():
        yield from _classes(child)
