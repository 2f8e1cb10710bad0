"""Calls that a recorder does not define, derived from the signatures of the driver's interface.

Such a call is logged with its arguments. If it has a `graph` and `dependencies`, it adds a node
that holds the numbers among the others. So a new call of the driver is its declaration and its
definition for CUDA, unless tests need more of it than the log.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from lowering.cuda.interface import Launch
from lowering.testing.recorded_objects import RecordedEvent, RecordedNode

_C = TypeVar("_C", bound=type)


def derived_from(interface: type) -> Callable[[_C], _C]:
    """A decorator that gives a class the calls of an interface that it lacks.

    Raises:
        TypeError: one of these returns what no signature says how to make.
    """

    def derive(cls: _C) -> _C:
        own = {name for each in cls.__mro__ if each is not interface for name in vars(each)}
        for name, call in vars(interface).items():
            if inspect.isfunction(call) and name not in own:
                setattr(cls, name, _derived(name, call))
        return cls

    return derive


def _derived(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(call)
    adds = {"graph", "dependencies"} <= signature.parameters.keys()
    if not adds and signature.return_annotation != "None":
        raise TypeError(f"{name} returns {signature.return_annotation}: define it in a recorder")

    def recorded(self: Any, *arguments: Any, **keywords: Any) -> RecordedNode | None:
        given = signature.bind(self, *arguments, **keywords).arguments
        _, *others = [item for key, item in given.items() if key not in ("graph", "dependencies")]
        detail = [part for each in others for part in _logged(each)]
        self._log(name, *detail)
        if not adds:
            return None
        kind = name.removeprefix("add_")
        named = next((part for part in detail if isinstance(part, str)), kind)
        values = [part for part in detail if isinstance(part, int)]
        node = RecordedNode(kind, named, tuple(given["dependencies"]), values=values)
        given["graph"].nodes.append(node)
        return node

    return recorded


def _logged(argument: Any) -> Iterator[Any]:
    match argument:
        case np.ndarray():
            yield argument.nbytes
        case Launch():
            yield argument.kernel
        case RecordedEvent():
            yield argument.position
        case Sequence() if not isinstance(argument, str):
            yield from argument
        case _:
            yield argument
