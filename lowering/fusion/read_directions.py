"""Directions of folds: those that read large arrays along different axes are separate kernels.

    A @ x, y @ A        one reads rows of A, the other columns: whichever axis neighbouring threads
                        take, one of both uses a sector of memory for each element

In one nest they would read A once, but not at the speed of memory: for 11,000² float64 one kernel
takes 1.36 ms, two take 0.81 (H100).
"""

from __future__ import annotations

from lowering.draft.context import Context
from lowering.draft.draft_nodes import Block, DraftKernel, DraftNode
from lowering.fusion.row_profitability import adds_uncoalesced
from lowering.plan.nests.analysis import nest_accumulated
from lowering.plan.nests.kernel import (
    Accumulator,
    Nest,
    Pass,
    ReduceNest,
    RowNest,
    Store,
    space_index,
)
from lowering.plan.nests.rewriting import map_nest
from lowering.plan.target.target import FusionPolicy
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Expr
from tracegraph.ir.scalar_values import Accumulated, Load
from tracegraph.ir.types import ArrayType


def differ(first: Nest, second: Nest, policy: FusionPolicy) -> bool:
    """Whether two folds over the same elements are faster apart."""
    if not isinstance(first, ReduceNest) or not isinstance(second, ReduceNest):
        return False
    if (first.space, first.loop) != (second.space, second.loop):
        return False
    together = _folding(first, (*first.accumulators, *second.accumulators))
    return adds_uncoalesced(together, (first, second), policy)


def split_folds(nodes: list[DraftNode], block: Block, context: Context) -> list[DraftNode]:
    """The nodes of a block, folds of one nest that read in different directions being apart."""
    found: list[DraftNode] = []
    for node in nodes:
        if isinstance(node, DraftKernel) and len(node.nests) == 1:
            (nest,) = node.nests
            if isinstance(nest, ReduceNest) and len(nest.accumulators) > 1:
                *before, last = _split(nest, block, context)
                found += [DraftKernel([each], node.sources, node.within) for each in before]
                node = node if last is nest else DraftKernel([last], node.sources, node.within)
        found.append(node)
    return found


def _split(nest: ReduceNest, block: Block, context: Context) -> list[ReduceNest]:
    """Nests of the accumulators of each direction; the last has the stores of the given one."""
    policy = context.target.fusion
    directions: list[list[int]] = []
    for number, accumulator in enumerate(nest.accumulators):
        alone = _only(nest, [accumulator])
        for direction in directions:
            others = _only(nest, [nest.accumulators[k] for k in direction])
            if not differ(others, alone, policy):
                direction.append(number)
                break
        else:
            directions.append([number])
    if len(directions) == 1:
        return [nest]
    index = space_index(nest.space)
    dtypes = {each.number: each.dtype for each in nest_accumulated(nest)}
    values: dict[Expr, Expr] = {}
    nests = []
    for direction in directions[:-1]:
        stores = []
        for place, number in enumerate(direction):
            dtype = dtypes[number]
            buffer = context.buffer("scratch", ArrayType(dtype, nest.space))
            block.owned.add(buffer)
            stores.append(Store(buffer, index, Accumulated.make(place, dtype)))
            values[Accumulated.make(number, dtype)] = Load.make(buffer, index, None)
        apart = _only(nest, [nest.accumulators[k] for k in direction])
        nests.append(replace(apart, stores=tuple(stores)))
    for place, number in enumerate(directions[-1]):
        values[Accumulated.make(number, dtypes[number])] = Accumulated.make(place, dtypes[number])
    kept = [nest.accumulators[k] for k in directions[-1]]
    rest = map_nest(replace(nest, accumulators=tuple(kept)), values)
    assert isinstance(rest, ReduceNest)
    return [*nests, rest]


def _only(nest: ReduceNest, accumulators: list[Accumulator]) -> ReduceNest:
    return ReduceNest(nest.space, nest.loop, tuple(accumulators), (), (), nest.predicates)


def _folding(nest: ReduceNest, accumulators: tuple[Accumulator, ...]) -> RowNest:
    return RowNest(nest.space, nest.loop, (Pass(accumulators, ()),), ())
