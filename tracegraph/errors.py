"""Every error class, and the wording of its message."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from tracegraph.ir import Eqn, Program
    from tracegraph.tracer import Tracer
    from tracegraph.tree import Structure
    from tracegraph.types import ArrayType


def _described(tracer: Tracer) -> str:
    """Type and descent of a tracer: `a traced value of type f64[3] (argument x)`."""
    return f"a traced value of type {tracer.type} ({tracer.descent})"


def _user_line() -> str:
    from tracegraph.trace import user_source  # trace imports this module

    source = user_source()
    return "" if source is None else f"\n  at {source}, in {source.function}"


class TracerMisuseError(TypeError):
    """A traced value stood where only a known value can: its elements exist when the graph runs."""

    operation: ClassVar[str] = "this operation"
    instead: ClassVar[str] = "return it from the traced function, and do this with the result"

    def __init__(self, tracer: Tracer, operation: str | None = None) -> None:
        super().__init__(
            f"{operation or self.operation} needs the elements of {_described(tracer)}, which are "
            f"not known while the function is traced; {self.instead}{_user_line()}"
        )


class TracerBoolError(TracerMisuseError):
    """`if`, `while`, `and`, `or`, `not`, `in`, `assert` or `bool()` on a traced value."""

    operation = "bool(), on behalf of `if`, `while`, `and`, `or`, `not`, `in` or `assert`,"
    instead = (
        "use tracegraph.cond for a branch, tracegraph.while_loop for a loop, numpy.where to choose "
        "elements, and &, |, ~ or numpy.logical_and/or/not for logic; or make the argument static "
        "with jit(..., static_argnums=...)"
    )


_ASSIGN = (
    "; if this was an assignment, array[i] = x, make the array with tracegraph.numpy.zeros(shape) "
    "or numpy.zeros_like(traced, shape=shape) instead of numpy.zeros(shape)"
)


class TracerIntegerError(TracerMisuseError):
    """`int()` or `round()` on a traced value."""

    operation = "int()"
    instead = (
        "use .astype(int) for an array of integers, or make the argument static with "
        "jit(..., static_argnums=...)" + _ASSIGN
    )


class TracerIndexError(TracerMisuseError):
    """A traced value as the argument of `range`, as a shape, or as an index of a list."""

    operation = "operator.index(), on behalf of `range`, a shape, or an index,"
    instead = (
        "use tracegraph.fori_loop instead of `for i in range(n)`; index with it only traced arrays "
        "(tracegraph.numpy.asarray(table)[i]), with x[start + numpy.arange(size)] for a slice at a "
        "traced start, or tracegraph.switch to choose from a list; make a size static with "
        "jit(..., static_argnums=...)"
    )


class TracerFloatError(TracerMisuseError):
    """`float()` on a traced value."""

    operation = "float()"
    instead = (
        "use numpy functions instead of `math`, and .astype(float) to convert; or make the "
        "argument static with jit(..., static_argnums=...)" + _ASSIGN
    )


class TracerComplexError(TracerMisuseError):
    """`complex()` on a traced value."""

    operation = "complex()"
    instead = "use numpy functions instead of `cmath`, and .astype(complex) to convert" + _ASSIGN


class TracerItemError(TracerMisuseError):
    """`.item()`, `.tolist()` or `.tobytes()` of a traced value."""

    operation = ".item()"
    instead = "use the traced value as it is (x[i] for an element), or return it and call this then"


class TracerFormatError(TracerMisuseError):
    """A traced value was formatted as a number: `f"{x:.3f}"`."""

    operation = "formatting"
    instead = (
        "use tracegraph.debug.print('{:.3f}', x), which prints each time that the program gets "
        "there"
    )


class TracerArrayError(TracerMisuseError):
    """A traced value was to become a NumPy array, or an element of one."""

    operation = "conversion to a NumPy array (numpy.asarray(x), numpy.array([x]), array[i] = x)"
    instead = (
        "use tracegraph.numpy.asarray or numpy.stack to build arrays, and "
        "tracegraph.numpy.take(table, i) for a traced index" + _ASSIGN
    )


class TracerIterationError(TracerMisuseError):
    """Iteration over a traced value of no axes."""

    operation = "iteration over a 0-d value"
    instead = (
        "use tracegraph.fori_loop(0, n, body, init) to repeat, or tracegraph.scan over an array"
    )


class BooleanMaskError(TracerMisuseError, IndexError):
    """A traced mask as an index: the shape of the result would depend on its elements."""

    operation = "indexing with a boolean mask"
    instead = (
        "use numpy.where(mask, x, other) to keep the shape, numpy.sum(x, where=mask) to reduce, "
        "and x[mask] = value with a value that does not depend on the number of true elements"
    )


class ShapeDependentError(TracerMisuseError):
    """A function whose result's shape depends on the elements."""

    instead = "use numpy.where(condition, x, y) with three arguments, which keeps the shape"


