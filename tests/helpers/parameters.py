"""Lists of parameters of which a part runs always, and all of it with the soak tests.

They are for comparisons on a device, where each value is to be seen, but not each combination. Many
of these are made for all combinations by emulated kernels or on the host; where they are not, as
for residuals of matrices of all sizes and dtypes, only the soak tests make them all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import product
from typing import Any

import pytest

Parameters = list[Any]
"""What `pytest.mark.parametrize` takes."""


def in_turn(*lists: Iterable[Any], rounds: int = 1) -> Parameters:
    """All combinations of the values of some lists, the longest of which comes first.

    Those that run always go through the first list in some rounds, and take the values of the
    others in turn, so that each value of each list is among them. In a list of n values, the k-th
    list moves on by k more after each n: equal lengths do not always meet in the same pairs.
    """
    values = [list(each) for each in lists]
    assert all(len(each) <= len(values[0]) for each in values)
    chosen = {
        tuple((i + k * (i // len(each))) % len(each) for k, each in enumerate(values))
        for i in range(rounds * len(values[0]))
    }
    return [
        pytest.param(*(each[i] for each, i in zip(values, indices, strict=True)), marks=marks)
        for indices in product(*map(range, map(len, values)))
        for marks in [() if indices in chosen else pytest.mark.soak]
    ]


def one_of_each_kind(values: Iterable[Any], kind: Callable[[Any], Hashable]) -> Parameters:
    """All values, of which tuples are for several names; the first of each kind runs always."""
    found: Parameters = []
    seen: set[Hashable] = set()
    for value in values:
        marks = pytest.mark.soak if kind(value) in seen else ()
        seen.add(kind(value))
        found.append(pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks))
    return found
