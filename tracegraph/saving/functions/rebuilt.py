"""Records -> ops and kernels, which need nothing of the user's Python."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tracegraph.custom.declared_elementwise import elementwise_op
from tracegraph.custom.reduction import combiner_of, reduction_op, scan_op
from tracegraph.custom.texts import Expressions
from tracegraph.ir.custom_kernels import CudaText, CustomKernel
from tracegraph.ir.kernel_calls import KernelCall, Scalar
from tracegraph.ir.op import DeclaredOp
from tracegraph.ir.types import ArrayType
from tracegraph.saving.functions.calls import (
    ElementsFunction,
    FoldRule,
    KernelFunction,
    KernelRule,
    PartialDerivative,
)
from tracegraph.saving.functions.records import (
    ElementwiseRecord,
    FoldRecord,
    KernelRecord,
    Made,
    Record,
)


def made_of(record: Record) -> Made:
    """What equations have of a record.

    Raises:
        CustomKernelError: the declaration cannot work.
    """
    match record:
        case ElementwiseRecord():
            return _elementwise(record)
        case FoldRecord():
            return _fold(record)
        case KernelRecord():
            scalars = [Scalar.of(value, value.dtype) for _, value in record.scalars]
            return KernelCall(_kernel(record), tuple(scalars))


def _elementwise(record: ElementwiseRecord) -> DeclaredOp:
    label = f"function {record.where}"
    rule: Any = record.rule
    if isinstance(rule, tuple):
        rule = tuple(
            [
                each if isinstance(each, int) else PartialDerivative(each, label, record.where)
                for each in rule
            ]
        )
    op = elementwise_op(
        ElementsFunction(record.function, label, record.where),
        Expressions(record.where, dict(record.texts), record.definition),
        record.result,
        rule,
        record.cost,
        record.count,
    )

    def types(*operands: ArrayType) -> Any:
        for operand in operands:
            _require(record.dtype, record.where, operand.dtype)
        return op.type_rule(*operands)

    return replace(op, name=record.name, type_rule=types, made_by=(_elementwise, (record,)))


def _require(dtype: np.dtype[Any], where: str, given: np.dtype[Any]) -> None:
    """Raise TypeError unless operands have the dtype that a function is in the file for."""
    if given != dtype:
        raise TypeError(f"{where} is in the file for {dtype}, not for {given}")


def _fold(record: FoldRecord) -> DeclaredOp:
    expressions = Expressions(record.where, dict(record.texts), record.definition)
    combine = ElementsFunction(record.function, f"reduction {record.where}", record.where)
    name = record.name.removeprefix("custom.")
    combiner = combiner_of(combine, expressions, record.identity, name)
    rule: Any = record.rule
    if isinstance(rule, tuple):
        rule = FoldRule(rule[0], record.where, record.shape, record.axes)
    make = reduction_op if record.form == "reduce" else scan_op
    check = partial(_require, record.dtype, record.where)
    op = make(combine, combiner, record.where, rule, check)
    return replace(op, made_by=(_fold, (record,)))


def _kernel(record: KernelRecord) -> CustomKernel:
    operands = tuple([type_.strong() for type_ in record.operands])
    scalars = dict(record.scalars)

    def out(*arguments: Any) -> Any:
        pairs = zip(record.parameters, arguments, strict=True)
        given = tuple([type_ for name, type_ in pairs if name not in scalars])
        if given != operands:
            needed, got = (", ".join(map(str, types)) for types in (operands, given))
            raise kernel.error(f"is in the file for ({needed}), not for ({got})")
        return record.results[0] if record.single else record.results

    rule: Any = record.rule
    if isinstance(rule, tuple):
        rule = KernelRule(record, rule[0])
    kernel = CustomKernel(
        name=record.name,
        where=record.where,
        reference=KernelFunction(record),
        parameters=record.parameters,
        code=CudaText(record.text, record.entry),
        out=out,
        batching="sequential" if record.batched else None,
        derivative=rule,
        scalars={name: value.dtype for name, value in record.scalars},
        grid=record.grid,
        block=record.block,
        shared_bytes=record.shared_bytes,
        cluster=record.cluster,
        cooperative=record.cooperative,
        aliases=dict(record.aliases),
        made_by=(_kernel, (record,)),
    )
    return kernel
