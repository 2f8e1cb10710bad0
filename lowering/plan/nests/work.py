"""Work of a node: the bytes and operations that its figures in `lowering.plan.reports.rooflines`
are made from.

An access to a buffer covers a box of its elements; boxes that overlap count once. Operations are
counted at the points of the axes that they depend on, as compilers move the others out of loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field
from functools import reduce
from math import prod

import numpy as np

from lowering.plan.nests.analysis import (
    nest_accumulators,
    nest_expressions,
    nest_loads,
    nest_stores,
)
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    CallNest,
    Nest,
    PrintNest,
    ReduceNest,
    RowNest,
    ScanNest,
    ScatterNest,
    Store,
)
from lowering.plan.target.rates import Rates
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import Elementwise
from tracegraph.ir.scalar import Axis, Expr, bounds
from tracegraph.ir.scalar_values import Accumulated, Apply, Load
from tracegraph.ir.subexpressions import subexpressions

SPECIAL = 4
"""The `Elementwise.cost` from which an operation is special: a root, an exponential."""

EXPONENTIAL = 8
"""The `Elementwise.cost` of an exponential."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a node does when it runs once.

    Args:
        required: bytes of its inputs and outputs, each element once.
        moved: bytes that it moves, as far as the Plan says: what several passes read counts for
            each. Caches may keep some of it from the memory.
        operations: by the name of the real dtype, of everything but products of a library; those
            on integers and bools are ``"int"``.
        products: the same of products of a library, which may have units of their own.
        special: special functions by dtype, which are not among the operations: as many
            exponentials as would cost the same.
    """

    required: int = 0
    moved: int = 0
    operations: Mapping[str, float] = field(default_factory=dict)
    products: Mapping[str, float] = field(default_factory=dict)
    special: Mapping[str, float] = field(default_factory=dict)

    def __add__(self, other: Work) -> Work:
        return Work(
            self.required + other.required,
            self.moved + other.moved,
            Counter(self.operations) + Counter(other.operations),
            Counter(self.products) + Counter(other.products),
            Counter(self.special) + Counter(other.special),
        )

    def __mul__(self, runs: float) -> Work:
        """The work of several runs."""
        return Work(
            round(self.required * runs),
            round(self.moved * runs),
            *[
                {dtype: count * runs for dtype, count in counts.items()}
                for counts in (self.operations, self.products, self.special)
            ],
        )


def least_seconds(work: Work, rates: Rates) -> float:
    """The seconds that work takes at least.

    Memory, the units of each dtype and those for products work side by side, so that the slowest
    one decides.
    """
    computing: Counter[str] = Counter()
    for counts, known in ((work.operations, rates.operations), (work.special, rates.special)):
        computing.update({d: n / known[d] for d, n in counts.items() if d in known})
    products = [n / rates.products[d] for d, n in work.products.items() if d in rates.products]
    return max([work.required / rates.copy, *computing.values(), *products])


def real_name(dtype: np.dtype[np.generic]) -> str:
    """The dtype of which operations on elements of this one are made, as `Work` names it."""
    if dtype.kind == "c":
        return f"float{dtype.itemsize * 4}"
    return dtype.name if dtype.kind in "fV" else "int"


def product_work(
    nbytes: int, operations: float, dtype: np.dtype[np.generic], precision: str
) -> Work:
    """The work of a product that moves `nbytes` and makes `operations` on elements of a dtype.

    Products of float32 count under their precision.
    """
    real = operations * (4 if dtype.kind == "c" else 1)
    name = real_name(dtype)
    return Work(nbytes, nbytes, products={precision if name == "float32" else name: real})


def nests_work(nests: Sequence[Nest], kept: Set[Buffer] = frozenset()) -> Work:
    """The work of a kernel. What it accesses of `kept` buffers is in registers."""
    alone = [[each for each in _accesses(nest) if each.buffer not in kept] for nest in nests]
    required = _bytes([access for accesses in alone for access in accesses])
    moved = sum(map(_bytes, map(_in_passes, nests, alone)))
    operations: dict[str, float] = {}
    special: dict[str, float] = {}
    for nest in nests:
        _count_operations(nest, operations, special)
    return Work(required, moved, operations, special=special)


@dataclass(frozen=True, slots=True)
class _Access:
    """Elements of a buffer: how many there may be, within a box. `number` tells passes apart."""

    buffer: Buffer
    writes: bool
    elements: int
    box: tuple[tuple[int, int], ...]
    number: int = 0


def _accesses(nest: Nest) -> Iterable[_Access]:
    if isinstance(nest, PrintNest):
        loads = nest_loads(nest)
        yield from [_whole(buffer, False) for buffer in {load.buffer for load in loads}]
        if isinstance(nest, CallNest):
            yield from [_whole(buffer, True) for buffer in nest.results]
        return
    for predicate in nest.predicates:
        yield _whole(predicate.flag, False)
    for load in nest_loads(nest):
        yield _access(load, False)
    for store in nest_stores(nest):
        yield _access(store, True)
    if isinstance(nest, ScatterNest) and nest.combiner is not None:
        yield _access(nest.store, False)


def _in_passes(nest: Nest, accesses: list[_Access]) -> list[_Access]:
    """The accesses, those of each pass over a row apart."""
    if not isinstance(nest, RowNest) or len(nest.passes) < 2:
        return accesses
    found = [access for access in accesses if access.writes]
    passes = [(p.accumulators, p.stores) for p in nest.passes]
    for number, (accumulators, stores) in enumerate([*passes, ((), nest.stores)]):
        roots = [a.value for a in accumulators] + [store.value for store in stores]
        reads = [e for e in subexpressions(roots) if type(e) is Load]
        found += [_access(load, False, number) for load in reads]
    return found


def _whole(buffer: Buffer, writes: bool) -> _Access:
    shape = buffer.type.shape
    return _Access(buffer, writes, buffer.type.size, tuple([(0, n - 1) for n in shape]))


def _access(access: Load | Store, writes: bool, number: int = 0) -> _Access:
    buffer: Buffer = access.buffer
    axes = {e for e in subexpressions(access.indices) if type(e) is Axis}
    box = []
    for index, extent in zip(access.indices, buffer.type.shape, strict=True):
        low, high = bounds(index) or (0, extent - 1)
        box.append((max(low, 0), min(high, extent - 1)))
    return _Access(buffer, writes, prod([axis.extent for axis in axes]), tuple(box), number)


def _bytes(accesses: Iterable[_Access]) -> int:
    """The bytes of all elements, each once to read and once to write."""
    groups: dict[tuple[Buffer, bool, int], list[_Access]] = {}
    for access in accesses:
        groups.setdefault((access.buffer, access.writes, access.number), []).append(access)
    total = 0
    for (buffer, *_), group in groups.items():
        box = reduce(_around, [access.box for access in group])
        inside = prod([max(high - low + 1, 0) for low, high in box])
        elements = min(inside, sum([access.elements for access in group]), buffer.type.size)
        total += elements * buffer.type.dtype.itemsize
    return total


def _around(
    first: tuple[tuple[int, int], ...], second: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int], ...]:
    """The box around two boxes."""
    pairs = zip(first, second, strict=True)
    return tuple([(min(a, c), max(b, d)) for (a, b), (c, d) in pairs])


def _count_operations(nest: Nest, operations: dict[str, float], special: dict[str, float]) -> None:
    """Adds the operations of a nest, and its special functions."""
    if isinstance(nest, PrintNest):
        return
    outer = frozenset(range(len(nest.space)))
    extents = [*nest.space, *(nest.loop if isinstance(nest, ReduceNest | RowNest) else ())]
    axes: dict[Expr, frozenset[int]] = {}
    for expr in nest_expressions(nest):
        axes[expr] = _axes_of(expr, axes, outer)
        if type(expr) is Apply and isinstance(expr.op.form, Elementwise) and expr.op.form.cost:
            points = prod([extents[axis] for axis in axes[expr] if axis < len(extents)])
            cost = points * expr.op.form.cost
            operand = expr.args[0].dtype if expr.args else expr.dtype
            dtype = operand if expr.dtype.kind == "b" else expr.dtype
            if expr.op.form.cost >= SPECIAL:
                _add(special, dtype, cost * _real_operations(expr, dtype) / EXPONENTIAL)
            else:
                _add(operations, dtype, cost * _real_operations(expr, dtype))
    points = prod(extents)
    folded = [accumulator.value.dtype for accumulator in nest_accumulators(nest)]
    if isinstance(nest, ScanNest) or (isinstance(nest, ScatterNest) and nest.combiner is not None):
        folded.append(nest.store.value.dtype)
    for dtype in folded:
        _add(operations, dtype, points * (2 if dtype.kind == "c" else 1))


def _add(counts: dict[str, float], dtype: np.dtype[np.generic], count: float) -> None:
    name = real_name(dtype)
    counts[name] = counts.get(name, 0) + count


def _axes_of(
    expr: Expr, known: Mapping[Expr, frozenset[int]], outer: frozenset[int]
) -> frozenset[int]:
    """The axes that the value of an expression depends on."""
    if type(expr) is Axis:
        return frozenset((expr.number,))
    if type(expr) is Accumulated:
        return outer
    return frozenset[int]().union(*[known[child] for child in expr.children])


def _real_operations(expr: Apply, dtype: np.dtype[np.generic]) -> int:
    """Operations on real numbers for a unit of cost."""
    if dtype.kind != "c":
        return 1
    return 6 if expr.op.name == "multiply" else 2
