"""Linearization: the equations of a region, and those of the tangents of its results.

The former go to one trace, the latter to another inside it: what that captures are the residuals,
the values of the function itself that its derivative needs. If both are one trace, this is forward
mode. A tangent that is known to be zero is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from tracegraph import errors
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.derivative import (
    Constant,
    Linear,
    NoDerivativeError,
    Partials,
    Product,
    Rewrite,
    Structural,
)
from tracegraph.ir.op import Elementwise
from tracegraph.ir.program import Atom, Eqn, Literal, Region, Value
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.trace import Active, Trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.derivatives.activity import is_inexact
from tracegraph.transforms.trace_emitter import Emit, plain

Tangents = Sequence[Tracer | None]
Results = tuple[Sequence[Any], Sequence[Any]]
Rule = Callable[["Linearizer", Eqn, Sequence[Tracer], Tangents], Results]

STRUCTURAL: dict[str, Rule] = {}
"""By name of an op with regions: the rule that records its results and their tangents.

It is called if an operand has a tangent.
"""

BY_RECORD: dict[type, Rule] = {}
"""By the kind of a derivative record, rules that trace functions, in modules that import this
one."""


@dataclass(slots=True)
class Linearizer:
    """The pass over one region: where its equations go, and where those of tangents go."""

    primal: Trace
    linear: Trace
    values: dict[Value, Tracer] = field(default_factory=dict)
    tangents: dict[Atom, Tracer] = field(default_factory=dict)
    relevant: set[Atom] = field(default_factory=set)
    unwritten: set[Atom] = field(default_factory=set)
    """Results of `empty`: their elements, and those of their tangents, are written before they are
    read."""

    is_transposed: ClassVar[bool] = False
    """Whether the tangents' equations must be linear and have a transpose: of a rule, say."""

    @property
    def is_forward(self) -> bool:
        """Whether tangents are computed along with the results."""
        return self.linear is self.primal

    def run(
        self,
        region: Region,
        args: Sequence[Any],
        tangents: Tangents,
        wanted: Sequence[bool] | None = None,
    ) -> tuple[list[Tracer], list[Tracer | None]]:
        """The results of the region and their tangents; only those of the `wanted`, if given."""
        self.relevant = (
            relevant_atoms(region, wanted) if any(t is not None for t in tangents) else set()
        )
        self.values.update(
            (p, plain(self.primal, x)) for p, x in zip(region.params, args, strict=True)
        )
        self.tangents.update(
            (p, t) for p, t in zip(region.params, tangents, strict=True) if t is not None
        )
        before = self.primal.source, self.linear.source
        with Active(self.primal):
            for eqn in region.eqns:
                self.primal.source = self.linear.source = eqn.source
                if eqn.op.name == "empty":
                    self.unwritten.update(eqn.outputs)
                self._add(eqn)
        self.primal.source, self.linear.source = before
        outs = [self.value(a) for a in region.results]
        return outs, [self.tangent(a) if a in self.relevant else None for a in region.results]

    def value(self, atom: Atom) -> Tracer:
        """What an atom of the region stands for."""
        return Tracer(self.primal, atom) if isinstance(atom, Literal) else self.values[atom]

    def tangent(self, atom: Atom) -> Tracer | None:
        """Its tangent."""
        return self.tangents.get(atom)

    def copied(self, eqn: Eqn, xs: Sequence[Tracer]) -> Sequence[Tracer]:
        """The equation itself on these operands; its results."""
        atoms = [self.primal.read(x) for x in xs]
        return self.primal.record(eqn.op, atoms, eqn.attrs, eqn.regions, eqn.hints)

    def _add(self, eqn: Eqn) -> None:
        xs = [self.value(a) for a in eqn.operands]
        outs: Sequence[Any]
        found: Sequence[Any]
        if self.tangents.keys().isdisjoint(eqn.operands) or self.relevant.isdisjoint(eqn.outputs):
            outs, found = self.copied(eqn, xs), ()
        else:
            ts = [self.tangents.get(a) for a in eqn.operands]
            record = eqn.op.derivative
            if isinstance(record, Structural):
                outs, found = STRUCTURAL[eqn.op.name](self, eqn, xs, ts)
            elif type(record) in BY_RECORD:
                outs, found = BY_RECORD[type(record)](self, eqn, xs, ts)
            else:
                outs = self._results(eqn, xs)
                found = self._tangents_of(eqn, outs, [fixed(self.primal, x) for x in xs], ts)
        self.values.update(zip(eqn.outputs, outs, strict=True))
        for value, t in zip(eqn.outputs, found, strict=False):
            if t is not None:
                self.tangents[value] = t

    def _results(self, eqn: Eqn, xs: Sequence[Tracer]) -> Sequence[Tracer]:
        """The results of an equation that is differentiated."""
        record = eqn.op.derivative
        if not isinstance(record, Rewrite) or record.results is None:
            return self.copied(eqn, xs)
        operands = [strong(self.primal, x) for x in xs]
        found = record.results(Emit(self.primal), *operands, **eqn.attrs)
        return [plain(self.primal, x) for x in (found if isinstance(found, tuple) else (found,))]

    def _tangents_of(
        self, eqn: Eqn, outs: Sequence[Tracer], xs: Sequence[Tracer], ts: Tangents
    ) -> Sequence[Any]:
        """The tangents of the results of an equation without regions."""
        if len(outs) == 1:
            found = [self._tangent_of(eqn, outs[0], xs, ts)]
        elif isinstance(eqn.op.derivative, Rewrite):
            found = self._rewritten(eqn, eqn.op.derivative, tuple(outs), xs, ts)
        else:
            raise errors.DerivativeError(eqn.op.name, "it has no rule", eqn.source)
        emit = Emit(self.linear)
        return [
            None if t is None else stretched(emit, t, output.type)
            for t, output in zip(found, eqn.outputs, strict=True)
        ]

    def _rewritten(
        self, eqn: Eqn, record: Rewrite, out: Any, xs: Sequence[Tracer], ts: Tangents
    ) -> Any:
        try:
            values = record.prepare(Emit(self.primal), out, *xs, **eqn.attrs)
        except NoDerivativeError as error:
            raise errors.DerivativeError(eqn.op.name, str(error), eqn.source) from None
        return record.apply(Emit(self.linear), values, ts, **eqn.attrs)

    def _tangent_of(self, eqn: Eqn, out: Tracer, xs: Sequence[Tracer], ts: Tangents) -> Any:
        """The tangent of an equation with one result."""
        (output,) = eqn.outputs
        if not is_inexact(output.type):
            return None
        emit = Emit(self.linear)
        match eqn.op.derivative:
            case Constant():
                return None
            case Partials(of=coefficients):
                try:
                    found = self._weighted(coefficients, out, xs, ts)
                except NoDerivativeError as error:
                    raise errors.DerivativeError(eqn.op.name, str(error), eqn.source) from None
            case Product():
                x, y = xs
                terms = []
                if ts[0] is not None:
                    terms.append(getattr(emit, eqn.op.name)(ts[0], y, **eqn.attrs))
                if ts[1] is not None:
                    terms.append(getattr(emit, eqn.op.name)(x, ts[1], **eqn.attrs))
                found = terms[0] if len(terms) == 1 else emit.add(*terms)
            case Linear(of=of):
                found = linear_tangent(emit, eqn, of, xs, ts)
            case Rewrite():
                found = self._rewritten(eqn, eqn.op.derivative, out, xs, ts)
            case _:
                raise errors.DerivativeError(eqn.op.name, "it has no rule", eqn.source)
        return found

    def _weighted(
        self, coefficients: Sequence[Any], out: Tracer, xs: Sequence[Tracer], ts: Tangents
    ) -> Any:
        emit, total = Emit(self.linear), None
        for coefficient, t in zip(coefficients, ts, strict=True):
            if t is None or coefficient == 0:
                continue
            if coefficient == -1:
                total = emit.negative(t) if total is None else emit.subtract(total, t)
                continue
            term: Any = t
            if not isinstance(coefficient, int):
                term = emit.multiply(self._as(t, coefficient(Emit(self.primal), out, *xs)), t)
            total = term if total is None else emit.add(total, term)
        return total

    def _as(self, t: Any, coefficient: Any) -> Any:
        """A coefficient in the dtype of a tangent: with bfloat16, Python's floats give float32."""
        if isinstance(coefficient, float):
            return t.dtype.type(coefficient)
        if coefficient.dtype == t.dtype:
            return coefficient
        return Emit(self.primal).cast(coefficient, dtype=t.dtype)


