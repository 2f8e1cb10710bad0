"""The lanes of a batched region: where their equations are recorded, and which of them are live."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol

from tracegraph.ir.op import Scatter, get
from tracegraph.ir.program import NO_HINTS, Atom, Eqn, Hints, Literal, Region
from tracegraph.ir.record import record, replace
from tracegraph.ir.types import ArrayType
from tracegraph.ops.batching import aligned
from tracegraph.tracing.trace import Trace
from tracegraph.transforms.batching.flags import BatchedFlags

INEXACT = "fcV"
"""Kinds of dtypes whose values have derivatives."""


class Batch(NamedTuple):
    """A value for all lanes: batched, with the lanes along axis 0, or the same for all."""

    atom: Atom
    is_batched: bool


def batches(atoms: Sequence[Atom], flags: Sequence[bool]) -> list[Batch]:
    """Values with their flags."""
    return [Batch(atom, flag) for atom, flag in zip(atoms, flags, strict=True)]


@record
class Lanes:
    """`count` lanes, recorded into `trace`.

    `mask` are the live lanes, bool[count], or None if all are. Lanes that are not live compute
    values that nothing uses; they print nothing, check nothing and keep no loop running. `writing`
    is as the batching rules of ops take it, and `hints` are those of their scatters. `flags` says
    which values differ between lanes.
    """

    trace: Trace
    count: int
    flags: BatchedFlags
    mask: Atom | None = None
    writing: Atom | None = None
    hints: Hints = NO_HINTS

    def emit(self, name: str, *operands: Atom, **attrs: Any) -> Atom:
        """Record an op with one result, on operands of final dtypes."""
        (result,) = self.emit_all(name, *operands, **attrs)
        return result

    def emit_all(self, name: str, *operands: Atom, **attrs: Any) -> tuple[Atom, ...]:
        """Record an op, on operands of final dtypes; its results."""
        op = get(name)
        hints = self.hints if isinstance(op.form, Scatter) else NO_HINTS
        results = self.trace.record(op, operands, attrs, (), hints)
        return tuple([result.atom for result in results])

    def spread(self, x: Atom, is_batched: bool = False) -> Atom:
        """The operand, batched."""
        if is_batched:
            return x
        found = self.emit("broadcast_to", x, shape=(self.count, *x.type.shape))
        return found if isinstance(x, Literal) else self.marked(found)

    def marked(self, x: Atom) -> Atom:
        """A batched value, marked with the mask if there is one and it has derivatives."""
        if self.mask is None or x.type.dtype.kind not in INEXACT:
            return x
        return self.emit("live_lanes", aligned(self, self.mask, x.type.ndim - 1), x)

    def spread_as(self, values: Sequence[Batch], flags: Sequence[bool]) -> list[Atom]:
        """The values, those batched that `flags` says. No others may be."""
        return [
            self.spread(x, is_batched) if flag else x
            for (x, is_batched), flag in zip(values, flags, strict=True)
        ]

    def select(self, mask: Atom, x: Atom, y: Atom) -> Atom:
        """X in the lanes of the mask, y in the others; both are batched."""
        return self.emit("where", aligned(self, mask, x.type.ndim - 1), x, y)

    def any(self, mask: Atom) -> Atom:
        """Whether a lane of the mask is set."""
        return self.emit("any", mask, axes=(0,))

    def live(self, mask: Atom) -> Atom:
        """Those lanes of the mask that are live."""
        return mask if self.mask is None else self.emit("logical_and", self.mask, mask)

    def masked(self, mask: Atom | None) -> Lanes:
        """The same with other live lanes."""
        return replace(self, mask=mask)

    def region(
        self,
        types: Sequence[ArrayType],
        record_body: Callable[[Lanes, list[Atom]], Sequence[Atom]],
    ) -> Region:
        """A closed region inside this one, which `record_body(lanes, params)` records.

        If there is a mask, it is a further parameter: the operands are followed by `masks`.
        """
        inner = Trace(self.trace)
        inner.source = self.trace.source
        params = [inner.param(type_).atom for type_ in types]
        mask = None if self.mask is None else inner.param(self.mask.type).atom
        results = record_body(Lanes(inner, self.count, self.flags, mask), params)
        return Region(tuple(inner.params), tuple(inner.eqns), tuple(results))

    @property
    def masks(self) -> tuple[Atom, ...]:
        """The mask, if there is one."""
        return () if self.mask is None else (self.mask,)

    def type_of(self, type_: ArrayType, is_batched: bool) -> ArrayType:
        """The type of a value, from that in one lane."""
        return type_.with_shape((self.count, *type_.shape)) if is_batched else type_.strong()

    def zeros(self, type_: ArrayType) -> Atom:
        """An array of zeros."""
        zero = Literal.of(0, ArrayType(type_.dtype))
        return zero if type_.shape == () else self.emit("broadcast_to", zero, shape=type_.shape)


class BatchRegion(Protocol):
    """The pass itself: `batch.batch_region`."""

    def __call__(
        self,
        lanes: Lanes,
        region: Region,
        operands: Sequence[Batch],
        guarded: Collection[Eqn] = (),
    ) -> list[Batch]:
        """Record a region for all lanes; its results."""


ControlRule = Callable[[BatchRegion, Lanes, Eqn, Sequence[Batch]], Sequence[Batch]]
"""How an op with regions is recorded for all lanes: `rule(batch_region, lanes, eqn, operands)`."""