class EscapedTracerError(TracerMisuseError):
    """A traced value was used after its trace had ended."""

    def __init__(self, tracer: Tracer) -> None:
        TypeError.__init__(
            self,
            f"{_described(tracer)} was used outside the function whose trace made it; return it "
            f"from that function instead of storing it elsewhere{_user_line()}",
        )


class TracerWriteError(TypeError, ValueError):
    """A traced value that must not change was written to; NumPy raises ValueError there."""

    def __init__(self, tracer: Tracer, reason: str) -> None:
        super().__init__(
            f"assignment to {_described(tracer)}, {reason}; write to a copy (y = x.copy(); y[i] = "
            f"v), or use y = x.at[i].set(v){_user_line()}"
        )


class InPlaceCastError(TypeError):
    """The result of an in-place operation does not fit the dtype of its target."""

    def __init__(self, name: str, result: ArrayType, target: Tracer) -> None:
        super().__init__(
            f"cannot cast the result of {name}, of type {result}, in place to {_described(target)} "
            "with "
            f'casting rule "same_kind"; use x = numpy.{name}(x, y), or .astype first{_user_line()}'
        )


class UnsupportedByTracerError(TypeError):
    """NumPy has a function or an argument that tracegraph lacks."""

    def __init__(self, what: str, instead: str = "") -> None:
        advice = instead or "compute it from the functions of tracegraph.numpy, or outside"
        super().__init__(f"{what} is not supported for traced values; {advice}{_user_line()}")


class UnhashableStaticError(TypeError):
    """A static argument or field cannot be part of a cache key."""

    def __init__(self, what: str, value: object) -> None:
        super().__init__(
            f"{what} is of type {type(value).__qualname__}, which is not hashable; a static value "
            "must be hashable and comparable, since programs are cached by it: pass a tuple "
            "instead of a list, a frozen dataclass instead of a dict, or do not make it static"
        )


class UnsupportedArgumentError(TypeError):
    """An argument holds something that is neither an array nor a number."""

    def __init__(self, function: str, path: str, got: str) -> None:
        super().__init__(
            f"argument {path} of {function} {got}; accepted are arrays (tracegraph, NumPy, and any "
            "with DLPack or __cuda_array_interface__), Python and NumPy numbers, None, and tuples, "
            "lists, dicts and registered dataclasses of them. Name any other value in "
            "static_argnums or static_argnames, or register its class with "
            "tracegraph.register_dataclass"
        )


class UnsupportedResultError(TypeError):
    """A traced function returned something that is neither an array nor a number."""

    def __init__(self, function: str, path: str, value: object) -> None:
        super().__init__(
            f"{function} returned a {type(value).__module__}.{type(value).__qualname__} as {path}; "
            "a traced function returns arrays, numbers, None, and tuples, lists, dicts and "
            "registered dataclasses of them"
        )


class ArgumentTypesError(TypeError):
    """A compiled function was called with other types than those it was compiled for."""

    def __init__(self, function: str, differences: str) -> None:
        super().__init__(
            f"{function} was compiled for other arguments: {differences}; call the jitted "
            "function, which compiles for new types, or lower it for these"
        )


class DonatedArrayError(RuntimeError):
    """An array was used after it had been donated, or donated and passed as another argument."""


class ImmutableArrayError(TypeError):
    """An element of an Array was assigned to."""

    def __init__(self) -> None:
        super().__init__(
            "a tracegraph.Array is immutable: `x[index] = value` is not possible; write "
            "`x = x.at[index].set(value)`, or take a NumPy copy with numpy.array(x)"
        )


def function_text(function: Callable[..., Any]) -> str:
    """A user's function in messages: `step (solver.py:12)`."""
    inner = inspect.unwrap(function)
    while isinstance(inner, functools.partial):
        inner = inspect.unwrap(inner.func)
    name = getattr(inner, "__qualname__", type(inner).__qualname__).rpartition("<locals>.")[2]
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    return name if code is None else f"{name} ({Path(code.co_filename).name}:{code.co_firstlineno})"


class ControlFlowError(TypeError):
    """A control-flow construct cannot use what it was given, or what a function gave it."""

    def __init__(self, construct: str, problem: str, *details: str) -> None:
        lines = (f"{construct}: {problem}", *details)
        super().__init__("\n  ".join(lines) + _user_line())


