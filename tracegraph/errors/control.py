"""Control flow: what its constructs, or the functions given to them, cannot take or return."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from optree import PyTreeSpec

from tracegraph.errors.wording import (
    TracerLike,
    TypeLike,
    described,
    function_text,
    structure_text,
    user_line,
    value_text,
)
from tracegraph.user_source import Source

__all__ = [
    "BoundRangeError", "CheckpointsError", "ConditionError", "ControlFlowError",
    "EffectInConditionError", "EndlessTraceError", "IntegerError", "LeafMismatchError",
    "LeafTypeError", "NoBranchesError", "NotCallableError", "ParametersError", "PredicateError",
    "ProgressError", "ScanBodyError", "ScanLengthError", "ScheduleError", "StaticLengthError",
    "StepLimitOptionError", "StructureError", "UnschedulableError", "no_slices_text",
]  # fmt: skip


class ControlFlowError(TypeError):
    """A control-flow construct cannot use what it was given, or what a function gave it."""

    def __init__(self, construct: str, problem: str, *details: str) -> None:
        lines = (f"{construct}: {problem}", *details)
        super().__init__("\n  ".join(lines) + user_line())


_ORDER = {
    "cond": "cond(pred, true_fun, false_fun, *operands)",
    "switch": "switch(index, branches, *operands)",
    "while_loop": "while_loop(cond_fun, body_fun, init)",
    "fori_loop": "fori_loop(lower, upper, body_fun, init)",
    "scan": "scan(f, init, xs)",
    "map": "map(f, xs)",
    "associative_scan": "associative_scan(fn, elems, reverse, axis)",
    "shard": "shard(fun, mesh=, in_specs=, out_specs=)",
    "vmap": "vmap(fun, in_axes, out_axes)",
    "debug.callback": "debug.callback(function, *args, **kwargs)",
    "pure_callback": "pure_callback(function, result_types, *args, **kwargs)",
}


class NotCallableError(ControlFlowError):
    """Something else stands where a function is needed."""

    def __init__(self, construct: str, parameter: str, value: object) -> None:
        order = f"the order is {_ORDER[construct]}"
        if construct in ("cond", "switch"):
            order += "; wrap a value as `lambda *_: value`"
        super().__init__(
            construct, f"{parameter} must be a function, not {value_text(value)}; {order}"
        )


class EndlessTraceError(ControlFlowError, RecursionError):
    """Tracing a branch exceeds Python's recursion limit."""

    def __init__(self, construct: str, function: Callable[..., Any]) -> None:
        super().__init__(
            construct,
            f"tracing {function_text(function)} exceeds Python's recursion limit; every branch is "
            "traced, whatever the predicate is, so that a function that calls itself in one is "
            "traced without end: repeat by tracegraph.while_loop instead",
        )


class ParametersError(ControlFlowError):
    """A function does not take the arguments that a construct calls it with."""

    def __init__(
        self,
        construct: str,
        parameter: str,
        function: Callable[..., Any],
        signature: inspect.Signature,
        arguments: Sequence[str],
    ) -> None:
        empty = inspect.Parameter.empty
        bare = [p.replace(annotation=empty) for p in signature.parameters.values()]
        listed = ", ".join(arguments)
        super().__init__(
            construct,
            f"{parameter} {function_text(function)} takes {inspect.Signature(bare)}, and is called "
            f"with ({listed}); give it parameters for exactly these",
        )


class LeafTypeError(ControlFlowError):
    """A leaf of a pytree is not an array or a number."""

    def __init__(
        self,
        construct: str,
        path: str,
        reason: Exception,
        function: Callable[..., Any] | None,
        called: Callable[..., Any] | None = None,
    ) -> None:
        trees = "arrays, numbers, None, and tuples, lists, dicts and registered dataclasses of them"
        if function is None:
            takes = "the function" if called is None else function_text(called)
            problem = f"{path}: {reason}; pass {trees}, and let {takes} capture anything else"
        else:
            where = f"returned by {function_text(function)}"
            problem = f"{path}, {where}: {reason}; return {trees}"
        super().__init__(construct, problem)


class PredicateError(ControlFlowError):
    """The predicate of a branch is not a scalar number."""

    def __init__(self, construct: str, value: Any, type_: TypeLike | None) -> None:
        got = value_text(value) if type_ is None else f"an array of type {type_}"
        if type_ is not None:
            advice = "reduce it with numpy.any or numpy.all, or index one element"
        else:
            advice = "call it" if callable(value) else "pass a comparison, such as x > 0"
        problem = f"pred must be a boolean or numeric scalar, not {got}; {advice}"
        super().__init__(construct, problem)


