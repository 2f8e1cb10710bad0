"""Rates: how fast a device moves bytes and computes at best, for comparisons with a Plan's work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Rates:
    """The limits of a device.

    Args:
        name: the device, as the driver names it.
        copy: bytes a second that a copy reads and writes, in arrays larger than the caches.
        operations: a second, by the dtypes of `lowering.plan.nests.work.Work`; a product and a sum
            are two.
        products: the same in matrix products of a library, of float32 by their precision.
        special: exponentials a second, by dtype.
    """

    name: str
    copy: float
    operations: Mapping[str, float] = field(default_factory=dict)
    products: Mapping[str, float] = field(default_factory=dict)
    special: Mapping[str, float] = field(default_factory=dict)


H100 = Rates(
    "an NVIDIA H100 80GB HBM3",
    copy=3.0e12,
    operations={"float64": 29.7e12, "float32": 58e12},
    products={
        "float64": 62e12,
        "float32": 51.5e12,
        "tf32": 405e12,
        "bf16x3": 260e12,
        "float16": 770e12,
        "bfloat16": 780e12,
    },
    special={"float64": 0.81e12, "float32": 2.66e12},
)
"""Measured (driver 580.159, CUDA 13.0, 1980 MHz, 27 November 2026): a copy of 1 GiB; chains of
`a * b + c` in registers, eight in each thread; products of 8192² matrices by cuBLAS, of 4096² in
float64; `exp` in registers. Products in bf16x3 are three of bfloat16."""

H200 = replace(H100, name="an NVIDIA H200", copy=4.2e12)
"""A copy of 1 GiB was measured (driver 580.159, CUDA 13.0); it computes as an H100 does."""


def rates_of(name: str) -> Rates | None:
    """The limits of a device by the driver's name, if they are known.

    >>> rates_of("NVIDIA H200").copy
    4200000000000.0
    """
    return next((rates for model, rates in (("H100", H100), ("H200", H200)) if model in name), None)
