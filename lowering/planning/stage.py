"""Stage: a node under construction, while nests are still merged and buffers still renamed.

    Block := Stage*
    Stage := KernelStage | NodeStage | BranchStage | LoopStage

A block is one region's, its stages in an order that respects dependences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

from lowering.plan.buffer import Buffer
from lowering.plan.kernel import (
    Accumulator,
    MapNest,
    Nest,
    Pass,
    PrintNest,
    ReduceNest,
    RowNest,
    ScanNest,
    ScatterNest,
    Store,
)
from lowering.plan.nest_analysis import Facts, facts_of, nest_reads, nest_writes, of_renamed
from lowering.plan.plan import Construct, LibraryNode, MatrixOperand, MemcpyNode
from tracegraph.ir.program import Source
from tracegraph.ir.record import altered
from tracegraph.ir.scalar import Axis, Expr, Load, const
from tracegraph.ir.subexpressions import substitution

_NO_BUFFERS: frozenset[Buffer] = frozenset()
_NO_NAMES: Mapping[Buffer, Buffer] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class KernelStage:
    """Independent nests that one launch will run."""

    nests: list[Nest]
    sources: tuple[Source, ...] = ()


@dataclass(slots=True, eq=False)
class NodeStage:
    """A finished node that is not a kernel and has no body."""

    node: LibraryNode | MemcpyNode


@dataclass(slots=True, eq=False)
class BranchStage:
    """A conditional with one block per branch. `boolean`: two branches, the first for true."""

    condition: int
    branches: list[Block]
    boolean: bool
    sources: tuple[Source, ...] = ()
    construct: Construct | None = None


@dataclass(slots=True, eq=False)
class LoopStage:
    """A loop."""

    condition: int
    body: Block
    sources: tuple[Source, ...] = ()
    construct: Construct | None = None


Stage = KernelStage | NodeStage | BranchStage | LoopStage


@dataclass(slots=True, eq=False)
class Block:
    """The stages of one region and the scratch buffers that belong to it."""

    stages: list[Stage] = field(default_factory=list)
    owned: set[Buffer] = field(default_factory=set)


def blocks(stage: Stage) -> Sequence[Block]:
    """The blocks inside a stage."""
    if type(stage) is KernelStage:  # most are
        return ()
    match stage:
        case BranchStage(branches=branches):
            return branches
        case LoopStage(body=body):
            return (body,)
    return ()


@lru_cache(maxsize=1024)
def space_index(space: tuple[int, ...], first: int = 0) -> tuple[Expr, ...]:
    """The index of a point, by axis numbers from `first`; 0 along axes of one element."""
    return tuple(
        const(0) if extent == 1 else Axis.make(first + number, extent)
        for number, extent in enumerate(space)
    )


# -- what a stage touches
# -----------------------------------------------------------------------------


def stage_reads(stage: Stage) -> frozenset[Buffer]:
    """Buffers that a stage reads, bodies included."""
    if type(stage) is KernelStage and len(stage.nests) == 1:  # most are
        return nest_reads(stage.nests[0])
    match stage:
        case KernelStage(nests=nests):
            return _NO_BUFFERS.union(*map(nest_reads, nests))
        case NodeStage(node=LibraryNode() as node):
            return frozenset((node.left.buffer, node.right.buffer))
        case NodeStage(node=MemcpyNode() as node):
            return frozenset((node.source_buffer,))
    return _NO_BUFFERS.union(*[stage_reads(s) for b in blocks(stage) for s in b.stages])


def stage_writes(stage: Stage) -> frozenset[Buffer]:
    """Buffers that a stage writes, bodies included."""
    if type(stage) is KernelStage and len(stage.nests) == 1:
        return nest_writes(stage.nests[0])
    match stage:
        case KernelStage(nests=nests):
            return _NO_BUFFERS.union(*map(nest_writes, nests))
        case NodeStage(node=LibraryNode() as node):
            return frozenset((node.target.buffer,))
        case NodeStage(node=MemcpyNode() as node):
            return frozenset((node.target,))
    return _NO_BUFFERS.union(*[stage_writes(s) for b in blocks(stage) for s in b.stages])


def walk(block: Block) -> Iterator[Stage]:
    """Every stage of a block and of the blocks inside."""
    for stage in block.stages:
        yield stage
        for inner in blocks(stage):
            yield from walk(inner)


# -- rewriting
# ----------------------------------------------------------------------------------------


def map_stores(
    stores: Sequence[Store],
    of: Callable[[Expr], Expr],
    names: Mapping[Buffer, Buffer] = _NO_NAMES,
) -> tuple[Store, ...]:
    """The stores with all expressions, and buffers that have other names, replaced."""
    return tuple(
        [
            Store(
                names.get(s.buffer, s.buffer),
                tuple(map(of, s.indices)),
                of(s.value),
                None if s.guard is None else of(s.guard),
            )
            for s in stores
        ]
    )


def map_nest(nest: Nest, replacement: Mapping[Expr, Expr]) -> Nest:
    """The nest with sub-expressions replaced."""
    if not replacement:
        return nest
    return _mapped(nest, substitution(replacement), _NO_NAMES)


def _mapped(nest: Nest, of: Callable[[Expr], Expr], names: Mapping[Buffer, Buffer]) -> Nest:
    """The nest with all expressions, and buffers that have other names, replaced."""

    def stores_of(stores: Sequence[Store]) -> tuple[Store, ...]:
        return map_stores(stores, of, names)

    def folds_of(accumulators: Sequence[Accumulator]) -> tuple[Accumulator, ...]:
        return tuple([Accumulator(a.combiner, of(a.value), a.arg) for a in accumulators])

    if type(nest) is MapNest:  # most are
        signals = tuple([altered(s, value=of(s.value)) for s in nest.signals])
        return MapNest(nest.space, stores_of(nest.stores), signals, nest.predicates)
    if isinstance(nest, (ScanNest, ScatterNest)):
        return altered(nest, store=stores_of((nest.store,))[0])
    if isinstance(nest, PrintNest):
        return replace(nest, arguments=tuple(replace(a, value=of(a.value)) for a in nest.arguments))
    assert isinstance(nest, (ReduceNest, RowNest))
    stores = stores_of(nest.stores)
    signals = tuple([altered(s, value=of(s.value)) for s in nest.signals])
    if isinstance(nest, ReduceNest):
        folds = folds_of(nest.accumulators)
        return ReduceNest(nest.space, nest.loop, folds, stores, signals, nest.predicates)
    passes = tuple([Pass(folds_of(p.accumulators), stores_of(p.stores)) for p in nest.passes])
    return RowNest(nest.space, nest.loop, passes, stores, signals, nest.predicates)


def rename_in_nest(nest: Nest, names: Mapping[Buffer, Buffer]) -> Nest:
    """The nest with buffers replaced."""
    keys, known = names.keys(), facts_of(nest)
    reads = not keys.isdisjoint(known.reads)
    if not reads and keys.isdisjoint(known.writes):
        return nest
    new = _renamed_loads(known, names) if reads else _Changed()
    renamed = _mapped(nest, new.__getitem__, names)
    if not keys.isdisjoint([predicate.flag for predicate in nest.predicates]):
        flags = [replace(p, flag=names.get(p.flag, p.flag)) for p in nest.predicates]
        renamed = altered(renamed, predicates=tuple(flags))
    return of_renamed(renamed, nest, new, names)


class _Changed(dict[Expr, Expr]):
    """What becomes of expressions; those that are not in it stay as they are."""

    def __missing__(self, expr: Expr) -> Expr:
        return expr


def _renamed_loads(known: Facts, names: Mapping[Buffer, Buffer]) -> _Changed:
    """What becomes of those expressions of a nest that are others with buffers replaced."""
    new = _Changed()
    of, untouched = new.__getitem__, new.keys().isdisjoint
    for expr in known.expressions:
        children = expr.children
        made = expr.rebuilt(of) if children and not untouched(children) else expr
        if type(made) is Load and made.buffer in names:
            made = Load.make(names[made.buffer], made.indices, made.guard)
        if made is not expr:
            new[expr] = made
    return new


def rename(block: Block, names: Mapping[Buffer, Buffer]) -> None:
    """Replace buffers throughout a block, bodies included."""
    block.owned -= names.keys()
    for stage in block.stages:
        rename_in_stage(stage, names)


def rename_in_stage(stage: Stage, names: Mapping[Buffer, Buffer]) -> None:
    """Replace buffers in one stage, bodies included."""
    match stage:
        case KernelStage():
            stage.nests = [rename_in_nest(n, names) for n in stage.nests]
        case NodeStage():
            stage.node = rename_in_node(stage.node, names)
        case _:
            for inner in blocks(stage):
                rename(inner, names)


def rename_in_node(
    node: LibraryNode | MemcpyNode, names: Mapping[Buffer, Buffer]
) -> LibraryNode | MemcpyNode:
    """The node with buffers replaced."""

    def of(buffer: Buffer) -> Buffer:
        return names.get(buffer, buffer)

    def operand(matrix: MatrixOperand) -> MatrixOperand:
        return replace(matrix, buffer=of(matrix.buffer))

    if isinstance(node, MemcpyNode):
        return replace(node, target=of(node.target), source_buffer=of(node.source_buffer))
    return replace(
        node, left=operand(node.left), right=operand(node.right), target=operand(node.target)
    )
