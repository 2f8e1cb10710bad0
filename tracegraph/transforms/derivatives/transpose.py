"""Transposition: linear equations backwards, from the cotangents of results to those of parameters.

Equations that do not depend on the linear parameters are recorded first, as they are. A cotangent
that is known to be zero is None, and nothing is recorded for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracegraph import errors
from tracegraph.ir.derivative import Linear, Partials, Product, Rewrite, Structural
from tracegraph.ir.program import Atom, Eqn, Literal, Region, Value
from tracegraph.ops.cotangents import unbroadcast
from tracegraph.tracing.trace import Active, Trace
from tracegraph.tracing.tracer import Tracer
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

    def run(
        self,
        region: Region,
        linear: Sequence[bool],
        residuals: Sequence[Any],
        cotangents: Cotangents,
        so_far: Cotangents = (),
    ) -> list[Any]:
        """The cotangents of the parameters flagged as linear; `residuals` are the others.

        They are added to the cotangents of these parameters `so_far`, if there are any.
        """
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
            for atom, ct in zip(region.results, cotangents, strict=True):
                self._accumulate(atom, None if ct is None else plain(self.trace, ct))
            for eqn in reversed(todo):
                self.trace.source = eqn.source
                self._transpose(eqn)
        self.trace.source = before
        return [
            self.cotangents.get(p) for p, flag in zip(region.params, linear, strict=True) if flag
        ]

    def pop_cotangent(self, atom: Atom) -> Any:
        """The cotangent of an operand so far, for a rule that adds to it and gives the whole."""
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

    def _accumulate(self, atom: Atom, ct: Any) -> None:
        if ct is None or atom not in self.linear:
            return
        before = self.cotangents.get(atom)
        self.cotangents[atom] = ct if before is None else Emit(self.trace).add(before, ct)

    def _transpose(self, eqn: Eqn) -> None:
        cts = [self.cotangents.pop(v, None) for v in eqn.outputs]
        if all(ct is None for ct in cts):
            return
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
            for atom, ct in zip(eqn.operands, found, strict=True):
                self._accumulate(atom, ct)
        else:
            raise errors.NonlinearError(eqn.op.name, eqn.source)

    def _transpose_product(self, eqn: Eqn, record: Product, ct: Any) -> None:
        emit, (x, y) = Emit(self.trace), eqn.operands
        if x in self.linear:
            if y in self.linear:
                raise errors.NonlinearError(eqn.op.name, eqn.source)
            found = record.left(emit, ct, self.value(y), **eqn.attrs)
            self._accumulate(x, unbroadcast(emit, found, x.type))
        else:
            found = record.right(emit, ct, self.value(x), **eqn.attrs)
            self._accumulate(y, unbroadcast(emit, found, y.type))

    def _transpose_partials(self, eqn: Eqn, record: Partials, ct: Any) -> None:
        """Sums and differences."""
        emit = Emit(self.trace)
        for coefficient, atom in zip(record.of, eqn.operands, strict=True):
            if atom not in self.linear:
                continue
            if coefficient == 1:
                part = ct
            elif coefficient == -1:
                part = emit.negative(ct)
            else:
                raise errors.NonlinearError(eqn.op.name, eqn.source)
            self._accumulate(atom, unbroadcast(emit, part, atom.type))

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
                self._accumulate(eqn.operands[i], part)
