"""Control flow: each branch or loop becomes a node with a block for each region."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.draft.draft_nodes import DraftBranch, DraftLoop
from lowering.plan.construct import Construct
from lowering.plan.nests.buffer import Buffer
from lowering.planning.expansion.desugar import LANES_OF_BRANCH
from lowering.planning.region_builder import RegionBuilder
from tracegraph.ir.control_forms import branch_parts, loop_parts
from tracegraph.ir.program import Eqn, Region
from tracegraph.ir.record import replace


def branches(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit a `cond` or `switch`, and bind its results."""
    parts = branch_parts(eqn)
    condition = builder.context.condition()
    builder.set_condition(parts.selector, condition)
    results = [builder.scratch(v.type) for v in eqn.outputs]
    blocks = []
    for branch in parts.branches:
        region, sinks = _with_values(branch, results)
        blocks.append(builder.inside(region, {}, parts.captures, sinks).build())
    boolean = eqn.op.name == "cond"
    construct = Construct(
        eqn.op.name, pinned=eqn.hints.schedule, lanes=eqn.attrs.get(LANES_OF_BRANCH)
    )
    builder.add(DraftBranch(condition, blocks, boolean, construct, builder.sources, builder.within))
    builder.bindings.update(zip(eqn.outputs, results, strict=True))


def loop(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit a `rotated_loop`, and bind its results."""
    parts = loop_parts(eqn)
    assert parts.entry is not None
    condition = builder.context.condition()
    carries = [builder.scratch(atom.type) for atom in parts.init]
    for i, (atom, buffer) in enumerate(zip(parts.init, carries, strict=True)):
        if i not in eqn.attrs["unset"]:
            builder.store_value(atom, buffer)
    builder.set_condition(parts.entry, condition)

    news = [builder.context.buffer("scratch", b.type) for b in carries]
    own = dict(zip(parts.body.params, carries, strict=False))
    construct = Construct(
        eqn.hints.construct or eqn.op.name,
        steps=eqn.attrs["steps"],
        max_steps=eqn.attrs["max_steps"],
        pinned=eqn.hints.schedule,
        unroll=eqn.hints.unroll,
        lanes=eqn.attrs["lanes"],
    )
    steps = construct.expected_steps
    inner = builder.inside(parts.body, own, parts.captures, news, steps)
    inner.block.owned.update(news)
    body = inner.build()
    body.carries = dict(zip(news, carries, strict=True))
    inner.sources, inner.within = builder.sources, builder.within
    inner.set_condition(parts.body.results[-1], condition)
    builder.add(DraftLoop(condition, body, construct, builder.sources, builder.within))
    builder.bindings.update(zip(eqn.outputs, carries, strict=True))


def _with_values(branch: Region, results: Sequence[Buffer]) -> tuple[Region, Sequence[Buffer]]:
    """The branch with the results that have values, and the buffers of these: an `empty` array is
    written before it is read.
    """
    unset = {value for eqn in branch.eqns if eqn.op.name == "empty" for value in eqn.outputs}
    if unset.isdisjoint(branch.results):
        return branch, results
    pairs = zip(branch.results, results, strict=True)
    kept = [(atom, buffer) for atom, buffer in pairs if atom not in unset]
    region = replace(branch, results=tuple([atom for atom, _ in kept]))
    return region, [buffer for _, buffer in kept]
