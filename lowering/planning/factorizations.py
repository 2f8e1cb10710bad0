"""Factorizations: library calls where the backend has them, else programs in their place."""

from __future__ import annotations

from collections.abc import Set

from lowering.draft.stage import NodeStage
from lowering.plan.factorization import Factorization
from lowering.plan.library_call import StridedArray
from lowering.plan.nodes import LibraryNode
from lowering.planning.library_operands import contiguous, operand
from lowering.planning.region_builder import RegionBuilder
from tracegraph.algorithms import ALGORITHMS, program_of
from tracegraph.ir.program import Eqn, Program, Region, walk
from tracegraph.ir.record import replace
from tracegraph.passes.rewrite import Defs, Replacement, by_name, inlined, rewrite
from tracegraph.user_source import Source


def expand_factorizations(program: Program, libraries: Set[str]) -> Program:
    """The program with the algorithms of ops that are not among the `libraries` of the backend."""
    expanded = ALGORITHMS.keys() - libraries
    if not any(eqn.op.name in expanded for eqn in walk(program.body)):
        return program
    return rewrite(program, lambda: by_name(dict.fromkeys(expanded, _expanded)))


def _expanded(eqn: Eqn, _: Defs) -> Replacement:
    types = tuple([atom.type.strong() for atom in eqn.operands])
    algorithm = program_of(eqn.op.name, types, tuple(eqn.attrs.items()))
    return inlined(_at(algorithm.body, eqn.source), eqn.operands)


def _at(region: Region, source: Source | None) -> Region:
    """The region as if the user's line had written it."""
    eqns = [
        replace(eqn, source=source, regions=tuple([_at(r, source) for r in eqn.regions]))
        for eqn in region.eqns
    ]
    return replace(region, eqns=tuple(eqns))


def factorization(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit a library call, unless its results have no elements."""
    buffers = builder.results(eqn)
    if not any(out.type.size for out in eqn.outputs):
        return
    matrices = tuple([operand(builder, atom, contiguous) for atom in eqn.operands])
    results = tuple(map(StridedArray.whole, buffers))
    call = Factorization(eqn.op, eqn.attrs, matrices, results)
    builder.add(NodeStage(LibraryNode(call, builder.sources)))
