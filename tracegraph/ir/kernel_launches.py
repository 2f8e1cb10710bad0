"""Launches of kernels that users declare: what a call launches, checked."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.custom_kernels import CudaText, CustomKernel
from tracegraph.ir.types import ArrayType

Extents = tuple[int, int, int]

MOST_THREADS = 1024
"""Threads of a block, on every architecture."""

_GRID_LIMITS = (2**31 - 1, 2**16 - 1, 2**16 - 1)
_BLOCK_LIMITS = (1024, 1024, 64)


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """What a call launches: the types of its outputs, blocks, threads of a block, shared bytes.

    `single` says whether the call returns its only output as it is, not in a tuple. `text` is the
    unit of a kernel that is compiled from source.
    """

    out_types: tuple[ArrayType, ...]
    single: bool
    grid: Extents
    block: Extents
    shared_bytes: int
    cluster: Extents | None
    cooperative: bool
    text: str

    def tangents(self, label: str, rule: Callable[..., Any], returned: Any) -> Sequence[Any]:
        """What a rule returned for each output.

        Raises:
            CustomRuleError: it is not a tangent for each, in a tuple if the outputs are.
        """
        count = len(self.out_types)
        if returned is None:
            return [None] * count
        listed = isinstance(returned, (tuple, list))
        if self.single and not listed:
            return [returned]
        if not self.single and listed and len(returned) == count:
            return tuple(returned)
        needed = f"a tuple with a tangent for each output, {count} in all"
        got = f"one of {len(returned)}" if listed else errors.value_text(returned)
        raise errors.CustomRuleError(
            label,
            f"{errors.function_text(rule)} must return "
            f"{'the tangent of its output' if self.single else needed}, not "
            f"{f'a tuple of {len(returned)}' if self.single else got}; None stands for zero",
        )


def kernel_launch(
    kernel: CustomKernel, types: Sequence[ArrayType], given: Sequence[Any]
) -> KernelLaunch:
    """What a call with operands of these types launches; `given` is one for each parameter.

    Raises:
        CustomKernelError: a declared extent, type or alias cannot be.
    """
    out_types, single = _out_types(kernel, given)
    for output, operand in kernel.aliases.items():
        _require_alias(kernel, output, operand, types, out_types)
    grid = _extents(kernel, "grid", kernel.grid, given, _GRID_LIMITS)
    block = _extents(kernel, "block", kernel.block, given, _BLOCK_LIMITS)
    if prod(block) > MOST_THREADS or prod(block) == 0:
        raise kernel.error(
            f"block={block} has {prod(block)} threads; a block has 1 to {MOST_THREADS}"
        )
    if prod(grid) == 0 and any(type_.size for type_ in out_types):
        written = ", ".join(map(str, out_types))
        raise kernel.error(f"grid={grid} has no blocks, which cannot write {written}")
    cluster = None
    if kernel.cluster is not None:
        cluster = _extents(kernel, "cluster", kernel.cluster, given, _GRID_LIMITS)
        if prod(cluster) == 0 or any(g % c for g, c in zip(grid, cluster, strict=True)):
            raise kernel.error(f"grid={grid} is not made of whole clusters of {cluster}")
    shared = _called(kernel.shared_bytes, given)
    return KernelLaunch(
        out_types,
        single,
        grid,
        block,
        _integer(kernel, "shared_memory", shared),
        cluster,
        kernel.cooperative,
        _text(kernel, given),
    )


def _called(value: Any, given: Sequence[Any]) -> Any:
    """A declared value, or what a function gives for the arguments."""
    return value(*given) if callable(value) else value


def _out_types(kernel: CustomKernel, given: Sequence[Any]) -> tuple[tuple[ArrayType, ...], bool]:
    """The types of the outputs, and whether there is but one that is in no tuple."""
    found = _called(kernel.out, given)
    single = isinstance(found, ArrayType)
    types = (found,) if single else found
    if not isinstance(types, (tuple, list)) or not types:
        raise kernel.error(
            f"out must give an ArrayType or a tuple of them, not {errors.value_text(found)}"
        )
    for type_ in types:
        if not isinstance(type_, ArrayType):
            raise kernel.error(f"out must give ArrayTypes, not {errors.value_text(type_)}")
    return tuple([type_.strong() for type_ in types]), single


def _require_alias(
    kernel: CustomKernel,
    output: int,
    operand: int,
    types: Sequence[ArrayType],
    out_types: Sequence[ArrayType],
) -> None:
    name = kernel.operands[operand]
    if output >= len(out_types):
        raise kernel.error(f"aliases has output {output}; it has {len(out_types)}")
    if out_types[output] != types[operand].strong():
        raise kernel.error(
            f"output {output} is {out_types[output]}, which cannot be written over {name}, "
            f"{types[operand]}; aliased arrays have one type"
        )


def _extents(
    kernel: CustomKernel, what: str, declared: Any, given: Sequence[Any], limits: Extents
) -> Extents:
    """Three extents of a grid, a block or a cluster; those left out are 1."""
    extents = _called(declared, given)
    items = tuple(extents) if isinstance(extents, (tuple, list)) else (extents,)
    if not 1 <= len(items) <= 3:
        raise kernel.error(f"{what}={extents!r} has {len(items)} extents; give one to three")
    x, y, z = (*[_integer(kernel, what, item) for item in items], 1, 1)[:3]
    for extent, limit in zip((x, y, z), limits, strict=True):
        if extent > limit:
            raise kernel.error(f"{what}={extents!r} is too large: the limits are {limits}")
    return x, y, z


def _integer(kernel: CustomKernel, what: str, value: Any) -> int:
    try:
        found = operator.index(value)
    except TypeError:
        found = -1
    if found < 0 or isinstance(value, (bool, np.bool_)):
        raise kernel.error(
            f"{what} must be of integers of at least 0, or a function of the arguments' types that "
            f"returns them, not {errors.value_text(value)}"
        )
    return found


def _text(kernel: CustomKernel, given: Sequence[Any]) -> str:
    if not isinstance(kernel.code, CudaText):
        return ""
    text = _called(kernel.code.text, given)
    if not isinstance(text, str):
        got = errors.value_text(text)
        raise kernel.error(f"source must be text, or a function that returns it, not {got}")
    return text
