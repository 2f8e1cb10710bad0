"""custom_jvp and custom_vjp: functions with rules for their derivatives.

forwards, custom_jvp    the rule takes the place of the function
linearized              the rule is linearized by its tangents, at zero: it is linear in them
custom_vjp              `forward` takes the place of the function; the linear part is known by
its transpose alone, and forwards by transposing that again
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from tracegraph import errors, tree
from tracegraph.arrays.array import Array
from tracegraph.control.regions import Traced
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.op import get
from tracegraph.ir.program import Eqn, Region
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.trace import Trace, current_trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms import linearize, transpose
from tracegraph.transforms.activity import is_inexact
from tracegraph.transforms.bodies import dense, region_of
from tracegraph.transforms.functions import Arguments, Regions, fitted, in_dtypes, run_region
from tracegraph.transforms.linear import run_linear, transpose_region
from tracegraph.transforms.linearize import Linearizer, Results, Tangents, require_forward
from tracegraph.transforms.transpose import Cotangents, Transposer

Function = Callable[..., Any]

_LEVELS = 2
"""How deep a rule that calls its own function finds the rule again: derivatives of that order
use it, and higher ones those of the function's equations.
"""


class _Depth(threading.local):
    depth: int = 0


class _Custom:
    """A function with rules. `_inside` counts the rules of it that are being traced."""

    def __init__(self, fun: Function) -> None:
        if not callable(fun):
            raise errors.CustomRuleError(
                type(self).__name__, f"takes a function, not {errors.value_text(fun)}"
            )
        self.fun = fun
        self._inside = _Depth()
        update_wrapper(self, fun)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method, bound to its instance."""
        return self if instance is None else partial(self, instance)

    @contextmanager
    def _in_rule(self) -> Iterator[None]:
        self._inside.depth += 1
        try:
            yield
        finally:
            self._inside.depth -= 1

    @entry_point
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; where it is traced, with its rules."""
        trace = current_trace()
        if trace is None or self._inside.depth >= _LEVELS:
            return self.fun(*args, **kwargs)
        return self._record(trace, Arguments(self.fun, args, kwargs))

    def _record(self, trace: Trace, arguments: Arguments) -> Any:
        raise NotImplementedError

    def _function(self, regions: Regions, arguments: Arguments) -> Traced:
        def call(leaves: Sequence[Any]) -> Any:
            return self.fun(*arguments.rebuilt(leaves))

        return regions.add(call, arguments.types, self.fun)

    def _matched(self, rule: Function, function: Traced, returned: Any) -> list[Any]:
        """The leaves of a result that a rule returned, which must be like the function's."""
        leaves, structure = tree.flatten(returned)
        if structure != function.structure:
            needed, got = map(errors.structure_text, (function.structure, structure))
            raise errors.CustomRuleError(
                type(self).__name__,
                f"{errors.function_text(rule)} must return a result of the structure {needed}, as "
                f"{errors.function_text(self.fun)} does; got {got}",
            )
        types = [t.strong() for t in function.types]
        return in_dtypes(types, fitted(type(self).__name__, rule, types, leaves))


class custom_jvp(_Custom):  # noqa: N801 - a decorator
    """A function with a rule for its derivative in a direction.

    Args:
        fun: a function of pytrees of arrays. Arguments that are neither arrays nor inexact numbers
            are passed on as they are.

    The rule, set by `defjvp`, takes the arguments and their tangents as two tuples, and returns the
    result and its tangent, which must be linear in the tangents. Tangents are trees like the
    arguments, with None for integers; None for a tangent that is returned is zero. It may call the
    function itself. Reverse mode transposes it.

    Function and rule may use any value around them, but no value by which they are differentiated.

    Raises:
        CustomRuleError: there is no rule, or it returns something else; or it is not linear in the
            tangents, in reverse mode; or the function captures a value by which it is
            differentiated.

    >>> import numpy as np
    >>> import tracegraph
    >>> @custom_jvp
    ... def sinc(x):
    ...     return np.sinc(x)
    >>> @sinc.defjvp
    ... def sinc_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return sinc(x), (np.cos(np.pi * x) - np.sinc(x)) / x * t
    >>> round(float(tracegraph.grad(sinc)(0.5)), 12)
    -1.273239544735
    """

    _rule: Function | None = None

    def defjvp(self, rule: Function) -> Function:
        """Set the rule; for use as a decorator."""
        self._rule = rule
        return rule

    def _record(self, trace: Trace, arguments: Arguments) -> Any:
        regions = Regions("custom_jvp", trace, len(arguments.leaves))
        function = self._function(regions, arguments)
        count = len(function.types)
        if self._rule is not None:
            rule, split = self._rule, len(arguments.leaves)
            live = [t.strong() for t in function.types if is_inexact(t)]

            def call(leaves: Sequence[Any]) -> Any:
                tangents = arguments.tangents(leaves[split:])
                with self._in_rule():
                    returned = rule(arguments.rebuilt(leaves[:split]), tangents)
                if not isinstance(returned, (tuple, list)) or len(returned) != 2:
                    raise errors.CustomRuleError(
                        "custom_jvp",
                        f"{errors.function_text(rule)} must return a pair (result, tangent), not "
                        f"{errors.value_text(returned)}",
                    )
                out = self._matched(rule, function, returned[0])
                found = _tangents_of(rule, function, returned[1])
                return out, in_dtypes(live, fitted("custom_jvp", rule, live, found))

            types = (*arguments.types, *arguments.tangent_types)
            regions.add(call, types, rule, count)
        outs = regions.record(arguments.leaves, {"function": errors.function_text(self.fun)})
        return tree.unflatten(function.structure, outs)


