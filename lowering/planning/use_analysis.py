"""Use analysis: each use of a value is followed to the kernel that will evaluate the value.

An `EvaluationSite` is one such evaluation: the root, whose kernel evaluates the value, and the
index map. With one site, inlining costs nothing. With several, it repeats work, and the value is
materialized unless repeating is cheaper than memory, by the target's costs.

The limits bound the size of kernels, recursion and the time of planning. Their effect is measured
as a whole: with fusion, random programs run at least 0.96 times as fast as with a kernel for each
equation, and 1.24 to 1.30 times in the median (`benchmarks.grouping`, H200).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field
from typing import NamedTuple

from lowering.plan.nests.tiled_products import MIN_TILED, PRODUCTS, TILE_SIDE, TILED_DTYPES
from lowering.plan.target.target import Costs
from lowering.planning.expansion.equation_costs import COMPUTED, MAPPED, is_free, own_cost
from lowering.planning.gather_costs import is_gathered_faster
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.control_forms import is_loop, loop_parts
from tracegraph.ir.op import (
    Control,
    Effect,
    Elementwise,
    Indexed,
    Opaque,
    OpForm,
    Reduction,
    Scan,
    Scatter,
)
from tracegraph.ir.program import Atom, Eqn, Region, Value
from tracegraph.ir.types import ArrayType

MAX_COST = 160
"""Scalar work of one inlined value, with all that is inlined into it: bounds the size of kernels.
"""

MAX_DEPTH = 60
"""Equations on the longest inlined path: bounds the recursion that builds expressions."""

EXPANSION = 4
"""Elements of an array for each of a value that is read from it, from which the value is stored
before the array is updated."""

EXPENSIVE = 4
"""Scalar work of a value, in units of `Elementwise.cost`, from which `Costs.expansion` applies."""

MAX_PRINTED_WORK = 1 << 14
"""Scalar work of the values that a print computes itself, which has few threads."""

EXPENSIVE_IN_TILES = 16
"""Scalar work of an element of a factor from which the same applies: less is hidden by products."""

RANDOM_BITS = "threefry"
"""The op that makes keys from keys."""

MAX_KEYS = 64
"""Words of random keys that each thread may compute again."""

MAX_COST_OF_KEYS = 640
"""Scalar work of such a word, each equation once: nine keys, one made from the other."""

KEY_KERNEL = 0.5
"""The most that threads may compute keys again for, in times of a kernel. A step of an Ising model
takes 2.7 µs with a kernel that makes its keys. Without, 256² threads take 2.1, and 362² 3.6 instead
of 3.1 (H100)."""

MAX_SITES = 8
"""Sites of a value that are followed: bounds the time of the analysis."""


class EvaluationSite(NamedTuple):
    """One evaluation of a value: the root whose kernel evaluates it, the index map, the points."""

    root: Hashable
    index_map: Hashable  # None: the root's own point
    points: int
    run: int | None = None
    """Contiguous elements of each access; None if all are contiguous."""


@dataclass(slots=True)
class Materialization:
    """The values of a region that get memory. All others are inlined.

    Fused reductions are accumulators of the kernel of the one value that uses them.
    """

    materialized: set[Value] = field(default_factory=set)
    fused_reductions: set[Value] = field(default_factory=set)
    is_single_kernel: bool = False
    """Whether all that is computed will be in a single kernel."""


class UseAnalysis:
    """Decides for every value of a region. The first `sinks` results are stored by kernels of their
    own; the remaining results (conditions) are materialized.
    """

    def __init__(self, region: Region, sinks: int, costs: Costs, *, tiles: bool = False) -> None:
        self.tiles = tiles
        self.region = region
        self.sinks = sinks
        self.costs = costs
        self.producer = {v: eqn for eqn in region.eqns for v in eqn.outputs}
        # dicts as ordered sets: Plans must not depend on addresses
        self.sites: dict[Atom, dict[EvaluationSite, None]] = {v: {} for v in self.producer}
        self.tiled: set[Hashable] = set()  # roots that tiles compute
        self.loops: dict[Hashable, tuple[int, ...]] = {}  # by root: extents of its reductions
        self.cost: dict[Atom, int] = {}  # of an element, with all that is inlined into it
        self.folds = any(isinstance(eqn.op.form, Reduction | Scan) for eqn in region.eqns)
        self.keys: dict[Atom, frozenset[Eqn]] = {}  # what random keys are computed by
        self.result = Materialization()

    def run(self) -> Materialization:
        """The values to materialize, and the reductions to fuse."""
        self._bound_size()
        self._read_before_updates()
        for eqn in self.region.eqns:
            if not isinstance(eqn.op.form, COMPUTED):
                self._require_operands(eqn)
        for k, atom in enumerate(self.region.results):
            if k < self.sinks:
                self._use(atom, EvaluationSite(("result", k), None, atom.type.size))
            else:
                self._require(atom)
        for eqn in reversed(self.region.eqns):
            form = eqn.op.form
            if isinstance(form, MAPPED):  # most are
                self._visit_mapped(eqn, form)
            else:
                self._visit(eqn, form)
        return self.result

    # -- values that are materialized whatever their uses -----------------------------------------

    def _bound_size(self) -> None:
        cost = self.cost
        depth: dict[Atom, int] = {}
        for eqn in self.region.eqns:
            if not isinstance(eqn.op.form, MAPPED):
                continue
            (out,) = eqn.outputs
            total, deepest = own_cost(eqn), 0
            for atom in eqn.operands:
                below = depth.get(atom)
                if below is not None:
                    if atom not in self.keys:  # they are bounded by themselves
                        total += cost[atom]
                    if below > deepest:
                        deepest = below
            most = MAX_COST
            if self._note_key(eqn, out):
                total, most = self._cost_of_key(out), MAX_COST_OF_KEYS
            cost[out], depth[out] = total, deepest + 1
            too_big = total > most and not is_free(eqn)
            if too_big or deepest >= MAX_DEPTH:
                self.result.materialized.add(out)
                self.keys.pop(out, None)
                cost[out] = depth[out] = 0

    def _note_key(self, eqn: Eqn, out: Value) -> bool:
        """Note a value if it is of few elements that random keys are made from."""
        known = self.keys
        if out.type.size > MAX_KEYS:
            return False
        below = [known[atom] for atom in eqn.operands if atom in known]
        if not below and eqn.op.name != RANDOM_BITS:
            return False
        known[out] = frozenset((eqn,)).union(*below)
        return True

    def _cost_of_key(self, out: Value) -> int:
        """Scalar work of an element, each equation once."""
        eqns = self.keys[out]
        others = {a for eqn in eqns for a in eqn.operands if a not in self.keys}
        return sum(map(own_cost, eqns)) + sum([self.cost.get(a, 0) for a in others])

    def _read_before_updates(self) -> None:
        """Materialize what is read of an array before an update, and used after it.

        Then nothing reads the old array after the update, which is made in place. That pays for
        values much smaller than the array: else the whole array is copied.
        """
        updates = [
            (position, eqn.operands[0])
            for position, eqn in enumerate(self.region.eqns)
            if isinstance(eqn.op.form, Scatter)
        ]
        if not updates:
            return
        last_use = self._last_uses()
        readers: dict[Atom, list[tuple[int, Value]]] = {}
        for position, eqn in enumerate(self.region.eqns):
            if isinstance(eqn.op.form, MAPPED):
                (out,) = eqn.outputs
                for atom in set(eqn.operands):
                    readers.setdefault(atom, []).append((position, out))
        for position, array in updates:
            for read, out in readers.get(array, ()):
                small = out.type.size * EXPANSION <= array.type.size
                if small and read < position < last_use.get(out, -1):
                    self.result.materialized.add(out)
                    self.cost[out] = 0

    def _last_uses(self) -> dict[Atom, int]:
        """The position of the last equation that computes a value where it is inlined."""
        eqns = self.region.eqns
        found: dict[Atom, int] = dict.fromkeys(self.region.results, len(eqns))
        for position in range(len(eqns) - 1, -1, -1):
            eqn = eqns[position]
            mapped = isinstance(eqn.op.form, MAPPED)
            last = found.get(eqn.outputs[0], position) if mapped else position
            for atom in eqn.operands:
                found[atom] = max(found.get(atom, -1), last)
        return found

    def _require_operands(self, eqn: Eqn) -> None:
        match eqn.op.form:
            case Opaque():
                for atom in eqn.operands:
                    self._require(atom)
            case Control():
                for atom in _required_by(eqn):
                    self._require(atom)
            case Scatter() if eqn.hints.grouped:
                for atom in eqn.operands[2:]:  # each thread looks for the end of its group
                    self._require(atom)
            case Effect():
                for atom in eqn.operands:
                    if self._work(atom) > MAX_PRINTED_WORK:
                        self._require(atom)

    def _work(self, atom: Atom) -> int:
        return self.cost.get(atom, 0) * atom.type.size if isinstance(atom, Value) else 0

    def _require(self, atom: Atom) -> None:
        """Materialize a value, or what it is a free view of."""
        if not isinstance(atom, Value) or atom not in self.producer:
            return
        eqn = self.producer[atom]
        if is_free(eqn) and atom not in self.result.materialized:
            for operand in eqn.operands:
                self._require(operand)
        elif isinstance(eqn.op.form, COMPUTED):
            self.result.materialized.add(atom)

    # -- uses, from the last equation to the first ------------------------------------------------

    def _use(self, atom: Atom, site: EvaluationSite) -> None:
        known = self.sites.get(atom)
        if known is not None:
            known[site] = None

    def _visit(self, eqn: Eqn, form: OpForm) -> None:
        match form:
            case Reduction():
                self._visit_reduction(eqn)
            case Scan():
                (out,) = eqn.outputs
                self._use(eqn.operands[0], EvaluationSite(out, "scan", out.type.size))
            case Scatter():
                (out,) = eqn.outputs
                base, *others = eqn.operands
                self._use(base, EvaluationSite((out, "base"), None, out.type.size))
                for atom in others:
                    size = eqn.operands[1].type.size
                    self._use(
                        atom, EvaluationSite((out, "updates"), _scalar_or(atom, "updates"), size)
                    )
            case Effect():
                # a print has no accumulators: its reductions are materialized
                prints = eqn.op.name in ("debug_print", "debug_callback")
                index_map = "print" if prints else None
                for k, atom in enumerate(eqn.operands):
                    self._use(atom, EvaluationSite((eqn, k), index_map, atom.type.size))
            case Control() if is_loop(eqn):
                for k, atom in enumerate(loop_parts(eqn).init):
                    self._use(atom, EvaluationSite((eqn, k), None, atom.type.size))

    def _visit_mapped(self, eqn: Eqn, form: Elementwise | Indexed) -> None:
        (out,) = eqn.outputs
        shape = out.type.shape
        sites = list(self.sites[out])
        if len(sites) > MAX_SITES:
            del sites[MAX_SITES:]
        materialized = self.result.materialized
        if out in materialized or self._must_materialize(eqn, out, sites):
            materialized.add(out)
            sites = [EvaluationSite(out, None, out.type.size)]
        pointwise = isinstance(form, Elementwise)
        for k, atom in enumerate(eqn.operands):
            known = self.sites.get(atom)
            if known is None:
                continue
            if pointwise and atom.type.shape == shape:
                for site in sites:
                    known[site] = None
            else:
                run = None
                if isinstance(form, Indexed) and form.run is not None and k == 0:
                    run = form.run(atom.type, **eqn.attrs)
                for site in sites:
                    known[_mapped(site, atom, (eqn, k), run)] = None

    def _must_materialize(self, eqn: Eqn, out: Value, sites: Sequence[EvaluationSite]) -> bool:
        if is_free(eqn):
            return False
        if out in self.keys and self._is_repeated_faster(out, sites):
            return False
        if self._is_gathered_faster(out, sites):
            return True
        if len(sites) > 1:
            if own_cost(eqn) > self.costs.recompute_limit:
                return True
            inputs = [a for a in eqn.operands if isinstance(a, Value)]
            return len(inputs) > 1 or _is_also_folded(sites)
        in_tiles = bool(sites) and sites[0].root in self.tiled
        if self.cost[out] < (EXPENSIVE_IN_TILES if in_tiles else EXPENSIVE):
            return False
        return bool(sites) and sites[0].points >= self.costs.expansion * out.type.size

    def _is_repeated_faster(self, out: Value, sites: Sequence[EvaluationSite]) -> bool:
        """Whether each use computes random keys again in less time than a kernel before them takes.

        Keys that are made for other keys always do. Where a region folds, something else runs while
        a kernel makes the keys of a step, so that nothing waits for it.
        """
        if not self.cost[out] or len(sites) == MAX_SITES:
            return False
        points = sum({site.root: site.points for site in sites}.values())
        if points <= MAX_KEYS:
            return True
        if self.folds:
            return False
        work = self.cost[out] * points
        return 1e-9 * self.costs.gigaoperation * work < KEY_KERNEL * self.costs.kernel

    def _is_gathered_faster(self, out: Value, sites: Sequence[EvaluationSite]) -> bool:
        """Whether gathers of a value are faster if it is materialized."""
        if not self.cost[out]:
            return False
        gathers = [(site.points, site.run) for site in sites if site.run is not None]
        if not gathers:
            return False
        return is_gathered_faster(out.type, self._arrays_read(out), gathers, self.costs)

    def _arrays_read(self, out: Value) -> list[ArrayType]:
        """The arrays from which an inlined value is computed."""
        known = {out}
        found = []
        pending = [out]
        while pending:
            value = pending.pop()
            eqn = self.producer.get(value)
            in_memory = value in self.result.materialized
            if eqn is None or in_memory or not isinstance(eqn.op.form, MAPPED):
                if value.type.size > 1:
                    found.append(value.type)
                continue
            below = {a for a in eqn.operands if isinstance(a, Value)} - known
            known |= below
            pending.extend(below)
        return found

    def _visit_reduction(self, eqn: Eqn) -> None:
        (out,) = eqn.outputs
        (source,) = eqn.operands
        axes = eqn.attrs["axes"]
        loop = tuple([source.type.shape[a] for a in axes])
        root: Hashable = out
        sites = list(self.sites[out])
        if out not in self.result.materialized and len(sites) == 1:
            (site,) = sites
            folds = site.index_map is None and _has_accumulators(site.root)
            if folds and self.loops.setdefault(site.root, loop) == loop:
                self.result.fused_reductions.add(out)
                root = site.root
        if out not in self.result.fused_reductions:
            self.result.materialized.add(out)
            self.loops[out] = loop
        index_map = ("loop", axes, source.type.shape)
        points = source.type.size
        if self._is_tiled(source):
            self.tiled.add(root)
            points //= TILE_SIDE
        self._use(source, EvaluationSite(root, index_map, points))

    def _is_tiled(self, products: Atom) -> bool:
        """Whether a sum of these products is computed by tiles, if their factors allow that."""
        eqn = self.producer.get(products) if self.tiles and isinstance(products, Value) else None
        if eqn is None or eqn.op not in PRODUCTS or products.type.dtype not in TILED_DTYPES:
            return False
        size = products.type.size
        return size >= MIN_TILED and all(x.type.size < size for x in eqn.operands)


def _is_also_folded(sites: Sequence[EvaluationSite]) -> bool:
    """Whether the value is a result whose other uses are folds: one pass stores and folds it."""
    results = [s for s in sites if s.index_map is None and isinstance(s.root, tuple)]
    folds = [s for s in sites if isinstance(s.index_map, tuple) and s.index_map[0] == "loop"]
    return bool(results) and len(results) + len(folds) == len(sites)


def _has_accumulators(root: Hashable) -> bool:
    """Whether the kernel of a root may fold: of effects, only the nest that signals a value can."""
    eqn = root[0] if isinstance(root, tuple) else None
    if not isinstance(eqn, Eqn) or not isinstance(eqn.op.form, Effect):
        return True
    return eqn.op.name in ("require", "report_step")


def _required_by(eqn: Eqn) -> Sequence[Atom]:
    """The operands of a branch or rotated loop but for the carry: selector and captures."""
    if not is_loop(eqn):
        return eqn.operands
    loop = loop_parts(eqn)
    assert loop.entry is not None
    return (loop.entry, *loop.captures)


def _scalar_or(atom: Atom, index_map: Hashable) -> Hashable:
    """The index map of an operand: all maps into a single element are the same."""
    return "scalar" if atom.type.size == 1 else index_map


def _mapped(site: EvaluationSite, atom: Atom, through: Hashable, run: int | None) -> EvaluationSite:
    """The site of an operand, given the site of a value that is computed from it."""
    if run is None or (site.run is not None and site.run < run):
        run = site.run
    return EvaluationSite(site.root, _scalar_or(atom, (site.index_map, through)), site.points, run)
