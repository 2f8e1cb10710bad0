"""Sums over a batch of products, as products of longer sums.

    sum over b of x[b, m, k] @ y[b, k, n]   =   x[m, (b k)] @ y[(b k), n]

Derivatives of factors that a batch shares are such sums. As one product they are not stored for
each element of the batch. The factors may have to be copied for that, unless the axes of the batch
are next to those that are summed in memory, as in the transposed left factor of a derivative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

import numpy as np

from lowering.planning.expansion.view_axes import layout
from tracegraph.ir.program import Atom, Eqn, Program, Value, application, walk
from tracegraph.passes.dce import dce
from tracegraph.passes.rewrite import Defs, Replacement, by_name, rewrite


def sum_in_products(program: Program) -> Program:
    """The program with such sums of products that nothing else uses."""
    if not any(eqn.op.name == "matmul" for eqn in walk(program.body)):
        return program
    uses: Counter[Atom] = Counter(program.body.results)
    for eqn in walk(program.body):
        uses.update(eqn.operands)
        for region in eqn.regions:
            uses.update(region.results)

    def summed(eqn: Eqn, defs: Defs) -> Replacement | None:
        (x,) = eqn.operands
        product = defs.get(x) if isinstance(x, Value) else None
        if product is None or product.op.name != "matmul" or uses[x] > 1:
            return None
        return _as_one(eqn, product, defs)

    found = rewrite(program, lambda: by_name({"sum": summed}))
    return program if found is program else dce(found)


def _as_one(eqn: Eqn, product: Eqn, defs: Defs) -> Replacement | None:
    left, right = product.operands
    (out,) = eqn.outputs
    axes, rank = eqn.attrs["axes"], left.type.ndim
    (*batch, m, k), n = left.type.shape, right.type.shape[-1]
    count = prod([batch[axis] for axis in axes if axis < rank - 2])
    if max(axes, default=rank) >= rank - 2 or out.type.dtype != left.type.dtype:
        return None
    if 0 in (*batch, m, n, k):
        return None
    kept = [axis for axis in range(rank - 2) if axis not in axes]
    shape = tuple([batch[axis] for axis in kept])
    of_left = (*kept, rank - 2, *axes, rank - 1)
    of_right = (*kept, *axes, rank - 2, rank - 1)
    rows, columns = (*shape, m, count * k), (*shape, count * k, n)
    copied = 0 if _is_view(left, of_left, rows, defs) else m * k
    copied += 0 if _is_view(right, of_right, columns, defs) else k * n
    if copied > m * n:
        return None
    eqns: list[Eqn] = []
    for factor, order, merged in ((left, of_left, rows), (right, of_right, columns)):
        eqns.append(application("transpose", (factor,), {"axes": order}, product.source))
        eqns.append(application("reshape", eqns[-1].outputs, {"shape": merged}, product.source))
    factors = (eqns[1].outputs[0], eqns[3].outputs[0])
    eqns.append(application("matmul", factors, product.attrs, product.source))
    return Replacement(eqns[-1].outputs, tuple(eqns))


def _is_view(x: Atom, axes: Sequence[int], shape: tuple[int, ...], defs: Defs) -> bool:
    """Whether an operand, transposed and then reshaped, is still in memory as it was."""
    try:
        array = np.reshape(layout(x, defs).transpose(axes), shape, copy=False)
    except ValueError:
        return False
    matrix = zip(array.shape[-2:], array.strides[-2:], strict=True)
    return any(extent == 1 or stride == 1 for extent, stride in matrix)
