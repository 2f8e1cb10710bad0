"""Cost of gathers: whether a value is materialized in order before it is gathered."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.plan.target.target import Costs
from tracegraph.ir.types import ArrayType


def is_gathered_faster(
    value: ArrayType,
    arrays: Sequence[ArrayType],
    gathers: Sequence[tuple[int, int]],
    costs: Costs,
) -> bool:
    """Whether a value is gathered at least as fast if it is materialized first.

    Otherwise each of the `arrays` that it is computed from is gathered. For 2²⁴ random places of
    three float32 arrays, that took 1,188 µs instead of 347 (H200).

    Args:
        value: the type of the value.
        arrays: the types of the arrays that it is computed from.
        gathers: for each gather of the value, its points and the length of contiguous runs.
        costs: those of the target, which are in sequential bytes here.
    """
    inlined = sum([costs.reading(array, *gather) for array in arrays for gather in gathers])
    stored = sum([costs.reading(value, *gather) for gather in gathers])
    stored += 1e6 * costs.kernel / costs.megabyte
    stored += value.nbytes + sum(array.nbytes for array in arrays)
    return inlined >= stored
