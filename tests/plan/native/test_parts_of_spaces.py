"""Maps that are parts of a common space, as native code: it would keep them apart by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lowering.backends.host import TARGET
from lowering.lower import lower
from tests.comparisons.windows import PROGRAMS
from tests.helpers.running import traced
from tests.plan.native.running_natively import compiled
from tracegraph import tree

TOGETHER = replace(TARGET, fusion=replace(TARGET.fusion, parts=True))


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_are_those_that_numpy_writes(name: str) -> None:
    function, arguments = PROGRAMS[name]
    plan = lower(traced(function, *arguments).optimized, TOGETHER)
    found = compiled(plan, level="quick")(tree.leaves(arguments))
    for got, wanted in zip(found, tree.leaves(function(*arguments)), strict=True):
        np.testing.assert_array_equal(got, wanted)
