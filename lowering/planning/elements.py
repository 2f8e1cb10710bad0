"""Element expressions: one element of a value of a region, in the scalar language.

Inlined equations are expanded down to loads of what is in memory, and to accumulators of fused
reductions. Equal expressions are the same object.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Accumulator, space_index
from tracegraph.ir import scalar, scalar_values
from tracegraph.ir.op import Elementwise, Indexed, Reduction
from tracegraph.ir.program import Atom, Eqn, Literal, Value
from tracegraph.ir.record import record
from tracegraph.ir.scalar import Expr
from tracegraph.ir.scalar_values import Accumulated, Load
from tracegraph.ir.types import ArrayType


@record
class CapturedValue:
    """A region parameter that stands for a value of the enclosing region."""

    elements: Elements
    atom: Atom


Binding = Buffer | CapturedValue | Eqn
"""Where a value comes from: memory, the enclosing region, or its equation, inlined."""


@record
class Operand:
    """An operand of an equation, as the element rules of ops see it."""

    elements: Elements
    atom: Atom
    guard: Expr | None

    @property
    def type(self) -> ArrayType:
        """The operand's type."""
        return self.atom.type

    def __getitem__(self, index: tuple[Expr, ...]) -> Expr:
        return self.elements.element(self.atom, index, self.guard)

    def at(self, index: tuple[Expr, ...], guard: Expr | None) -> Expr:
        """The element at an index, read only where the guard holds."""
        return self.elements.element(self.atom, index, scalar.both(self.guard, guard))


class Elements:
    """The values of one region: `bindings` says where each comes from.

    `fused_reductions` are accumulators of the nest under construction.
    """

    def __init__(self, bind: Mapping[Value, Binding], fused_reductions: Collection[Value]) -> None:
        self.bindings: dict[Value, Binding] = dict(bind)
        self.fused_reductions = fused_reductions
        self._memo: dict[tuple[Atom, tuple[Expr, ...], Expr | None], Expr] = {}
        self._accumulators: list[Accumulator] | None = None  # of the nest under construction
        self._accumulated: dict[Value, Accumulated] = {}

    def element(self, atom: Atom, index: tuple[Expr, ...], guard: Expr | None) -> Expr:
        """One element of a value, as an expression of the index."""
        if isinstance(atom, Literal):
            return scalar.const(atom.value, atom.type.dtype)
        binding = self.bindings[atom]
        if isinstance(binding, Buffer):
            return Load.make(binding, index, guard)
        if isinstance(binding, CapturedValue):
            return binding.elements.element(binding.atom, index, guard)
        return self._inlined(atom, binding, index, guard)

    def buffer_of(self, atom: Atom) -> Buffer | None:
        """The buffer that holds a value; None if the value is computed where it is used."""
        if isinstance(atom, Literal):
            return None
        binding = self.bindings[atom]
        if isinstance(binding, CapturedValue):
            return binding.elements.buffer_of(binding.atom)
        return binding if isinstance(binding, Buffer) else None

    def operands(self, eqn: Eqn, guard: Expr | None = None) -> list[Operand]:
        """The operands of an equation, for its op's element rule."""
        return [Operand(self, a, guard) for a in eqn.operands]

    def evaluate(
        self, atom: Atom, index: tuple[Expr, ...], eqn: Eqn | None
    ) -> tuple[Expr, tuple[Accumulator, ...], tuple[int, ...]]:
        """The expression of a nest that computes a value: with the accumulators that it uses, and
        the extents of their loop. The value is that of `eqn`, if one is given.
        """
        accumulators: list[Accumulator] = []
        self._accumulators, self._accumulated = accumulators, {}
        reduction = eqn
        if eqn is None:
            value = self.element(atom, index, None)
        elif isinstance(eqn.op.form, Reduction):
            accumulators.append(self._accumulator(eqn))
            value = Accumulated.make(0, atom.type.dtype)
        else:
            value = self._computed(atom.type, eqn, index, None)
        self._accumulators = None
        if not accumulators:
            return value, (), ()
        if reduction is None or not isinstance(reduction.op.form, Reduction):
            fused = self.bindings[next(iter(self._accumulated))]
            assert isinstance(fused, Eqn)
            reduction = fused
        shape = reduction.operands[0].type.shape
        loop = tuple([shape[a] for a in reduction.attrs["axes"]])
        return value, tuple(accumulators), loop

    def _inlined(self, value: Value, eqn: Eqn, index: tuple[Expr, ...], guard: Expr | None) -> Expr:
        if value in self.fused_reductions:
            return self._accumulate(value, eqn)
        key = (value, index, guard)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._computed(value.type, eqn, index, guard)
        return found

    def _computed(
        self, out: ArrayType, eqn: Eqn, index: tuple[Expr, ...], guard: Expr | None
    ) -> Expr:
        if 0 in out.shape:
            return scalar.const(0, out.dtype)  # an empty array has no elements to compute
        match eqn.op.form:
            case Elementwise():
                args = tuple(
                    [self.element(a, _broadcast(a.type.shape, index), guard) for a in eqn.operands]
                )
                return scalar_values.apply(eqn.op, args, out.dtype, eqn.attrs)
            case Indexed(element=element):
                return element(index, self.operands(eqn, guard), out, **eqn.attrs)
        raise AssertionError(f"{eqn.op.name} is never inlined")

    def _accumulate(self, value: Value, eqn: Eqn) -> Expr:
        """A fused reduction: an accumulator of the nest under construction."""
        assert self._accumulators is not None
        if value not in self._accumulated:
            self._accumulators.append(self._accumulator(eqn))
            number = len(self._accumulators) - 1
            self._accumulated[value] = Accumulated.make(number, value.type.dtype)
        return self._accumulated[value]

    def _accumulator(self, eqn: Eqn) -> Accumulator:
        form = eqn.op.form
        assert isinstance(form, Reduction)
        (source,) = eqn.operands
        shape, axes = source.type.shape, eqn.attrs["axes"]
        kept = [n for a, n in enumerate(shape) if a not in axes]
        space = iter(space_index(tuple(kept)))
        loop = iter(space_index(tuple([shape[a] for a in axes]), first=len(kept)))
        index = tuple([next(loop) if a in axes else next(space) for a in range(len(shape))])
        return Accumulator(form.combiner, self.element(source, index, None), form.arg)


def _broadcast(shape: tuple[int, ...], index: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The index into an operand of this shape that broadcasts to a result's index."""
    if len(shape) == len(index) and 1 not in shape:
        return index
    tail = index[len(index) - len(shape) :]
    zero = scalar.const(0)
    return tuple([zero if extent == 1 else i for extent, i in zip(shape, tail, strict=True)])
