"""Pullbacks and linear functions: derivatives at a point, which functions may take and return.

They are trees whose leaves are the residuals. So they pass in and out of jitted functions, loops,
branches, lanes and rules as other values do. Two are of one structure if the same function was
differentiated for the same types, wherever that was.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Self

from tracegraph import errors, tree
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.program import Literal, Region, Value
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.tracing.trace import Trace
from tracegraph.transforms.derivatives.activity import is_inexact
from tracegraph.transforms.derivatives.tangents import matched
from tracegraph.transforms.trace_emitter import Emit, plain
from tracegraph.transforms.transformed_calls import (
    LinearMap,
    TransformCall,
    dense_inexact,
    recorded_values,
)


class LinearForm:
    """All of a linear function but its residuals. It is hashable, and equal to others that compute
    the same.
    """

    __slots__ = ("_function", "_key", "_trees", "linear", "names", "result", "results", "types")

    def __init__(
        self, call: TransformCall, linear: LinearMap, result: tree.Structure, values: Sequence[Any]
    ) -> None:
        self._function = call.function
        self._trees = tuple([each.structure for each in call.trees])
        self.linear = linear.with_residuals(())
        self.types = tuple([t.strong() for t in call.types[: call.count]])
        self.names = tuple(call.paths)
        self.result = result
        self.results = tuple([type_of(v).strong() for v in values])
        self._key: Hashable = None

    @property
    def function(self) -> str:
        """The user's function, as messages name it."""
        return errors.function_text(self._function)

    @property
    def arguments(self) -> tree.Structure:
        """The structure of all arguments."""
        trees = [tree.unflatten(each, [0] * each.num_leaves) for each in self._trees]
        return tree.structure(tuple(trees))

    def unflatten(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Trees like the arguments."""
        each = iter(leaves)
        return tuple(
            [tree.unflatten(s, [next(each) for _ in range(s.num_leaves)]) for s in self._trees]
        )

    @property
    def key(self) -> Hashable:
        """What equal ones have in common."""
        if self._key is None:
            region, *flags = self.linear.region, self.linear.inputs, self.linear.outputs
            rest = (self.function, self._trees, self.types, self.result, self.results)
            self._key = (region_key(region), *flags, *rest)
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearForm) and (self is other or self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        takes, gives = (", ".join(map(str, types)) for types in (self.types, self.results))
        return f"{self.function}: ({takes}) -> ({gives})"


def region_key(region: Region) -> Hashable:
    """What regions that compute the same by the same equations have in common."""
    numbers: dict[Value, int] = {}

    def defined(values: Sequence[Value]) -> tuple[ArrayType, ...]:
        numbers.update((value, len(numbers) + i) for i, value in enumerate(values))
        return tuple([value.type for value in values])

    def used(atom: Any) -> Hashable:
        if isinstance(atom, Literal):
            return atom.type, atom.value.tobytes()
        return numbers[atom]

    params = defined(region.params)
    eqns = [
        (
            eqn.op,
            tuple(sorted(eqn.attrs.items(), key=lambda item: item[0])),
            eqn.hints,
            tuple(map(used, eqn.operands)),
            tuple(map(region_key, eqn.regions)),
            defined(eqn.outputs),
        )
        for eqn in region.eqns
    ]
    return params, tuple(eqns), tuple(map(used, region.results))


def _named(what: str, form: LinearForm) -> str:
    return f"the {what} of {form.function}"


class _AtPoint:
    """A derivative at a point: its form, and the residuals."""

    __slots__ = ("form", "residuals")

    def __init__(self, form: LinearForm, residuals: tuple[Any, ...]) -> None:
        self.form = form
        self.residuals = residuals

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(self.form, copy.deepcopy(self.residuals, memo))

    def _run(self, given: Sequence[Any], record: Callable[..., Sequence[Any]], name: str) -> Any:
        """The values of `record(trace, given, linear)`, given with None as it is."""
        places = [i for i, x in enumerate(given) if x is not None]

        def recorded(trace: Trace, leaves: Sequence[Any]) -> Sequence[Any]:
            filled: list[Any] = [None] * len(given)
            for i, x in zip(places, leaves, strict=False):
                filled[i] = plain(trace, x)
            linear = self.form.linear.with_residuals(leaves[len(places) :])
            return record(trace, filled, linear)

        return recorded_values(name, [*(given[i] for i in places), *self.residuals], recorded)


class LinearFunction(_AtPoint):
    """The derivative of a function at a point, as `linearize` returns it: tangents to tangents."""

    __slots__ = ()

    @entry_point
    def __call__(self, *tangents: Any) -> Any:
        """The tangent of the result, by one tangent for each argument; None stands for zero.

        Raises:
            TransformError, TangentMismatchError: they do not fit the arguments.
        """
        form = self.form
        of = partial(_named, "arguments", form)
        given = matched(
            "linearize", "tangents", of, form.arguments, form.types, tangents, form.names
        )

        def record(trace: Trace, directions: list[Any], linear: LinearMap) -> Sequence[Any]:
            emit = Emit(trace)
            for i, active in enumerate(linear.inputs):
                if active and directions[i] is None:
                    directions[i] = emit.zeros(form.types[i])
            return dense_inexact(trace, form.results, linear.apply(trace, directions))

        dense = iter(self._run(given, record, "linearize"))
        return tree.unflatten(
            form.result, [next(dense) if is_inexact(t) else None for t in form.results]
        )

    def __repr__(self) -> str:
        return f"<derivative of {self.form.function}>"


class Pullback(_AtPoint):
    """The transposed derivative of a function at a point, as `vjp` returns it."""

    __slots__ = ()

    @entry_point
    def __call__(self, *cotangents: Any) -> tuple[Any, ...]:
        """The cotangents of the arguments, by a cotangent of the result; None stands for zero.

        Raises:
            TransformError, TangentMismatchError: it does not fit the result.
            ShardingError: it differs between devices where the result does not.
        """
        form = self.form
        if len(cotangents) != 1:
            raise errors.TransformError(
                "vjp",
                f"the pullback of {form.function} takes one cotangent, which has the structure of "
                f"the result, {errors.structure_text(form.result)}; got {len(cotangents)} "
                "arguments: pass several as one tree",
            )
        of = partial(_named, "result", form)
        given = matched("vjp", "cotangent", of, form.result, form.results, cotangents[0])

        def record(trace: Trace, cts: list[Any], linear: LinearMap) -> Sequence[Any]:
            linear.require_equal(trace, cts)
            return dense_inexact(trace, form.types, linear.transpose(trace, cts))

        dense = iter(self._run(given, record, "vjp"))
        return form.unflatten([next(dense) if is_inexact(t) else None for t in form.types])

    def __repr__(self) -> str:
        return f"<pullback of {self.form.function}>"


for _kind in (LinearFunction, Pullback):
    tree.register(
        _kind,
        lambda derivative: (derivative.residuals, derivative.form),
        lambda form, residuals, kind=_kind: kind(form, tuple(residuals)),  # type: ignore[misc]
    )
