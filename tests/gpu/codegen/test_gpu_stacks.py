"""Stacks of several sources on the GPU: each thread computes an element of every source."""

import numpy as np
import pytest

import tracegraph

SHIFTS = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))


def rolled(f):
    return np.stack([np.roll(f[k], shift, (0, 1)) for k, shift in enumerate(SHIFTS)])


def in_place(f):
    def step(k, f):
        return np.stack([f[1] - k, f[0] + f[3], f[3], -f[2], f[8], f[4], f[6], f[5], f[7] + f[1]])

    return tracegraph.fori_loop(0, 20, step, f)


def streamed(f):
    def step(k, f):
        moved = rolled(f)
        bounced = np.stack([moved[q] for q in (0, 3, 4, 1, 2, 7, 8, 5, 6)])
        relaxed = np.stack([moved[q] * 2 - moved[0] + q for q in range(9)]) % 8
        return np.where(f[0] > 3, bounced, relaxed)

    return tracegraph.fori_loop(0, 7, step, f)


def joined(f):
    parts = [f[q] * q for q in range(9)]
    return np.concatenate(parts, 1), np.concatenate([p.ravel() for p in parts])


@pytest.mark.parametrize("shape", [(9, 7, 33), (9, 64, 64), (9, 300, 512)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("function", [rolled, in_place, streamed, joined])
def test_stacks_are_numpys(function, dtype, shape):
    f = np.random.default_rng(0).integers(0, 8, shape).astype(dtype)
    found = tracegraph.jit(function, device="cuda")(f)
    expected = function(f)
    if not isinstance(expected, tuple):
        found, expected = (found,), (expected,)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted)
