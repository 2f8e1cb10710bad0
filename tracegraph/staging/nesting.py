"""Nesting: how arguments lie in tuples, lists and dicts, and text that takes their leaves out.

The text depends on how they lie, and not on keys: so few are ever compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from tracegraph import tree
from tracegraph.staging.signature import LEAF_CLASSES


class Nest(NamedTuple):
    """A tuple, a list or a dict, by what each of its items is, in the order of the leaves."""

    kind: Literal["tuple", "list", "dict"]
    items: tuple[Nesting, ...]


Nesting = Nest | Literal["leaf", "None"]

Keys = tuple[Any, ...]
"""The keys of a dict, in the order of the leaves."""


def nesting(x: object, keys: list[Keys]) -> Nesting | None:
    """How the leaves of an argument lie; None if some class is not that of a leaf or of a nest.

    The keys of the dicts are appended to `keys`, those of outer ones first.
    """
    items: list[Any]
    if type(x) in LEAF_CLASSES:
        return "leaf"
    if x is None:
        return "None"
    if type(x) is dict:
        ordered = tuple(list(x)[i] for i in tree.leaves({key: i for i, key in enumerate(x)}))
        keys.append(ordered)
        items = [x[key] for key in ordered]
    elif type(x) is tuple or type(x) is list:
        items = list(x)
    else:
        return None
    inner = tuple(found for item in items if (found := nesting(item, keys)) is not None)
    return Nest(type(x).__name__, inner) if len(inner) == len(items) else None  # type: ignore[arg-type]


@dataclass(slots=True)
class Taking:
    """Lines that give the `leaves` their names, or return MISS where arguments lie otherwise.

    Those of `known` come before: they give names to the keys in the list `keys`, as from `nesting`.
    """

    lines: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    leaves: list[str] = field(default_factory=list)
    _taken: int = 0

    def call(self, arguments: Nest, keywords: Nest) -> None:
        """Take the leaves out of ``args`` and ``kwargs``."""
        self.lines.append(f"if len(args) != {len(arguments.items)}: return MISS")
        self._sequence(arguments, "args")
        self._dict(keywords, "kwargs")

    def _item(self, item: Nesting, name: str) -> None:
        match item:
            case "leaf":
                self.leaves.append(name)
            case "None":
                self.lines.append(f"if {name} is not None: return MISS")
            case Nest(kind="dict"):
                self.lines.append(f"if type({name}) is not dict: return MISS")
                self._dict(item, name)
            case Nest(kind=kind, items=items):
                other = f"type({name}) is not {kind} or len({name}) != {len(items)}"
                self.lines.append(f"if {other}: return MISS")
                self._sequence(item, name)

    def _sequence(self, nest: Nest, name: str) -> None:
        names = self._names(len(nest.items))
        self.lines.append(f"[{', '.join(names)}] = {name}")
        self._items(nest, names)

    def _dict(self, nest: Nest, name: str) -> None:
        number, names = len(self.known), self._names(len(nest.items))
        keys = [f"k{number}_{i}" for i in range(len(names))]
        if not names:
            self.known.append("pass")
            self.lines.append(f"if {name}: return MISS")
            return
        self.known.append(f"[{', '.join(keys)}] = keys[{number}]; k{number} = {{*keys[{number}]}}")
        self.lines.append(f"if {name}.keys() != k{number}: return MISS")
        self.lines += [f"{x} = {name}[{key}]" for x, key in zip(names, keys, strict=True)]
        self._items(nest, names)

    def _items(self, nest: Nest, names: list[str]) -> None:
        for item, name in zip(nest.items, names, strict=True):
            self._item(item, name)

    def _names(self, count: int) -> list[str]:
        start, self._taken = self._taken, self._taken + count
        return [f"x{i}" for i in range(start, start + count)]
