"""Branch-free selection on the host: by bits or by masked copies, the result is the same."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from lowering.host.tuning.instructions.branch_free_selection import BITWISE_SIZE, where

SIZE = 2 * BITWISE_SIZE
RNG = np.random.default_rng(0)
RANDOM = RNG.random(SIZE) > 0.5
PREDICATES = {
    "random": RANDOM,
    "in runs": np.repeat(RANDOM[: SIZE // 64], 64),
    "strided": np.repeat(RANDOM, 2)[::2],
    "all": np.ones(SIZE, np.bool_),
    "one": np.array(True),
}


@pytest.mark.parametrize("predicate", PREDICATES.values(), ids=PREDICATES)
@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.float16, bfloat16, np.float32, np.float64, np.complex128]
)
def test_each_element_is_the_one_chosen(dtype, predicate):
    chosen, other = ((RNG.random(SIZE) * 100 - 50).astype(dtype) for _ in range(2))
    if np.dtype(dtype).kind == "f":
        chosen[::3], other[1::3] = np.nan, -0.0
    for x, y in ((chosen, other), (chosen[:1].reshape(()), other), (chosen, other[:1])):
        out = np.empty(SIZE, dtype)
        where(predicate, x, y, out)
        assert out.tobytes() == np.where(predicate, x, y).astype(dtype).tobytes()
    out = np.empty(2 * SIZE, dtype)[::2]
    where(predicate, chosen, other, out)
    assert out.tobytes() == np.where(predicate, chosen, other).tobytes()
