"""Writes to Arrays in device memory: random programs of views, in place, values that stay."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.programs.writes import RULES, program

A = np.arange(12.0).reshape(3, 4) % 7


def local() -> Any:
    return tracegraph.asarray(A, device="cuda") * 1


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_are_numpys(seed: int) -> None:
    random = Random(seed)
    steps = [
        (random.randrange(RULES), random.randrange(6), random.randrange(6), random.randrange(4))
        for _ in range(8)
    ]
    found = program(steps, tracegraph.asarray(A, device="cuda"))
    for new, old in zip(found, program(steps, A.copy()), strict=True):
        assert new.device != "host"
        np.testing.assert_array_equal(np.asarray(new), old, strict=True)


def test_writes_are_in_place() -> None:
    x = local()
    pointer = x.data.pointer
    rows = x[1:].T
    x[1, 2] = 9
    rows[0, 1] = 8
    rows += 1
    x[x > 9] = 0
    assert x.data.pointer == pointer
    expected = A.copy()
    expected[1, 2], expected[2, 0] = 9, 8
    expected[1:] += 1
    np.testing.assert_array_equal(np.asarray(x), np.where(expected > 9, 0, expected))


def test_what_was_read_before_a_write_stays() -> None:
    x = local()
    result = tracegraph.jit(lambda x: x[:2])(x)
    captured = tracegraph.jit(lambda: x + 0, device="cuda")
    captured()
    copy, (_, pull) = x.copy(), tracegraph.vjp(lambda y: y * y, x)
    x[0] = 100
    for found in (result, captured()[:2], copy[:2]):
        np.testing.assert_array_equal(np.asarray(found), A[:2])
    (gradient,) = pull(tracegraph.asarray(np.ones_like(A), device="cuda"))
    np.testing.assert_array_equal(np.asarray(gradient), 2 * A)