class NotCallableError(ControlFlowError):
    """Something else stands where a function is needed."""

    def __init__(self, construct: str, parameter: str, value: object) -> None:
        super().__init__(
            construct,
            f"{parameter} must be a function, not {value_text(value)}; wrap a value as `lambda *_: "
            "value`",
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
    ) -> None:
        trees = "arrays, numbers, None, and tuples, lists, dicts and registered dataclasses of them"
        if function is None:
            problem = f"{path}: {reason}; pass {trees}, and let the function capture anything else"
        else:
            where = f"returned by {function_text(function)}"
            problem = f"{path}, {where}: {reason}; return {trees}"
        super().__init__(construct, problem)


class PredicateError(ControlFlowError):
    """The predicate of a branch is not a scalar number."""

    def __init__(self, construct: str, value: object, type_: ArrayType | None) -> None:
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
        self, construct: str, parameter: str, value: object, type_: ArrayType | None
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

    def __init__(self, parameter: str, value: int, type_: ArrayType) -> None:
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
        labelled: Sequence[tuple[str, Structure]],
        name: str,
    ) -> None:
        from tracegraph import tree  # imports this module

        details = [f"{label}: {_structure_text(structure)}" for label, structure in labelled]
        first = labelled[0]
        for other in labelled[1:]:
            for (label, structure), (_, without) in ((first, other), (other, first)):
                known = set(tree.paths(without, name))
                alone = [path for path in tree.paths(structure, name) if path not in known]
                if alone:
                    details.append(f"only in {label}: {', '.join(alone)}")
        super().__init__(construct, problem, *details, "return the same structure from each")


class LeafMismatchError(ControlFlowError):
    """Leaves that must agree in type do not: `rows` has each one's path and labelled types."""

    def __init__(
        self,
        construct: str,
        problem: str,
        functions: Sequence[str],
        rows: Sequence[tuple[str, Sequence[tuple[str, ArrayType]]]],
    ) -> None:
        details = []
        for path, labelled in rows:
            types = ", ".join(f"{label} {type_}" for label, type_ in labelled)
            details.append(f"{path}: {types}; {_type_advice([type_ for _, type_ in labelled])}")
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


class StaticLengthError(ControlFlowError):
    """A traced value stands for a number that must be known when the function is traced."""

    def __init__(self, construct: str, parameter: str, tracer: Tracer) -> None:
        instead = (
            "or carry a count, and compare it with the traced value in cond_fun"
            if construct == "while_loop"
            else "take it from a shape, or use tracegraph.while_loop or fori_loop, whose number of "
            "iterations may be traced"
        )
        super().__init__(
            construct,
            f"{parameter} is {_described(tracer)}, and must be known while tracing; pass a Python "
            f"int, {instead}",
        )


class StepLimitOptionError(ControlFlowError, ValueError):
    """`max_steps` or `on_max_steps` of a loop is none that it can be."""

    def __init__(self, parameter: str, needed: str, value: object) -> None:
        super().__init__("while_loop", f"{parameter} must be {needed}, not {value_text(value)}")


class ProgressError(ControlFlowError):
    """`progress` of a loop is none of what it can be."""

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


class PrintArgumentError(TypeError):
    """An argument of `debug.print` is not an array or a number."""

    def __init__(self, argument: str, template: str, reason: Exception) -> None:
        super().__init__(
            f"debug.print({template!r}, ...): {argument}: {reason}; pass arrays and numbers, one "
            "by one, and put any text into the template"
            f"{_user_line()}"
        )


class PrintFormatError(ValueError):
    """The template of `debug.print` cannot format its arguments."""

    def __init__(self, template: str, problem: str, arguments: Sequence[str]) -> None:
        super().__init__(
            f"debug.print({template!r}, ...): {problem}; the arguments are "
            f"{', '.join(arguments) or 'none'}, and the template, in the language of str.format, "
            "must use each: {} or {0} by position, {name} by name; formats of numbers, such as "
            "{:.3f}, fit values without axes only, and a literal brace is doubled"
            f"{_user_line()}"
        )


class StepLimitError(RuntimeError):
    """A loop had not ended after the `max_steps` that it was given."""


def step_limit_text(condition: Callable[..., Any], body: Callable[..., Any], limit: int) -> str:
    """What a `StepLimitError` says."""
    return (
        f"while_loop: {function_text(condition)} still held after max_steps={limit} runs of "
        f"{function_text(body)}; raise max_steps, or take the carry as it is then with "
        f"on_max_steps='stop'{_user_line()}"
    )


class TimeLimitError(RuntimeError):
    """A program was stopped because the time of a `time_limit` was up."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the program had not ended when its time_limit of {seconds:g} s was up, and was "
            "stopped; its results are lost. Allow more time, or bound its loops with max_steps"
        )


class StoppedError(RuntimeError):
    """An array was used whose program had been stopped before it was computed."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"this array was being computed when {reason} stopped its program: it has no elements; "
            "call the function again, and bound its loops with max_steps if they "
            "may not end"
        )


