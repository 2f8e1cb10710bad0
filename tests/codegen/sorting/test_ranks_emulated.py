"""Kernels that find elements at places of the order: what a sort finds, on the CPU."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.cases.sorting import DTYPES, in_order, values
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tracegraph.arrays.eager import apply
from tracegraph.ops.ranked import ranked

emulated = pytest.mark.skipif(COMPILER is None, reason="needs g++")


def finding(*places: int) -> Any:
    def find(x: Any) -> Any:
        return apply(ranked, x, places=places)

    return find


def check(cases: dict[str, tuple[np.ndarray[Any, Any], tuple[int, ...]]], folder: Path) -> None:
    programs = {name: (finding(*places), (x,)) for name, (x, places) in cases.items()}
    plans = EmulatedPlans(programs, folder)
    for name, (x, places) in cases.items():
        found = np.asarray(plans.run(name, x, order=Random(1)))
        assert found.tobytes() == in_order(x)[..., list(places)].tobytes(), name


@emulated
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_places_are_those_of_a_sort(dtype: Any, tmp_path: Path) -> None:
    cases = {
        "short": (values(dtype, (5,)), (0, 2, 4)),
        "rows": (values(dtype, (3, 2, 700)), (349, 350)),
        "long": (values(dtype, (2, 5001)), (0, 2500, 2501, 4000, 5000)),
    }
    check(cases, tmp_path)


@emulated
def test_rows_in_any_order(tmp_path: Path) -> None:
    n = 5000
    rows = {
        "equal": np.zeros(n),
        "zeros": np.tile([0.0, -0.0], n // 2),
        "rising": np.arange(n) / 7,
        "close": 1000 + np.arange(n)[::-1] * 1e-9,
        "missing": np.full(n, np.nan),
        "two values": np.where(np.arange(n) % 3 == 0, 1.0, 2.0),
    }
    check({name: (row, (0, 1666, 1667, 2499, 2500, n - 1)) for name, row in rows.items()}, tmp_path)
