"""A call as an operator of PyTorch, which torch.compile and torch.export put into their graphs.

The operator names its function by number, as graphs hold no Python objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tracegraph.interop.flat_functions import by_number
from tracegraph.ir.types import ArrayType
from tracegraph.torch.differentiated import is_inexact
from tracegraph.torch.tensors import TORCH_DTYPES, run, type_of_tensor


@torch.library.custom_op("tracegraph::call", mutates_args=())
def call(number: int, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run the function of a number."""
    return list(run(by_number(number), values))


@call.register_fake
def _result_types(number: int, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    function = by_number(number)
    types = function.result_types([type_of_tensor(x) for x in values])
    device = next((x.device for x in values), torch.device(function.device or "cpu"))
    return [_zeros(t, device) for t in types]


def _zeros(type_: ArrayType, device: torch.device) -> torch.Tensor:
    return torch.zeros(type_.shape, dtype=TORCH_DTYPES[type_.dtype], device=device)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: list[torch.Tensor]) -> None:
    ctx.number, values = inputs
    ctx.differentiable = tuple(map(is_inexact, output))
    ctx.needed = tuple(x.requires_grad and is_inexact(x) for x in values)
    ctx.save_for_backward(*values)


def _backward(ctx: Any, cotangents: list[Any]) -> tuple[None, list[Any]]:
    values = list(ctx.saved_tensors)
    function = by_number(ctx.number)
    pullback = function.pullback(ctx.needed, ctx.differentiable, conjugates=True)
    types = function.result_types([type_of_tensor(x) for x in values])
    given = [
        torch.zeros(t.shape, dtype=TORCH_DTYPES[t.dtype], device=values[0].device)
        if c is None
        else c
        for c, t, d in zip(cotangents, types, ctx.differentiable, strict=True)
        if d
    ]
    found = iter(call(pullback.number, [*values, *given]))
    return None, [next(found) if need else None for need in ctx.needed]


call.register_autograd(_backward, setup_context=_keep)


@call.register_vmap
def _batched(
    info: Any, in_dims: tuple[Any, Any], number: int, values: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], list[int]]:
    results = call(by_number(number).batched(tuple(in_dims[1])).number, list(values))
    return results, [0] * len(results)
