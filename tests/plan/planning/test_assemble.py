"""Results of a Plan, and the memory of values whose lifetimes do not meet."""

from __future__ import annotations

from collections import Counter

import numpy as np

from lowering.plan.nests.analysis import nest_writes
from tests.helpers.compiled import host_plan_of
from tests.helpers.plans import vector


def test_a_value_returned_twice_is_stored_once_and_copied_once():
    def twice(x):
        y = np.sin(x) * np.cos(x)
        return y, y, y + y[::-1]

    plan = host_plan_of(twice, vector())
    assert plan.arena_bytes == 0
    stored = [
        w for node in plan.graph.nodes for nest in node.kernel.nests for w in nest_writes(nest)
    ]
    assert Counter(stored) == Counter(plan.outputs)


def test_lifetimes_that_do_not_meet_share_memory():
    def chain(x):
        for _ in range(6):
            s = np.sin(x) * np.cos(x)
            x = s + s[::-1]
        return x

    plan = host_plan_of(chain, vector(1024))
    assert len(plan.offsets) > 4
    assert plan.arena_bytes == 2 * 8192
