"""Elementwise ops of complex numbers at zeros, poles, infinities, NaNs and the ends of the range.

Samples of ops have finite complex numbers, for C libraries other than glibc differ at infinities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
import pytest

import tracegraph.ops  # noqa: F401  (registers them)
from tests.helpers.agreement import ANY_ZERO, check
from tests.helpers.devices import Device
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Elementwise, Op, Sample, all_ops
from tracegraph.ops.tricky import grid, tricky

PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
ENDS = [1e300, -1e308, -1e-300, 1e-320]

LESS_PRECISE = frozenset({"expm1", "log1p", "square"})
"""NumPy loses more digits than kernels at the ends: it adds 1 first, or overflows in between."""

ANY_SIGN = ANY_ZERO | {"exp", "exp2", "expm1", "multiply", "power", "float_power"}
"""Ops whose zeros have a sign that the C standard leaves open, or that fused products change."""


class Case(NamedTuple):
    """An op, and operands that are special values."""

    name: str
    op: Op
    sample: Sample

    def apply(self, *operands: Any) -> Any:
        """The op on such operands, to be traced."""
        return apply(self.op, *operands, **self.sample.attrs)

    @property
    def operands(self) -> list[Any]:
        """The operands, as arrays."""
        return list(map(np.asarray, self.sample.operands))


def _special(op: Op, dtype: np.dtype[Any], count: int) -> np.ndarray[Any, Any]:
    if dtype.kind != "c":
        return tricky(dtype)
    ends = ENDS if count == 1 and dtype.itemsize == 16 and op.name not in LESS_PRECISE else []
    return np.array([complex(a, b) for a in PARTS + ends for b in PARTS + ends], dtype)


def _cases() -> Iterator[Case]:
    for op in all_ops():
        if not isinstance(op.form, Elementwise):
            continue
        for sample in op.samples():
            dtypes = [np.asarray(x).dtype for x in sample.operands]
            into = np.dtype(sample.attrs.get("dtype", "f8"))
            if not any(d.kind == "c" for d in dtypes) or into.kind in "iu":
                continue
            operands = tuple(
                grid(_special(op, dtype, len(dtypes)), len(dtypes))[mine]
                for mine, dtype in enumerate(dtypes)
            )
            attrs = "_".join(map(str, sample.attrs.values()))
            name = "_".join([op.name, *map(str, dtypes), *([attrs] if attrs else [])])
            yield Case(name, op, Sample(operands, sample.attrs))


CASES = {case.name: case for case in _cases()}
PROGRAMS = {name: (case.apply, case.operands) for name, case in CASES.items()}


def assert_numpys(case: Case, run: Callable[..., Any]) -> None:
    """Require that `run(*operands)` gives what NumPy gives, infinities and signs of zeros too."""
    found = np.asarray(run(*case.operands))
    check(case.op, case.sample, lambda *_: found)
    if case.op.name in ANY_SIGN or found.dtype.kind not in "fc":
        return
    wanted = np.asarray(case.op.reference(*case.sample.operands, **case.sample.attrs))
    # C leaves the sign of a zero open where a part of a complex operand is NaN
    any_nan = reduce(np.logical_or, map(np.isnan, (wanted, *case.operands)))
    for part in (np.real, np.imag) if wanted.dtype.kind == "c" else (np.real,):
        zero = (part(wanted) == 0) & (part(found) == 0)
        zero &= ~(any_nan & (wanted.dtype.kind == "c"))
        different = zero & (np.signbit(part(wanted)) != np.signbit(part(found)))
        assert not different.any(), f"zeros differ in sign at {np.argwhere(different)[:5].tolist()}"


@pytest.mark.parametrize("name", CASES)
def test_special_values_are_those_of_numpy(name: str, device: Device) -> None:
    with np.errstate(all="ignore"):
        assert_numpys(CASES[name], partial(device.run, name))
