"""Factorizations: library calls where the backend has them, else programs in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lowering.algorithms import (
    ALGORITHMS,
    AT_ONCE,
    BY_LIBRARY,
    SMALL,
    TRANSFORMS,
    AlgorithmChoice,
    are_small,
    program_of,
)
from lowering.algorithms.lapack import UPDATED, getrf_batched, potrf_batched, trsm, trsm_batched
from lowering.draft.draft_nodes import FinishedNode
from lowering.plan.calls.factorization import Factorization
from lowering.plan.calls.lapack import (
    BatchedCholesky,
    BatchedLU,
    BatchedSolve,
    LapackRoutine,
    TriangularSolve,
)
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nests.kernel import MapNest, Store, space_index
from lowering.plan.nodes import LibraryNode
from lowering.plan.target.overrides import FactorizationForm
from lowering.plan.target.target import LapackPolicy, Target
from lowering.planning.expansion.sources import at_line
from lowering.planning.library_operands import contiguous, in_memory, operand
from lowering.planning.region_builder import RegionBuilder
from tracegraph.ir.op import Op
from tracegraph.ir.program import Eqn, Program, walk
from tracegraph.ir.types import ArrayType
from tracegraph.passes.dce import dce
from tracegraph.passes.rewrite import Defs, Replacement, by_name, inlined, rewrite


def expand_factorizations(
    program: Program, target: Target, forced: FactorizationForm | None = None
) -> Program:
    """The program with algorithms in place of ops that the backend has no library calls for.

    The target's policy decides which algorithms these are, unless a form is `forced`.
    """
    if not any(_is_program(eqn, target) for eqn in walk(program.body)):
        return program

    at_the_top = {value for eqn in program.body.eqns for value in eqn.outputs}

    def expand(eqn: Eqn, _: Defs) -> Replacement | None:
        if not _is_program(eqn, target):
            return None
        types = tuple([atom.type.strong() for atom in eqn.operands])
        attrs, name = tuple(eqn.attrs.items()), eqn.op.name
        in_body = eqn.outputs[0] not in at_the_top
        form = form_of(name, types, target.lapack, in_body=in_body, forced=forced)
        algorithm = program_of(name, types, attrs, form)
        return inlined(at_line(algorithm.body, eqn.source), eqn.operands)

    # results that nothing uses would keep the routines that compute them
    return dce(rewrite(program, lambda: by_name(dict.fromkeys((*ALGORITHMS, *TRANSFORMS), expand))))


def _is_program(eqn: Eqn, target: Target) -> bool:
    """Whether an algorithm takes the place of an op."""
    name = eqn.op.name
    if name in TRANSFORMS:
        return not target.transforms
    if name not in ALGORITHMS:
        return False
    if name not in target.factorizations:
        return True
    return target.programs.prefers(name, eqn.operands[0].type)


def form_of(
    name: str,
    types: Sequence[ArrayType],
    policy: LapackPolicy | None,
    *,
    in_body: bool = False,
    forced: FactorizationForm | None = None,
) -> AlgorithmChoice:
    """The form of an op on operands of these types, at the top of a program or in a body: the
    policy's, or the forced one if it can.
    """
    if policy is None or not all(each.size for each in types):
        return "own"
    matrix = types[0]
    can_be = name in SMALL and are_small(name, types)
    if name == "tridiagonal_solve":
        has_kernel = not in_body or matrix.size >= policy.tridiagonal_rows
    else:
        has_kernel = can_be and policy.has_kernel(name, types, in_body)
    if can_be and (forced == "small" or (not forced and has_kernel)):
        return "small"
    if name not in BY_LIBRARY or forced in ("own", "small"):
        return "own"
    if forced is None and not policy.prefers(name, matrix):
        return "own"
    is_square = matrix.shape[-1] == matrix.shape[-2]
    together = not policy.are_few(name, matrix) and is_square and name in AT_ONCE
    return "at once" if together else "library"


_CLASSES: Mapping[Op, type[LapackRoutine]] = {
    trsm: TriangularSolve,
    potrf_batched: BatchedCholesky,
    getrf_batched: BatchedLU,
    trsm_batched: BatchedSolve,
}
"""The planning rule of each call whose library or operands differ from those of
`lapack_routine`."""


def lapack_routine(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit a routine of LAPACK, which updates copies of its first operands."""
    count = UPDATED[eqn.op]
    buffers = builder.results(eqn)
    for atom, buffer in zip(eqn.operands[:count], buffers, strict=False):
        index = space_index(atom.type.shape)
        value = builder.element(atom, index, None)
        builder.emit(MapNest(atom.type.shape, (Store(buffer, index, value),)))
    made = _CLASSES.get(eqn.op, LapackRoutine)
    take = in_memory if made is BatchedSolve else operand  # which finds all matrices by pointer
    read = tuple([take(builder, atom, contiguous) for atom in eqn.operands[count:]])
    whole = tuple(map(StridedArray.whole, buffers))
    call = made(eqn.op, eqn.attrs, whole[:count], read, whole[count:])
    builder.add(FinishedNode(LibraryNode(call, builder.sources)))


def factorization(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit a library call, unless its results have no elements."""
    buffers = builder.results(eqn)
    if not any(out.type.size for out in eqn.outputs):
        return
    matrices = tuple([operand(builder, atom, contiguous) for atom in eqn.operands])
    results = tuple(map(StridedArray.whole, buffers))
    call = Factorization(eqn.op, eqn.attrs, matrices, results)
    builder.add(FinishedNode(LibraryNode(call, builder.sources)))
