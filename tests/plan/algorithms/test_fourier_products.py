"""Fourier transforms by kernels of our own: planned for a GPU without libraries, run here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.algorithms import TRANSFORMS
from lowering.host.executable import HostExecutable
from lowering.lower import lower_without_libraries
from lowering.plan.nodes import LibraryNode, launched
from tests.helpers.agreement import check
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Op, get
from tracegraph.ir.types import type_of


def by_kernels(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    types = tuple(map(type_of, operands))
    traced = tracegraph.jit(lambda *xs: apply(op, *xs, **attrs), device="host").trace(*types)
    plan = lower_without_libraries(traced.optimized, "cuda")
    assert not any(isinstance(node, LibraryNode) for node in launched(plan.graph))
    (result,) = HostExecutable(plan, poison=True, order=Random(0))(list(operands))
    return result


@pytest.mark.parametrize("name", TRANSFORMS)
def test_it_gives_what_the_reference_gives(name: str) -> None:
    op = get(name)
    for sample in op.samples():
        check(op, sample, by_kernels)


@pytest.mark.parametrize("n", [33, 60, 97, 1000, 1031])
def test_any_number_of_points_is_transformed(n: int) -> None:
    """With factors, without, and by a convolution."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=(2, n)) + 1j * rng.normal(size=(2, n))
    for inverse, expected in (False, np.fft.fft(x)), (True, n * np.fft.ifft(x)):
        found = by_kernels(get("fft"), [x], {"rank": 1, "inverse": inverse})
        assert np.abs(found - expected).max() < 1e-14 * np.abs(expected).max()
    single = by_kernels(get("fft"), [x.astype(np.complex64)], {"rank": 1, "inverse": False})
    assert single.dtype == np.complex64
    assert np.abs(single - np.fft.fft(x)).max() < 1e-6 * np.abs(np.fft.fft(x)).max()
    found = by_kernels(get("irfft"), [np.fft.rfft(x.real)], {"size": n})
    assert np.abs(found - n * x.real).max() < 1e-13 * n
