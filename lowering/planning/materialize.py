"""Which values of a region get memory, and which are computed where they are used.

A value is *inlined* into the kernels that use it unless that would repeat work: it is *stored* if
kernels, or several index maps of one kernel, would each compute it anew. What may be repeated is a
matter of the device's costs. Views are never stored. A reduction is *fused* into the kernel of the
one value that uses it point by point.

The analysis follows each use down to a `Site`: the kernel (root) that will evaluate the value, and
by which index map. One site means that inlining costs nothing. Where a region has one space, all is
one kernel, and nothing needs to be followed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lowering.plan.target import Costs
from tracegraph.ir.control_forms import is_loop, loop_parts
from tracegraph.ir.op import (
    Control,
    Effect,
    Elementwise,
    Form,
    Indexed,
    Opaque,
    Reduction,
    Scan,
    Scatter,
)
from tracegraph.ir.program import Atom, Eqn, Literal, Region, Value
from tracegraph.ir.types import ArrayType

MAX_COST = 160
"""Scalar work that one inlined value may carry along: bounds kernel size and expression depth."""

MAX_DEPTH = 60
"""Equations on the longest inlined path; kernels are built by recursion over it."""

EXPANSION = 4
"""A use in a space this many times larger than the value repeats the value's work that often."""

EXPENSIVE = 4
"""Work (in `Elementwise.cost` units) that is not worth repeating over an expanded space."""

PRINTED_WORK = 1 << 14
"""Scalar work that a print may do itself: few threads carry it out."""

MAX_SITES = 8

MAX_TOGETHER = 300
"""Expressions of a region that is taken for one kernel, at most; `grow.MAX_EXPRESSIONS` is twice as
many, for index arithmetic is estimated."""

VIEW_SIZE = 4
"""Expressions of a view for each axis."""

MAX_WALKED = 1000
"""Results times equations of such a region: each result is a nest that knows all that is below."""

_MAPPED = (Elementwise, Indexed)
_COMPUTED = (Elementwise, Indexed, Reduction)


class Site(NamedTuple):
    """One evaluation of a value: the root whose kernel evaluates it, the index map, the points."""

    root: Hashable
    index_map: Hashable  # None: the root's own point
    points: int
    run: int | None = None
    """How many neighbours follow one another in memory, if not all do."""


@dataclass(slots=True)
class Grouping:
    """`stored` values have buffers, `fused` reductions are accumulators of their user's kernel."""

    stored: set[Value] = field(default_factory=set)
    fused: set[Value] = field(default_factory=set)
    is_one_kernel: bool = False
    """Whether all that is computed will be in a single kernel."""


def group(region: Region, sinks: int, costs: Costs) -> Grouping:
    """Decide for every value of the region. The first `sinks` results are stored by kernels of
    their own; the remaining results (conditions) are stored values.
    """
    return _of_one_kernel(region, sinks) or _Analysis(region, sinks, costs).run()


def apart(region: Region) -> Grouping:
    """Every value that costs anything is stored, once, by a kernel of its own."""
    computed = (e for e in region.eqns if isinstance(e.op.form, _COMPUTED))
    return Grouping({eqn.outputs[0] for eqn in computed if not is_free(eqn)})


def own_cost(eqn: Eqn) -> int:
    """Scalar work of one element of an equation's result, without its operands'."""
    form = eqn.op.form
    if isinstance(form, Elementwise):
        return form.cost
    return 2 * len(eqn.operands) if isinstance(form, Indexed) and not form.view else 0


def is_free(eqn: Eqn) -> bool:
    """Whether the result only renames elements, or is generated from the index at no cost."""
    form = eqn.op.form
    return isinstance(form, Indexed) and (
        form.view or all(isinstance(a, Literal) for a in eqn.operands)
    )


def _of_one_kernel(region: Region, sinks: int) -> Grouping | None:
    """The grouping of a region that is evaluated at the points of one space only: `fuse` makes one
    kernel of it, in which nothing is evaluated twice, whatever is used how often.

    So only depth bounds what is inlined. Values stored only to be forwarded took most of planning.
    """
    results = region.results
    if not results or len(results) * len(region.eqns) > MAX_WALKED:
        return None
    space = results[0].type.shape
    size = len(results)
    depth: dict[Atom, int] = {}
    computed: set[Value] = set()
    stored: set[Value] = set()
    for eqn in region.eqns:
        deepest = 1 + max([depth.get(atom, 0) for atom in eqn.operands], default=0)
        (out, *_) = eqn.outputs
        if isinstance(eqn.op.form, Elementwise):
            if out.type.shape != space:
                return None
            size += 1 + len(eqn.operands) - len(computed.intersection(eqn.operands))
            computed.add(out)
            if deepest > MAX_DEPTH:
                stored.add(out)
                deepest = 0
        elif not is_free(eqn) or deepest > MAX_DEPTH or not computed.isdisjoint(eqn.operands):
            return None
        else:
            size += VIEW_SIZE * (1 + len(out.type.shape))
        if size > MAX_TOGETHER:
            return None
        depth[out] = deepest
    if any(atom.type.shape != space for atom in results):
        return None  # it would have a kernel of its own, between others
    stored.update([v for v in results[sinks:] if isinstance(v, Value) and v in computed])
    return Grouping(stored, is_one_kernel=True)


