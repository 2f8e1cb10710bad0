"""Transposition: linear equations backwards, from the cotangents of results to those of parameters.

Equations that do not depend on the linear parameters are recorded first, as they are. A cotangent
that is known to be zero is None, and nothing is recorded for it.

In a program of each device, a value that is the same on all has one cotangent, which is the same,
too. Where it meets values that differ, each device has a part of that: they are summed. `varying`
has the axes over which values of the region differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import prod
from typing import Any

from tracegraph import errors
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.derivative import Linear, Partials, Product, Rewrite, Structural
from tracegraph.ir.program import Atom, Eqn, Literal, Region, Value
from tracegraph.ir.varying import EQUAL, Axes, VaryingAxes, of_atom, union
from tracegraph.ops.cotangents import unbroadcast
from tracegraph.tracing.trace import Active, Trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.cotangent_axes import meets_of
from tracegraph.transforms.derivatives.activity import is_inexact
from tracegraph.transforms.trace_emitter import Emit, plain

Cotangents = Sequence[Any]
Rule = Callable[["Transposer", Eqn, Sequence[bool], Cotangents], Cotangents]

STRUCTURAL: dict[str, Rule] = {}
"""By the name of an op with regions, the rule that gives the cotangents of its operands."""


@dataclass(slots=True)
class Transposer:
    """The pass over one region. `values` are what is not linear, by the region's values."""

    trace: Trace
    values: dict[Value, Tracer] = field(default_factory=dict)
    linear: set[Atom] = field(default_factory=set)
    cotangents: dict[Atom, Any] = field(default_factory=dict)
    varying: Mapping[Atom, Axes] | None = None
    """None where no axis of devices has a name."""
    _meets: Sequence[Axes] = ()
    """Over which axes the operands of the equation that is transposed vary where they meet."""

    def run(
        self,
        region: Region,
        linear: Sequence[bool],
        residuals: Sequence[Any],
        cotangents: Cotangents,
        so_far: Cotangents = (),
        varying: Sequence[Axes] | None = None,
        results: Sequence[Axes] | None = None,
    ) -> list[Any]:
        """The cotangents of the parameters flagged as linear; `residuals` are the others.

        They are added to the cotangents of these parameters `so_far`, if there are any. `varying`
        are the axes over which parameters differ between devices, all if it is not known, and
        `results` those over which cotangents of results do, if over more than the results.
        """
        if self.trace.axes:
            whole = [frozenset(self.trace.axes)] * len(region.params)
            self.varying = VaryingAxes().values(region, whole if varying is None else varying)
        given, earlier = iter(residuals), iter(so_far)
        for param, flag in zip(region.params, linear, strict=True):
            if flag:
                self.linear.add(param)
                if (acc := next(earlier, None)) is not None:
                    self.cotangents[param] = plain(self.trace, acc)
            else:
                self.values[param] = plain(self.trace, next(given))
        before = self.trace.source
        with Active(self.trace):
            todo = [eqn for eqn in region.eqns if not self._record(eqn)]
            meets = [EQUAL] * len(region.results) if results is None else results
            for atom, ct, axes in zip(region.results, cotangents, meets, strict=True):
                self._accumulate(atom, None if ct is None else plain(self.trace, ct), axes)
            for eqn in reversed(todo):
                self.trace.source = eqn.source
                self._transpose(eqn)
        self.trace.source = before
        return [
            self.cotangents.get(p) for p, flag in zip(region.params, linear, strict=True) if flag
        ]

    def pop_cotangent(self, atom: Atom) -> Any:
        """The cotangent of an operand so far, for a rule that adds to it and gives the whole.

        None if what the rule adds has to be summed over devices first.
        """
        if self.varying is not None and union(self._meets) - of_atom(self.varying, atom):
            return None
        return self.cotangents.pop(atom, None) if isinstance(atom, Value) else None

    def value(self, atom: Atom) -> Tracer:
        """What an atom that is not linear stands for."""
        return Tracer(self.trace, atom) if isinstance(atom, Literal) else self.values[atom]

    def _record(self, eqn: Eqn) -> bool:
        """Record an equation that is not linear; whether it is such."""
        if not self.linear.isdisjoint(eqn.operands):
            self.linear.update(eqn.outputs)
            return False
        atoms = [self.trace.read(self.value(a)) for a in eqn.operands]
        self.trace.source = eqn.source
        outs = self.trace.record(eqn.op, atoms, eqn.attrs, eqn.regions, eqn.hints)
        self.values.update(zip(eqn.outputs, outs, strict=True))
        return True

    def _accumulate(self, atom: Atom, ct: Any, meets: Axes = EQUAL) -> None:
        """Add a cotangent of an atom, which varies over these axes where it is used."""
        if ct is None or atom not in self.linear:
            return
        if meets and self.varying is not None:
            ct = self._summed(ct, meets - of_atom(self.varying, atom))
        before = self.cotangents.get(atom)
        self.cotangents[atom] = ct if before is None else Emit(self.trace).add(before, ct)

    def _summed(self, ct: Any, axes: Axes) -> Any:
        """The sum of the cotangents of all devices along axes."""
        if not axes:
            return ct
        names = tuple([name for name in self.trace.axes if name in axes])
        count = prod(self.trace.axes[name] for name in names)
        return Emit(self.trace).psum(ct, axes=names, count=count)

    def _transpose(self, eqn: Eqn) -> None:
        cts = [self.cotangents.pop(v, None) for v in eqn.outputs]
        if all(ct is None for ct in cts):
            return
        self._meets = () if self.varying is None else meets_of(eqn, self.varying)
        record = eqn.op.derivative
        if isinstance(record, Rewrite):
            record = record.linear
        if isinstance(record, Product):
            self._transpose_product(eqn, record, cts[0])
        elif isinstance(record, Partials):
            self._transpose_partials(eqn, record, cts[0])
        elif isinstance(record, Linear):
            self._transpose_linear(eqn, record, cts[0])
        elif isinstance(record, Structural):
            flags = [a in self.linear for a in eqn.operands]
            found = STRUCTURAL[eqn.op.name](self, eqn, flags, cts)
            for i, (atom, ct) in enumerate(zip(eqn.operands, found, strict=True)):
                self._accumulate(atom, ct, self._met(i))
        else:
            raise errors.NonlinearError(eqn.op.name, eqn.source)

    def _transpose_product(self, eqn: Eqn, record: Product, ct: Any) -> None:
        emit, (x, y) = Emit(self.trace), eqn.operands
        if x in self.linear:
            if y in self.linear:
                raise errors.NonlinearError(eqn.op.name, eqn.source)
            found = record.left(emit, ct, self.value(y), **eqn.attrs)
            self._accumulate(x, unbroadcast(emit, found, x.type), self._met(0))
        else:
            found = record.right(emit, ct, self.value(x), **eqn.attrs)
            self._accumulate(y, unbroadcast(emit, found, y.type), self._met(1))

    def _transpose_partials(self, eqn: Eqn, record: Partials, ct: Any) -> None:
        """Sums and differences."""
        emit = Emit(self.trace)
        for i, (coefficient, atom) in enumerate(zip(record.of, eqn.operands, strict=True)):
            if atom not in self.linear:
                continue
            if coefficient == 1:
                part = ct
            elif coefficient == -1:
                part = emit.negative(ct)
            else:
                raise errors.NonlinearError(eqn.op.name, eqn.source)
            self._accumulate(atom, unbroadcast(emit, part, atom.type), self._met(i))

    def _transpose_linear(self, eqn: Eqn, record: Linear, ct: Any) -> None:
        linear, atoms = self.linear, eqn.operands
        types = [a.type if a in linear else None for a in atoms]
        operands = [None if a in linear else self.value(a) for a in atoms]
        of = range(len(types)) if record.of is None else record.of
        whole = is_inexact(eqn.outputs[0].type)
        if not whole or any(t is not None and i not in of for i, t in enumerate(types)):
            raise errors.NonlinearError(eqn.op.name, eqn.source)
        so_far = None
        if record.accumulates:
            so_far = self.pop_cotangent(eqn.operands[0])
        found = record.transpose(Emit(self.trace), ct, so_far, types, *operands, **eqn.attrs)
        if so_far is not None and found[0] is None:
            found = (so_far,)
        for i, part in zip(of, found, strict=True):
            if types[i] is not None:
                self._accumulate(eqn.operands[i], part, self._met(i))

    def _met(self, operand: int) -> Axes:
        return self._meets[operand] if self._meets else EQUAL
