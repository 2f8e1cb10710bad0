"""The list of tuning passes, in the order in which they run, by kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lowering.host.evaluation.hazards import Overlaps
from lowering.host.evaluation.instructions import Instruction
from lowering.host.evaluation.nest_program import NestProgram
from lowering.host.passes import InstructionPass, TuningPass
from lowering.host.tuning.calls.array_expressions import TunedFrame
from lowering.host.tuning.calls.call_forms import TunedWriter
from lowering.host.tuning.calls.result_allocation import allocating
from lowering.host.tuning.expressions.clipping import clipped
from lowering.host.tuning.expressions.index_wrapping import wrapped_index
from lowering.host.tuning.expressions.remainders import remainder
from lowering.host.tuning.expressions.row_gathers import gathered_rows
from lowering.host.tuning.expressions.wrapped_loads import joined_pieces
from lowering.host.tuning.groups.index_splitting import split_groups
from lowering.host.tuning.groups.loop_fission import split_maps
from lowering.host.tuning.groups.loop_interchange import interchange
from lowering.host.tuning.groups.shared_evaluation import share_evaluations
from lowering.host.tuning.instructions.blocking import block
from lowering.host.tuning.instructions.branch_free_selection import select_bitwise
from lowering.host.tuning.instructions.contiguous_ranges import compute_dead_elements
from lowering.host.tuning.instructions.layout_propagation import propagate_layouts
from lowering.host.tuning.instructions.reversed_views import normalize_strides
from lowering.host.tuning.instructions.short_rows import columnwise, copy_short_folds
from lowering.host.tuning.instructions.store_forwarding import (
    compute_in_place,
    forward_stores,
    reuses_input,
)
from lowering.host.tuning.instructions.temporary_layouts import OperandLayout
from lowering.host.tuning.instructions.transposed_stores import read_stored_copies


def _on_instructions(
    function: Callable[[Sequence[Instruction], Overlaps], list[Instruction]],
) -> InstructionPass:
    """A function on lists of instructions as a pass."""

    def run(program: NestProgram, overlaps: Overlaps) -> NestProgram:
        return program.with_instructions(function(program.instructions, overlaps))

    return run


PASSES: tuple[TuningPass, ...] = (
    TuningPass("loop fission", "stores that share nothing become nests", "groups", split_maps),
    TuningPass("index-set splitting", "nests are split at breakpoints", "groups", split_groups),
    TuningPass("loop interchange", "axes in the order of the arguments", "groups", interchange),
    TuningPass("shared evaluation", "common calls are made once", "groups", share_evaluations),
    TuningPass(
        "wrapped loads", "rolls and tiles are copied in pieces", "expressions", joined_pieces
    ),
    TuningPass("row gathers", "`take` instead of fancy indexing", "expressions", gathered_rows),
    TuningPass("clipping", "maxima with a number by `clip`", "expressions", clipped),
    TuningPass("index wrapping", "indices in range are not selected", "expressions", wrapped_index),
    TuningPass("remainders", "large ones by way of the quotient", "expressions", remainder),
    TuningPass("operand layout", "temporaries in their operands' order", "layout", OperandLayout),
    TuningPass(
        "negative-stride normalisation",
        "calls run in one direction, reversed views are copied once",
        "instructions",
        _on_instructions(normalize_strides),
    ),
    TuningPass(
        "transposed stores",
        "what is stored transposed is read there",
        "instructions",
        _on_instructions(read_stored_copies),
    ),
    TuningPass(
        "short folds",
        "folds of short rows read a transposed copy",
        "instructions",
        _on_instructions(copy_short_folds),
    ),
    TuningPass(
        "layout propagation",
        "inputs are transposed instead of results",
        "instructions",
        _on_instructions(propagate_layouts),
    ),
    TuningPass(
        "store forwarding",
        "values are computed in their buffer",
        "instructions",
        _on_instructions(forward_stores),
    ),
    TuningPass(
        "chains in place",
        "elementwise chains work in their buffer",
        "instructions",
        _on_instructions(compute_in_place),
    ),
    TuningPass(
        "contiguous over-write range",
        "windows are computed with the dead elements between",
        "instructions",
        compute_dead_elements,
    ),
    TuningPass("loop blocking", "large nests run block by block", "instructions", block),
    TuningPass("branch-free selection", "large `where` by bits", "instructions", select_bitwise),
    TuningPass("short rows", "calls on short rows run by column", "instructions", columnwise),
    TuningPass("in-place calls", "an output replaces a dead input", "in place", reuses_input),
    TuningPass("array expressions", "views by slices, cells of numbers", "names", TunedFrame),
    TuningPass("call forms", "scalars by Python, copies, blocks", "calls", TunedWriter),
    TuningPass("result allocation", "calls allocate results", "results", allocating),
)
