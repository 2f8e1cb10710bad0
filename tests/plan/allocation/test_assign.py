"""Offsets in the arena are those of the plain definition, which tests every pair of buffers."""

from __future__ import annotations

import importlib
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.allocation.free_ranges import FreeRanges
from lowering.allocation.liveness import Life, Lifetimes
from lowering.draft.dependences import Order, precedes
from lowering.draft.draft_nodes import Block, DraftKernel
from lowering.plan.plan import Plan
from tests.corpus import CASES
from tracegraph import ArrayType, cond, fori_loop, switch

VECTOR = ArrayType("float32", (64,))


class PlainLifetimes:
    """By definition: tests every life that has ended whenever another one begins."""

    def __init__(self, orders: Mapping[Block, Order]) -> None:
        self.orders = orders
        self.active: list[Life] = []

    def begin(self, new: Life) -> list[Life]:
        over = [old for old in self.active if old.end < new.start and self.is_over(old, new)]
        self.active = [old for old in self.active if old not in over] + [new]
        return over

    def is_over(self, old: Life, new: Life) -> bool:
        for (block, before), (other, now) in zip(old.levels(), new.levels(), strict=False):
            if block is not other:
                return True  # two branches of one conditional
            if len(before) > 1 or len(now) > 1 or before[0] != now[0]:
                known = self.orders[block].ancestors
                return all(precedes(known, position, now[0]) for position in before)
        return False


def nested(x: Any, y: Any) -> Any:
    """Scratch of a program, its loops and branches, some of it used late."""
    first, second = np.cumsum(x), np.cumsum(y)

    def chosen(c: Any) -> Any:
        z = np.cumsum(c + second)
        one = cond(c[0] > 0, lambda: np.cumsum(z)[::-1] * z, lambda: np.cumsum(np.cumsum(c) + z))
        which = (c[1] * 3).astype("int64")
        more = switch(which, [lambda i=i: np.cumsum(np.cumsum(one + i) * x) for i in range(4)])
        return np.cumsum(more + one) + z

    third = fori_loop(0, 4, lambda i, c: chosen(c) + np.cumsum(first * i), x)
    fourth = fori_loop(0, 4, lambda i, c: np.cumsum(c) * second, y)
    return np.cumsum(chosen(third) + fourth), np.cumsum(fourth), first


PROGRAMS = {
    **{name: (case.function, case.arguments) for name, case in CASES.items()},
    "nested": (nested, (VECTOR, VECTOR)),
}


@pytest.mark.parametrize("name", list(PROGRAMS)[::2])
def test_places_are_those_of_the_plain_definition(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, arguments = PROGRAMS[name]

    def plan() -> Plan:
        found: Plan = tracegraph.jit(function, device="host").lower(*arguments).plan
        return found

    places = str(plan())
    # the package has a function of that name
    monkeypatch.setattr(
        importlib.import_module("lowering.allocation.assign"), "Lifetimes", PlainLifetimes
    )
    assert str(plan()) == places


@pytest.mark.parametrize("seed", range(20))
def test_dead_buffers_are_found_among_stages_with_random_dependences(seed: int) -> None:
    choose = random.Random(seed)
    count = 60
    before: list[set[int]] = []
    for j in range(count):
        direct = choose.sample(range(max(j - 6, 0), j), min(j, choose.randint(0, 2)))
        before.append(set(direct).union(*(before[i] for i in direct)))
    masks = [sum(1 << j - 1 - i for i in earlier) for j, earlier in enumerate(before)]
    block = Block([DraftKernel([]) for _ in range(count)])
    orders = {block: Order([], frozenset(), masks)}
    starts = sorted(choose.choices(range(count - 10), k=150))
    lives = []
    for start in starts:
        stages = sorted({start, *choose.sample(range(start, start + 10), choose.randint(0, 3))})
        lives.append(Life(start, stages[-1], (), block, stages))
    found, plain = Lifetimes(orders), PlainLifetimes(orders)
    for life in lives:
        assert set(found.begin(life)) == set(plain.begin(life))


def test_the_lowest_free_range_that_is_large_enough_is_allocated() -> None:
    choose = random.Random(0)
    free_list, taken = FreeRanges(), dict[int, int]()
    for _ in range(2000):
        if taken and choose.random() < 0.45:
            start = choose.choice(list(taken))
            free_list.free(start, taken.pop(start))
            continue
        size, lowest = choose.randint(1, 6) * 256, 0
        for start in sorted(taken):
            if start - lowest >= size:
                break
            lowest = start + taken[start]
        assert free_list.allocate(size) == lowest
        taken[lowest] = size
