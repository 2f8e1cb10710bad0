"""Records: dataclasses that never change, of which tracing and planning make very many.

To store a field of a dataclass that is frozen at run time is a call of `object.__setattr__`, which
takes five times as long as an assignment: a tenth of all planning. So it is the type checker that
sees to it that no field of a record is assigned to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def record(cls: type[_T]) -> type[_T]:
    """A dataclass with slots, whose instances are compared by identity and do not change."""
    return dataclass(slots=True, eq=False)(cls)


def replace(item: _T, **new: Any) -> _T:
    """A dataclass of two fields or more with some of them replaced.

    That is `dataclasses.replace`, which takes three times as long: it looks at every field anew.
    """
    cls: Any = type(item)
    places, values_of = _fields(cls)
    values = [*values_of(item)]
    for name, value in new.items():
        values[places[name]] = value
    copy: _T = cls(*values)
    return copy


@cache
def _fields(cls: Any) -> tuple[Mapping[str, int], Callable[[Any], tuple[Any, ...]]]:
    """The places of the fields among the arguments of a class, and what reads all of them."""
    names = [each.name for each in fields(cls) if each.init]
    return {name: place for place, name in enumerate(names)}, attrgetter(*names)
