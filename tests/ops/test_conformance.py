"""What every registered op must satisfy, whatever it is."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph.ops  # noqa: F401  (registers them)
from tests.helpers.agreement import check
from tracegraph.dtypes import SHORT_NAMES, bfloat16
from tracegraph.ir.op import Call, Control, Effect, Op, Sample, all_ops
from tracegraph.ir.types import type_of

OPS = list(all_ops())
PLAIN = [op for op in OPS if not isinstance(op.form, (Call, Control, Effect))]

each_op = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
each_plain_op = pytest.mark.parametrize("op", PLAIN, ids=lambda op: op.name)


@each_op
def test_doc_is_one_sentence_on_one_line(op: Op) -> None:
    assert op.doc
    assert op.doc == op.doc.strip()
    assert "\n" not in op.doc
    assert op.doc.endswith(".")


@each_plain_op
def test_type_rule_foresees_what_the_reference_returns(op: Op) -> None:
    samples = op.samples()
    assert samples
    for sample in samples:
        types = op.result_types([type_of(x) for x in sample.operands], sample.attrs)
        found = op.reference(*sample.operands, **sample.attrs)
        found = found if isinstance(found, tuple) else (found,)
        got = [(np.asarray(x).dtype, np.shape(x)) for x in found]
        assert got == [(t.dtype, t.shape) for t in types], sample


@each_plain_op
def test_operands_of_samples_need_no_promotion(op: Op) -> None:
    if op.promote is None:
        return
    for sample in op.samples():
        dtypes = [x.dtype for x in sample.operands]
        types = [type_of(x) for x in sample.operands]
        assert list(op.promote(*types, **sample.attrs)) == dtypes


@each_plain_op
def test_sample_attributes_can_be_hashed(op: Op) -> None:
    for sample in op.samples():
        hash(tuple(sample.attrs.items()))


PROMOTING = [op for op in PLAIN if op.promote is not None and op.name in vars(np)]
TOKENS = [*(np.ones(1, d) for d in SHORT_NAMES), 1, 1.5, 2j]


@pytest.mark.parametrize("op", PROMOTING, ids=lambda op: op.name)
def test_mixed_operands_promote_as_in_numpy(op: Op) -> None:
    function = getattr(np, op.name)
    count = getattr(function, "nin", 3)
    for left in TOKENS:
        for right in TOKENS if count > 1 else [None]:
            operands = [left, right, right][:count]
            if op.name == "where":
                operands = [np.array([True]), left, right]
            if not any(isinstance(x, np.ndarray) for x in operands):
                continue
            types = [type_of(x) for x in operands]
            if any(t.dtype == bfloat16 for t in types):  # a Python float adapts to it, too
                strong = 1 if op.name == "clip" else 0  # it makes an array of the first operand
                operands[strong:] = [
                    bfloat16.type(x) if type(x) is float else x for x in operands[strong:]
                ]
            try:
                with np.errstate(all="ignore"):
                    wanted = np.asarray(function(*operands)).dtype
            except TypeError:
                with pytest.raises(TypeError, match=f"^{op.name}"):
                    op.promote(*types)
                continue
            strong = [t.with_dtype(d) for t, d in zip(types, op.promote(*types), strict=True)]
            assert op.type_rule(*strong).dtype == wanted, [str(t) for t in types]


def test_check_accepts_the_reference_and_rejects_a_difference() -> None:
    op = next(op for op in OPS if op.name == "add")
    sample = Sample((np.array([1.0, np.nan, -0.0]), np.array([2.0, 1.0, -0.0])))
    check(op, sample, lambda op, operands, attrs: op.reference(*operands))
    for wrong in ([3.1, np.nan, -0.0], [3.0, 1.0, -0.0], [3.0, np.nan, 0.0]):
        with pytest.raises(AssertionError):
            check(op, sample, lambda op, operands, attrs, wrong=wrong: np.array(wrong))
