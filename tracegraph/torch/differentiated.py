"""A call as an autograd function of PyTorch, for `backward`, `torch.autograd` and `torch.func`."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, NamedTuple

import torch
from torch.autograd import forward_ad

from tracegraph import tree
from tracegraph.interop.flat_functions import FlatFunction
from tracegraph.interop.halves import SecondHalf
from tracegraph.torch.tensors import run, run_tree


class CallResults:
    """What a call says of its results besides their leaves, which PyTorch hands on."""

    __slots__ = ("structure",)

    structure: tree.Structure


class TensorCall(torch.autograd.Function):
    """A call of a FlatFunction. Its derivatives are such calls, so they have derivatives."""

    @staticmethod
    def forward(
        function: FlatFunction, about: CallResults, *values: Any
    ) -> tuple[torch.Tensor, ...]:
        """Run the function."""
        tensors, about.structure = run_tree(function, values)
        return tensors

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        """Keep the function and its arguments: derivatives compute again what they need."""
        function, _, *values = inputs
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
        needed = ctx.needs_input_grad[2:]
        given = [c for c, d in zip(cotangents, ctx.differentiable, strict=True) if d]
        pullback = ctx.function.pullback(needed, ctx.differentiable, conjugates=True)
        found = iter(TensorCall.apply(pullback, CallResults(), *values, *given))
        return (None, None, *[next(found) if need else None for need in needed])

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, *tangents: Any) -> tuple[Any, ...]:
        """The tangents of the results: one graph."""
        values = _values(ctx)
        moving = tuple(t is not None and is_inexact(t) for t in tangents)
        given = [t for t, moves in zip(tangents, moving, strict=True) if moves]
        pushforward = ctx.function.pushforward(moving, ctx.differentiable)
        found = iter(TensorCall.apply(pushforward, CallResults(), *values, *given))
        return tuple(next(found) if d else None for d in ctx.differentiable)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[Any, ...],
        function: FlatFunction,
        about: CallResults,
        *values: Any,
    ) -> tuple[tuple[torch.Tensor, ...], tuple[int, ...]]:
        """All lanes at once: one graph of the batched function."""
        results = TensorCall.apply(function.batched(tuple(in_dims[2:])), about, *values)
        return results, (0,) * len(results)


class KeepingCall(torch.autograd.Function):
    """A call whose backward pass computes of what is kept, and does not run the function again.

    Kept are the arguments, results that the derivative is made of, and other values that take long
    to compute. If the backward pass is to be differentiated or batched itself, it is that of
    `TensorCall`.
    """

    @staticmethod
    def forward(
        ctx: Any, function: FlatFunction, about: CallResults, *values: Any
    ) -> tuple[torch.Tensor, ...]:
        """Run the function, and keep values."""
        needed = ctx.needs_input_grad[2:]
        keeping = function.keeping(needed)
        tensors, structure = run_tree(keeping, values)
        layout: _KeptLayout | None = keeping.known.get(("layout", structure))
        if layout is None:
            layout = _layout(function, structure, tensors)
            keeping.known["layout", structure] = layout
        about.structure = layout.structure
        results, kept = tensors[: layout.results], tensors[layout.results :]
        arguments = [x for x in values if isinstance(x, torch.Tensor)]
        if len(arguments) == len(values):
            ctx.numbers = ()
        else:
            ctx.numbers = [(i, x) for i, x in enumerate(values) if not isinstance(x, torch.Tensor)]
        ctx.function, ctx.needed, ctx.layout = function, needed, layout
        ctx.counts = len(arguments), len(kept)
        if not all(layout.differentiable):
            ctx.mark_non_differentiable(*[x for x in results if not is_inexact(x)])
        ctx.save_for_backward(*arguments, *kept, *[results[i] for i in layout.used])
        return results

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[Any, ...]:
        """The gradients of the arguments that need them: one graph."""
        saved, (arguments, kept) = ctx.saved_tensors, ctx.counts
        values = list(saved[:arguments])
        for position, number in ctx.numbers:
            values.insert(position, number)
        second, differentiable = ctx.layout.second, ctx.layout.differentiable
        given = [c for c, d in zip(cotangents, differentiable, strict=True) if d]
        if second is None or torch.is_grad_enabled() or not is_plain([*saved, *given]):
            pullback = ctx.function.pullback(ctx.needed, differentiable, conjugates=True)
            found = iter(TensorCall.apply(pullback, CallResults(), *values, *given))
        else:
            used = dict(zip(ctx.layout.used, saved[arguments + kept :], strict=True))
            known = taken(ctx.layout.half, values, used, saved[arguments : arguments + kept])
            found = iter(run(second, [*known, *given]))
        return (None, None, *[next(found) if need else None for need in ctx.needed])


class _KeptLayout(NamedTuple):
    """Of the tensors that a keeping function returns: the structure and number of results, which of
    them are differentiable, which the second half takes, that half, and its function.
    """

    structure: tree.Structure
    results: int
    differentiable: tuple[bool, ...]
    used: tuple[int, ...]
    half: SecondHalf | None
    second: FlatFunction | None


def _layout(
    function: FlatFunction, structure: tree.Structure, tensors: Sequence[torch.Tensor]
) -> _KeptLayout:
    returned, kept = tree.unflatten(structure, range(structure.num_leaves))
    results = tree.structure(returned)
    count, half = results.num_leaves, getattr(kept, "half", None)
    places = () if half is None else half.places
    used = tuple(sorted({place.number for place in places if place.kind == "result"}))
    second = None if half is None else function.second_half(half, is_lasting=False)
    return _KeptLayout(results, count, tuple(map(is_inexact, tensors[:count])), used, half, second)


def taken(half: SecondHalf, arguments: Sequence[Any], results: Any, kept: Any) -> list[Any]:
    """The values at the places of a half; results and kept values are found by their numbers."""
    found = {"argument": arguments, "result": results, "kept": kept}
    return [found[place.kind][place.number] for place in half.places]


# PyTorch asks for it in every call, and it takes 20 µs to find.
_forward: Any = TensorCall.forward
_forward.__signature__ = signature(_forward)


_KNOWN_CLASSES = frozenset({torch.Tensor, torch.nn.Parameter, bool, int, float, complex})


def apply(
    function: FlatFunction, values: Sequence[Any]
) -> tuple[tuple[torch.Tensor, ...], tree.Structure]:
    """The leaves and the structure of the results of a call, of which PyTorch notes what it needs
    for derivatives.
    """
    if not is_plain(values):
        return _noted(TensorCall, function, values)
    if torch.is_grad_enabled() and any(map(asks_gradient, values)):
        return _noted(KeepingCall, function, values)
    return run_tree(function, values)


def _noted(
    kind: Any, function: FlatFunction, values: Sequence[Any]
) -> tuple[tuple[torch.Tensor, ...], tree.Structure]:
    about = CallResults()
    found: tuple[torch.Tensor, ...] = kind.apply(function, about, *values)
    return found, about.structure


def is_plain(values: Sequence[Any]) -> bool:
    """Whether values are tensors and numbers alone: no tangents, batches or subclasses."""
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return False
    return _KNOWN_CLASSES.issuperset(map(type, values))


def asks_gradient(x: Any) -> bool:
    """Whether it is a tensor that requires a gradient."""
    return isinstance(x, torch.Tensor) and x.requires_grad


def is_inexact(x: torch.Tensor) -> bool:
    """Whether a tensor has derivatives: it is of floating point or complex."""
    return x.is_floating_point() or x.is_complex()


def _values(ctx: Any) -> list[Any]:
    """The arguments of the call, in order."""
    values = list(ctx.saved_tensors)
    for position, number in ctx.numbers:
        values.insert(position, number)
    return values
