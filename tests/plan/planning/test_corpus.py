"""Corpus programs mean the same eagerly, interpreted, optimized, and as plans on the host."""

from __future__ import annotations

import pytest

from tests.corpus import CASES
from tests.helpers.running import WAYS, assert_case_agrees

EACH_WAY = [
    (name, way) for n, name in enumerate(CASES) for i, way in enumerate(WAYS) if (n + i) % 2
]
"""Each program in every second way."""


@pytest.mark.parametrize(("name", "way"), EACH_WAY)
def test_result_is_that_of_numpy(name: str, way: str) -> None:
    assert_case_agrees(CASES[name], WAYS[way])