def _tangents_of(rule: Function, function: Traced, returned: Any) -> list[Any]:
    """The tangents of the inexact results that a rule returned."""
    count = len(function.types)
    if returned is None:
        every: list[Any] = [None] * count
    else:
        try:
            every = function.structure.flatten_up_to(returned)
        except ValueError:
            structures = (function.structure, tree.structure(returned))
            needed, got = map(errors.structure_text, structures)
            raise errors.CustomRuleError(
                "custom_jvp",
                f"{errors.function_text(rule)} must return a tangent of the structure {needed}, "
                f"got {got}",
            ) from None
    return [t for t, type_ in zip(every, function.types, strict=True) if is_inexact(type_)]


class custom_vjp(_Custom):  # noqa: N801 - a decorator
    """A function with rules for the pullback of cotangents.

    Args:
        fun: as in `custom_jvp`.

    The rules are set by ``defvjp(forward, backward)``. `forward` takes the arguments, and returns
    the result and residuals: a tree of anything. ``backward(residuals, cotangent)`` returns a tuple
    of a cotangent for each argument, None standing for zero. Forward mode transposes `backward`,
    which must be linear in the cotangent for that.

    Raises:
        CustomRuleError: as in `custom_jvp`.

    >>> import numpy as np
    >>> import tracegraph
    >>> @custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    >>> tracegraph.grad(lambda x: 10 * clipped(x))(3.0)
    np.float64(1.0)
    """

    _rules: tuple[Function, Function] | None = None

    def defvjp(self, forward: Function, backward: Function) -> None:
        """Set the rules."""
        self._rules = forward, backward

    def _record(self, trace: Trace, arguments: Arguments) -> Any:
        regions = Regions("custom_vjp", trace, len(arguments.leaves))
        function = self._function(regions, arguments)
        attrs: dict[str, Any] = {"function": errors.function_text(self.fun)}
        if self._rules is not None:
            attrs["residuals"] = self._add_rules(regions, arguments, function, *self._rules)
        outs = regions.record(arguments.leaves, attrs)
        return tree.unflatten(function.structure, outs)

    def _add_rules(
        self,
        regions: Regions,
        arguments: Arguments,
        function: Traced,
        forward: Function,
        backward: Function,
    ) -> int:
        """Trace the rules; the number of residuals."""
        count = len(function.types)
        kept: list[Any] = []

        def call_forward(leaves: Sequence[Any]) -> Any:
            with self._in_rule():
                returned = forward(*arguments.rebuilt(leaves))
            if not isinstance(returned, (tuple, list)) or len(returned) != 2:
                raise errors.CustomRuleError(
                    "custom_vjp",
                    f"{errors.function_text(forward)} must return a pair (result, residuals), not "
                    f"{errors.value_text(returned)}",
                )
            every, structure = tree.flatten(returned[1])
            places = [i for i, r in enumerate(every) if isinstance(r, (Tracer, Array, np.ndarray))]
            kept[:] = [every, structure, places]
            return self._matched(forward, function, returned[0]), [every[i] for i in places]

        ran = regions.add(call_forward, arguments.types, forward, count)
        residual_types = ran.types[count:]
        live = [i for i, t in enumerate(function.types) if is_inexact(t)]
        every, structure, places = kept

        def call_backward(leaves: Sequence[Any]) -> Any:
            residuals = list(every)
            for i, leaf in zip(places, leaves, strict=False):
                residuals[i] = leaf
            cotangents: list[Any] = [None] * count
            for i, leaf in zip(live, leaves[len(places) :], strict=True):
                cotangents[i] = leaf
            cotangent = tree.unflatten(function.structure, cotangents)
            with self._in_rule():
                returned = backward(tree.unflatten(structure, residuals), cotangent)
            found = arguments.cotangents("custom_vjp", backward, returned)
            return in_dtypes(arguments.tangent_types, found)

        types = (*residual_types, *(function.types[i].strong() for i in live))
        regions.add(call_backward, types, backward, pure=True)
        return len(places)


# derivatives


