"""Pointwise calls: each element of the output depends on the same element of the inputs only."""

from __future__ import annotations

import numpy as np

from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.instructions import Instruction


def is_pointwise(instruction: Instruction) -> bool:
    """Whether a call is pointwise and may run on any numbers; integer powers may raise."""
    function = instruction.function
    known = isinstance(function, np.ufunc) and function is not np.power
    return (
        instruction.kind == "write"
        and not instruction.keeps
        and bool(instruction.output is not None and instruction.output.shape)
        and (known or function in (numpy_calls.store, numpy_calls.convert, numpy_calls.where))
    )


def is_copy(instruction: Instruction) -> bool:
    """Whether it only copies its input."""
    return instruction.function is numpy_calls.store
