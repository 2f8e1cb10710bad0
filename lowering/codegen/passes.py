"""One pass over rows, with its expressions over linear indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lowering.codegen.expressions import stored
from lowering.codegen.flatten import Flattener
from lowering.codegen.folds import Fold
from lowering.kernel import Pass, Store
from tracegraph.scalar import Expr


@dataclass(frozen=True, slots=True)
class FlatPass:
    """A pass over linear indices: its folds, what each folds, and the stores of each step."""

    folds: list[Fold]
    values: list[Expr]
    stores: list[Store]

    @classmethod
    def of(cls, row_pass: Pass, folds: Sequence[Fold], flat: Flattener) -> FlatPass:
        """The pass of a nest whose accumulators are folded by `folds`."""
        values = [flat(a.value) for a in row_pass.accumulators]
        return cls(list(folds), values, list(map(flat.store, row_pass.stores)))

    @property
    def roots(self) -> list[Expr]:
        """All that the pass computes at a step."""
        return [*self.values, *stored(self.stores)]
