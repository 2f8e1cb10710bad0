"""Lanes of test operands, and loops over lanes: what batched runs are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

import tracegraph
from tests.helpers.agreement import check
from tracegraph import tree, vmap
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Call, Control, Effect, Op, Sample, all_ops

NDArray = np.ndarray[Any, Any]

LANES = 3

PLAIN = [op for op in all_ops() if not isinstance(op.form, (Call, Control, Effect))]


def lanes_of(x: NDArray) -> NDArray:
    """Three variants of an operand, stacked; the values of arrays are those of the operand."""
    x = np.asarray(x)
    if x.ndim:
        return np.stack([np.roll(x, i).reshape(x.shape) for i in range(LANES)])
    if x.dtype.kind == "b":
        return np.array([x, ~x, x])
    return np.stack([np.asarray(x + np.asarray(i, x.dtype), x.dtype) for i in range(LANES)])


def batched_samples(op: Op) -> Iterator[tuple[Sample, tuple[int | None, ...]]]:
    """The samples of an op with lanes, and the axes of operands: every choice of batched ones."""
    for sample in op.samples():
        for axes in product((0, None), repeat=len(sample.operands)):
            if any(axis == 0 for axis in axes):
                operands = [
                    lanes_of(x) if axis == 0 else np.asarray(x)
                    for x, axis in zip(sample.operands, axes, strict=True)
                ]
                yield Sample(tuple(operands), sample.attrs), axes


def applied(op: Op, sample: Sample, axes: tuple[int | None, ...]) -> Any:
    """What vmap of the op gives; `jit` of it may be what calls this."""
    return vmap(lambda *xs: apply(op, *xs, **sample.attrs), in_axes=axes)(*sample.operands)


def lane_by_lane(op: Op, sample: Sample, axes: tuple[int | None, ...]) -> Any:
    """The reference of the op, applied to one lane after the other."""
    found = []
    for i in range(LANES):
        pairs = zip(sample.operands, axes, strict=True)
        given = [x if axis is None else x[i] for x, axis in pairs]
        found.append(op.reference(*given, **sample.attrs))
    if isinstance(found[0], tuple):
        return tuple(map(np.stack, zip(*found, strict=True)))
    return np.stack([np.asarray(each) for each in found])


def check_batched_on(op: Op, device: str, any_zero: frozenset[str]) -> None:
    """Require what `agreement.check` does of every batched sample, all in one program."""
    cases = list(batched_samples(op))

    def every(operands: list[tuple[NDArray, ...]]) -> list[Any]:
        return [
            applied(op, Sample(given, sample.attrs), axes)
            for given, (sample, axes) in zip(operands, cases, strict=True)
        ]

    found = tracegraph.jit(every, device=device)([sample.operands for sample, _ in cases])
    for result, (sample, axes) in zip(found, cases, strict=True):
        check(looped_op(op, axes), sample, lambda *_, result=result: result, any_zero)


def looped_op(op: Op, axes: tuple[int | None, ...]) -> Op:
    """An op record whose reference is the loop over lanes."""

    def reference(*operands: NDArray, **attrs: Any) -> Any:
        return lane_by_lane(op, Sample(operands, attrs), axes)

    return Op(op.name, op.doc, op.type_rule, reference, op.form, op.samples)


def looped(function: Callable[..., Any], *arguments: Any, axes: Sequence[Any] = ()) -> Any:
    """A Python loop over lanes along axis 0 of the arguments with axis 0: results stacked."""
    axes = axes or [0] * len(arguments)
    count = next(
        len(tree.leaves(x)[0]) for x, axis in zip(arguments, axes, strict=True) if axis == 0
    )
    each = [
        function(
            *(
                x if axis is None else tree.map(lambda leaf, i=i: np.copy(leaf[i]), x)
                for x, axis in zip(arguments, axes, strict=True)
            )
        )
        for i in range(count)
    ]
    return tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *each)


def assert_same(found: Any, wanted: Any) -> None:
    """Require one structure, and equal bits but those of NaNs."""
    assert tree.structure(found) == tree.structure(wanted)
    for got, expected in zip(tree.leaves(found), tree.leaves(wanted), strict=True):
        got, expected = np.asarray(got), np.asarray(expected)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        for part in ("real", "imag") if expected.dtype.kind == "c" else ("",):
            a, b = (getattr(x, part) if part else x for x in (got, expected))
            wide = [x.astype(np.float64) if x.dtype.kind in "fV" else x for x in (a, b)]
            np.testing.assert_array_equal(*wide)
            if wide[0].dtype.kind == "f":
                numbers = ~np.isnan(wide[0])
                signs = [np.signbit(x)[numbers] for x in wide]
                np.testing.assert_array_equal(*signs)
