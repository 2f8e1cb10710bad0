"""Every op, batched, gives what it gives for one lane after the other."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from tests.helpers.agreement import BY_MATRIX, any_zero_on, check
from tests.helpers.batching import (
    PLAIN,
    applied,
    assert_same,
    batched_samples,
    check_batched_on,
    lane_by_lane,
    looped_op,
)
from tracegraph import errors
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Elementwise, Indexed, Op, Reduction, Scan
from tracegraph.ops.batching import Lanes

NULLARY = ("iota", "empty", "axis_index")
BY_TRANSFORM = ("pure_callback", "custom_kernel")
"""Those whose rule is the transform's: it runs what the user gave, for all lanes."""

each_op = pytest.mark.parametrize("op", PLAIN, ids=lambda op: op.name)


@each_op
def test_a_rule_is_given_or_implied_by_the_form(op: Op) -> None:
    implied = isinstance(op.form, (Elementwise, Reduction, Scan)) or op.name in NULLARY
    assert (implied or op.name in BY_TRANSFORM) == (op.batch is None)


@each_op
def test_lanes_are_those_of_the_reference(op: Op) -> None:
    for sample, axes in batched_samples(op):
        if op.name in BY_MATRIX:  # products of several lanes at once round in another order
            looped = looped_op(op, axes)
            check(looped, sample, lambda *_, s=sample, a=axes: applied(op, s, a))
            continue
        assert_same(applied(op, sample, axes), lane_by_lane(op, sample, axes))


@each_op
def test_lanes_are_those_of_the_reference_when_lowered(op: Op) -> None:
    check_batched_on(op, "host", any_zero_on("host"))


def _reversed(**rules: object) -> Op:
    """An op of one's own: the elements in reverse order."""
    return Op(
        "reversed",
        "The elements of a vector in reverse order.",
        lambda x: x,
        lambda x: np.asarray(x)[::-1],
        Indexed(lambda index, operands, out: operands[0][(out.shape[0] - 1 - index[0],)]),
        list,
        **rules,  # type: ignore[arg-type]
    )


def test_an_op_without_a_rule_is_named_with_its_line() -> None:
    op = _reversed()

    def flip(x: object) -> object:
        return apply(op, x)

    with pytest.raises(errors.BatchRuleError, match=r"the op reversed has no batching rule") as e:
        tracegraph.vmap(flip)(np.ones((2, 3)))
    assert "test_batching.py:" in str(e.value)
    assert "in flip" in str(e.value)


def test_what_lanes_share_needs_no_rule() -> None:
    op, shared = _reversed(), np.arange(3.0)

    def add(x: object) -> object:
        return x + apply(op, tracegraph.numpy.asarray(shared) * 1)

    np.testing.assert_array_equal(tracegraph.vmap(add)(np.arange(2.0)), [[2, 1, 0], [3, 2, 1]])


def test_a_rule_of_ones_own() -> None:
    def rule(lanes: Lanes, operands: list, batched: list) -> object:
        (x,) = operands
        count, size = x.type.shape
        attrs = {"starts": (0, size - 1), "steps": (1, -1), "sizes": (count, size)}
        return lanes.emit("slice", x, **attrs)

    op = _reversed(batch=rule)
    x = np.arange(6.0).reshape(2, 3)
    flipped = tracegraph.vmap(lambda x: apply(op, x))(x)
    np.testing.assert_array_equal(flipped, x[:, ::-1])
