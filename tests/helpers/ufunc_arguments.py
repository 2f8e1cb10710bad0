"""Arrays of every dtype that the methods of ufuncs are tested with."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.numpy.dispatching import ufunc_methods

UFUNCS = sorted(ufunc_methods.COMBINERS)
DTYPES = ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64"]


def argument(dtype: str, *shape: int) -> Any:
    numbers = np.random.default_rng(3).integers(-3, 4, shape)
    if dtype[0] == "u":
        return np.abs(numbers).astype(dtype)
    x = numbers.astype(dtype)
    if x.dtype.kind in "fc" and x.size > 3:
        x.ravel()[2] = np.nan
    return x
