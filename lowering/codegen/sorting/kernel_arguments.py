"""Kernels of given arguments: their declarations, parameters and launches."""

from __future__ import annotations

from collections.abc import Mapping, Set

from lowering.codegen.kernel_code import NAME, KernelCode, function
from lowering.codegen.kernel_parameters import Number, Parameter, TableEntry
from lowering.plan.nests.buffer import Buffer

Argument = Buffer | int | None
"""What a kernel is given: memory, a number, or no memory."""


def kernel_of_arguments(
    body: str,
    arguments: Mapping[str, Argument],
    indirect: Set[Buffer],
    blocks: int,
    threads: int,
    shared: int = 0,
    resident: int = 1,
) -> tuple[str, KernelCode]:
    """A kernel of these arguments, by their declarations, with `resident` blocks side by side.

    `indirect` buffers are read through the pointer table.
    """
    declared: list[str] = []
    parameters: list[Parameter] = []
    lines = ["extern __shared__ __align__(16) unsigned char shared[];"] if shared else []
    for declaration, argument in arguments.items():
        if argument in indirect:
            assert isinstance(argument, Buffer)
            kind, _, name = declaration.rpartition(" ")
            declared.append(f"const tg_u64* {name}_entry")
            lines.append(f"{declaration} = ({kind})*{name}_entry;")
            parameters.append(TableEntry(argument))
            continue
        declared.append(declaration)
        parameters.append(argument if isinstance(argument, Buffer) else Number(argument or 0))
    start = "".join(f"  {line}\n" for line in lines)
    text = function(", ".join(declared), start + body, threads, resident=resident, dependents=False)
    return text, KernelCode(NAME, tuple(parameters), (blocks, 1, 1), (threads, 1, 1), shared)
