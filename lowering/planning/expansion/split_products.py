"""Products of float32 matrices in the precision "bf16x3", as one product of bfloat16 parts.

    x = x₁ + x₂,  y = y₁ + y₂              x₁ is x as bfloat16, x₂ what that leaves, as bfloat16
    x y ≈ x₁ y₁ + x₁ y₂ + x₂ y₁  =  [x₁ x₁ x₂] [y₁; y₂; y₁]        summed in float32

What is left out, x₂ y₂, is 2⁻¹⁶ of the product. This comes before loop-invariant motion, so that
the parts of weights are made once. The method is that of Henry, Tang and Heinecke, "Leveraging the
bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations" (2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.plan.calls.matrix_product import library_takes
from lowering.plan.target.overrides import ProductForm
from lowering.plan.target.target import ContractionPolicy
from lowering.planning.expansion.contractions import are_small, is_thin
from lowering.planning.expansion.view_axes import is_by_columns
from tracegraph.dtypes import bfloat16
from tracegraph.ir.program import Atom, Eqn, Program, Value, application, walk
from tracegraph.passes.rewrite import Defs, Replacement, by_name, rewrite

_FLOAT = np.dtype(np.float32)


def split_products(
    program: Program, policy: ContractionPolicy, forced: ProductForm | None = None
) -> Program:
    """The program with such products split, but for those that are to be sums anyway."""
    if not policy.split or forced == "nests" or not any(map(_may_be_split, walk(program.body))):
        return program

    def split(eqn: Eqn, defs: Defs) -> Replacement | None:
        left, right = (atom.type for atom in eqn.operands)
        if not _may_be_split(eqn) or not library_takes(left, right):
            return None
        if forced is None and is_thin(left, right, policy):
            return None
        if left.ndim > 2 and forced is None and are_small(left, right, policy):
            return None
        return _of_parts(eqn, defs)

    return rewrite(program, lambda: by_name({"matmul": split}))


def _may_be_split(eqn: Eqn) -> bool:
    return eqn.op.name == "matmul" and eqn.attrs.get("precision") == "bf16x3"


def _of_parts(eqn: Eqn, defs: Defs) -> Replacement:
    eqns: list[Eqn] = []

    def emit(name: str, *operands: Atom, **attrs: Any) -> Value:
        eqns.append(application(name, operands, attrs, eqn.source))
        return eqns[-1].outputs[0]

    def parts(x: Atom) -> tuple[Value, Value]:
        first = emit("cast", x, dtype=bfloat16)
        rest = emit("subtract", x, emit("cast", first, dtype=_FLOAT))
        return first, emit("cast", rest, dtype=bfloat16)

    rank = eqn.outputs[0].type.ndim
    turned = (*range(rank - 2), rank - 1, rank - 2)

    def joined(x: Atom, order: tuple[int, int, int], axis: int) -> Value:
        """The parts behind each other, stored in the order in which the factor is."""
        by_columns = is_by_columns(x, defs)
        if by_columns:
            x, axis = emit("transpose", x, axes=turned), turned[axis]
        found = parts(x)
        stored = emit("concatenate", *(found[part] for part in order), axis=axis)
        return emit("transpose", stored, axes=turned) if by_columns else stored

    x, y = eqn.operands
    left, right = joined(x, (0, 0, 1), rank - 1), joined(y, (0, 1, 0), rank - 2)
    result = emit("matmul", left, right, dtype=_FLOAT)
    return Replacement((result,), tuple(eqns))
