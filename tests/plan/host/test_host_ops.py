"""Every op on the host: traced, lowered, run in a poisoned arena, against its NumPy reference."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import check

import tracegraph.ops  # noqa: F401  (registers them)
from lowering.backends.host import HostBackend
from lowering.lower import lower
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Control, Effect, Op, all_ops
from tracegraph.ir.types import type_of
from tracegraph.tracing.trace import trace_program

PLAIN = [op for op in all_ops() if not isinstance(op.form, (Control, Effect))]


def run_on_host(op, operands, attrs):
    types = [type_of(x).strong() for x in operands]
    program = trace_program(lambda *tracers: (apply(op, *tracers, **attrs),), types, op.name)
    before = [np.array(x) for x in operands]
    (result,) = HostBackend(poison=True).compile(lower(program))(operands)
    for x, copy in zip(operands, before, strict=True):
        assert np.asarray(x).tobytes() == copy.tobytes(), "an argument was written to"
    return result


@pytest.mark.parametrize("op", PLAIN, ids=lambda op: op.name)
def test_host_agrees_with_the_reference(op: Op) -> None:
    for sample in op.samples():
        check(op, sample, run_on_host)