class IntegerError(ControlFlowError):
    """The index of a switch, or a bound of a loop, is not an integer scalar."""

    def __init__(
        self, construct: str, parameter: str, value: object, type_: TypeLike | None
    ) -> None:
        got = value_text(value) if type_ is None else f"one of type {type_}"
        if type_ is None or construct == "scan":
            advice = "pass an int"
        elif type_.shape != ():
            advice = "index one element"
        elif type_.dtype.kind == "b" and construct == "switch":
            advice = "use cond"
        else:
            advice = "use int(x) for a Python number, and x.astype(numpy.int64) for an array"
        super().__init__(construct, f"{parameter} must be an integer scalar, not {got}; {advice}")


class BoundRangeError(ControlFlowError, OverflowError):
    """A bound of a loop does not fit the integer type of the other bound."""

    def __init__(self, parameter: str, value: int, type_: TypeLike) -> None:
        super().__init__(
            "fori_loop",
            f"{parameter} is {value}, which does not fit {type_}, the type that goes with the "
            "other bound; give that one a wider type, for example with .astype(numpy.int64)",
        )


class NoBranchesError(ControlFlowError):
    """A switch without branches, or with something else in their place."""

    def __init__(self, value: object) -> None:
        got = "an empty sequence" if isinstance(value, (list, tuple)) else value_text(value)
        super().__init__(
            "switch", f"branches must be a list or tuple of at least one function, not {got}"
        )


class ConditionError(ControlFlowError):
    """A loop's condition returned anything but a boolean scalar."""

    def __init__(self, function: Callable[..., Any], got: str) -> None:
        super().__init__(
            "while_loop",
            f"cond_fun {function_text(function)} must return a boolean scalar, not {got}; return a "
            "comparison, such as `x != 0`, reduced with numpy.any or numpy.all if it is an array",
        )


class StructureError(ControlFlowError):
    """Two pytrees that must have one structure differ: carry in and out, or results of branches."""

    def __init__(
        self,
        construct: str,
        problem: str,
        labelled: Sequence[tuple[str, PyTreeSpec]],
        name: str,
    ) -> None:
        details = [f"{label}: {structure_text(structure)}" for label, structure in labelled]
        first = labelled[0]
        for other in labelled[1:]:
            for (label, structure), (_, without) in ((first, other), (other, first)):
                known = set(_paths(without, name))
                alone = [path for path in _paths(structure, name) if path not in known]
                if alone:
                    details.append(f"only in {label}: {', '.join(alone)}")
            details += _static_differences(first, other, name)
        super().__init__(construct, problem, *details, "return the same structure from each")


def _static_differences(
    first: tuple[str, PyTreeSpec], other: tuple[str, PyTreeSpec], name: str
) -> list[str]:
    """The static fields of dataclasses in which two structures differ."""
    (label, one), (other_label, two) = first, other
    return [
        f"static field {path} is {a!r} in {label} and {b!r} in {other_label}; it must stay the "
        "same: declare it without static, as a field that holds an array"
        for path, a, b in _differing_fields(_emptied(one), _emptied(two), name)
    ]


def _emptied(structure: PyTreeSpec) -> Any:
    return structure.unflatten([None] * structure.num_leaves)


