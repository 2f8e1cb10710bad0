"""Array types and NumPy 2 promotion.

    ArrayType := dtype "[" extent* "]"        f32[4,4]   i64[]   ~f64[]

A leading ``~`` marks a *weak* type: that of a Python scalar, which adapts to the dtype of arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.dtypes import BOOL, bfloat16, canonical_dtype, type_text
from tracegraph.errors import IntegerRangeError
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ArrayType:
    """The type of an array while tracing: dtype, shape, and whether it is weak.

    >>> print(ArrayType("float32", (4, 4)))
    f32[4,4]
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...] = ()
    weak: bool = False
    size: int = field(init=False, repr=False, compare=False)
    """Number of elements."""
    nbytes: int = field(init=False, repr=False, compare=False)
    """Bytes of a contiguous array of this type."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            shape = tuple(map(int, self.shape))
        except (TypeError, ValueError) as error:
            if type(error) not in (TypeError, ValueError):  # of a traced value
                raise
            raise TypeError(
                "ArrayType takes a dtype and a shape of numbers, as ArrayType('float32', (4, 3)); "
                f"got {self.dtype!r} and {self.shape!r}"
            ) from None
        if shape and min(shape) < 0:
            raise ValueError(f"an extent must not be negative: got shape {shape}")
        dtype = canonical_dtype(self.dtype)
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "size", prod(shape))
        object.__setattr__(self, "nbytes", self.size * dtype.itemsize)
        object.__setattr__(self, "_hash", hash((dtype, shape, self.weak)))

    def __hash__(self) -> int:
        return self._hash  # types are keys wherever an equation is typed

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrayType, (self.dtype, self.shape, self.weak)  # hashes differ between processes

    def __str__(self) -> str:
        return f"{'~' if self.weak else ''}{type_text(self.dtype, self.shape)}"

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def with_dtype(self, dtype: DTypeLike) -> ArrayType:
        """The strong type of the same shape and another dtype."""
        return ArrayType(np.dtype(dtype), self.shape)

    def with_shape(self, shape: Sequence[int]) -> ArrayType:
        """The type of the same dtype and weakness, and another shape."""
        return ArrayType(self.dtype, tuple(shape), self.weak)

    def strong(self) -> ArrayType:
        """The same type, not weak."""
        return ArrayType(self.dtype, self.shape) if self.weak else self


@lru_cache(maxsize=4096)
def canonical_type(type_: ArrayType) -> ArrayType:
    """The first of equal types. Look-ups by type are faster if equal types are one object.

    >>> canonical_type(ArrayType("int8", (1,))) is canonical_type(ArrayType("int8", (1,)))
    True
    """
    return type_


PYTHON_SCALARS: dict[str, type] = {"i": int, "u": int, "f": float, "c": complex}


@lru_cache(maxsize=64)
def scalar_type(dtype: np.dtype[Any], weak: bool = False) -> ArrayType:
    """The type of a scalar, made once."""
    return canonical_type(ArrayType(dtype, (), weak))


_BOOL = scalar_type(BOOL)
_FLOAT = scalar_type(np.dtype(np.float64), True)
_COMPLEX = scalar_type(np.dtype(np.complex128), True)
_INT = scalar_type(np.dtype(np.int64), True)
_UNSIGNED = scalar_type(np.dtype(np.uint64), True)


def type_of(value: Any) -> ArrayType:
    """The type of a Python scalar, NumPy scalar or array.

    Python ints, floats and complex numbers are weak; a bool is not, as in NumPy.

    Raises:
        TypeError: `value` is neither a number nor an array of a supported dtype, or it is a matrix
            or a masked array.
        IntegerRangeError: a Python int beyond 64 bits.

    >>> print(type_of(1), type_of(np.float32(1)), type_of(True))
    ~i64[] f32[] bool[]
    """
    kind = type(value)
    if kind is float:
        return _FLOAT
    if kind is bool:
        return _BOOL
    if kind is int:
        return _type_of_int(value)
    if kind is complex:
        return _COMPLEX
    if isinstance(value, np.generic):
        return scalar_type(value.dtype)
    own = getattr(value, "type", None)
    if isinstance(own, ArrayType):  # a tracer's or an Array's
        return own
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        raise TypeError(f"{kind.__module__}.{kind.__qualname__} is not an array or a number")
    if kind is not np.ndarray:
        require_plain(value)
    return ArrayType(dtype, shape, bool(getattr(value, "weak", False)))


_REFUSED = {
    "numpy.matrix": (
        "a numpy.matrix, whose `*` is a matrix product; pass numpy.asarray(x), and use `@`"
    ),
    "numpy.ma.MaskedArray": (
        "a masked array, whose mask would be lost; pass x.filled(value), or the data and the mask "
        "as two arrays"
    ),
}
"""By name of a class, what it is. To import `numpy.ma` takes 10 ms."""


def require_plain(value: Any, verb: str = "got") -> None:
    """Refuse the classes of arrays whose operations are not those of their elements.

    Raises:
        TypeError: `value` is a matrix or a masked array; the message begins with the verb.
    """
    if not isinstance(value, np.ndarray):
        return
    for refused, text in _REFUSED.items():
        module, _, name = refused.rpartition(".")
        if module in sys.modules and isinstance(value, getattr(sys.modules[module], name, ())):
            raise TypeError(f"{verb} {text}")


def _type_of_int(value: int) -> ArrayType:
    if -(2**63) <= value < 2**63:
        return _INT
    if 0 <= value < 2**64:
        return _UNSIGNED
    raise IntegerRangeError(value)


def promotion_tokens(types: Sequence[ArrayType]) -> tuple[Any, ...]:
    """Types as NumPy's promotion takes them: the dtype, or the Python class if one is weak.

    A Python float beside bfloat16 becomes that, as one beside float16 does: NumPy does not know
    that bfloat16 is a floating-point dtype, and would take float32 or float64.
    """
    floats: Any = float
    if any(t.dtype == bfloat16 and not t.weak for t in types):
        floats = bfloat16
    of_weak = {"f": floats}
    return tuple(
        [
            of_weak.get(t.dtype.kind, PYTHON_SCALARS[t.dtype.kind]) if t.weak else t.dtype
            for t in types
        ]
    )


@lru_cache(maxsize=1024)
def result_type(*types: ArrayType) -> np.dtype[Any]:
    """The common dtype of these types, by NumPy 2's promotion.

    Python ints stay integers: one that needs uint64 makes the others uint64 as well.

    Raises:
        TypeError: NumPy has no common dtype for them (bfloat16 with float16).
    """
    if all(t.weak for t in types):
        return _UNSIGNED.dtype if mixes_signs(types) else np.result_type(*(t.dtype for t in types))
    if len(types) == 2:
        return np.add.resolve_dtypes((*promotion_tokens(types), None))[2]
    return _many(types)


def mixes_signs(types: Sequence[ArrayType]) -> bool:
    """Whether these are Python ints of int64 and of uint64, for which NumPy takes float64."""
    return set(types) == {_INT, _UNSIGNED}


def _many(types: Sequence[ArrayType]) -> np.dtype[Any]:
    strong = np.result_type(*(t.dtype for t in types if not t.weak))
    for weak in (t for t in types if t.weak):
        strong = result_type(ArrayType(strong), weak)
    return strong


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a contiguous row-major array.

    >>> row_major_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return tuple(strides)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's broadcast of shapes.

    Raises:
        ValueError: two extents differ and neither is 1.
    """
    if not shapes:
        return ()
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    try:
        return _broadcast(shapes)
    except ValueError:
        listed = ", ".join(str(s) for s in shapes)
        raise ValueError(
            f"shapes {listed} do not broadcast: aligned from the right, extents must be equal or 1"
        ) from None


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """`numpy.broadcast_shapes`, which takes up to 32 axes, for the 64 that arrays can have.

    Raises:
        ValueError: two extents differ and neither is 1.
    """
    rank = max(map(len, shapes))
    if rank <= 32:
        return np.broadcast_shapes(*shapes)
    found = [1] * rank
    for shape in shapes:
        for k, extent in enumerate(shape, rank - len(shape)):
            if found[k] == 1:
                found[k] = extent
            elif extent not in (1, found[k]):
                raise ValueError
    return tuple(found)
