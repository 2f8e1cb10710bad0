"""Operators: the operators, methods and properties that Array and Tracer share with ndarray.

Each calls the function of `tracegraph.numpy` with NumPy's name for the operation, so that operators
and functions agree. In-place operators are not among them: on an immutable Array `x += 1` rebinds
`x`, and tracers have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.errors import UnsupportedByTracerError
from tracegraph.errors.tracebacks import hide_frames
from tracegraph.ir.types import type_of
from tracegraph.tracing.flat import Flat
from tracegraph.tracing.function_table import ARRAY_API, FUNCTIONS
from tracegraph.tracing.updates import At
from tracegraph.tracing.views import order_of

_Method = Callable[..., Any]


def _is_operand(x: Any) -> bool:
    """Whether an operator takes `x`; if not, Python asks `x` for its reflected operator."""
    if isinstance(x, _OPERANDS):
        return True
    if getattr(x, "__array_ufunc__", x) is None:  # NumPy's way to say: my operators come first
        return False
    return isinstance(x, (list, tuple)) or any(hasattr(x, name) for name in _ELEMENTS)


_ELEMENTS = ("__array__", "__dlpack__", "__cuda_array_interface__")
"""Protocols, one of which arrays have. A sparse matrix of SciPy has none."""


def _binary(name: str, converting: str = "operand") -> _Method:
    """`converting` is the method that converts a value to an operand."""

    def method(self: Any, other: Any) -> Any:
        try:
            if isinstance(other, _OPERANDS):
                return FUNCTIONS[name](self, other)
            if not _is_operand(other):
                return NotImplemented
            return FUNCTIONS[name](self, getattr(self, converting)(other))
        except BaseException as error:
            hide_frames(error)
            raise

    return method


def _equality(name: str, otherwise: bool) -> _Method:
    """`==` or `!=`; compared with something that is not a number, such as None, elements give
    `otherwise`.
    """
    compared = _binary(name)

    def method(self: Any, other: Any) -> Any:
        found = compared(self, other)
        if found is NotImplemented and self.ndim and is_no_number(other):
            return FUNCTIONS["compared_with_no_number"](self, otherwise)
        return found

    return method


def is_no_number(x: Any) -> bool:
    """Whether elements differ from `x` without asking it: None, text, an object without `==`."""
    kind: Any = type(x)
    return kind.__module__ == "builtins" or kind.__eq__ is object.__eq__


def _reflected(name: str, converting: str = "operand") -> _Method:
    def method(self: Any, other: Any) -> Any:
        try:
            if not _is_operand(other):
                return NotImplemented
            return FUNCTIONS[name](getattr(self, converting)(other), self)
        except BaseException as error:
            hide_frames(error)
            raise

    return method


def _unary(name: str) -> _Method:
    def method(self: Any) -> Any:
        try:
            return FUNCTIONS[name](self)
        except BaseException as error:
            hide_frames(error)
            raise

    return method


def _like_function(name: str) -> _Method:
    """A method with the arguments of the function of the same name, but for the array itself."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return FUNCTIONS[name](self, *args, **kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    method.__name__ = name
    method.__doc__ = f"The same as `tracegraph.numpy.{name}` of this array."
    return method


def _as_tuple(args: tuple[Any, ...]) -> Any:
    """The two spellings of ndarray: `x.reshape(2, 3)` and `x.reshape((2, 3))`."""
    return args[0] if len(args) == 1 else args


