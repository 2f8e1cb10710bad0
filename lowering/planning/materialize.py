"""Materialization: which values of a region get memory. All others are inlined where they are used.

A value is materialized if several kernels, or several index maps of one kernel, would otherwise
each compute it, and that costs more than memory. Views are never materialized. A reduction is fused
into the kernel of the one value that uses it point by point. If all of a region is evaluated at the
points of one space, it is one kernel, and no use needs to be followed.
"""

from __future__ import annotations

from lowering.plan.target.target import Costs
from lowering.planning.expansion.equation_costs import COMPUTED, is_free
from lowering.planning.use_analysis import MAX_DEPTH, Materialization, UseAnalysis
from tracegraph.ir.op import Elementwise
from tracegraph.ir.program import Atom, Region, Value

MAX_SINGLE_KERNEL = 300
"""Expressions of a region that is taken for one kernel. `pointwise.MAX_EXPRESSIONS` is twice as
many, because those of index arithmetic are estimated."""

VIEW_EXPRESSIONS = 4
"""Estimated expressions of a view for each axis."""

MAX_RESULT_WALKS = 1000
"""Results times equations of such a region, each of whose results is a nest of all that it is
computed from: bounds the time to build them."""


def choose_materialized(
    region: Region, sinks: int, costs: Costs, *, tiles: bool = False
) -> Materialization:
    """Decide for every value of the region. The first `sinks` results are stored by kernels of
    their own; the remaining results (conditions) are materialized.
    """
    return _single_kernel(region, sinks) or UseAnalysis(region, sinks, costs, tiles=tiles).run()


def materialize_all(region: Region) -> Materialization:
    """Materialize every value that costs anything, each by a kernel of its own."""
    computed = (e for e in region.eqns if isinstance(e.op.form, COMPUTED))
    return Materialization({eqn.outputs[0] for eqn in computed if not is_free(eqn)})


def _single_kernel(region: Region, sinks: int) -> Materialization | None:
    """The materialization of a region that is evaluated at the points of one space only.

    `fuse` makes one kernel of it, in which nothing is evaluated twice, however often it is used. So
    only depth bounds what is inlined. Materializing values that fusion only forwards took two
    thirds of the time to plan short chains.
    """
    results = region.results
    if not results or len(results) * len(region.eqns) > MAX_RESULT_WALKS:
        return None
    space = results[0].type.shape
    size = len(results)
    depth: dict[Atom, int] = {}
    computed: set[Value] = set()
    materialized: set[Value] = set()
    for eqn in region.eqns:
        deepest = 1 + max([depth.get(atom, 0) for atom in eqn.operands], default=0)
        (out, *_) = eqn.outputs
        if isinstance(eqn.op.form, Elementwise):
            if out.type.shape != space:
                return None
            size += 1 + len(eqn.operands) - len(computed.intersection(eqn.operands))
            computed.add(out)
            if deepest > MAX_DEPTH:
                materialized.add(out)
                deepest = 0
        elif not is_free(eqn) or deepest > MAX_DEPTH or not computed.isdisjoint(eqn.operands):
            return None
        else:
            size += VIEW_EXPRESSIONS * (1 + len(out.type.shape))
        if size > MAX_SINGLE_KERNEL:
            return None
        depth[out] = deepest
    if any(atom.type.shape != space for atom in results):
        return None  # it would have a kernel of its own
    materialized.update([v for v in results[sinks:] if isinstance(v, Value) and v in computed])
    return Materialization(materialized, is_single_kernel=True)
