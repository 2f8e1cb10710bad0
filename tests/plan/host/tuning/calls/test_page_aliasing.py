"""4K aliasing: copies between addresses that are close modulo the page size."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.host.arena import aligned_bytes
from lowering.host.tuning.calls.page_aliasing import COPIED, NEAR, PAGE, is_aliased

COUNT = COPIED.start // 4


def places(distance: int, dtype: str = "f4", count: int = COUNT) -> tuple[np.ndarray, np.ndarray]:
    """An array, and one that begins so many bytes past it, but for whole pages."""
    memory = aligned_bytes(1 << 22)
    start = 2 * PAGE
    there = start + (1 << 21) + distance
    return np.ndarray(count, dtype, memory, start), np.ndarray(count, dtype, memory, there)


@pytest.mark.parametrize(("distance", "slow"), [(-4, False), (0, False), (4, True), (NEAR, False)])
def test_where_a_copy_goes_decides(distance: int, slow: bool) -> None:
    assert is_aliased(*places(distance)) == slow


def test_only_ranges_of_one_dtype_and_some_length_are_moved_so() -> None:
    value, out = places(4)
    assert not is_aliased(value[::2], out[::2])
    assert not is_aliased(value[:-1], out[:-1])
    assert not is_aliased(value.view(np.int32), out)
    assert not is_aliased(*places(16, "c16"))
    assert not is_aliased(*places(4, count=COPIED.stop // 4))
