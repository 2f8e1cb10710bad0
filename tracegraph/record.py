"""Records: dataclasses that never change, of which tracing and planning make very many.

To store a field of a dataclass that is frozen at run time is a call of `object.__setattr__`, which
takes five times as long as an assignment: a tenth of all planning. So it is the type checker that
sees to it that no field of a record is assigned to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def record(cls: type[_T]) -> type[_T]:
    """A dataclass with slots, whose instances are compared by identity and do not change."""
    return dataclass(slots=True, eq=False)(cls)
