"""Loops in one kernel, of which kernels for small matrices are a part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nodes import launched, walk
from lowering.plan.target.overrides import override
from lowering.plan.target.scope import Scope
from tests.emulation.emulator import COMPILER
from tests.emulation.front_end import assert_front_end_accepts
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.running import lowered


def repeated(step: Callable[[Any, Any], Any], steps: int = 3) -> Callable[[Any, Any], Any]:
    return lambda a, x: tracegraph.fori_loop(0, steps, lambda _, x: step(a, x), x)


def solved(a: Any, x: Any) -> Any:
    return np.linalg.solve(a + np.sum(x * x) * np.eye(a.shape[-1], dtype=a.dtype), x)


def whitened(a: Any, x: Any) -> Any:
    square = a @ np.conj(np.swapaxes(a, -1, -2)) + (1 + np.sum(np.abs(x))) * np.eye(
        a.shape[-1], dtype=a.dtype
    )
    factor = np.linalg.cholesky(square)
    return tracegraph.linalg.solve_triangular(factor, x, lower=True)


def case(step: Any, dtype: str, n: int, batch: tuple[int, ...] = (), columns: int = 2) -> Any:
    rng = np.random.default_rng(n)
    a: Any = rng.standard_normal((*batch, n, n))
    x: Any = rng.standard_normal((*batch, n, columns))
    if np.dtype(dtype).kind == "c":
        a, x = a + 1j * a[..., ::-1], x + 0.5j
    return repeated(step), (a.astype(dtype), x.astype(dtype))


CASES = {
    "solved": case(solved, "float64", 6),
    "solved batch": case(solved, "float32", 5, (7,)),
    "solved complex": case(solved, "complex128", 9),
    "whitened": case(whitened, "float64", 16, (3,)),
    "whitened complex": case(whitened, "complex64", 8, (), 1),
}
SCOPES = [None, Scope(1, 1), Scope(1, 64), Scope(3, 64), Scope(2, 32, clustered=True)]


def plans(scope: Scope | None) -> Any:
    with override(loops="one_kernel", scope=scope):
        return {name: lowered(f, *given, device="cuda") for name, (f, given) in CASES.items()}


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_kernels_are_parts_of_a_loop_in_one_kernel(scope: Scope | None) -> None:
    for name, each in plans(scope).items():
        inside = [n for n in walk(each.plan.graph) if isinstance(n, CustomKernelNode)]
        assert inside, name
        assert not any(isinstance(n, CustomKernelNode) for n in launched(each.plan.graph)), name
        assert "tg_custom_small_" in each.source


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_they_give_what_numpy_gives(scope: Scope | None, tmp_path: Any) -> None:
    with override(loops="one_kernel", scope=scope):
        emulated = EmulatedPlans(dict(CASES), tmp_path)
    for name, (f, given) in CASES.items():
        wanted = f(*given)
        unit = 1e3 * float(np.finfo(wanted.dtype).eps)
        found = emulated.run(name, *given)
        np.testing.assert_allclose(found, wanted, unit, unit * np.abs(wanted).max())


def test_nvrtc_takes_them() -> None:
    for each in plans(None).values():
        assert_front_end_accepts(each.source)