class ArrayOperators:
    """Mixin with ndarray's operators and methods over the functions of `tracegraph.numpy`."""

    __slots__ = ()

    def operand(self, x: Any) -> Any:
        """The other operand of an operator: a list or tuple as an array."""
        return np.asarray(x) if isinstance(x, (list, tuple)) else x

    factor = operand

    # `==` is elementwise, so there is no hash that would agree with it.
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _binary("multiply", "factor"), _reflected("multiply", "factor")
    __truediv__, __rtruediv__ = _binary("divide"), _reflected("divide")
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _binary("remainder"), _reflected("remainder")
    __rpow__ = _reflected("power")
    __matmul__, __rmatmul__ = _binary("matmul"), _reflected("matmul")
    __and__, __rand__ = _binary("bitwise_and"), _reflected("bitwise_and")
    __or__, __ror__ = _binary("bitwise_or"), _reflected("bitwise_or")
    __xor__, __rxor__ = _binary("bitwise_xor"), _reflected("bitwise_xor")
    __lshift__, __rlshift__ = _binary("left_shift"), _reflected("left_shift")
    __rshift__, __rrshift__ = _binary("right_shift"), _reflected("right_shift")

    __eq__, __ne__ = _equality("equal", False), _equality("not_equal", True)
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")

    __neg__, __pos__ = _unary("negative"), _unary("positive")
    __abs__, __invert__ = _unary("absolute"), _unary("invert")

    def __divmod__(self, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return other // self, other % self

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            raise UnsupportedByTracerError(
                "pow() with three arguments", "write x**n % modulus, or a loop of products"
            )
        return _power(self, other)

    def __getitem__(self, index: Any) -> Any:
        try:
            return FUNCTIONS["getitem"](self, index)
        except BaseException as error:
            hide_frames(error)
            raise

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """`tracegraph.array_api`, which follows the array API standard in its 2024.12 version.

        Raises:
            ValueError: another version than that and earlier ones was asked for.
        """
        namespace: ModuleType = ARRAY_API["namespace"](api_version)
        return namespace

    @property
    def at(self) -> At:
        """Functional updates: `x.at[index].set(value)` is a new array.

        >>> import tracegraph
        >>> tracegraph.asarray([1, 2, 3]).at[0].set(7)
        Array([7, 2, 3], dtype=int64)
        """
        return At(self)

    @property
    def flat(self) -> Flat:
        """The elements in row-major order, as one axis."""
        return Flat(self)

    @flat.setter
    def flat(self, values: Any) -> None:
        self.flat[:] = values

    T = property(_unary("transpose"), doc="The array with its axes reversed.")
    real = property(_unary("real"), doc="The real part.")
    imag = property(_unary("imag"), doc="The imaginary part.")

    all = _like_function("all")
    any = _like_function("any")
    argmax = _like_function("argmax")
    argmin = _like_function("argmin")
    argpartition = _like_function("argpartition")
    argsort = _like_function("argsort")
    clip = _like_function("clip")
    cumprod = _like_function("cumprod")
    cumsum = _like_function("cumsum")
    diagonal = _like_function("diagonal")
    dot = _like_function("dot")
    max = _like_function("max")
    mean = _like_function("mean")
    min = _like_function("min")
    nonzero = _like_function("nonzero")
    prod = _like_function("prod")
    ravel = _like_function("ravel")
    repeat = _like_function("repeat")
    searchsorted = _like_function("searchsorted")
    round = _like_function("round")
    squeeze = _like_function("squeeze")
    std = _like_function("std")
    sum = _like_function("sum")
    swapaxes = _like_function("swapaxes")
    take = _like_function("take")
    trace = _like_function("trace")
    var = _like_function("var")

    def __round__(self, ndigits: int | None = None) -> Any:
        """`round(x)` of an array without axes is an integer, as of a number of NumPy's or Python's;
        with a number of digits, and of other arrays, it is `tracegraph.numpy.round`.
        """
        own: Any = self
        rounded = FUNCTIONS["round"](self, ndigits or 0)
        if ndigits is not None or own.ndim:
            return rounded
        return FUNCTIONS["rounded_to_int"](rounded)

    def conjugate(self, *args: Any, **kwargs: Any) -> Any:
        """The complex conjugates; a real array itself, which `numpy.conjugate` copies."""
        own: Any = self
        if own.dtype.kind != "c" and not args and not kwargs:
            return own
        return FUNCTIONS["conjugate"](self, *args, **kwargs)

    conj = conjugate

    def choose(self, *choices: Any, out: Any = None, mode: str = "raise") -> Any:
        """Elements of several arrays, or of a sequence of them: `tracegraph.numpy.choose`."""
        try:
            return FUNCTIONS["choose"](self, _as_tuple(choices), out, mode)
        except BaseException as error:
            hide_frames(error)
            raise

    @property
    def mT(self) -> Any:  # noqa: N802 - ndarray's name
        """The array with its last two axes swapped."""
        return FUNCTIONS["swapaxes"](self, -2, -1)

    def astype(
        self,
        dtype: DTypeLike,
        order: str = "K",
        casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Any:
        """The array converted to another dtype, if `casting` allows it.

        It is laid out as this one, or by rows or columns with `order` "C" or "F".
        """
        try:
            known_order = order_of(order, "K")
            target, own = np.dtype(dtype), type_of(self).dtype
            if casting != "unsafe" and not np.can_cast(own, target, casting):
                raise TypeError(
                    f"cannot cast from {own} to {target} according to the rule {casting!r}"
                )
            converted = FUNCTIONS["astype"](self, dtype, copy=copy)
            if known_order == "A":
                return FUNCTIONS["copy"](converted, order="A")
            return FUNCTIONS["asarray"](converted, order=known_order)
        except BaseException as error:
            hide_frames(error)
            raise

    def compress(self, condition: Any, axis: int | None = None, **options: Any) -> Any:
        """The elements at which a condition holds: `tracegraph.numpy.compress(condition, x)`."""
        return FUNCTIONS["compress"](condition, self, axis, **options)

    def view(self, dtype: DTypeLike | None = None) -> Any:
        """The array itself, or its bits as elements of another dtype of the same size.

        Raises:
            UnsupportedByTracerError: traced, the dtypes are not integers or floats of one size of
                at least 32 bits; integers may be smaller.
        """
        return FUNCTIONS["viewed"](self, dtype)

    def copy(self, order: str = "C") -> Any:
        """A new array with the same elements, laid out as `tracegraph.numpy.copy` has it."""
        return FUNCTIONS["copy"](self, order=order_of(order))

    def flatten(self, order: str = "C") -> Any:
        """A new one-dimensional array of the elements, in an order of `tracegraph.numpy.ravel`."""
        return FUNCTIONS["copy"](FUNCTIONS["ravel"](self, order))

    def reshape(
        self, *shape: int | Sequence[int], order: str = "C", copy: bool | None = None
    ) -> Any:
        """The same elements in another shape; one extent may be -1."""
        try:
            return FUNCTIONS["reshape"](self, _as_tuple(shape), order, copy=copy)
        except BaseException as error:
            hide_frames(error)
            raise

    def transpose(self, *axes: int | Sequence[int] | None) -> Any:
        """The array with its axes permuted; without arguments, reversed."""
        try:
            return FUNCTIONS["transpose"](self, _as_tuple(axes) if axes else None)
        except BaseException as error:
            hide_frames(error)
            raise


_power = _binary("raised")

_OPERANDS = (ArrayOperators, bool, int, float, complex)
"""Classes of operands that are taken as they are."""


def in_place(name: str, function: str | None = None) -> Callable[[InPlaceOperators, Any], Any]:
    """The method of an operator such as `+=`, which computes by a function of another name or of
    its own.
    """
    function = function or name

    def method(self: InPlaceOperators, other: Any) -> Any:
        try:
            return self._replaced(FUNCTIONS[function](self, other), name, other)
        except BaseException as error:
            if isinstance(error, TypeError) and not _is_operand(other):
                return NotImplemented
            hide_frames(error)
            raise

    return method


class InPlaceOperators:
    """Operators that write to their left operand, as a class that has this base says."""

    __slots__ = ()

    def _replaced(self, result: Any, name: str, other: Any) -> Any:
        """What the operand is once the function `name` has given a result of it and the other."""
        raise NotImplementedError

    __iadd__ = in_place("add")
    __isub__ = in_place("subtract")
    __imul__ = in_place("multiply")
    __itruediv__ = in_place("divide")
    __ifloordiv__ = in_place("floor_divide")
    __imod__ = in_place("remainder")
    __ipow__ = in_place("power", "raised")
    __iand__ = in_place("bitwise_and")
    __ior__ = in_place("bitwise_or")
    __ixor__ = in_place("bitwise_xor")
    __ilshift__ = in_place("left_shift")
    __irshift__ = in_place("right_shift")
