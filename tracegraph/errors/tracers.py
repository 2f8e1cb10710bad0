"""Misuse of traced values: what needs their elements, or changes or outlives them."""

from __future__ import annotations

from typing import ClassVar, Self

from tracegraph.errors.wording import TracerLike, TypeLike, described, user_line

__all__ = [
    "BooleanMaskError", "EscapedTracerError", "InPlaceCastError", "ShapeDependentError",
    "StaticArgumentError", "TracerArrayError", "TracerBoolError", "TracerComplexError",
    "TracerFloatError", "TracerFormatError", "TracerHashError", "TracerIndexError",
    "TracerIntegerError", "TracerItemError", "TracerIterationError", "TracerMisuseError",
    "TracerSliceError", "TracerWriteError", "UnrepresentableError", "UnsupportedAttributeError",
    "UnsupportedByTracerError",
]  # fmt: skip


class TracerMisuseError(TypeError):
    """A traced value was used where elements are needed: these exist only when the graph runs."""

    operation: ClassVar[str] = "this operation"
    instead: ClassVar[str] = "return it from the traced function, and do this with the result"

    def __init__(
        self, tracer: TracerLike, operation: str | None = None, instead: str | None = None
    ) -> None:
        super().__init__(
            f"{operation or self.operation} needs the elements of {described(tracer)}, which are "
            f"not known while the function is traced; {instead or self.instead}{user_line()}"
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
    """A traced value as the argument of `range`, a shape, an index or a repetition of a list."""

    operation = "operator.index(), on behalf of `range`, a shape, an index, or `[x] * n`,"
    instead = (
        "use tracegraph.fori_loop instead of `for i in range(n)`; index with it only traced arrays "
        "(tracegraph.numpy.asarray(table)[i]), with x[start + numpy.arange(size)] or "
        "tracegraph.dynamic_slice(x, (start,), (size,)) for a slice at a traced start, or "
        "tracegraph.switch to choose from a list; make a size static with "
        "jit(..., static_argnums=...)"
    )


_STATIC = "make it static with jit(..., static_argnums=...), so that each value is traced anew"

_FROM_SHAPES = "take it from shapes (x.shape[0])"
_INSTEAD_OF_STATIC = {
    **dict.fromkeys(("shape", "num", "reps", "size", "length", "N", "M"), _FROM_SHAPES),
    "axis": "choose among the axes with tracegraph.switch",
    "decimals": "scale by a traced power of ten, numpy.round(x * s) / s",
    "repeats": "index with traced positions of a static number, x[numpy.arange(length) // n]",
}
"""What else to do with a traced value for a parameter of this name."""


class StaticArgumentError(TracerIndexError):
    """A traced value for what decides shapes or axes: it must be known while tracing."""

    def __init__(self, function: str, parameter: str, tracer: TracerLike) -> None:
        instead = _INSTEAD_OF_STATIC.get(parameter)
        TypeError.__init__(
            self,
            f"argument {parameter} of {function} must be known while the function is traced, and "
            f"is {described(tracer)}; {_STATIC}{f', or {instead}' if instead else ''}{user_line()}",
        )


_SLICE = (
    "tracegraph.dynamic_slice(x, (start,), (size,)) reads a slice of static size at a traced "
    "start, x[start + numpy.arange(size)] reads or writes one, and "
    "numpy.where(numpy.arange(n) < stop, x, 0) keeps the elements before a traced stop"
)


class TracerSliceError(TracerIndexError):
    """A traced value as a bound of a slice: the size of the result would depend on it."""

    def __init__(self, bound: str, tracer: TracerLike) -> None:
        TypeError.__init__(
            self,
            f"the {bound} of a slice must be known while the function is traced, and is "
            f"{described(tracer)}; {_SLICE}; or {_STATIC}{user_line()}",
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
    """A traced mask as an index, where the number of its true elements matters."""

    operation = "indexing with a boolean mask"
    instead = (
        "use numpy.where(mask, x, other) to keep the shape, numpy.sum(x, where=mask) to reduce, "
        "tracegraph.numpy.extract(mask, x, size=n) for the first n elements, and x[mask] = value "
        "with a value that does not depend on the number of true elements"
    )
    is_of_shape: bool = False
    """Whether a function has asked for a shape or an array, which should be named instead."""

    @classmethod
    def of_read(
        cls,
        tracer: TracerLike,
        operation: str,
        instead: str = "",
        *,
        read: str,
        array: str,
        mask: str,
    ) -> Self:
        """The error of what needs the number of elements of `read`, the user's `array[mask]`."""
        error = cls.__new__(cls)
        general = (
            f"functions of elements and reductions of {read} work, and assigning them to the same "
            f"places, y[{mask}] = ...; else write numpy.where({mask}, {array}, other), which keeps "
            f"the shape, or tracegraph.numpy.extract({mask}, {array}, size=n), for the first n "
            "elements"
        )
        TypeError.__init__(
            error,
            f"{operation or read} needs the number of true elements of {mask}, "
            f"{described(tracer)}, which is not known while the function is traced; "
            f"{instead or general}{user_line()}",
        )
        return error


class ShapeDependentError(TracerMisuseError):
    """A function whose result's shape depends on the elements."""

    instead = (
        "use what keeps the shape, such as numpy.where(condition, x, y) with three arguments, or "
        "return the value from the traced function, and do this with the result"
    )

    def __init__(self, tracer: TracerLike, operation: str, sized: str = "") -> None:
        """`sized` is the call that gives the result a static size, if there is one."""
        room = f"give the result a static size, {sized}; or {self.instead}" if sized else None
        super().__init__(tracer, operation, room)


class TracerHashError(TracerMisuseError):
    """A traced value as a key of a dict, in a set, or as an argument of a cached function."""

    operation = "hash(), on behalf of a dict, a set or functools.cache,"
    instead = (
        "use tracegraph.switch to choose by a traced integer, or index a traced array with it "
        "(tracegraph.numpy.asarray(table)[i]); or make the argument static with "
        "jit(..., static_argnums=...)"
    )


class EscapedTracerError(TracerMisuseError):
    """A traced value was used after its trace had ended."""

    def __init__(self, tracer: TracerLike) -> None:
        TypeError.__init__(
            self,
            f"{described(tracer)} was used outside the function whose trace made it; return it "
            f"from that function instead of storing it elsewhere{user_line()}",
        )


class TracerWriteError(TypeError, ValueError):
    """A traced value that must not change was written to; NumPy raises ValueError there."""

    def __init__(self, tracer: TracerLike, reason: str, instead: str = "") -> None:
        instead = instead or "use y = x.at[i].set(v)"
        super().__init__(
            f"assignment to {described(tracer)}, {reason}; write to a copy (y = x.copy(); y[i] = "
            f"v), or {instead}{user_line()}"
        )


class UnrepresentableError(TypeError, ValueError, OverflowError):
    """A number was to become an element of a dtype that does not hold it.

    NumPy raises one of the three: TypeError for a complex number, ValueError for NaN, OverflowError
    for an infinity or a number out of range.
    """

    def __init__(self, value: str, dtype: object, reason: str) -> None:
        super().__init__(
            f"{value} is no element of an array of dtype {dtype}: {reason}; make the array of a "
            f"dtype that holds it (x.astype(float), x.astype(complex)), or convert the number first"
            f"{user_line()}"
        )


class InPlaceCastError(TypeError):
    """The result of an in-place operation does not fit the dtype of its target."""

    def __init__(self, name: str, result: TypeLike, target: TracerLike) -> None:
        super().__init__(
            f"cannot cast the result of {name}, of type {result}, in place to {described(target)} "
            "with "
            f'casting rule "same_kind"; use x = numpy.{name}(x, y), or .astype first{user_line()}'
        )


class UnsupportedByTracerError(TypeError):
    """NumPy has a function or an argument that tracegraph lacks."""

    def __init__(self, what: str, instead: str = "") -> None:
        advice = instead or "compute it from the functions of tracegraph.numpy, or outside"
        super().__init__(f"{what} is not supported for traced values; {advice}{user_line()}")


class UnsupportedAttributeError(UnsupportedByTracerError, AttributeError):
    """NumPy's arrays have a method or an attribute that traced values lack."""

    def __init__(self, name: str) -> None:
        super().__init__(f"ndarray.{name}")
