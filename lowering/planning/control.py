"""Control flow: branches and loops as stages, with a block for each region."""

from __future__ import annotations

from lowering.allocation.in_place import place_carries
from lowering.plan.construct import Construct
from lowering.planning.region_builder import RegionBuilder
from lowering.planning.stage import BranchStage, LoopStage
from tracegraph.ir.control_forms import branch_parts, loop_parts
from tracegraph.ir.program import Eqn

_DEFAULT = "takes any body"
"""What the conditional nodes of a graph are chosen for."""


def branches(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit a `cond` or `switch`, and bind its results."""
    parts = branch_parts(eqn)
    condition = builder.context.condition()
    builder.set_condition(parts.selector, condition)
    results = [builder.scratch(v.type) for v in eqn.outputs]
    blocks = [builder.inside(r, {}, parts.captures, results).finish() for r in parts.branches]
    boolean = eqn.op.name == "cond"
    schedule = "IF/ELSE node" if boolean else "SWITCH node"
    construct = Construct(eqn.op.name, schedule, _DEFAULT, pinned=eqn.hints.schedule)
    builder.add(BranchStage(condition, blocks, boolean, builder.sources, construct))
    builder.bindings.update(zip(eqn.outputs, results, strict=True))


def loop(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit a `rotated_loop`, and bind its results."""
    parts = loop_parts(eqn)
    assert parts.entry is not None
    condition = builder.context.condition()
    carries = []
    for atom in parts.init:
        buffer = builder.scratch(atom.type)
        builder.store_value(atom, buffer)
        carries.append(buffer)
    builder.set_condition(parts.entry, condition)

    news = [builder.context.buffer("scratch", b.type) for b in carries]
    own = dict(zip(parts.body.params, carries, strict=False))
    inner = builder.inside(parts.body, own, parts.captures, news)
    inner.block.owned.update(news)
    body = inner.build()
    inner.sources = builder.sources
    inner.set_condition(parts.body.results[-1], condition)
    inner.merge()
    place_carries(body, dict(zip(news, carries, strict=True)))
    construct = Construct(
        eqn.hints.construct or eqn.op.name,
        "WHILE node",
        _DEFAULT,
        eqn.attrs["steps"],
        eqn.attrs["max_steps"],
        eqn.hints.schedule,
        eqn.hints.unroll,
    )
    builder.add(LoopStage(condition, body, builder.sources, construct))
    builder.bindings.update(zip(eqn.outputs, carries, strict=True))
