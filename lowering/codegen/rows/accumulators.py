"""Accumulators in registers: their variables, and the statements that fold into them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.codegen.constants import constant
from lowering.codegen.expressions import combine, round_to
from lowering.codegen.preamble import c_type
from lowering.codegen.rows.accumulator_layout import component_dtypes
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import Accumulator
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.combiners import ADD, MULTIPLY
from tracegraph.ir.op import Combiner
from tracegraph.ir.scalar import INDEX, Expr, const
from tracegraph.ir.scalar_values import Accumulated, Apply

_FIRST_EXTREMES = {"minimum": "<", "maximum": ">"}
"""What an element is to those before it, to be the extreme."""

NARROW_BYTES = 2
"""Bytes of integers whose sums of thousands fit 32 bits."""


@dataclass(frozen=True, slots=True)
class NumberedAccumulator:
    """Accumulator `number` of a nest. `dtypes` are those of its components."""

    number: int
    combiner: Combiner
    dtype: np.dtype[Any]
    arg: bool
    dtypes: tuple[np.dtype[Any], ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The C++ types of the components."""
        return tuple(map(c_type, self.dtypes))

    @property
    def commutative(self) -> bool:
        """Whether the operation commutes bit for bit. Extrema of floating-point numbers do not:
        zeros of both signs are equal.
        """
        return self.arg or self.dtype.kind in "biu" or self.combiner in (ADD, MULTIPLY)

    def variables(self, name: str) -> tuple[str, ...]:
        """The variables of the components, for a set of accumulators called `name`."""
        value = f"{name}{self.number}"
        return (value, f"{value}_at") if self.arg else (value,)

    def declare(self, writer: SourceWriter, name: str) -> None:
        """Declare the variables, initialised to the identity."""
        for cell, type_, text in zip(
            self.variables(name), self.types, self._identity(), strict=True
        ):
            writer.line(f"{type_} {cell} = {text};")

    def reset(self, writer: SourceWriter, name: str) -> None:
        """Reset the variables to the identity."""
        for variable, text in zip(self.variables(name), self._identity(), strict=True):
            writer.line(f"{variable} = {text};")

    def _identity(self) -> tuple[str, ...]:
        value = constant(const(self.combiner.identity(self.dtype), self.dtypes[0]))
        # if no element is further than the identity, all are equal to it, and the first is found
        return (value, "0") if self.arg else (value,)

    def accumulate(self, writer: SourceWriter, name: str, other: tuple[str, ...]) -> None:
        """Fold other components into the variables called `name`."""
        mine = self.variables(name)
        folded = combine(self.combiner, self.dtype, mine[0], other[0])
        if not self.arg:
            writer.line(f"{mine[0]} = {folded};")
            return
        kind = self.types[0]
        with writer.block(""):
            writer.line(f"const {kind} rival = {other[0]}, best = {folded};")
            writer.line(f"const tg_i64 rival_at = {other[1]};")
            writer.line(
                f"if (!tg_equal_or_nan(best, {mine[0]}) || "
                f"(tg_equal_or_nan(rival, {mine[0]}) && rival_at < {mine[1]})) "
                f"{{ {mine[0]} = rival; {mine[1]} = rival_at; }}"
            )

    def take(self, writer: SourceWriter, name: str, element: str, position: str) -> None:
        """Fold an element at a later position than all before it."""
        compared = _FIRST_EXTREMES.get(self.combiner.name)
        if not self.arg or compared is None or self.dtype.kind == "c":
            self.accumulate(writer, name, (element, position))
            return
        value, at = self.variables(name)
        with writer.block(""):
            writer.line(f"const {self.types[0]} rival = {element};")
            if self.dtype.kind in "biu":
                test = f"rival {compared} {value}"
            else:  # a NaN is the extreme, and the first one is kept
                inverse = {"<": ">=", ">": "<="}[compared]
                test = f"!(rival {inverse} {value}) && {value} == {value}"
            writer.line(f"if ({test}) {{ {value} = rival; {at} = {position}; }}")

    def narrow_term(self, element: Expr) -> Expr | None:
        """The integer of at most 16 bits that an element is, or is cast from: many can be summed in
        32 bits before their sum is folded. None if the accumulator is not a sum of such.
        """
        if self.combiner is not ADD or self.dtype.kind not in "iu":
            return None
        term = element
        if (
            isinstance(element, Apply)
            and element.op.name == "cast"
            and self.dtype.itemsize > NARROW_BYTES
        ):
            term = element.args[0]
        return term if term.dtype.kind in "biu" and term.dtype.itemsize <= NARROW_BYTES else None

    def result(self, name: str) -> tuple[Expr, str]:
        """The expression of the final value, and its text."""
        if self.arg:
            return Accumulated.make(self.number, INDEX), self.variables(name)[1]
        text = round_to(self.dtype, self.variables(name)[0])
        return Accumulated.make(self.number, self.dtype), text


def folds_of(accumulators: tuple[Accumulator, ...]) -> list[NumberedAccumulator]:
    """The folds of a nest's accumulators."""
    return [
        NumberedAccumulator(number, a.combiner, a.value.dtype, a.arg, component_dtypes(a))
        for number, a in enumerate(accumulators)
    ]
