"""Corpus programs mean the same eagerly, interpreted, optimized, and as plans on the host."""

from __future__ import annotations

import pytest

from tests.corpus import CASES
from tests.helpers.running import WAYS, assert_case_agrees


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_result_is_that_of_numpy(name: str, way: str) -> None:
    assert_case_agrees(CASES[name], WAYS[way])