def _given(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> list[Any]:
    """The tangents of inexact arguments, zeros made.

    Raises:
        CustomRuleError: the function has no rules, or captures what it is differentiated by.
    """
    count, name = eqn.attrs["args"], eqn.op.name
    function = eqn.attrs["function"]
    if len(eqn.regions) == 1:
        setter = "defjvp" if name == "custom_jvp" else "defvjp"
        raise errors.CustomRuleError(
            name, f"{function} has no rule: set it by {setter}, or call the function undecorated"
        )
    if any(t is not None for t in ts[count:]):
        raise errors.CustomRuleError(
            name,
            f"{function} captures a value by which it is differentiated; pass it as an argument",
        )
    pairs = [(x.type, t) for x, t in zip(xs[:count], ts, strict=False) if is_inexact(x.type)]
    return dense(self.linear, [t.strong() for t, _ in pairs], [t for _, t in pairs])


def _spread(eqn: Eqn, found: Sequence[Any]) -> list[Any]:
    """The tangents of inexact results at their places."""
    each = iter(found)
    return [next(each) if is_inexact(v.type) else None for v in eqn.outputs]


def _jvp_rule(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> Results:
    given, split, count = _given(self, eqn, xs, ts), eqn.attrs["args"], len(eqn.outputs)
    rule = eqn.regions[1]
    if self.is_forward:
        found = run_region(self.primal, rule, [*xs[:split], *given, *xs[split:]])
        return found[:count], _spread(eqn, found[count:])
    zeros = dense(self.primal, [t.type for t in given], [None] * len(given))
    args = [*xs[:split], *zeros, *xs[split:]]
    tangents = [*[None] * split, *given, *[None] * (len(xs) - split)]
    wanted = [i >= count for i in range(len(rule.results))]
    try:
        outs, tangent = run_linear(self.primal, self.linear, zeros, rule, args, tangents, wanted)
    except errors.NonlinearError as error:
        raise errors.CustomRuleError(
            "custom_jvp",
            f"the rule of {eqn.attrs['function']} must be linear in the tangents, as reverse mode "
            f"transposes it: {error.op} is not, at {error.source}",
        ) from None
    return outs[:count], _spread(eqn, tangent[count:])


def _vjp_rule(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> Results:
    given, split, count = _given(self, eqn, xs, ts), eqn.attrs["args"], len(eqn.outputs)
    outs = run_region(self.primal, eqn.regions[1], xs)
    residuals, captures = outs[count:], xs[split:]
    backward = eqn.regions[2]
    types = [v.type.strong() for v in eqn.outputs if is_inexact(v.type)]
    regions = _linear_regions(self.linear, backward, given, residuals, types, captures)
    atoms = [self.linear.read(x) for x in (*given, *residuals, *captures)]
    attrs = {
        "tangents": len(given),
        "residuals": len(residuals),
        "types": tuple(types),
        "forward": len(regions) == 2,
    }
    if self.is_forward:
        require_forward(attrs)
        args = [*given, *residuals, *captures]
        return outs[:count], _spread(eqn, run_region(self.linear, regions[0], args))
    found = self.linear.record(get("custom_linear"), atoms, attrs, regions)
    return outs[:count], _spread(eqn, found)


def _linear_regions(
    trace: Trace,
    backward: Region,
    given: Sequence[Any],
    residuals: Sequence[Any],
    types: Sequence[ArrayType],
    captures: Sequence[Any],
) -> tuple[Region, ...]:
    """The backward region, and before it its transpose if it is linear in the cotangents."""
    own, kept = len(given), len(residuals)

    def record(inner: Trace, params: list[Tracer]) -> Sequence[Any]:
        flags = [kept <= i < kept + len(types) for i in range(len(backward.params))]
        others = params[own:]
        found = transpose_region(inner, backward, flags, others, params[:own])
        return dense(inner, types, found)

    param_types = [x.type for x in (*given, *residuals, *captures)]
    try:
        forward = region_of(trace, param_types, record)
    except (errors.NonlinearError, errors.ReverseLoopError, errors.DerivativeError):
        return (backward,)
    return forward, backward


def _linear_rule(self: Linearizer, eqn: Eqn, xs: Sequence[Tracer], ts: Tangents) -> Results:
    require_forward(eqn.attrs)
    return Linearizer(self.primal, self.linear).run(eqn.regions[0], xs, ts)


def _linear_transpose(
    self: Transposer, eqn: Eqn, flags: Sequence[bool], cts: Cotangents
) -> Cotangents:
    count, kept = eqn.attrs["tangents"], eqn.attrs["residuals"]
    rest = [self.value(a) for a in eqn.operands[count:]]
    given = dense(self.trace, [v.type for v in eqn.outputs], cts)
    found = run_region(self.trace, eqn.regions[-1], [*rest[:kept], *given, *rest[kept:]])
    return [*found, *[None] * len(rest)]


linearize.STRUCTURAL["custom_jvp"] = _jvp_rule
linearize.STRUCTURAL["custom_vjp"] = _vjp_rule
linearize.STRUCTURAL["custom_linear"] = _linear_rule
transpose.STRUCTURAL["custom_linear"] = _linear_transpose
