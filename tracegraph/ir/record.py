"""Records: dataclasses with slots that are frozen for the type checker only.

Tracing and planning make very many. A dataclass that is frozen at run time stores each field by
`object.__setattr__`, which takes five times as long as an assignment: a tenth of all planning time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

from tracegraph.generated.dataclass import dataclass

_T = TypeVar("_T")


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def record(cls: type[_T]) -> type[_T]:
    """A dataclass with slots, whose instances are compared by identity and do not change.

    Its repr is that of a dataclass, unless the class or a base that is not a dataclass defines one.
    """
    written = any("__repr__" in vars(each) and not is_dataclass(each) for each in cls.__mro__[:-1])
    return dataclass(slots=True, eq=False, repr=not written)(cls)


def replace(item: _T, **new: Any) -> _T:
    """A dataclass with some fields replaced, in a third of the time of `dataclasses.replace`."""
    cls: Any = type(item)
    places, values_of = _fields(cls)
    values = [*values_of(item)]
    for name, value in new.items():
        values[places[name]] = value
    replaced: _T = cls(*values)
    return replaced


@cache
def _fields(cls: Any) -> tuple[Mapping[str, int], Callable[[Any], Iterable[Any]]]:
    """The places of the fields among the arguments of a class, and what reads all of them."""
    names = [each.name for each in fields(cls) if each.init]
    places = {name: place for place, name in enumerate(names)}
    if len(names) == 1:  # an `attrgetter` of one name gives no tuple
        return places, lambda item: (getattr(item, names[0]),)
    return places, attrgetter(*names)