def _differing_fields(one: Any, two: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if type(one) is not type(two):
        return
    if isinstance(one, dict):
        for key in one.keys() & two.keys():
            yield from _differing_fields(one[key], two[key], f"{path}[{key!r}]")
    elif isinstance(one, (list, tuple)):
        for k, (a, b) in enumerate(zip(one, two, strict=False)):
            yield from _differing_fields(a, b, f"{path}[{k}]")
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            a, b = getattr(one, field.name), getattr(two, field.name)
            own = f"{path}.{field.name}"
            if not field.metadata.get("static"):
                yield from _differing_fields(a, b, own)
            elif type(a) is not type(b) or a != b:
                yield own, a, b


class LeafMismatchError(ControlFlowError):
    """Leaves that must agree in type do not: `rows` has each one's path and labelled types."""

    def __init__(
        self,
        construct: str,
        problem: str,
        functions: Sequence[str],
        rows: Sequence[tuple[str, Sequence[tuple[str, TypeLike]]]],
        met: Mapping[str, str | None] | None = None,
    ) -> None:
        """`met` has, by path, the operation that gives a leaf its type, where one is known."""
        details = []
        for path, labelled in rows:
            types = ", ".join(f"{label} {type_}" for label, type_ in labelled)
            is_carry = labelled[0][0] == "given"
            advice = _type_advice([type_ for _, type_ in labelled], is_carry)
            where = (met or {}).get(path)
            details.append(f"{path}: {types}; {f'{where}; ' if where else ''}{advice}")
        if any(type_.weak for _, labelled in rows for _, type_ in labelled):
            details.append("~ marks a Python number, whose dtype bends to that of an array")
        super().__init__(construct, problem, *functions, *details)


class ScanBodyError(ControlFlowError):
    """The body of a scan returned anything but a pair."""

    def __init__(self, function: Callable[..., Any], value: object) -> None:
        super().__init__(
            "scan",
            f"f {function_text(function)} must return a pair (carry, y), not {value_text(value)}; "
            "return (carry, None) if there is nothing to stack",
        )


class ScanLengthError(ValueError):
    """The xs of a scan have no common leading axis, or not that of `length`."""

    def __init__(
        self, construct: str, problem: str, rows: Sequence[tuple[str, TypeLike]] = ()
    ) -> None:
        lines = (f"{construct}: {problem}", *(f"{path}: {type_}" for path, type_ in rows))
        super().__init__("\n  ".join(lines) + user_line())


def no_slices_text(construct: str, function: Callable[..., Any]) -> str:
    """The note of an error of a function that was called for no slice, to find its types."""
    return (
        f"{construct}: there are no slices; {function_text(function)} cannot be traced, so it was "
        "called with zeros to find the types of its results: write it so that it can be traced, or "
        "leave out the loop where there are no slices"
    )


class StaticLengthError(ControlFlowError):
    """A number that must be known when the function is traced is a traced value."""

    def __init__(self, construct: str, parameter: str, tracer: TracerLike) -> None:
        instead = (
            "or carry a count, and compare it with the traced value in cond_fun"
            if construct == "while_loop"
            else "take it from a shape, or use tracegraph.while_loop or fori_loop, whose number of "
            "iterations may be traced"
        )
        super().__init__(
            construct,
            f"{parameter} is {described(tracer)}, and must be known while tracing; pass a Python "
            f"int, {instead}",
        )


class StepLimitOptionError(ControlFlowError, ValueError):
    """`max_steps` or `on_max_steps` of a loop has an impossible value."""

    def __init__(
        self, parameter: str, needed: str, value: object, construct: str = "while_loop"
    ) -> None:
        super().__init__(construct, f"{parameter} must be {needed}, not {value_text(value)}")


class ScheduleError(ControlFlowError, ValueError):
    """`schedule` or `unroll` of a loop or branch has an impossible value."""

    def __init__(self, construct: str, parameter: str, needed: str, value: object) -> None:
        super().__init__(construct, f"{parameter} must be {needed}, not {value_text(value)}")


class CheckpointsError(ControlFlowError, ValueError):
    """`checkpoints` of a loop is not a number of steps."""

    def __init__(self, construct: str, value: object) -> None:
        super().__init__(
            construct, f"checkpoints must be None or an int of at least 1, not {value_text(value)}"
        )


class UnschedulableError(ValueError):
    """A loop or branch cannot be carried out by the schedule that it was given."""

    def __init__(self, construct: str, schedule: str, why: str, source: Source | None) -> None:
        where = "" if source is None else f"\n  at {source}, in {source.function}"
        super().__init__(
            f"{construct}: it cannot be {schedule}: {why}; leave out schedule={schedule!r}, or "
            f"take schedule='conditional'{where}"
        )


class ProgressError(ControlFlowError):
    """`progress` of a loop has an impossible value."""

    def __init__(self, construct: str, value: object) -> None:
        super().__init__(
            construct,
            "progress must be True or False, a label for the progress bar, or a function to call "
            f"with (step, total), not {value_text(value)}",
        )


class EffectInConditionError(ControlFlowError):
    """The condition of a loop prints, or runs a loop that can fail or shows its progress."""

    def __init__(self, effect: str, function: Callable[..., Any]) -> None:
        super().__init__(
            "while_loop",
            f"{effect} cannot be used in cond_fun {function_text(function)}, which only decides "
            "whether the loop goes on; put it in body_fun",
        )


def _paths(structure: PyTreeSpec, name: str) -> list[str]:
    """The Python expression of each leaf of a tree called `name`."""
    return [accessor.codify(name) for accessor in structure.accessors()]


def _type_advice(types: Sequence[TypeLike], is_carry: bool) -> str:
    if len({t.shape for t in types}) > 1:
        return "make the shapes equal, for example with numpy.broadcast_to"
    strong = [t.dtype for t in types if not t.weak]
    try:
        joined = functools.reduce(np.promote_types, strong)
    except TypeError:  # NumPy knows no common dtype for bfloat16 and integers
        joined = strong[0]
    first = types[0].dtype
    if is_carry and joined != first and joined.kind != first.kind:
        return f"start with {joined}, for example with .astype(numpy.{joined})"
    if is_carry:  # by a cast of the result it stays as it is, and loses no more than digits
        return f"cast one, for example with .astype(numpy.{first if first in strong else joined})"
    return f"cast one, for example with .astype(numpy.{joined})"