class ClosedError(RuntimeError):
    """An executable was called after it had been closed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the executable of {name!r} was closed; compile it again")


class UpdateError(RuntimeError):
    """The driver refused to give a node of an executable a new address or value.

    The executable stays as it was: the call raises without a launch, and the next one writes again
    all that differs.
    """

    def __init__(self, name: str, node: str, reason: str) -> None:
        super().__init__(
            f"the graph of {name!r} could not be updated at {node}: {reason}; pass arrays of this "
            "device, or compile the function again"
        )


class OutOfMemoryError(MemoryError):
    """A device had not enough memory, though all that was not in use had been given back.

    Attributes:
        device: its name.
        nbytes: what was asked for.
        free, total: bytes of the device, of which other programs hold some.
        held: bytes that this process holds, by purpose.
        functions: those whose executables hold the most, with the bytes of each.
        function: the one that was called or compiled, if any.
    """

    def __init__(
        self,
        device: str,
        nbytes: int,
        free: int,
        total: int,
        held: Mapping[str, int],
        functions: Sequence[tuple[str, int]],
    ) -> None:
        super().__init__(device, nbytes, free, total, held, functions)
        self.device, self.nbytes, self.free, self.total = device, nbytes, free, total
        self.held, self.functions = held, functions
        self.function: str | None = None

    def __str__(self) -> str:
        asked = "" if self.function is None else f" that {self.function} asked for"
        held = ", ".join(f"{purpose} {nbytes:,}" for purpose, nbytes in self.held.items())
        by = ", ".join(f"{name} {nbytes:,}" for name, nbytes in self.functions) or "none"
        return (
            f"{self.device} has not enough memory for {self.nbytes:,} bytes{asked}: "
            f"{self.free:,} of {self.total:,} are free\n  held here, in bytes: {held}\n"
            f"  by executables, scratch that they share included: {by}\n"
            "Let go of Arrays that are no longer needed, donate arguments, or work in smaller parts"
        )


class ScanLengthError(ValueError):
    """The xs of a scan have no common leading axis, or not that of `length`."""

    def __init__(
        self, construct: str, problem: str, rows: Sequence[tuple[str, ArrayType]] = ()
    ) -> None:
        lines = (f"{construct}: {problem}", *(f"{path}: {type_}" for path, type_ in rows))
        super().__init__("\n  ".join(lines) + _user_line())


def value_text(value: object) -> str:
    """What a value is, in messages: `None`, `the function step (solver.py:12)`, its class."""
    from tracegraph.tracer import Tracer  # imports this module
    from tracegraph.types import type_of

    if value is None:
        return "None"
    if isinstance(value, Tracer):
        return _described(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return f"an array of type {type_of(value)}"
    if type(value) in (bool, int, float, complex, str) and len(repr(value)) <= 40:
        return f"{value!r} ({type(value).__module__}.{type(value).__qualname__})"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {function_text(value)}"
    return f"an instance of {type(value).__module__}.{type(value).__qualname__}"


def _structure_text(structure: Structure) -> str:
    text = str(structure).removeprefix("PyTreeSpec(")
    return text.rpartition(")")[0].removesuffix(", namespace='tracegraph'")


def _type_advice(types: Sequence[ArrayType]) -> str:
    if len({t.shape for t in types}) > 1:
        return "make the shapes equal, for example with numpy.broadcast_to"
    strong = next(t for t in types if not t.weak)
    return f"cast one, for example with .astype(numpy.{strong.dtype})"


class VerificationError(Exception):
    """A program is not well formed: a defect of a pass or of an op, not of the traced function."""

    def __init__(self, program: Program, problem: str, eqn: Eqn | None) -> None:
        from tracegraph.text import program_text  # imports the op record, which imports this module

        text = program_text(program, mark=eqn)
        super().__init__(f"program {program.name}: {problem}\n{text}")


class ResultTypeError(Exception):
    """The reference of an op gave results of other types than its type rule says."""

    def __init__(self, eqn: Eqn, got: Sequence[str]) -> None:
        needed = ", ".join(str(v.type) for v in eqn.outputs)
        where = f" # {eqn.source}" if eqn.source else ""
        operands = ", ".join(str(a.type) for a in eqn.operands)
        attrs = f"[{', '.join(f'{k}={v}' for k, v in eqn.attrs.items())}]" if eqn.attrs else ""
        super().__init__(
            f"reference of {eqn.op.name}{attrs} ({operands}) gave ({', '.join(got)}), its type "
            f"rule says ({needed}){where}"
        )