class _Analysis:
    def __init__(self, region: Region, sinks: int, costs: Costs) -> None:
        self.region = region
        self.sinks = sinks
        self.costs = costs
        self.producer = {v: eqn for eqn in region.eqns for v in eqn.outputs}
        # ordered: what becomes of a program must not depend on addresses
        self.sites: dict[Atom, dict[Site, None]] = {v: {} for v in self.producer}
        self.loops: dict[Hashable, tuple[int, ...]] = {}  # root -> extents its reductions share
        self.cost: dict[Atom, int] = {}  # of an element, with all that is inlined into it
        self.result = Grouping()

    def run(self) -> Grouping:
        self._bound_size()
        for eqn in self.region.eqns:
            if not isinstance(eqn.op.form, _COMPUTED):
                self._require_operands(eqn)
        for k, atom in enumerate(self.region.results):
            if k < self.sinks:
                self._use(atom, Site(("result", k), None, atom.type.size))
            else:
                self._require(atom)
        for eqn in reversed(self.region.eqns):
            form = eqn.op.form
            if isinstance(form, _MAPPED):  # most are
                self._visit_mapped(eqn, form)
            else:
                self._visit(eqn, form)
        return self.result

    # -- what must be stored whatever its uses ----------------------------------------------------

    def _bound_size(self) -> None:
        cost = self.cost
        depth: dict[Atom, int] = {}
        for eqn in self.region.eqns:
            if not isinstance(eqn.op.form, _MAPPED):
                continue
            (out,) = eqn.outputs
            total, deepest = own_cost(eqn), 0
            for atom in eqn.operands:
                below = depth.get(atom)
                if below is not None:
                    total += cost[atom]
                    if below > deepest:
                        deepest = below
            cost[out], depth[out] = total, deepest + 1
            too_big = total > MAX_COST and not is_free(eqn)
            if too_big or deepest >= MAX_DEPTH:
                self.result.stored.add(out)
                cost[out] = depth[out] = 0

    def _require_operands(self, eqn: Eqn) -> None:
        match eqn.op.form:
            case Opaque():
                for atom in eqn.operands:
                    self._require(atom)
            case Control():
                for atom in _required_by(eqn):
                    self._require(atom)
            case Effect():
                for atom in eqn.operands:
                    if self._work(atom) > PRINTED_WORK:
                        self._require(atom)

    def _work(self, atom: Atom) -> int:
        return self.cost.get(atom, 0) * atom.type.size if isinstance(atom, Value) else 0

    def _require(self, atom: Atom) -> None:
        """Store a value, or what it is a free view of."""
        if not isinstance(atom, Value) or atom not in self.producer:
            return
        eqn = self.producer[atom]
        if is_free(eqn) and atom not in self.result.stored:
            for operand in eqn.operands:
                self._require(operand)
        elif isinstance(eqn.op.form, _COMPUTED):
            self.result.stored.add(atom)

    # -- uses, from the last equation to the first ------------------------------------------------

    def _use(self, atom: Atom, site: Site) -> None:
        known = self.sites.get(atom)
        if known is not None:
            known[site] = None

    def _visit(self, eqn: Eqn, form: Form) -> None:
        match form:
            case Reduction():
                self._visit_reduction(eqn)
            case Scan():
                (out,) = eqn.outputs
                self._use(eqn.operands[0], Site(out, "scan", out.type.size))
            case Scatter():
                (out,) = eqn.outputs
                base, *others = eqn.operands
                self._use(base, Site((out, "base"), None, out.type.size))
                for atom in others:
                    size = eqn.operands[1].type.size
                    self._use(atom, Site((out, "updates"), _scalar_or(atom, "updates"), size))
            case Effect():
                # a print folds nothing, hence needs its reductions stored; the others are kernels
                index_map = "print" if eqn.op.name == "debug_print" else None
                for k, atom in enumerate(eqn.operands):
                    self._use(atom, Site((eqn, k), index_map, atom.type.size))
            case Control() if is_loop(eqn):
                for k, atom in enumerate(loop_parts(eqn).init):
                    self._use(atom, Site((eqn, k), None, atom.type.size))

    def _visit_mapped(self, eqn: Eqn, form: Elementwise | Indexed) -> None:
        (out,) = eqn.outputs
        shape = out.type.shape
        sites = list(self.sites[out])
        if len(sites) > MAX_SITES:
            del sites[MAX_SITES:]
        stored = self.result.stored
        if out in stored or self._must_store(eqn, out, sites):
            stored.add(out)
            sites = [Site(out, None, out.type.size)]
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

    def _must_store(self, eqn: Eqn, out: Value, sites: Sequence[Site]) -> bool:
        if is_free(eqn):
            return False
        if self._is_read_too_often(out, sites):
            return True
        if len(sites) > 1:
            if own_cost(eqn) > self.costs.recompute_limit:
                return True
            inputs = [a for a in eqn.operands if isinstance(a, Value)]
            return len(inputs) > 1 or _is_folded_too(sites)
        # where ops are calls, what is made of a roll or a concatenation is made in parts
        in_parts = bool(self.costs.calls) and isinstance(eqn.op.form, Indexed)
        if self.cost[out] < EXPENSIVE and not in_parts:
            return False
        return bool(sites) and sites[0].points >= EXPANSION * out.type.size

    def _is_read_too_often(self, out: Value, sites: Sequence[Site]) -> bool:
        """Whether gathers and rolls that read each array which the value is computed of, and
        compute it there, take longer than to compute all of it in order, and read that.
        """
        if not self.cost[out]:
            return False
        moved = [(site.points, site.run) for site in sites if site.run is not None]
        if not moved:
            return False
        costs, type_ = self.costs, out.type
        arrays = self._arrays_read(out)
        there = sum([costs.reading(array, *places) for array in arrays for places in moved])
        before = sum([costs.reading(type_, *places) for places in moved])
        if costs.calls:  # for each array and for the op itself, all of them on whole arrays
            element = (len(arrays) + 1) * type_.dtype.itemsize
            # what wraps around is gathered in two parts
            parts = 2 if isinstance(self.producer[out].op.form, Indexed) else 1
            there += element * sum(points for points, _ in moved)
            there += costs.calls * parts * len(arrays)
            before += element * type_.size + costs.calls
        else:
            before += 1e6 * costs.kernel / costs.megabyte
            before += type_.nbytes + sum(array.nbytes for array in arrays)
        return there >= before

    def _arrays_read(self, out: Value) -> list[ArrayType]:
        """Of which arrays the value is computed where it is used."""
        known = {out}
        found = []
        pending = [out]
        while pending:
            value = pending.pop()
            eqn = self.producer.get(value)
            if eqn is None or value in self.result.stored or not isinstance(eqn.op.form, _MAPPED):
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
        if out not in self.result.stored and len(sites) == 1:
            (site,) = sites
            if site.index_map is None and self.loops.setdefault(site.root, loop) == loop:
                self.result.fused.add(out)
                root = site.root
        if out not in self.result.fused:
            self.result.stored.add(out)
            self.loops[out] = loop
        index_map = ("loop", axes, source.type.shape)
        self._use(source, Site(root, index_map, source.type.size))


def _is_folded_too(sites: Sequence[Site]) -> bool:
    """Whether the value is a result whose other uses are folds: one pass can store and fold it."""
    results = [s for s in sites if s.index_map is None and isinstance(s.root, tuple)]
    folds = [s for s in sites if isinstance(s.index_map, tuple) and s.index_map[0] == "loop"]
    return bool(results) and len(results) + len(folds) == len(sites)


def _required_by(eqn: Eqn) -> Sequence[Atom]:
    """The operands of a branch or rotated loop but for the carry: selector and captures."""
    if not is_loop(eqn):
        return eqn.operands
    loop = loop_parts(eqn)
    assert loop.entry is not None
    return (loop.entry, *loop.captures)


def _scalar_or(atom: Atom, index_map: Hashable) -> Hashable:
    """All index maps into a single element are one."""
    return "scalar" if atom.type.size == 1 else index_map


def _mapped(site: Site, atom: Atom, through: Hashable, run: int | None) -> Site:
    """Where an operand of a value is evaluated for a site of that, in runs if it is moved."""
    if run is None or (site.run is not None and site.run < run):
        run = site.run
    return Site(site.root, _scalar_or(atom, (site.index_map, through)), site.points, run)
