"""Fields that hold buffers: what a record reads, writes and renames, from the types of its fields.

    Reads[Buffer]                       it reads the buffer
    Writes[tuple[StridedArray, ...]]    it writes the buffers of these arrays
    Updates[StridedArray]               it does both
    Names[Buffer]                       it has the address; or a record that itself holds buffers

A value is a buffer, a record with buffers in its fields, None, or a tuple of these. The types are
looked at once for each class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, Literal, Self, TypeVar, get_type_hints

from lowering.plan.nests.buffer import Buffer
from tracegraph.ir.record import replace

_T = TypeVar("_T")

Reads = Annotated[_T, "reads"]
Writes = Annotated[_T, "writes"]
Updates = Annotated[_T, "reads", "writes"]
Names = Annotated[_T, "names"]

Access = Literal["reads", "writes"]

NewBuffers = Mapping[Buffer, Buffer]
"""New buffers for old ones; those that it lacks stay."""

_NO_BUFFERS: frozenset[Buffer] = frozenset()


class HoldsBuffers:
    """Base of records with buffers in their fields."""

    __slots__ = ()

    @property
    def reads(self) -> frozenset[Buffer]:
        """The buffers that it reads."""
        return _accessed(self, "reads")

    @property
    def writes(self) -> frozenset[Buffer]:
        """The buffers that it writes."""
        return _accessed(self, "writes")

    def with_buffers(self, names: NewBuffers) -> Self:
        """A new record with buffers replaced."""
        new = {name: _renamed(getattr(self, name), names) for name in _marked(type(self), "")}
        return replace(self, **new)


def items_of(holder: HoldsBuffers, access: Access) -> tuple[Any, ...]:
    """What a record reads or writes, in the order of its fields."""
    values = [getattr(holder, name) for name in _marked(type(holder), access)]
    return tuple([item for value in values for item in _items(value)])


@cache
def field_types(cls: Any) -> Mapping[str, Any]:
    """The types of the fields of a record, by name."""
    types = get_type_hints(cls, include_extras=True)
    return {each.name: types[each.name] for each in fields(cls) if each.init}


def _fields_marked(cls: type, access: Access | Literal[""]) -> tuple[str, ...]:
    """The fields that are accessed so; without an access, all that hold buffers."""
    marks = {n: getattr(type_, "__metadata__", ()) for n, type_ in field_types(cls).items()}
    return tuple([name for name, mark in marks.items() if (access in mark if access else mark)])


_marked: Callable[[type, Access | Literal[""]], tuple[str, ...]] = cache(_fields_marked)


def _items(value: Any) -> tuple[Any, ...]:
    if isinstance(value, tuple):
        return value
    return () if value is None else (value,)


def _accessed(holder: HoldsBuffers, access: Access) -> frozenset[Buffer]:
    marked = _marked(type(holder), access)
    if not marked:
        return _NO_BUFFERS
    return frozenset([b for name in marked for b in _buffers(getattr(holder, name))])


def _buffers(value: Any) -> Iterator[Buffer]:
    for item in _items(value):
        yield item if type(item) is Buffer else item.buffer


def _renamed(value: Any, names: NewBuffers) -> Any:
    if type(value) is Buffer:
        return names.get(value, value)
    if isinstance(value, tuple):
        return tuple([_renamed(item, names) for item in value])
    return None if value is None else value.with_buffers(names)
