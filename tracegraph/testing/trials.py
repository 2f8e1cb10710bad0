"""A trial: a function and its arguments, traced once, to be run in several ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

import tracegraph
from tracegraph import tree
from tracegraph.arrays.array import Array
from tracegraph.ir.program import Program, walk
from tracegraph.staging.calls.signature import describe
from tracegraph.staging.jitted import BoundJitted, Jitted
from tracegraph.staging.stages import Lowered, Traced


class Trial:
    """A call that is run in several ways.

    Args:
        function: takes and returns pytrees of arrays and numbers; or a jitted one, whose static
            arguments, donated ones and scratch are kept.
        args: positional arguments.
        kwargs: keyword arguments.
    """

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        if isinstance(function, BoundJitted):
            args = (function.instance, *args)
            function = function.function
        self.given: Callable[..., Any] = function
        self.args, self.kwargs = tuple(args), dict(kwargs)

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself, not jitted."""
        found: Callable[..., Any] = self.given
        return found.__wrapped__ if isinstance(found, Jitted) else found  # type: ignore[attr-defined]

    @property
    def name(self) -> str:
        """The function's name, with the file and line of its definition."""
        return describe(self.function)

    def jitted(self, device: str) -> Jitted[..., Any]:
        """The function, jitted anew for a device."""
        if isinstance(self.given, Jitted):
            return self.given.on_device(device)
        return tracegraph.jit(self.given, device=device)

    def eager(self) -> Any:
        """The specification: NumPy and Python, on copies of the arguments."""
        args, kwargs = self._copies()
        return self.function(*args, **kwargs)

    def call(self, function: Callable[..., Any]) -> Any:
        """Call a traced form of the function, with arguments as they are, unless it has donated
        ones, which it may overwrite.
        """
        args, kwargs = self._copies() if self.donates else (self.args, self.kwargs)
        return function(*args, **kwargs)

    @property
    def donates(self) -> bool:
        """Whether some arguments may be overwritten."""
        return isinstance(self.given, Jitted) and bool(self.donated)

    def _copies(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tree.map(_own, self.args), {k: tree.map(_own, v) for k, v in self.kwargs.items()}

    @cached_property
    def traced(self) -> Traced:
        """The call, traced for the host."""
        return self.jitted("host").trace(*self.args, **self.kwargs)

    @cached_property
    def optimized(self) -> Program:
        """The program after the passes."""
        return self.traced.optimized

    @cached_property
    def lowered(self) -> Lowered:
        """The call, planned for the host."""
        return self.traced.lower()

    @property
    def donated(self) -> tuple[int, ...]:
        """Numbers of the leaves that may be overwritten."""
        return self.traced.signature.donated_leaves(self.traced.key.structure)

    def leaves(self) -> list[Any]:
        """The leaves that are traced, in the order of the inputs; of donated ones, copies."""
        leaves = list(self.traced.signature.bind(self.args, self.kwargs).leaves)
        for number in self.donated:
            leaves[number] = np.array(leaves[number])
        return leaves

    def result(self, leaves: Sequence[Any]) -> Any:
        """The function's result of the leaves that a program returned."""
        return tree.unflatten(self.traced.out_structure, leaves)

    def has(self, *ops: str) -> bool:
        """Whether the program has one of these ops, at any depth."""
        return any(eqn.op.name in ops for eqn in walk(self.traced.program.body))


def _own(leaf: Any) -> Any:
    return np.array(leaf) if isinstance(leaf, np.ndarray | Array) else leaf
