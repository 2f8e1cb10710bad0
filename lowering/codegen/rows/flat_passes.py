"""Passes over rows, with expressions over linear indices."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.codegen.expressions import stored
from lowering.codegen.flatten import POINT, STEP, Flattener
from lowering.codegen.rows.accumulators import NumberedAccumulator
from lowering.plan.nests.kernel import Pass, RowNest, Store
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Expr


def flattener_of(nest: RowNest) -> Flattener:
    """The flattener of rows: `POINT` numbers the rows, `STEP` the steps of a row."""
    loop = list(enumerate(nest.loop, start=len(nest.space)))
    return Flattener({POINT: list(enumerate(nest.space)), STEP: loop})


@dataclass(frozen=True, slots=True)
class FlatPass:
    """A pass: its folds, the value that each folds at a step, and the stores of a step."""

    folds: list[NumberedAccumulator]
    values: list[Expr]
    stores: list[Store]

    @classmethod
    def of(cls, row_pass: Pass, folds: Sequence[NumberedAccumulator], flat: Flattener) -> FlatPass:
        """The pass, whose accumulators are `folds`."""
        values = [flat(a.value) for a in row_pass.accumulators]
        return cls(list(folds), values, list(map(flat.store, row_pass.stores)))

    @property
    def roots(self) -> list[Expr]:
        """All expressions of a step."""
        return [*self.values, *stored(self.stores)]
