"""Fourier transforms as library calls, in place where the layout of the operand allows it.

Arguments and results are where they are if the call is large, and at the top of the Plan: it is
captured again for other addresses. Others get copies.
"""

from __future__ import annotations

import numpy as np

from lowering.draft.draft_nodes import FinishedNode
from lowering.plan.calls.fourier import FourierTransform, TransformLayout
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nests.kernel import space_index
from lowering.plan.nodes import LibraryNode
from lowering.planning.library_operands import in_memory, in_scratch
from lowering.planning.region_builder import RegionBuilder
from tracegraph.ir import scalar, scalar_values
from tracegraph.ir.op import get
from tracegraph.ir.program import Atom, Eqn


def fourier_transform(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit a library call, unless there are no transforms."""
    (x,) = eqn.operands
    target = builder.result(eqn)
    if not target.type.size:
        return
    rank = eqn.attrs.get("rank", 1)
    overwrites = eqn.op.name == "irfft" and builder.context.target.overwrites_spectra
    if overwrites:
        source = _own_spectrum(builder, x, eqn.attrs["size"])
    else:
        source = in_memory(builder, x, lambda array: _accepted(array, rank))
    result = StridedArray.whole(target)
    recaptured = _is_recaptured(builder, source, result)
    if not recaptured:
        source = in_scratch(builder, source)
    call = FourierTransform(eqn.op, eqn.attrs, source, result, overwrites, recaptured)
    builder.add(FinishedNode(LibraryNode(call, builder.sources)))


def _is_recaptured(builder: RegionBuilder, source: StridedArray, target: StridedArray) -> bool:
    """Whether the call is captured again at new addresses: it can, and copies take longer."""
    policy, forced = builder.context.target.operands, builder.context.operands
    if policy is None or not builder.is_top or forced == "copied":
        return False
    nbytes = source.buffer.type.nbytes + target.buffer.type.nbytes
    return forced == "in_place" or nbytes >= policy.transformed


def _accepted(array: StridedArray, rank: int) -> StridedArray | None:
    """The array, if the library takes its strides, and it starts where complex numbers may."""
    is_aligned = array.buffer.type.dtype.kind == "c" or array.offset % 2 == 0
    return array if is_aligned and TransformLayout.of(array, rank) is not None else None


def _own_spectrum(builder: RegionBuilder, x: Atom, size: int) -> StridedArray:
    """A copy of frequencies, real at 0 and size / 2: the library reads imaginary parts there."""
    index = space_index(x.type.shape)
    value = builder.element(x, index, None)
    dtype, parts = x.type.dtype, np.dtype(f"f{x.type.dtype.itemsize // 2}")
    part = scalar_values.apply(get("real"), (value,), parts, {})
    real = scalar_values.apply(get("cast"), (part,), dtype, {"dtype": dtype})
    at = {0, size // 2} if size % 2 == 0 else {0}
    for k in sorted(at):
        value = scalar.select(scalar.compare("==", index[-1], k), real, value)
    return StridedArray.whole(builder.materialize(x.type, value, index))
