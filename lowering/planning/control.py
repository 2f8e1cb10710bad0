"""Control flow: branches and loops as stages, with a block for each region."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowering.allocation.in_place import place_carries
from lowering.plan.construct import Construct
from lowering.planning.stage import BranchStage, LoopStage
from tracegraph.ir.control_forms import branch_parts, loop_parts
from tracegraph.ir.program import Eqn

if TYPE_CHECKING:
    from lowering.planning.region_builder import RegionBuilder

_DEFAULT = "takes any body"
"""What the conditional nodes of a graph are chosen for."""


def control(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit a loop, or branches, and bind its results."""
    if eqn.op.name == "rotated_loop":
        _loop(builder, eqn)
    else:
        _branches(builder, eqn)


def _branches(builder: RegionBuilder, eqn: Eqn) -> None:
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


def _loop(builder: RegionBuilder, eqn: Eqn) -> None:
    loop = loop_parts(eqn)
    assert loop.entry is not None
    condition = builder.context.condition()
    carries = []
    for atom in loop.init:
        buffer = builder.scratch(atom.type)
        builder.store_value(atom, buffer)
        carries.append(buffer)
    builder.set_condition(loop.entry, condition)

    news = [builder.context.buffer("scratch", b.type) for b in carries]
    own = dict(zip(loop.body.params, carries, strict=False))
    inner = builder.inside(loop.body, own, loop.captures, news)
    inner.block.owned.update(news)
    body = inner.build()
    inner.sources = builder.sources
    inner.set_condition(loop.body.results[-1], condition)
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
