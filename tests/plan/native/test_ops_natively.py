"""Every op on every sample, as native code: what the reference gives."""

from __future__ import annotations

import pytest

import tracegraph.ops  # noqa: F401  (registers them)
from lowering.host.choice import VARIABLE
from tests.helpers.agreement import check_on
from tracegraph.ir.op import Call, Control, Effect, Op, all_ops

PLAIN = [op for op in all_ops() if not isinstance(op.form, (Call, Control, Effect))]


@pytest.mark.parametrize("op", PLAIN, ids=lambda op: op.name)
def test_native_code_agrees_with_the_reference(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "native")
    check_on(op, "host")
