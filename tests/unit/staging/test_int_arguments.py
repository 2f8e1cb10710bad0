"""Python ints as arguments: those that do not fit the dtype that they meet raise at the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tracegraph import cond, errors, fori_loop, jit, scan, while_loop
from tracegraph.ir.argument_ranges import argument_ranges

U8 = np.uint8([1, 200])


def _written(a: Any, k: Any) -> Any:
    a = a.copy()
    a[0] = k
    return a


PROGRAMS: list[Callable[[Any, Any], Any]] = [
    lambda a, k: a + k,
    lambda a, k: k * a,
    lambda a, k: np.maximum(a, k),
    lambda a, k: np.full_like(a, k),
    _written,
    lambda a, k: fori_loop(np.uint8(0), k, lambda i, c: c + a, a),
    lambda a, k: while_loop(lambda c: c < 3, lambda c: a[0] + c, k),
    lambda a, k: cond(a[0] > 0, lambda: a + k, lambda: a),
    lambda a, k: scan(lambda c, x: (c + a + k, x), a, np.arange(2))[0],
    lambda a, k: fori_loop(0, 2, lambda i, c: cond(i > 0, lambda c: c + k, lambda c: c, c), a),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_int_that_does_not_fit_raises_at_the_call(program: Callable[[Any, Any], Any]) -> None:
    jitted = jit(program, device="host")
    for k in (3, 300, 4, -1, 5):
        if 0 <= k < 256:
            np.testing.assert_array_equal(jitted(U8, k), program(U8, k))
            continue
        with pytest.raises(OverflowError):
            program(U8, k)
        for _ in range(2):
            with pytest.raises(errors.IntegerRangeError, match=rf"argument k of .* {k}, .*uint8"):
                jitted(U8, k)
    assert jitted.stats()["builds"] == 1


def test_the_message_has_the_line_where_the_int_meets_the_dtype() -> None:
    with pytest.raises(
        errors.IntegerRangeError, match=r"at test_int_arguments.py:\d+, in <lambda>"
    ):
        jit(PROGRAMS[0], device="host")(U8, 300)


def test_ints_among_many_arguments_are_checked() -> None:
    total = jit(lambda *args: sum(args[1:], args[0]), device="host")
    np.testing.assert_array_equal(total(U8, *[1] * 40), U8 + 40)
    for _ in range(2):
        with pytest.raises(errors.IntegerRangeError, match=r"argument args\[40\]"):
            total(U8, *[1] * 39, 256)


def test_what_is_compared_or_converted_is_not_limited() -> None:
    def fits(a: Any, k: Any) -> Any:
        return (a < k) & (k.astype(np.uint8) > 0)

    np.testing.assert_array_equal(jit(fits, device="host")(U8, 300), [True, True])
    assert argument_ranges(jit(fits, device="host").trace(U8, 300).program) == ()


def test_the_narrowest_range_of_several_counts() -> None:
    both = jit(lambda a, b, k: (a + k, b + k), device="host")
    (found,) = argument_ranges(both.trace(U8, np.int8([1]), 1).program)
    assert found.values == range(128)
