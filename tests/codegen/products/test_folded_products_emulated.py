"""Products that are folded at once: without an array of products, they give what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering.cuda.compilation.compile import cubin
from lowering.plan.nodes import LibraryNode, walk
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.compiled import plan_of
from tests.helpers.running import lowered
from tests.programs.folded_products import CASES, operands
from tracegraph import tree


@pytest.mark.parametrize("name", CASES)
def test_no_array_has_the_products(name: str) -> None:
    function, given = CASES[name][0], operands(name, "float32")
    plan = plan_of(function, *given)
    largest = max(x.size for x in given)
    assert all(buffer.type.size < largest for buffer in plan.offsets)


def of_exponentials(z: Any) -> Any:
    return np.log(np.sum(np.exp(z - np.max(z, axis=1)[:, None]), axis=1))


@pytest.mark.parametrize(
    "fold",
    [
        of_exponentials,
        lambda z: np.sum(z, axis=1) + np.max(z, axis=1) * z[:, 0],
        lambda z: np.min(z * z.shape[0] - np.min(z, axis=1)[:, None], axis=1),
        lambda z: np.sum(z),
        lambda z: np.argmax(z + np.ones(z.shape, "f4") / np.arange(1, len(z) + 1)[:, None], axis=1),
    ],
)
def test_products_that_are_needed_again_are_calls(fold: Any) -> None:
    plan = plan_of(
        lambda x, y: fold(x @ y.T), np.ones((1 << 16, 16), "f4"), np.ones((40, 16), "f4")
    )
    assert any(isinstance(node, LibraryNode) for node in walk(plan.graph))


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
def test_they_give_what_numpy_gives(tmp_path: Any) -> None:
    programs = {name: (case[0], operands(name, "float32")) for name, case in CASES.items()}
    plans = EmulatedPlans(programs, tmp_path)
    for name, (function, given) in programs.items():
        with np.errstate(all="ignore"):
            exact = tree.leaves(function(*given))
        for a, b in zip(tree.leaves(plans.run(name, *given)), exact, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=name)


def test_they_compile_in_double_precision() -> None:
    given = [operands(name, "float64") for name in CASES]

    def all_of_them(given: Any) -> Any:
        return [CASES[name][0](*arrays) for name, arrays in zip(CASES, given, strict=True)]

    source = lowered(all_of_them, given, device="cuda").source
    assert "fma(" in source
    assert len(cubin(source, "sm_90").code) > 0
