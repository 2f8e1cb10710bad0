"""Powers with exponents that have functions of their own, and those of more precise numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import Device

EXPONENTS = (3.0, 4.0, 1.5, -0.5, -1.5, -2.0)
DTYPES = (np.float64, np.float32, np.float16)

ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -2.5, 1.0, 2.0, 4.0]


def bases(dtype: Any) -> Any:
    """Numbers of all sizes, the smallest and largest among them, and what has no power."""
    info = np.finfo(dtype)
    random = np.random.default_rng(0)
    sizes = random.uniform(np.log2(float(info.smallest_subnormal)), np.log2(float(info.max)), 600)
    near = random.uniform(0.25, 4, 400)
    ends = [*ENDS, info.max, info.tiny, info.smallest_subnormal]
    with np.errstate(over="ignore"):
        return np.concatenate([ends, np.exp2(sizes), near]).astype(dtype)


def power(x: Any, exponent: float) -> Any:
    return x**exponent


PROGRAMS = {
    f"{exponent}_{np.dtype(dtype)}": (
        lambda x, exponent=exponent: [power(x, exponent)],
        (bases(dtype),),
    )
    for exponent in EXPONENTS
    for dtype in DTYPES
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_are_within_two_ulps(exponent: float, dtype: Any, device: Device) -> None:
    x = bases(dtype)
    found = np.asarray(device.run(f"{exponent}_{np.dtype(dtype)}", x)[0])
    assert found.dtype == dtype
    with np.errstate(all="ignore"):
        precise = np.power(x.astype(np.longdouble), np.longdouble(exponent))
        wanted = precise.astype(dtype)
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(found[~finite], wanted[~finite])
        zero = wanted == 0
        assert np.all(np.abs(found[zero]) <= np.finfo(dtype).smallest_subnormal)
        error = np.abs(found - precise)[finite] / np.spacing(np.abs(wanted[finite]))
    assert np.max(error) <= 2
