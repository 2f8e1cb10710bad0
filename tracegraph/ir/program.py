"""Program: the traced, typed intermediate representation.

    Program := "program" name Region            the trailing parameters are bound to `constants`
    Region  := (params) { Eqn* -> results }      closed: uses its parameters and own equations only
    Eqn     := outputs "=" op [attrs, hints] operands Region*      # the user's file:line
    Atom    := Value | Literal                   what an operand or a result may be

All of it is frozen data. Values and equations are compared by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np

from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.drawable import Drawable
from tracegraph.ir.op import Op, get
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType, scalar_type
from tracegraph.user_source import Source


@record
class Value:
    """What one equation yields or one region takes: an identity with a type."""

    type: ArrayType


@record
class Literal:
    """A scalar known when the function was traced, stored with exactly the type's dtype."""

    value: Any  # a NumPy scalar of type.dtype
    type: ArrayType

    @staticmethod
    def of(value: Any, type_: ArrayType) -> Literal:
        """`value` as a scalar literal of the dtype of `type_`.

        Raises:
            OverflowError: a Python int out of the dtype's range.
        """
        dtype = type_.dtype
        if type(value) is not dtype.type:
            value = np.asarray(value, dtype)[()]
        return Literal(value, scalar_type(dtype, type_.weak))


Atom = Value | Literal

NO_ATTRS: Mapping[str, Any] = MappingProxyType({})


@record
class Region:
    """A closed block of equations: a program's body, a branch, a loop's condition or body."""

    params: tuple[Value, ...]
    eqns: tuple[Eqn, ...]
    results: tuple[Atom, ...]

    @property
    def result_types(self) -> tuple[ArrayType, ...]:
        """Types of the results."""
        return tuple([atom.type for atom in self.results])


@dataclass(frozen=True, slots=True)
class Hints:
    """What a user asks of the derivative or the lowering of an equation. Only rounding may depend
    on it.

    `schedule` and `unroll` pin how the graph carries it out. `construct` is the function that the
    user called, where the op has another name: a fori_loop is recorded as a while_loop.
    `in_order`: a scatter combines floats in the order of the updates. `grouped`: the updates of an
    element by a scatter are consecutive, which lowering has seen to. `checkpoints`: at how many
    steps of a loop reverse mode keeps the carry, to compute the steps between again.
    """

    schedule: str | None = None
    unroll: int | None = None
    construct: str | None = None
    in_order: bool | None = None
    grouped: bool | None = None
    checkpoints: int | None = None

    def given(self) -> dict[str, Any]:
        """The hints that are given, by name."""
        values = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: value for name, value in values if value is not None}


NO_HINTS = Hints()

IN_ORDER = Hints(in_order=True)


@record
class Eqn:
    """One application of an op.

    `attrs` are part of what is computed; their values are hashable: ints, strings, dtypes, tuples.
    `hints` are not. Equations that differ in hints alone compute the same, but for rounding.
    """

    op: Op
    operands: tuple[Atom, ...]
    outputs: tuple[Value, ...]
    attrs: Mapping[str, Any] = field(default_factory=lambda: NO_ATTRS)
    regions: tuple[Region, ...] = ()
    source: Source | None = None
    hints: Hints = NO_HINTS


def application(
    name: str, operands: tuple[Atom, ...], attrs: Mapping[str, Any], source: Source | None
) -> Eqn:
    """The equation of a registered op with one result and no regions."""
    op = get(name)
    (type_,) = op.result_types([a.type for a in operands], attrs)
    return Eqn(op, operands, (Value(type_),), attrs, source=source)


def no_paths() -> Sequence[str]:
    """The paths of the arguments of a program whose inputs have no names."""
    return ()


@record
class Program(Drawable):
    """A traced function.

    `body.params` are the inputs followed by one parameter per constant: arrays that the function
    closed over, in the order of `constants`. With `effects`, the last result is the token that the
    last effect left: it is not handed out. `paths` has the Python expressions of the inputs, such
    as ``state['v'][1]``, when they are asked for. `varying` has the axes of devices over which the
    inputs vary, if it is a program of each device of a mesh; it is for readers alone.
    """

    _displayed_by = "tracegraph.ir.display"

    name: str
    body: Region
    constants: tuple[np.ndarray[Any, Any], ...] = ()
    effects: bool = False
    paths: Callable[[], Sequence[str]] = no_paths
    varying: tuple[frozenset[str], ...] = ()

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The parameters that a call binds."""
        return self.body.params[: len(self.body.params) - len(self.constants)]

    @property
    def in_types(self) -> tuple[ArrayType, ...]:
        """Types of the inputs."""
        return tuple(value.type for value in self.inputs)

    @property
    def outputs(self) -> tuple[Atom, ...]:
        """What a call returns."""
        return self.body.results[: len(self.body.results) - self.effects]

    @property
    def out_types(self) -> tuple[ArrayType, ...]:
        """Types of the outputs."""
        return tuple(atom.type for atom in self.outputs)


def has_regions(region: Region) -> bool:
    """Whether an equation of the region has regions."""
    return any(map(_regions, region.eqns))


_regions = attrgetter("regions")


def walk(region: Region) -> Iterator[Eqn]:
    """Every equation of a region and of the regions inside, outermost first."""
    for eqn in region.eqns:
        yield eqn
        for inner in eqn.regions:
            yield from walk(inner)
