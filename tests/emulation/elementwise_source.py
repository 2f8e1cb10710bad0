"""C++ functions that evaluate the template of one elementwise op for operands of given dtypes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

import tracegraph.ops  # noqa: F401  (registers them)
from lowering.codegen.preamble import c_type, kind, value_type
from tracegraph.dtypes import is_half
from tracegraph.ir.op import Elementwise, Op, Sample, all_ops
from tracegraph.ir.types import type_of


class Case(NamedTuple):
    """One sample of one op, and the name of the function that evaluates the op on it."""

    name: str
    op: Op
    sample: Sample


def cases() -> Iterator[Case]:
    """Every sample of every elementwise op."""
    for op in all_ops():
        if isinstance(op.form, Elementwise):
            for number, sample in enumerate(op.samples()):
                yield Case(f"{op.name}_{number}", op, sample)


def statement(case: Case) -> str:
    """C++ that computes element i of `out` from elements i of `in0`, `in1`, …"""
    assert isinstance(case.op.form, Elementwise)
    types = [type_of(x) for x in case.sample.operands]
    dtype = case.op.result_types(types, case.sample.attrs)[0].dtype
    native = _is_native(case)
    operand_type = c_type if native else value_type
    loads = "".join(
        f"{operand_type(t.dtype)} x{n} = tg_cast<{operand_type(t.dtype)}>(in{n}[i]); "
        for n, t in enumerate(types)
    )
    attrs: Mapping[str, Any] = case.sample.attrs
    value = template(case).format(*(f"x{n}" for n in range(len(types))), T=c_type(dtype), **attrs)
    rounded = is_half(dtype) and not native
    return f"{loads}out[i] = {f'tg_cast<{c_type(dtype)}>({value})' if rounded else value};"


def template(case: Case) -> str:
    """The template of the op for the kind of the first operand."""
    assert isinstance(case.op.form, Elementwise)
    first = type_of(case.sample.operands[0]).dtype
    return case.op.form.c["e" if _is_native(case) else kind(first)]


def _is_native(case: Case) -> bool:
    """Whether 16-bit floats are computed without a conversion to float."""
    assert isinstance(case.op.form, Elementwise)
    return is_half(type_of(case.sample.operands[0]).dtype) and "e" in case.op.form.c


def pointers(case: Case) -> list[tuple[str, str]]:
    """Types and names of the parameters: the operands, then the result."""
    types = [type_of(x) for x in case.sample.operands]
    out = case.op.result_types(types, case.sample.attrs)[0]
    inputs = [(f"const {c_type(t.dtype)}*", f"in{n}") for n, t in enumerate(types)]
    return [*inputs, (f"{c_type(out.dtype)}*", "out")]


def result_like(case: Case) -> np.ndarray[Any, Any]:
    """An array for the result."""
    types = [type_of(x) for x in case.sample.operands]
    out = case.op.result_types(types, case.sample.attrs)[0]
    return np.empty(out.shape, out.dtype)
