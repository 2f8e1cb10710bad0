"""Program -> Plan, by a list of passes.

    Program ── inline_calls ─▶ Program                      functions with rules of their own
            ── expand_ranks ─▶ Program                      elements of sorted rows
            ── sum_in_products ─▶ Program                   sums over batches of products
            ── sum_sheared_products ─▶ Program              derivatives of convolutions
            ── split_products ─▶ Program                    factors in parts of lower precision
            ── hoist ─▶ Program                             what loops need not repeat, before them
            ── expand_recurrences ─▶ Program                linear recurrences in chunks
            ── keep_nan_of_devices ─▶ Program               which their library drops
            ── expand_factorizations ─▶ Program             algorithms where no library has them
            ── expand_contractions ─▶ Program               thin products as sums
            ── group_updates ─▶ Program                     updates in order, sorted by element
            ── unroll ─▶ Program                            short loops written out
            ── write_fixed_updates, desugar ─▶ Program      few forms
            ── merge_folds ─▶ Program                       folds of folds as one
            ── build ─▶ Draft                               nests of stored values, in blocks
            ── schedule, drop_copies, fuse, place_carries   on each block, from the inside out
            ── donate, copy_inputs, drop_dead_stores, prepare_unrolling, assign_memory
            ── assemble ─▶ Plan                             nodes and edges

What a device costs and can do is in its `Target`: no pass names a device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

from lowering.allocation.assign import assign_memory
from lowering.allocation.donation import donate
from lowering.allocation.in_place import drop_copies, place_carries
from lowering.backends.registry import target_of
from lowering.draft.context import Context
from lowering.draft.draft import Draft, copy_inputs
from lowering.draft.draft_nodes import Block, blocks
from lowering.fusion.dead_stores import drop_dead_stores
from lowering.fusion.fuse import fuse
from lowering.plan.plan import Plan
from lowering.plan.target.overrides import declared
from lowering.plan.target.own_kernels import without_libraries
from lowering.plan.target.target import Target
from lowering.planning.assemble import assemble
from lowering.planning.barriers import compute_before_barriers
from lowering.planning.effects import refuse_host_calls_in_bodies
from lowering.planning.events import compute_in_sections, refuse_events_in_bodies
from lowering.planning.expansion.contractions import expand_contractions
from lowering.planning.expansion.desugar import desugar
from lowering.planning.expansion.extremes_of_devices import keep_nan_of_devices
from lowering.planning.expansion.fixed_updates import write_fixed_updates
from lowering.planning.expansion.grouped_updates import group_updates
from lowering.planning.expansion.merged_folds import merge_folds
from lowering.planning.expansion.ranks import expand_ranks
from lowering.planning.expansion.recurrences.chunked_scans import expand_recurrences
from lowering.planning.expansion.sheared_products import sum_sheared_products
from lowering.planning.expansion.split_products import split_products
from lowering.planning.expansion.summed_products import sum_in_products
from lowering.planning.expansion.unroll_short_loops import unroll
from lowering.planning.factorizations import expand_factorizations
from lowering.planning.region_builder import build
from lowering.planning.rules import RULES
from lowering.scheduling.schedule import schedule
from lowering.scheduling.unrolling import prepare_unrolling
from tracegraph.ir.program import Program
from tracegraph.passes import hoist, inline_calls
from tracegraph.passes.cse import cse
from tracegraph.passes.dce import dce
from tracegraph.staging.scratch import Scratch

BLOCK_PASSES: tuple[Callable[[Block, Context], None], ...] = (
    schedule,
    drop_copies,
    fuse,
    place_carries,
)
"""What is done to each block, in place, when the blocks inside it are finished."""

DRAFT_PASSES: tuple[Callable[[Draft], None], ...] = (
    donate,
    copy_inputs,
    drop_dead_stores,
    prepare_unrolling,
    assign_memory,
)
"""What is done once, in place, when all blocks are finished."""


def lower(
    program: Program,
    device: str | Target = "host",
    donated: Sequence[int] = (),
    *,
    fusion: bool = True,
    scratch: Scratch = "kept",
) -> Plan:
    """The Plan of a verified program, for a Target or a device such as ``"host"`` or ``"cuda:0"``.

    Args:
        program: what to lower.
        device: what it runs on: its costs and limits decide what is fused, and how loops run.
        donated: the inputs that outputs may be written over.
        fusion: without it, each equation that computes anything has a kernel of its own: what fused
            Plans are compared with.
        scratch: whether the arena is kept between launches, or allocated by each.

    Raises:
        HostCallInBodyError: a branch or a loop calls a C function.
        EventInBodyError: one uses an event.
        UnschedulableError: the user pinned a schedule that is not possible.
        ValueError: there is no such device.
    """
    target = target_of(device) if isinstance(device, str) else device
    forced = declared()
    if forced.sources == "selected":
        target = replace(target, fusion=replace(target.fusion, unrolled_positions=0))
    if forced.collectives == "library":
        target = replace(target, costs=replace(target.costs, exchange=inf))
    program = inline_calls(program)
    refuse_host_calls_in_bodies(program)
    refuse_events_in_bodies(program)
    given = program = expand_ranks(program, target)
    program = sum_in_products(program)
    if target.contractions.tiles and forced.products is None:
        program = sum_sheared_products(program)
    program = split_products(program, target.contractions, forced.products)
    program = moved = _with_invariants_outside(program, target)
    if forced.loops is None:
        program = expand_recurrences(program, target)
    if target.graphs:
        program = keep_nan_of_devices(program)
    program = expand_factorizations(program, target, forced.factorizations)
    program = expand_contractions(program, target.contractions, forced.products)
    grouped = group_updates(
        program,
        target.sorted_updates,
        forced.updates,
        one_kernel_loops=forced.loops == "one_kernel",
    )
    if grouped is not program:
        program = moved = _with_invariants_outside(grouped, target)  # sorts of indices
    program = merge_folds(desugar(write_fixed_updates(unroll(program, target.costs))))
    if moved is not given:
        program = cse(program)  # a guard tests what its loop tests first
    program = compute_before_barriers(compute_in_sections(program))
    draft = build(program, Context(target, RULES, fusion, forced.operands), donated)
    _finish(draft.block, draft.context)
    for draft_pass in DRAFT_PASSES:
        draft_pass(draft)
    return assemble(draft, per_launch=scratch == "per_launch")


def lower_without_libraries(program: Program, device: str, donated: Sequence[int] = ()) -> Plan:
    """The Plan of a program that calls no library: kernels of our own take their place.

    Raises:
        as `lower`.
    """
    with without_libraries(target_of(device)) as target:
        return lower(program, target, donated)


def _with_invariants_outside(program: Program, target: Target) -> Program:
    moved = hoist(program, target.motion)
    return program if moved is program else dce(moved)


def _finish(block: Block, context: Context) -> None:
    """Apply the block passes to a block, after the blocks inside it."""
    for node in block.nodes:
        for inner in blocks(node):
            _finish(inner, context)
    for block_pass in BLOCK_PASSES:
        block_pass(block, context)
