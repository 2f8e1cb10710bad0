"""Argument layouts: how the leaves of a call are nested, and Python text that unpacks them.

The text depends on the containers and not on the keys of dicts, so few texts are ever compiled.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal, NamedTuple

from tracegraph import tree
from tracegraph.generated.dataclass import dataclass
from tracegraph.staging.calls.signature import LEAF_CLASSES


class Container(NamedTuple):
    """A tuple, list or dict, and the layout of each item, in the order of the leaves."""

    kind: Literal["tuple", "list", "dict"]
    items: tuple[LeafLayout, ...]


LeafLayout = Container | Literal["leaf", "None"]

Keys = tuple[Any, ...]
"""The keys of a dict, in the order of the leaves."""


def layout_of(x: object, keys: list[Keys]) -> LeafLayout | None:
    """The layout of an argument; None if it holds an object of another class.

    The keys of its dicts are appended to `keys`, outer dicts first.
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
    inner = tuple(found for item in items if (found := layout_of(item, keys)) is not None)
    return Container(type(x).__name__, inner) if len(inner) == len(items) else None  # type: ignore[arg-type]


@dataclass(slots=True)
class Unpacking:
    """Lines of a function that name the `leaves`, or return MISS if the layout differs.

    The lines of `setup` run once, before: they name the keys of dicts in the list ``keys``.
    """

    lines: list[str] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)
    leaves: list[str] = field(default_factory=list)
    _taken: int = 0

    def call(self, arguments: Container, keywords: Container) -> None:
        """Unpack ``args`` and ``kwargs``."""
        self.lines.append(f"if len(args) != {len(arguments.items)}: return MISS")
        self._sequence(arguments, "args")
        self._dict(keywords, "kwargs")

    def _item(self, item: LeafLayout, name: str) -> None:
        match item:
            case "leaf":
                self.leaves.append(name)
            case "None":
                self.lines.append(f"if {name} is not None: return MISS")
            case Container(kind="dict"):
                self.lines.append(f"if type({name}) is not dict: return MISS")
                self._dict(item, name)
            case Container(kind=kind, items=items):
                other = f"type({name}) is not {kind} or len({name}) != {len(items)}"
                self.lines.append(f"if {other}: return MISS")
                self._sequence(item, name)

    def _sequence(self, container: Container, name: str) -> None:
        names = self._names(len(container.items))
        self.lines.append(f"[{', '.join(names)}] = {name}")
        self._items(container, names)

    def _dict(self, container: Container, name: str) -> None:
        number, names = len(self.setup), self._names(len(container.items))
        keys = [f"k{number}_{i}" for i in range(len(names))]
        if not names:
            self.setup.append("pass")
            self.lines.append(f"if {name}: return MISS")
            return
        self.setup.append(f"[{', '.join(keys)}] = keys[{number}]; k{number} = {{*keys[{number}]}}")
        self.lines.append(f"if {name}.keys() != k{number}: return MISS")
        self.lines += [f"{x} = {name}[{key}]" for x, key in zip(names, keys, strict=True)]
        self._items(container, names)

    def _items(self, container: Container, names: list[str]) -> None:
        for item, name in zip(container.items, names, strict=True):
            self._item(item, name)

    def _names(self, count: int) -> list[str]:
        start, self._taken = self._taken, self._taken + count
        return [f"x{i}" for i in range(start, start + count)]
