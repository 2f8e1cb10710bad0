"""Stage: a node under construction, while nests are still merged and buffers still renamed.

    Block := Stage*
    Stage := KernelStage | NodeStage | BranchStage | LoopStage

A block is one region's, its stages in an order that respects dependences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from lowering.buffer import Buffer
from lowering.kernel import (
    Accumulator,
    MapNest,
    Nest,
    Pass,
    PrintNest,
    ReduceNest,
    Require,
    RowNest,
    ScanNest,
    ScatterNest,
    SetCondition,
    Signal,
    Store,
)
from lowering.plan import Construct, LibraryNode, MatrixOperand, MemcpyNode
from tracegraph.ir import Source
from tracegraph.scalar import Axis, Expr, Load, const, subexpressions, substitute

_T = TypeVar("_T")


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


def per_nest(function: Callable[[Nest], _T]) -> Callable[[Nest], _T]:
    """The function, computed once for each nest: nests never change, and are asked often."""
    known: WeakKeyDictionary[Nest, _T] = WeakKeyDictionary()

    @wraps(function)
    def lookup(nest: Nest) -> _T:
        found = known.get(nest)
        if found is None:
            found = known[nest] = function(nest)
        return found

    return lookup


def nest_stores(nest: Nest) -> tuple[Store, ...]:
    """The stores of a nest."""
    match nest:
        case MapNest(stores=stores) | ReduceNest(stores=stores):
            return stores
        case RowNest(passes=passes, stores=stores):
            return (*(store for each in passes for store in each.stores), *stores)
        case PrintNest():
            return ()
    return (nest.store,)


def nest_accumulators(nest: Nest) -> tuple[Accumulator, ...]:
    """The accumulators of a nest, by number."""
    match nest:
        case ReduceNest(accumulators=accumulators):
            return accumulators
        case RowNest(passes=passes):
            return tuple(a for each in passes for a in each.accumulators)
    return ()


def nest_signals(nest: Nest) -> tuple[Signal, ...]:
    """The signals of a nest."""
    return nest.signals if isinstance(nest, MapNest | ReduceNest | RowNest) else ()


@per_nest
def nest_roots(nest: Nest) -> tuple[Expr, ...]:
    """Every expression that a nest evaluates."""
    roots: list[Expr] = [a.value for a in nest_accumulators(nest)]
    for store in nest_stores(nest):
        roots.extend((*store.indices, store.value))
        if store.guard is not None:
            roots.append(store.guard)
    roots.extend(signal.value for signal in nest_signals(nest))
    if isinstance(nest, PrintNest):
        roots.extend(array.value for array in nest.arguments)
    return tuple(roots)


def loads(roots: Sequence[Expr]) -> list[Load]:
    """Every load below the roots."""
    return [e for e in subexpressions(tuple(roots)) if isinstance(e, Load)]


@per_nest
def nest_loads(nest: Nest) -> tuple[Load, ...]:
    """Every load that a nest evaluates."""
    return tuple(loads(nest_roots(nest)))


@per_nest
def nest_reads(nest: Nest) -> frozenset[Buffer]:
    """Buffers that a nest reads, its flags too; a combining scatter reads its target."""
    found = frozenset(load.buffer for load in nest_loads(nest))
    found |= frozenset(predicate.flag for predicate in nest.predicates)
    if isinstance(nest, ScatterNest) and nest.combiner is not None:
        return found | {nest.store.buffer}
    return found


@per_nest
def nest_writes(nest: Nest) -> frozenset[Buffer]:
    """Buffers that a nest stores to."""
    return frozenset(store.buffer for store in nest_stores(nest))


def nest_conditions(nest: Nest) -> set[int]:
    """Conditions that a nest sets."""
    return {s.condition for s in nest_signals(nest) if isinstance(s, SetCondition)}


def is_ordered(nest: Nest) -> bool:
    """Whether the nest prints or checks: what the host sees in the order of the program."""
    return isinstance(nest, PrintNest) or any(isinstance(s, Require) for s in nest_signals(nest))


def stage_reads(stage: Stage) -> set[Buffer]:
    """Buffers that a stage reads, bodies included."""
    match stage:
        case KernelStage(nests=nests):
            return set().union(*map(nest_reads, nests))
        case NodeStage(node=LibraryNode() as node):
            return {node.left.buffer, node.right.buffer}
        case NodeStage(node=MemcpyNode() as node):
            return {node.source_buffer}
    return set().union(*(stage_reads(s) for b in blocks(stage) for s in b.stages))


def stage_writes(stage: Stage) -> set[Buffer]:
    """Buffers that a stage writes, bodies included."""
    match stage:
        case KernelStage(nests=nests):
            return set().union(*map(nest_writes, nests))
        case NodeStage(node=LibraryNode() as node):
            return {node.target.buffer}
        case NodeStage(node=MemcpyNode() as node):
            return {node.target}
    return set().union(*(stage_writes(s) for b in blocks(stage) for s in b.stages))


def walk(block: Block) -> Iterator[Stage]:
    """Every stage of a block and of the blocks inside."""
    for stage in block.stages:
        yield stage
        for inner in blocks(stage):
            yield from walk(inner)


# -- rewriting
# ----------------------------------------------------------------------------------------


def map_nest(nest: Nest, replacement: Mapping[Expr, Expr]) -> Nest:
    """The nest with sub-expressions replaced."""
    memo: dict[Expr, Expr] = {}

    def of(expr: Expr) -> Expr:
        return substitute(expr, replacement, memo)

    def store_of(store: Store) -> Store:
        guard = None if store.guard is None else of(store.guard)
        return Store(store.buffer, tuple(map(of, store.indices)), of(store.value), guard)

    if isinstance(nest, ScanNest | ScatterNest):
        return replace(nest, store=store_of(nest.store))
    if isinstance(nest, PrintNest):
        return replace(nest, arguments=tuple(replace(a, value=of(a.value)) for a in nest.arguments))
    stores = tuple(map(store_of, nest.stores))
    signals = tuple(replace(s, value=of(s.value)) for s in nest.signals)
    if isinstance(nest, MapNest):
        return replace(nest, stores=stores, signals=signals)

    def folds_of(accumulators: Sequence[Accumulator]) -> tuple[Accumulator, ...]:
        return tuple(replace(a, value=of(a.value)) for a in accumulators)

    if isinstance(nest, ReduceNest):
        accumulators = folds_of(nest.accumulators)
        return replace(nest, stores=stores, signals=signals, accumulators=accumulators)
    passes = tuple(
        Pass(folds_of(p.accumulators), tuple(map(store_of, p.stores))) for p in nest.passes
    )
    return replace(nest, stores=stores, signals=signals, passes=passes)


def rename_in_nest(nest: Nest, names: Mapping[Buffer, Buffer]) -> Nest:
    """The nest with buffers replaced."""
    keys = names.keys()
    if keys.isdisjoint(nest_reads(nest)) and keys.isdisjoint(nest_writes(nest)):
        return nest
    replacement: dict[Expr, Expr] = {}
    for expr in nest_loads(nest):
        if expr.buffer in names:
            # operands come first, so what is inside the indices is replaced already
            inner = replacement
            indices = tuple(substitute(i, inner, {}) for i in expr.indices)
            guard = None if expr.guard is None else substitute(expr.guard, inner, {})
            replacement[expr] = Load.make(names[expr.buffer], indices, guard)
    nest = map_nest(nest, replacement)
    if nest.predicates:
        flags = (replace(p, flag=names.get(p.flag, p.flag)) for p in nest.predicates)
        nest = replace(nest, predicates=tuple(flags))

    def target(store: Store) -> Store:
        return replace(store, buffer=names.get(store.buffer, store.buffer))

    if isinstance(nest, ScanNest | ScatterNest):
        return replace(nest, store=target(nest.store))
    if isinstance(nest, PrintNest):
        return nest
    stores = tuple(map(target, nest.stores))
    if isinstance(nest, RowNest):
        passes = tuple(replace(p, stores=tuple(map(target, p.stores))) for p in nest.passes)
        return replace(nest, stores=stores, passes=passes)
    return replace(nest, stores=stores)


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
            stage.node = _rename_in_node(stage.node, names)
        case _:
            for inner in blocks(stage):
                rename(inner, names)


def _rename_in_node(
    node: LibraryNode | MemcpyNode, names: Mapping[Buffer, Buffer]
) -> LibraryNode | MemcpyNode:
    def of(buffer: Buffer) -> Buffer:
        return names.get(buffer, buffer)

    def operand(matrix: MatrixOperand) -> MatrixOperand:
        return replace(matrix, buffer=of(matrix.buffer))

    if isinstance(node, MemcpyNode):
        return replace(node, target=of(node.target), source_buffer=of(node.source_buffer))
    return replace(
        node, left=operand(node.left), right=operand(node.right), target=operand(node.target)
    )
