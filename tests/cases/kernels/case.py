"""Kernels with what they are given and what they must give, for the emulator and for NVRTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Nest
from lowering.plan.nodes import KernelNode
from tests.cases.kernels.by_hand import node
from tests.helpers.wide_integers import wide_integers

Arrays = Mapping[Buffer, Any]


@dataclass(frozen=True)
class Case:
    """One kernel: inputs, expected outputs, and how far off these may be, by the largest."""

    node: KernelNode
    given: Arrays
    expected: Arrays
    tolerance: float = 0.0
    conditions: Mapping[int, int] = field(default_factory=dict)


CASES: dict[str, Case] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    """Add the case that a function makes, under the function's name."""
    with np.errstate(all="ignore"):
        CASES[make.__name__] = make()
    return make


def kernel_case(
    name: str, nests: tuple[Nest, ...], given: Arrays, expected: Arrays, tolerance: float = 0.0
) -> None:
    """Add a case of a family."""
    CASES[name] = Case(node(name, *nests), given, expected, tolerance)


def values(dtype: Any, *shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Small random numbers of a dtype, of both signs where it has them."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    if dtype.kind in "iu":
        return wide_integers(random, dtype, shape)
    if dtype.kind == "c":
        return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype)
    return random.normal(size=shape).astype(dtype)
