"""Along which axes of devices values may differ: a dataflow analysis of programs of each device.

A value varies over the axes over which one that it is computed from does. Collectives are the
exceptions: a sum over devices is the same on all. The carries of a loop are taken to a fixed point.
Sets only grow on the way there, so that it takes no more rounds than there are axes and carries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tracegraph.ir.control_forms import is_loop
from tracegraph.ir.op import Call, Collective, Effect
from tracegraph.ir.program import Atom, Eqn, Literal, Region, Value, walk

Axes = frozenset[str]
"""Names of axes."""

Sets = tuple[Axes, ...]

EQUAL: Axes = frozenset()
"""Of a value that is the same on all devices."""


def axes_of(eqn: Eqn) -> Axes:
    """The axes of the devices that carry an equation out together; none, if it is no collective."""
    return frozenset(eqn.attrs["axes"]) if isinstance(eqn.op.form, Collective) else EQUAL


def collectives_in(regions: Sequence[Region]) -> Iterator[Eqn]:
    """The collectives in regions, and in those inside."""
    return (e for region in regions for e in walk(region) if isinstance(e.op.form, Collective))


class VaryingAxes:
    """The axes over which results vary, remembered by region and axes of its parameters."""

    def __init__(self) -> None:
        self._known: dict[tuple[Region, Sets], Mapping[Atom, Axes]] = {}

    def results(self, region: Region, sets: Sequence[Axes]) -> Sets:
        """The axes of the results of a region if those of its parameters are `sets`."""
        found = self.values(region, sets)
        return tuple([found.get(atom, EQUAL) for atom in region.results])

    def values(self, region: Region, sets: Sequence[Axes]) -> Mapping[Atom, Axes]:
        """The axes of all values of a region but those of the regions inside; literals have none.

        >>> from tracegraph.ir.types import ArrayType
        >>> x = Value(ArrayType("float64"))
        >>> VaryingAxes().values(Region((x,), (), (x,)), [frozenset("x")])[x]
        frozenset({'x'})
        """
        key = region, tuple(sets)
        if key not in self._known:
            env: dict[Atom, Axes] = dict(zip(region.params, sets, strict=True))
            for eqn in region.eqns:
                given = tuple([env.get(a, EQUAL) for a in eqn.operands])
                env.update(zip(eqn.outputs, self.outputs(eqn, given), strict=True))
            self._known[key] = env
        return self._known[key]

    def everywhere(self, region: Region, sets: Sequence[Axes]) -> Mapping[Atom, Axes]:
        """The axes of all values of a region and of the regions inside."""
        values = self.values(region, sets)
        found = dict(values)
        for eqn in region.eqns:
            if not eqn.regions:
                continue
            given = tuple([of_atom(values, a) for a in eqn.operands])
            for each, inner in self._inside(eqn, given):
                for atom, axes in self.everywhere(each, inner).items():
                    found[atom] = found.get(atom, EQUAL) | axes
        return found

    def _inside(self, eqn: Eqn, sets: Sets) -> Iterator[tuple[Region, Sequence[Axes]]]:
        """The regions of an equation, each with the axes of its parameters."""
        if isinstance(eqn.op.form, Call):
            function = eqn.regions[0]
            every = len(function.params) == len(sets)
            yield function, sets if every else (union(sets),) * len(function.params)
            return
        inner = self.operands(eqn, sets) if is_loop(eqn) else sets[1:]
        for each in eqn.regions:
            yield each, inner

    def outputs(self, eqn: Eqn, sets: Sets) -> Sets:
        """The axes of the outputs of an equation, from those of its operands."""
        form = eqn.op.form
        if isinstance(form, Effect):
            return (EQUAL,)  # a token
        if isinstance(form, Collective):
            axes, given = axes_of(eqn), union(sets)
            return (given | axes if form.varies else given - axes,)
        if not eqn.regions:
            return (union(sets),) * len(eqn.outputs)
        if isinstance(form, Call):
            return self._call(eqn, sets)
        if is_loop(eqn):
            carry, operands = eqn.attrs["carry"], self.operands(eqn, sets)
            return operands[:carry] + self.results(eqn.regions[-1], operands)[carry:]
        each = [self.results(region, sets[1:]) for region in eqn.regions]
        return tuple([self._merged(column, sets[0], v) for column, v in self._columns(each, eqn)])

    @staticmethod
    def _columns(each: Sequence[Sets], eqn: Eqn) -> Iterator[tuple[Sequence[Axes], Value]]:
        return zip(zip(*each, strict=True), eqn.outputs, strict=True)

    @staticmethod
    def _merged(column: Sequence[Axes], selector: Axes, value: Value) -> Axes:
        return union(column) | (selector if value.type.size else EQUAL)

    def _call(self, eqn: Eqn, sets: Sets) -> Sets:
        """The first region is the function; of the derivative of a custom_vjp, all that it gets may
        matter for each result.
        """
        if eqn.op.name == "custom_linear":
            return (union(sets),) * len(eqn.outputs)
        found = self.results(eqn.regions[0], sets)
        if len(found) == len(eqn.outputs):
            return found
        return (union(sets),) * len(eqn.outputs)

    def operands(self, eqn: Eqn, sets: Sets) -> Sets:
        """The axes of a loop's operands at the fixed point."""
        carry, body = eqn.attrs["carry"], eqn.regions[-1]
        while True:
            decides = self.decides(eqn, sets)
            after = self.results(body, sets)
            carried = [
                was | now | (decides if value.type.size else EQUAL)
                for was, now, value in zip(sets[:carry], after, eqn.outputs, strict=False)
            ]
            settled = (*carried, *sets[carry:])
            if settled == sets:
                return sets
            sets = settled

    def decides(self, eqn: Eqn, sets: Sets) -> Axes:
        """The axes over which the condition of a loop varies, from those of its parameters."""
        return self.results(eqn.regions[0], sets)[0] if len(eqn.regions) > 1 else EQUAL


def union(sets: Sequence[Axes]) -> Axes:
    """All axes of the sets."""
    found = EQUAL
    for each in sets:
        if each:
            found = found | each
    return found


def of_atom(values: Mapping[Atom, Axes], atom: Atom) -> Axes:
    """The axes of an atom of a region."""
    return EQUAL if isinstance(atom, Literal) else values[atom]
