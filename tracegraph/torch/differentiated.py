"""A call as an autograd function of PyTorch, for `backward`, `torch.autograd` and `torch.func`."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import torch
from torch.autograd import forward_ad

from tracegraph.interop.flat_functions import FlatFunction
from tracegraph.torch.tensors import run


class TensorCall(torch.autograd.Function):
    """A call of a FlatFunction. Its derivatives are such calls, so they have derivatives."""

    @staticmethod
    def forward(function: FlatFunction, *values: Any) -> tuple[torch.Tensor, ...]:
        """Run the function."""
        return run(function, values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        """Keep the function and its arguments: derivatives compute again what they need."""
        function, *values = inputs
        tensors = [x for x in values if isinstance(x, torch.Tensor)]
        ctx.function = function
        ctx.numbers = [(i, x) for i, x in enumerate(values) if not isinstance(x, torch.Tensor)]
        ctx.differentiable = tuple(map(is_inexact, output))
        ctx.mark_non_differentiable(*[x for x in output if not is_inexact(x)])
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[Any, ...]:
        """The gradients of the arguments that need them: one graph."""
        values = _values(ctx)
        needed = ctx.needs_input_grad[1:]
        given = [c for c, d in zip(cotangents, ctx.differentiable, strict=True) if d]
        pullback = ctx.function.pullback(needed, ctx.differentiable, conjugates=True)
        found = iter(TensorCall.apply(pullback, *values, *given))
        return (None, *[next(found) if need else None for need in needed])

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
        """The tangents of the results: one graph."""
        values = _values(ctx)
        moving = tuple(t is not None and is_inexact(t) for t in tangents)
        given = [t for t, moves in zip(tangents, moving, strict=True) if moves]
        pushforward = ctx.function.pushforward(moving, ctx.differentiable)
        found = iter(TensorCall.apply(pushforward, *values, *given))
        return tuple(next(found) if d else None for d in ctx.differentiable)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], function: FlatFunction, *values: Any
    ) -> tuple[tuple[torch.Tensor, ...], tuple[int, ...]]:
        """All lanes at once: one graph of the batched function."""
        results = TensorCall.apply(function.batched(tuple(in_dims[1:])), *values)
        return results, (0,) * len(results)


# PyTorch asks for it in every call, and it takes 20 µs to find.
_forward: Any = TensorCall.forward
_forward.__signature__ = signature(_forward)


_PLAIN_CLASSES = frozenset({torch.Tensor, torch.nn.Parameter, bool, int, float, complex})


def is_plain(values: Sequence[Any]) -> bool:
    """Whether PyTorch has nothing to note of a call: no gradient, tangent, batch or subclass."""
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return False
    asked = torch.is_grad_enabled()
    for x in values:
        if type(x) not in _PLAIN_CLASSES or (
            asked and isinstance(x, torch.Tensor) and x.requires_grad
        ):
            return False
    return True


def is_inexact(x: torch.Tensor) -> bool:
    """Whether a tensor has derivatives: it is of floating point or complex."""
    return x.is_floating_point() or x.is_complex()


def _values(ctx: Any) -> list[Any]:
    """The arguments of the call, in order."""
    values = list(ctx.saved_tensors)
    for position, number in ctx.numbers:
        values.insert(position, number)
    return values
