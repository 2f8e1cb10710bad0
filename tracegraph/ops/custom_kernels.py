"""Kernels that users write: an op whose attribute is the call of a kernel; graphs as effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracegraph.ir.custom_kernels import CudaText, CustomKernel
from tracegraph.ir.derivative import Constant, Jvp, NoDerivativeError, Reference, UserRule
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.kernel_calls import KernelCall, Scalar, read_only
from tracegraph.ir.op import Effect, Op, Opaque, Sample, register
from tracegraph.ir.types import ArrayType, type_of


def _type_rule(*types: ArrayType, call: KernelCall) -> tuple[ArrayType, ...]:
    return call.launch(types).out_types


def _reference(*operands: Any, call: KernelCall) -> Any:
    found = call.run(*operands)
    return found[0] if len(found) == 1 else found


def _derivative(*, call: KernelCall) -> Reference | Jvp:
    """That of the reference, or a rule for tangents, as the user chose."""
    kernel = call.kernel
    given = kernel.derivative
    if given is None:
        raise NoDerivativeError(kernel.code.without_derivative.format(kernel.label))
    if given == "reference":
        return Reference(kernel.label, kernel.reference, call.traced)

    def tangents_of(operands: Sequence[Any], tangents: Sequence[Any]) -> Sequence[Any]:
        primals = tuple(call.arguments(operands))
        directions = tuple(call.arguments(tangents, [None] * len(call.scalars)))
        launch = call.launch(list(map(type_of, operands)))
        return launch.tangents(kernel.label, given, given(primals, directions))

    return Jvp(kernel.label, given, tangents_of)


_SAMPLE = """
extern "C" __global__ void first_sums(const long long* x, int step, long long* y) {
  y[threadIdx.x] = x[threadIdx.x] + step;
}
"""


def _samples() -> list[Sample]:
    kernel = CustomKernel(
        name="first_sums",
        where="first_sums",
        reference=lambda x, step: x + step,
        parameters=("x", "step"),
        scalars={"step": np.dtype(np.int32)},
        code=CudaText(_SAMPLE, "first_sums"),
        out=lambda x, step: x,
        block=lambda x, step: x.size,
        batching="sequential",
    )
    call = KernelCall(kernel, (Scalar.of(3, np.dtype(np.int32)),))
    return [Sample((np.arange(6).reshape(2, 3),), {"call": call})]


custom_kernel = register(
    Op(
        "custom_kernel",
        "A kernel that the user wrote, with a NumPy reference.",
        _type_rule,
        _reference,
        Opaque(of_program=True),
        _samples,
        derivative=UserRule(_derivative),
    )
)


def _effect_type(token: ArrayType, *arrays: ArrayType, call: KernelCall) -> ArrayType:
    if token != TOKEN:
        raise TypeError(f"the first operand must be a token, {TOKEN}, not {token}")
    return token


def _effect(token: Any, *operands: Any, call: KernelCall) -> Any:
    call.kernel.reference(*map(read_only, operands))
    return token


embedded_graph = register(
    Op(
        "embedded_graph",
        "Runs a graph that somebody else built, for what that does to its memory.",
        _effect_type,
        _effect,
        Effect(),
        lambda: (),
        derivative=Constant(),
    )
)
