"""A call as an operator of PyTorch, which torch.compile and torch.export put into their graphs.

An operator names its function by number, as graphs hold no Python objects. Where a gradient is
asked for, one returns the results and what the backward pass is made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from tracegraph import tree
from tracegraph.interop.flat_functions import FlatFunction, by_number
from tracegraph.interop.halves import SecondHalf
from tracegraph.ir.types import ArrayType
from tracegraph.torch.differentiated import asks_gradient, is_inexact, taken
from tracegraph.torch.tensors import TORCH_DTYPES, run, run_tree, type_of_tensor


def call_in_graph(
    function: FlatFunction, values: Sequence[Any]
) -> tuple[Sequence[torch.Tensor], tree.Structure]:
    """The leaves of the results of a function, by an operator, and their structure."""
    tensors = [x for x in values if isinstance(x, torch.Tensor)]
    numbers = [(i, x) for i, x in enumerate(values) if not isinstance(x, torch.Tensor)]
    bound = function.with_numbers(numbers)
    needed = tuple([asks_gradient(x) and is_inexact(x) for x in tensors])
    if not torch.is_grad_enabled() or not any(needed):
        return call(bound.number, tensors), _results(bound, tensors)[1]
    keeping = bound.keeping(needed)
    parts = _parts(keeping, tensors)
    if parts.half is None:
        return call(bound.number, tensors), parts.structure
    found: list[torch.Tensor] = keeping_call(bound.number, list(needed), tensors)
    return found[: parts.structure.num_leaves], parts.structure


def _results(
    function: FlatFunction, values: Sequence[torch.Tensor]
) -> tuple[tuple[ArrayType, ...], tree.Structure]:
    return function.results([type_of_tensor(x) for x in values])


@torch.library.custom_op("tracegraph::call", mutates_args=())
def call(number: int, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run the function of a number."""
    return list(run(by_number(number), values))


@call.register_fake
def _result_types(number: int, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    function = by_number(number)
    return [_zeros(t, _device(function, values)) for t in _results(function, values)[0]]


def _device(function: FlatFunction, values: Sequence[torch.Tensor]) -> torch.device:
    return next((x.device for x in values), torch.device(function.device or "cpu"))


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
    types, _ = _results(function, values)
    given = _dense(types, cotangents, ctx.differentiable, values[0].device)
    pullback = function.pullback(ctx.needed, ctx.differentiable, conjugates=True)
    found = iter(call(pullback.number, [*values, *given]))
    return None, [next(found) if need else None for need in ctx.needed]


def _dense(
    types: Sequence[ArrayType],
    cotangents: Sequence[Any],
    differentiable: Sequence[bool],
    device: torch.device,
) -> list[torch.Tensor]:
    """The cotangents of the differentiable results, with zeros for those that are None."""
    each = zip(types, cotangents, differentiable, strict=True)
    return [_zeros(t, device) if c is None else c for t, c, d in each if d]


call.register_autograd(_backward, setup_context=_keep)


@call.register_vmap
def _batched(
    info: Any, in_dims: tuple[Any, Any], number: int, values: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], list[int]]:
    results = call(by_number(number).batched(tuple(in_dims[1])).number, list(values))
    return results, [0] * len(results)


class _Parts(NamedTuple):
    """What a keeping function returns for some arguments: the types, the structure of the first of
    these, which are results, and the second half.
    """

    types: tuple[ArrayType, ...]
    structure: tree.Structure
    half: SecondHalf | None


def _parts(keeping: FlatFunction, values: Sequence[torch.Tensor]) -> _Parts:
    types, structure = _results(keeping, values)
    results, kept = tree.unflatten(structure, types)
    return _Parts(types, tree.structure(results), getattr(kept, "half", None))


@torch.library.custom_op("tracegraph::keeping_call", mutates_args=())
def keeping_call(
    number: int, needed: Sequence[bool], values: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Run the function of a number; its results, and what the needed gradients are made of."""
    keeping = by_number(number).keeping(tuple(needed))
    tensors, structure = run_tree(keeping, values)
    if ("compared", structure) not in keeping.known:  # it was traced for its types, too
        types = _parts(keeping, values).types
        assert [t.strong() for t in types] == [type_of_tensor(x) for x in tensors]
        keeping.known["compared", structure] = True
    return list(tensors)


@keeping_call.register_fake
def _kept_types(
    number: int, needed: Sequence[bool], values: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    function = by_number(number)
    types = _parts(function.keeping(tuple(needed)), values).types
    return [_zeros(t, _device(function, values)) for t in types]


def _keep_parts(ctx: Any, inputs: tuple[Any, ...], output: list[torch.Tensor]) -> None:
    ctx.number, needed, values = inputs
    ctx.needed, ctx.count = tuple(needed), len(values)
    ctx.differentiable = tuple(map(is_inexact, output))
    ctx.save_for_backward(*values, *output)


def _backward_of_kept(ctx: Any, cotangents: list[Any]) -> tuple[None, None, list[Any]]:
    saved, function = list(ctx.saved_tensors), by_number(ctx.number)
    values, outputs = saved[: ctx.count], saved[ctx.count :]
    keeping = function.keeping(ctx.needed)
    types, structure, half = _parts(keeping, values)
    count = structure.num_leaves
    if half is None or any(c is not None for c in cotangents[count:]):
        # the backward pass was differentiated: by what is kept, too
        given = _dense(types, cotangents, ctx.differentiable, values[0].device)
        pullback = keeping.pullback(ctx.needed, ctx.differentiable, conjugates=True)
        found = iter(call(pullback.number, [*values, *given]))
    else:
        results, differentiable = outputs[:count], ctx.differentiable[:count]
        given = _dense(types[:count], cotangents[:count], differentiable, values[0].device)
        known = taken(half, values, results, outputs[count:])
        second = function.second_half(half, is_lasting=True)
        found = iter(call(second.number, [*known, *given]))
    return None, None, [next(found) if need else None for need in ctx.needed]


keeping_call.register_autograd(_backward_of_kept, setup_context=_keep_parts)


@keeping_call.register_vmap
def _batched_keeping(
    info: Any, in_dims: Any, number: int, needed: Sequence[bool], values: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], list[int]]:
    batched = by_number(number).keeping(tuple(needed)).batched(tuple(in_dims[2]))
    results = call(batched.number, list(values))
    return results, [0] * len(results)