def strong(trace: Trace, x: Tracer) -> Tracer:
    """A value of a trace, of its own dtype, which does not give way to others."""
    atom = x.atom
    if not atom.type.weak:
        return x
    if isinstance(atom, Literal):
        return Tracer(x.owner, Literal(atom.value, atom.type.strong()))
    made: Tracer = Emit(trace).cast(x, dtype=atom.type.dtype)
    return made


def fixed(trace: Trace, x: Tracer) -> Tracer:
    """A value as rules compute with it, which does not give way to their numbers. In Python's own
    dtypes there is nothing to give way to.
    """
    is_free = isinstance(x.atom, Literal) or x.atom.type.dtype not in _OF_PYTHON
    return strong(trace, x) if is_free else x


_OF_PYTHON = (np.dtype(np.float64), np.dtype(np.complex128))


def relevant_atoms(region: Region, wanted: Sequence[bool] | None = None) -> set[Atom]:
    """The values that a wanted result may depend on smoothly: no other needs a tangent."""
    results = region.results
    found: set[Atom] = {a for i, a in enumerate(results) if wanted is None or wanted[i]}
    for eqn in reversed(region.eqns):
        if not isinstance(eqn.op.derivative, Constant) and not found.isdisjoint(eqn.outputs):
            found.update(eqn.operands)
    return found


