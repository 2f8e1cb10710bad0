"""Every op on every sample, as a CUDA graph: what the reference gives."""

from __future__ import annotations

import pytest

import tracegraph.ops  # noqa: F401  (registers them)
from tests.helpers.agreement import check_on
from tracegraph.ir.op import Call, Control, Effect, Op, all_ops

PLAIN = [op for op in all_ops() if not isinstance(op.form, (Call, Control, Effect))]


@pytest.mark.parametrize("op", PLAIN, ids=lambda op: op.name)
def test_cuda_agrees_with_the_reference(op: Op) -> None:
    check_on(op, "cuda")
