"""What a file holds of a user's functions: texts of CUDA C++, numbers, and programs."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.op import DeclaredOp
from tracegraph.ir.program import Program
from tracegraph.ir.types import ArrayType

Extents = tuple[int, int, int]

Dtype = np.dtype[Any]


@dataclass(frozen=True, slots=True, eq=False)
class FunctionProgram:
    """What a Python function computes for arguments of some types: a program, or why none is known.

    `zeros` says of each result of a rule whether it returned None for it, which is not among the
    results of the program.
    """

    program: Program | None
    fault: str = ""
    zeros: tuple[bool, ...] = ()


Rule = Literal["reference"] | tuple[FunctionProgram | int, ...] | None
"""A derivative as the user gave it: that of the reference; functions, or constant ones; or none."""


@dataclass(frozen=True, slots=True, eq=False)
class ElementwiseRecord:
    """An elementwise function of operands of one dtype.

    `texts` are its calls by kinds of dtypes. The function and its partial derivatives, which are
    the rule, are traced for one element of each operand.
    """

    name: str
    where: str
    count: int
    dtype: Dtype
    result: Dtype
    texts: tuple[tuple[str, str], ...]
    definition: str
    cost: int
    function: FunctionProgram
    rule: Rule


@dataclass(frozen=True, slots=True, eq=False)
class FoldRecord:
    """A reduction of arrays of a dtype, or its partial results.

    The function that combines is traced for two single elements. The rule of a reduction is for an
    operand of this shape and these axes.
    """

    form: Literal["reduce", "accumulate"]
    name: str
    where: str
    dtype: Dtype
    identity: Any
    texts: tuple[tuple[str, str], ...]
    definition: str
    function: FunctionProgram
    rule: Rule
    shape: tuple[int, ...]
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class KernelRecord:
    """A kernel as it is called: with operands of these types and scalars of these values."""

    name: str
    where: str
    parameters: tuple[str, ...]
    scalars: tuple[tuple[str, Any], ...]
    text: str
    entry: str
    operands: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    single: bool
    grid: Extents
    block: Extents
    shared_bytes: int
    cluster: Extents | None
    cooperative: bool
    aliases: tuple[tuple[int, int], ...]
    batched: bool
    function: FunctionProgram
    rule: Rule


Record = ElementwiseRecord | FoldRecord | KernelRecord

Made = DeclaredOp | KernelCall
"""What equations have of a function of the user's: their op, or the call in their attributes."""


def record_of(made: Made) -> Record | None:
    """The record that an op or a call was made of; None if it is the user's own."""
    owner = made.kernel if isinstance(made, KernelCall) else made
    match owner.made_by:
        case (_, (ElementwiseRecord() | FoldRecord() | KernelRecord() as record,)):
            return record
    return None
