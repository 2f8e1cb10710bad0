"""Branch-free selection: `where` on large arrays by bitwise operations.

NumPy's masked copy branches at each element, and a random predicate defeats branch prediction. The
XOR of both operands, multiplied by the predicate, needs no branch and is vectorised.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from lowering.host.arena import Array
from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.hazards import Overlaps
from lowering.host.evaluation.instructions import Instruction
from lowering.host.evaluation.nest_program import NestProgram

BITWISE_SIZE = 8192
"""Least elements. For 8192 float32 and a random predicate the three calls take 6.3 µs and the
masked copies 17; they break even at 2048. For a constant predicate the copies take 2 µs."""

RUN = 8
"""Average run of equal predicates from which masked copies of 64-bit elements are as fast."""

SAMPLES = 2048
"""About as many pairs of neighbours are compared to estimate the length of runs."""

_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def select_bitwise(program: NestProgram, overlaps: Overlaps) -> NestProgram:
    """The program; selections that may be large choose between both ways when they run."""
    return program.with_instructions(list(map(_selecting, program.instructions)))


def _selecting(instruction: Instruction) -> Instruction:
    output = instruction.output
    if instruction.function is not numpy_calls.where or output is None:
        return instruction
    if prod(output.shape) < BITWISE_SIZE:
        return instruction
    return replace(instruction, function=where)


def where(predicate: Array, chosen: Array, other: Array, out: Array) -> None:
    """`chosen` where the predicate holds, else `other`."""
    bits = _BITS.get(out.itemsize)
    if bits is None or out.size < BITWISE_SIZE or _is_in_runs(predicate, out):
        numpy_calls.where(predicate, chosen, other, out)
        return
    ours, others = out.view(bits), other.view(bits)
    np.bitwise_xor(chosen.view(bits), others, ours)
    np.multiply(ours, predicate, ours)
    np.bitwise_xor(ours, others, ours)


def _is_in_runs(predicate: Array, out: Array) -> bool:
    """Whether long runs of the predicate are equal: a masked copy is then faster than the product
    of 64-bit numbers.
    """
    if predicate.size < out.size:
        return True
    if out.itemsize < 8:
        return False
    each = predicate.reshape(-1)
    step = max(1, out.size // SAMPLES)
    here, after = each[:-1:step], each[1::step]
    return RUN * int(np.count_nonzero(here != after)) < here.size