def linear_tangent(
    emit: Emit, eqn: Eqn, of: tuple[int, ...] | None, xs: Sequence[Tracer], ts: Tangents
) -> Any:
    """The op itself, applied to tangents: those that are zero are made, of as few elements as
    broadcasting allows.
    """
    linear = range(len(xs)) if of is None else of
    if all(ts[i] is None for i in linear):
        return None
    operands: list[Any] = list(xs)
    for i in linear:
        type_, t = xs[i].type, ts[i]
        if t is not None:
            operands[i] = t
        elif isinstance(eqn.op.form, Elementwise) or not type_.shape:
            operands[i] = type_.dtype.type(0)
        else:
            operands[i] = emit.zeros(type_)
    return getattr(emit, eqn.op.name)(*operands, **strong_attrs(eqn.attrs))


def require_forward(attrs: Mapping[str, Any]) -> None:
    """Check that the linear part of a custom_vjp is also known forwards.

    Raises:
        CustomRuleError: it could not be transposed.
        Exception: the backward rule has raised it while it was traced.
    """
    if "fault" in attrs:
        raise attrs["fault"]
    if not attrs["forward"]:
        raise errors.CustomRuleError(
            "custom_vjp",
            "forward mode transposes the backward rule, which is not linear in the cotangent; use "
            "reverse mode, or a custom_jvp",
        )


def strong_attrs(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of an equation on tangents, which are never weak."""
    return {name: value for name, value in attrs.items() if name != "weak"}


def stretched(emit: Emit, x: Any, type_: ArrayType) -> Any:
    """`x` broadcast to the shape of a type."""
    return x if x.shape == type_.shape else emit.broadcast_to(x, shape=type_.shape)
