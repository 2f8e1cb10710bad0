"""A function of flat arguments, with its derivatives and batches: each is one graph.

A derived function is a `FlatFunction` again, so derivatives have derivatives of any order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import torch

from tracegraph.ir.types import ArrayType
from tracegraph.staging.jit import eval_shape, jit
from tracegraph.staging.jitted import Jitted
from tracegraph.streams import stream
from tracegraph.torch.tensors import as_argument, as_tensor, device_of
from tracegraph.transforms import jvp, vjp, vmap

Values = tuple[Any, ...]
"""Arrays, tensors or numbers."""

Mask = tuple[bool, ...]

_numbers = count()
_by_number: WeakValueDictionary[int, FlatFunction] = WeakValueDictionary()


class FlatFunction:
    """A function of arrays and numbers that returns a tuple of arrays."""

    def __init__(self, function: Callable[..., Values], device: str | None = None) -> None:
        self.function = function
        self.device = device
        self.number = next(_numbers)
        self._jitted: dict[str, Jitted[..., Values]] = {}
        self._derived: dict[Hashable, FlatFunction] = {}
        _by_number[self.number] = self

    def __call__(self, *values: Any) -> tuple[torch.Tensor, ...]:
        """Run it on tensors and numbers, as one graph on their device.

        On a GPU, it runs on PyTorch's current stream.
        """
        device = self.device or device_of(values)
        jitted = self._jitted.get(device)
        if jitted is None:
            jitted = self._jitted[device] = jit(self.function, device=device)
        arguments = map(as_argument, values)
        if device == "host":
            return tuple(map(as_tensor, jitted(*arguments)))
        with stream(torch.cuda.current_stream(torch.device(device))):
            return tuple(map(as_tensor, jitted(*arguments)))

    def result_types(self, types: Sequence[ArrayType]) -> tuple[ArrayType, ...]:
        """The types of the results for arguments of these types. Nothing runs."""
        found: tuple[ArrayType, ...] = eval_shape(self.function, *types)
        return found

    def with_numbers(self, numbers: Sequence[tuple[int, Any]]) -> FlatFunction:
        """The function of the other arguments, if those at these positions are numbers."""
        if not numbers:
            return self

        def bound(*arrays: Any) -> Values:
            values = list(arrays)
            for position, number in numbers:  # in ascending order
                values.insert(position, number)
            return self.function(*values)

        key = ("numbers", tuple((position, type(n), n) for position, n in numbers))
        return self._derive(key, bound)

    def pullback(self, needed: Mask, differentiable: Mask) -> FlatFunction:
        """The function of all arguments, and of the cotangents of the differentiable results, that
        returns the gradients of the needed arguments, by PyTorch's convention for complex ones.
        """

        def pulled(*values: Any) -> Values:
            primals, cotangents = values[: len(needed)], values[len(needed) :]
            of_needed = self._of(primals, needed, differentiable)
            _, pull = vjp(of_needed, *_chosen(primals, needed))
            return tuple(map(_conjugate, pull(tuple(map(_conjugate, cotangents)))))

        return self._derive(("pullback", needed, differentiable), pulled)

    def pushforward(self, moving: Mask, differentiable: Mask) -> FlatFunction:
        """The function of all arguments, and of tangents of the moving ones, that returns the
        tangents of the differentiable results.
        """

        def pushed(*values: Any) -> Values:
            primals, tangents = values[: len(moving)], values[len(moving) :]
            of_moving = self._of(primals, moving, differentiable)
            return tuple(jvp(of_moving, tuple(_chosen(primals, moving)), tuple(tangents))[1])

        return self._derive(("pushforward", moving, differentiable), pushed)

    def batched(self, in_axes: tuple[int | None, ...]) -> FlatFunction:
        """The function of batches along these axes; the lanes of results are their first axis."""
        return self._derive(("batched", in_axes), vmap(self.function, in_axes=in_axes))

    def _of(self, primals: Values, free: Mask, kept: Mask) -> Callable[..., Values]:
        """The kept results as a function of the arguments that are free."""

        def of_free(*values: Any) -> Values:
            left = iter(values)
            arguments = [next(left) if f else p for p, f in zip(primals, free, strict=True)]
            return tuple(_chosen(self.function(*arguments), kept))

        return of_free

    def _derive(self, key: Hashable, function: Callable[..., Values]) -> FlatFunction:
        found = self._derived.get(key)
        if found is None:
            function.__name__ = getattr(self.function, "__name__", "function")
            found = self._derived.setdefault(key, FlatFunction(function, self.device))
        return found


def by_number(number: int) -> FlatFunction:
    """The function of a number, as operators name it.

    Raises:
        RuntimeError: it is no longer there.
    """
    found = _by_number.get(number)
    if found is None:
        raise RuntimeError(
            "a compiled graph calls a function of tracegraph.torch.wrap that is gone; keep it as "
            "long as the graph"
        )
    return found


def _chosen(values: Sequence[Any], mask: Mask) -> list[Any]:
    return [x for x, chosen in zip(values, mask, strict=True) if chosen]


def _conjugate(x: Any) -> Any:
    return x.conj() if x.dtype.kind == "c" else x
