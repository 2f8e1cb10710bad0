"""custom_jvp and custom_vjp: functions with rules for their derivatives.

A rule is traced where its function is called, so that it may use any value around it; but only if
transforms around differentiate. A rule that calls its own function is traced again there, once for
each further derivative. What is wrong with a rule is an error of the derivative that needs it.
`custom_rules` has these derivatives.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, update_wrapper
from typing import Any, Self

import numpy as np

from tracegraph import errors, tree
from tracegraph.arrays.array import Array
from tracegraph.control.regions import TracedRegion
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.parameters import takes
from tracegraph.tracing.trace import current_trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.derivatives import custom_rules as _custom_rules  # noqa: F401 - enters its rules
from tracegraph.transforms.derivatives.activity import is_inexact
from tracegraph.transforms.functions_with_rules import BoundArguments, Regions, fitted, in_dtypes

__all__ = ["custom_jvp", "custom_vjp"]

Function = Callable[..., Any]


class _Running(threading.local):
    def __init__(self) -> None:
        self.functions: list[_Custom] = []


_running = _Running()
"""The functions whose rules a thread traces, outermost first."""


_AS_THEY_ARE = (
    "arguments that are not arrays, floats or complex numbers are passed on as they are, to the "
    "rules, too, in their places; a rule has None for their tangents, or returns None"
)

_SETTERS = {
    "defjvps": "one rule for all arguments is set by defjvp(rule): rule(primals, tangents)",
    "defjvp": "of a custom_vjp, the rules are set by defvjp(forward, backward)",
    "defvjp": "of a custom_jvp, the rule is set by defjvp(rule)",
    "def_vjp": "the rules are set by defvjp(forward, backward)",
    "def_jvp": "the rule is set by defjvp(rule)",
}
"""By names that people try, the name to use."""


class _Custom:
    """A function with rules."""

    @errors.refuses(nondiff_argnums=_AS_THEY_ARE, nondiff_argnames=_AS_THEY_ARE)
    def __init__(self, fun: Function) -> None:
        if not callable(fun):
            raise errors.CustomRuleError(
                type(self).__name__, f"takes a function, not {errors.value_text(fun)}"
            )
        self.fun = fun
        update_wrapper(self, fun)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method, bound to its instance."""
        return self if instance is None else partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        kind = type(self).__name__
        advice = f": {_SETTERS[name]}" if name in _SETTERS else ""
        raise AttributeError(f"{kind} has no attribute {name}{advice}", name=name, obj=self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By import path, as functions are pickled. What has none of its own is made anew of its
        function and rules.
        """
        found: Any = sys.modules.get(self.__module__)
        for name in getattr(self, "__qualname__", "<no name>").split("."):
            found = getattr(found, name, None)
        if found is self:
            path: str = self.__qualname__
            return path
        return _restored, (type(self), self.fun, self._given_rules())

    def _given_rules(self) -> tuple[Function, ...] | None:
        raise NotImplementedError

    def _set_rules(self, *rules: Function) -> None:
        raise NotImplementedError

    @contextmanager
    def _in_rule(self) -> Iterator[None]:
        _running.functions.append(self)
        try:
            yield
        finally:
            _running.functions.pop()

    @entry_point
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; where it is differentiated, with its rules."""
        trace = current_trace()
        if trace is None:
            return self.fun(*args, **kwargs)
        arguments = BoundArguments(self.fun, args, kwargs)
        regions = Regions(type(self).__name__, trace, len(arguments.leaves))

        def call(leaves: Sequence[Any]) -> Any:
            return arguments.call(self.fun, leaves)

        varying = arguments.varying(trace)
        function = regions.add(call, arguments.types, self.fun, varying=varying)
        attrs: dict[str, Any] = {"function": errors.function_text(self.fun)}
        if self._given_rules() is None:
            attrs["rule"] = "none"
        elif sum(each is self for each in _running.functions) >= arguments.orders:
            attrs["rule"] = "not traced"
        else:
            attrs |= {"rule": "traced", **self._add_rules(regions, arguments, function)}
        outs = regions.record(arguments.leaves, attrs)
        return tree.unflatten(function.structure, outs)

    def _add_rules(
        self, regions: Regions, arguments: BoundArguments, function: TracedRegion
    ) -> dict[str, Any]:
        """Trace the rules; attributes of the equation, a `fault` being what a rule has raised."""
        raise NotImplementedError

    def _matched(self, rule: Function, function: TracedRegion, returned: Any) -> list[Any]:
        """The leaves of a result that a rule returned, which must be like the function's."""
        leaves, structure = tree.flatten(returned)
        if structure != function.structure:
            needed, got = map(errors.structure_text, (function.structure, structure))
            raise errors.CustomRuleError(
                type(self).__name__,
                f"{self._named(rule)} must return a result of the structure {needed}, as the "
                f"function does; got {got}",
            )
        types = function.types
        paths = partial(tree.paths, structure, "result")
        return in_dtypes(types, fitted(type(self).__name__, rule, types, leaves, paths))

    def _named(self, rule: Function, role: str = "rule") -> str:
        return f"the {role} {errors.function_text(rule)} of {errors.function_text(self.fun)}"

    def _require_parameters(self, rule: Function, role: str, *names: str) -> None:
        """Check that a rule takes as many arguments as it is given.

        Raises:
            CustomRuleError: it takes others.
        """
        if takes(rule, len(names)):
            return
        try:
            signature = inspect.signature(rule)
            signature.bind(*names)
        except ValueError:
            return  # some callables have no signature
        except TypeError:
            raise errors.CustomRuleError(
                type(self).__name__,
                f"{self._named(rule, role)} has the parameters {signature}, but is called as "
                f"({', '.join(names)}); {_AS_THEY_ARE}",
            ) from None


def _restored(kind: type[_Custom], fun: Function, rules: tuple[Function, ...] | None) -> _Custom:
    made = kind(fun)
    if rules is not None:
        made._set_rules(*rules)
    return made


class custom_jvp(_Custom):  # noqa: N801 - a decorator
    """A function with a rule for its derivative in a direction.

    Args:
        fun: a function of pytrees of arrays. Arguments that are neither arrays nor inexact numbers
            are passed on as they are. Rules take all arguments by position, including defaults, and
            keyword-only arguments last.

    The rule, set by `defjvp`, takes the arguments and their tangents as two tuples, and returns the
    result and its tangent, which must be linear in the tangents. Tangents are trees like the
    arguments, with None for integers; None for a tangent that is returned is zero. The rule may
    call the function itself, which is differentiated by the rule again, at every order. Reverse
    mode transposes it.

    Function and rule may use any value around them, except values with respect to which they are
    differentiated.

    Raises:
        CustomRuleError: there is no rule, or it returns something else; or it is not linear in the
            tangents, in reverse mode; or the function captures a value with respect to which it is
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

    @errors.refuses(symbolic_zeros="tangents of floats are arrays, those of integers None")
    def defjvp(self, rule: Function) -> Function:
        """Set the rule; for use as a decorator."""
        self._rule = rule
        return rule

    def _given_rules(self) -> tuple[Function, ...] | None:
        return None if self._rule is None else (self._rule,)

    def _set_rules(self, *rules: Function) -> None:
        (self._rule,) = rules

    def _add_rules(
        self, regions: Regions, arguments: BoundArguments, function: TracedRegion
    ) -> dict[str, Any]:
        rule, split, count = self._rule, len(arguments.leaves), len(function.types)
        assert rule is not None
        live = [t for t in function.types if is_inexact(t)]

        def call(leaves: Sequence[Any]) -> Any:
            tangents = arguments.tangents(leaves[split:])
            self._require_parameters(rule, "rule", "primals", "tangents")
            with self._in_rule():
                returned = rule(arguments.rebuilt(leaves[:split]), tangents)
            if not isinstance(returned, (tuple, list)) or len(returned) != 2:
                raise errors.CustomRuleError(
                    "custom_jvp",
                    f"{self._named(rule)} must return a pair (result, tangent), not "
                    f"{errors.value_text(returned)}",
                )
            out = self._matched(rule, function, returned[0])
            found = self._tangents_of(rule, function, returned[1])

            def paths() -> list[str]:
                names = tree.paths(function.structure, "result")
                pairs = zip(names, function.types, strict=True)
                return [f"the tangent of {name}" for name, t in pairs if is_inexact(t)]

            return out, in_dtypes(live, fitted("custom_jvp", rule, live, found, paths))

        types = (*arguments.types, *arguments.tangent_types)
        return _fault(regions, call, types, rule, count, [*function.types, *live])

    def _tangents_of(self, rule: Function, function: TracedRegion, returned: Any) -> list[Any]:
        """The tangents of the inexact results that a rule returned."""
        every: list[Any] = [None] * len(function.types)
        if returned is not None:
            try:
                every = function.structure.flatten_up_to(returned)
            except ValueError:
                structures = (function.structure, tree.structure(returned))
                needed, got = map(errors.structure_text, structures)
                raise errors.CustomRuleError(
                    "custom_jvp",
                    f"{self._named(rule)} must return a tangent of the structure {needed}, as the "
                    f"result has, got {got}; None stands for zero",
                ) from None
        return [t for t, type_ in zip(every, function.types, strict=True) if is_inexact(type_)]


def _fault(
    regions: Regions,
    call: Function,
    types: Sequence[ArrayType],
    rule: Function,
    count: int | None,
    result_types: Sequence[ArrayType],
    *,
    pure: bool = False,
) -> dict[str, Any]:
    """Trace a rule. If that raises an error, this is a fault, and zeros take the rule's place."""
    try:
        regions.add(call, types, rule, count, pure=pure)
    except Exception as error:
        zeros = [None] * len(result_types)
        regions.add(lambda _: in_dtypes(result_types, zeros), types, rule, count, pure=pure)
        return {"fault": error}
    return {}


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

    @errors.refuses(
        fwd="it is called forward",
        bwd="it is called backward",
        symbolic_zeros="cotangents of floats are arrays, those of integers None",
        optimize_remat="put a checkpoint around what is to be computed again",
    )
    def defvjp(self, forward: Function, backward: Function) -> None:
        """Set the rules."""
        self._rules = forward, backward

    def _given_rules(self) -> tuple[Function, ...] | None:
        return self._rules

    def _set_rules(self, *rules: Function) -> None:
        self._rules = rules[0], rules[1]

    def _add_rules(
        self, regions: Regions, arguments: BoundArguments, function: TracedRegion
    ) -> dict[str, Any]:
        assert self._rules is not None
        forward, backward = self._rules
        count = len(function.types)
        kept: list[Any] = [[], tree.structure(()), []]

        def call_forward(leaves: Sequence[Any]) -> Any:
            self._require_parameters(forward, "forward rule", *arguments.names)
            with self._in_rule():
                returned = forward(*arguments.rebuilt(leaves))
            if not isinstance(returned, (tuple, list)) or len(returned) != 2:
                raise errors.CustomRuleError(
                    "custom_vjp",
                    f"{self._named(forward, 'forward rule')} must return a pair (result, "
                    f"residuals), not {errors.value_text(returned)}",
                )
            every, structure = tree.flatten(returned[1])
            places = [i for i, r in enumerate(every) if isinstance(r, (Tracer, Array, np.ndarray))]
            matched = self._matched(forward, function, returned[0])
            kept[:] = [every, structure, places]
            return matched, [every[i] for i in places]

        def call_backward(leaves: Sequence[Any]) -> Any:
            every, structure, places = kept
            residuals = list(every)
            for i, leaf in zip(places, leaves, strict=False):
                residuals[i] = leaf
            cotangents: list[Any] = [None] * count
            for i, leaf in zip(live, leaves[len(places) :], strict=True):
                cotangents[i] = leaf
            cotangent = tree.unflatten(function.structure, cotangents)
            self._require_parameters(backward, "backward rule", "residuals", "cotangent")
            with self._in_rule():
                returned = backward(tree.unflatten(structure, residuals), cotangent)
            found = arguments.cotangents("custom_vjp", backward, returned)
            return in_dtypes(arguments.tangent_types, found)

        live = [i for i, t in enumerate(function.types) if is_inexact(t)]
        attrs = _fault(regions, call_forward, arguments.types, forward, count, function.types)
        residual_types = regions.traced[-1][0].types[count:]
        types = (*residual_types, *(function.types[i] for i in live))
        if "fault" in attrs:
            call_backward = _raising(attrs["fault"])
        back = _fault(
            regions, call_backward, types, backward, None, arguments.tangent_types, pure=True
        )
        if back:
            attrs["backward_fault"] = back["fault"]
        return {"residuals": len(residual_types), **attrs}


def _raising(error: Exception) -> Function:
    def call(leaves: Sequence[Any]) -> Any:
        raise error

    return call
