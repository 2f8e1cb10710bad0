"""Rates: how fast a device moves bytes and computes at best, for comparisons with a Plan's work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Rates:
    """The limits of a device.

    Args:
        name: the device, as the driver names it.
        copy: bytes a second that a copy reads and writes, in arrays larger than the caches.
        operations: a second, by the dtypes of `lowering.plan.nests.work.Work`; a product and a sum
            are two.
        products: the same in matrix products of a library.
    """

    name: str
    copy: float
    operations: Mapping[str, float] = field(default_factory=dict)
    products: Mapping[str, float] = field(default_factory=dict)


H100 = Rates(
    "an NVIDIA H100 80GB HBM3",
    copy=2.9e12,
    operations={"float64": 33.5e12, "float32": 67e12, "int": 16.7e12},
    products={"float64": 60e12, "float32": 50e12, "float16": 700e12, "bfloat16": 700e12},
)
