"""Activity: which results depend on which parameters, by a walk that records nothing.

Smooth dependence is that of tangents: through floats and complex numbers, and not through ops that
are piecewise constant, conditions or indices. Other dependence is through everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.control_forms import branch_parts, is_loop, loop_parts
from tracegraph.ir.derivative import Constant, Linear
from tracegraph.ir.op import Call
from tracegraph.ir.program import Atom, Eqn, Region, Value
from tracegraph.ir.types import ArrayType

Flags = tuple[bool, ...]


def is_inexact(type_: ArrayType) -> bool:
    """Whether values of a type have tangents: floats and complex numbers do."""
    return type_.dtype.kind in "fcV"


@dataclass(frozen=True, slots=True)
class Activity:
    """The analysis, which remembers results of regions by the flags of their parameters."""

    smooth: bool = True
    known: dict[tuple[Region, Flags], Flags] = field(default_factory=dict)

    def results(self, region: Region, active: Sequence[bool]) -> Flags:
        """Which results of a region depend on active parameters."""
        flags = tuple(active)
        found = self.known.get((region, flags))
        if found is None:
            found = self.known[region, flags] = self._walk(region, flags)
        return found

    def operands(self, eqn: Eqn, active: Sequence[bool]) -> list[bool]:
        """The flags of a loop's operands at the fixed point: a carry stays active once it is."""
        count = len(loop_parts(eqn).init)
        flags = list(active)
        while True:
            results = self.results(eqn.regions[-1], flags)[:count]
            grown = [a or b for a, b in zip(flags, results, strict=False)] + flags[count:]
            if grown == flags:
                return flags
            flags = grown

    def outputs(self, eqn: Eqn, active: Sequence[bool]) -> Flags:
        """Which outputs of an equation depend on its active operands."""
        count = len(eqn.outputs)
        if not any(active):
            return (False,) * count
        if eqn.regions and not isinstance(eqn.op.form, Call):
            return self._of_structural(eqn, active)
        if not self.smooth:
            return (True,) * count
        record = eqn.op.derivative
        linear = record.of if isinstance(record, Linear) else None
        if isinstance(record, Constant) or (linear and not any(active[i] for i in linear)):
            return (False,) * count
        return tuple(is_inexact(value.type) for value in eqn.outputs)

    def _walk(self, region: Region, active: Flags) -> Flags:
        live: set[Atom] = {
            p
            for p, flag in zip(region.params, active, strict=True)
            if flag and (is_inexact(p.type) or not self.smooth)
        }
        for eqn in region.eqns:
            flags = [isinstance(a, Value) and a in live for a in eqn.operands]
            found = self.outputs(eqn, flags)
            live.update(v for v, flag in zip(eqn.outputs, found, strict=True) if flag)
        return tuple(isinstance(a, Value) and a in live for a in region.results)

    def _of_structural(self, eqn: Eqn, active: Sequence[bool]) -> Flags:
        if is_loop(eqn):
            flags = self.operands(eqn, active)
            condition = loop_parts(eqn).condition
            decides = condition is not None and any(self.results(condition, flags))
            count = len(loop_parts(eqn).init)
            found = (*flags[:count], *self.results(eqn.regions[-1], flags)[count:])
        else:
            decides = active[0]
            columns = [self.results(r, active[1:]) for r in branch_parts(eqn).branches]
            found = tuple(map(any, zip(*columns, strict=True)))
        return (True,) * len(found) if decides and not self.smooth else found
