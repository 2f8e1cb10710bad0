"""Strategies of arrays and scalars: arguments for functions under test."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import DTypeLike

from tracegraph.dtypes import bfloat16, canonical_dtype
from tracegraph.errors.tracebacks import entry_point
from tracegraph.testing.array_texts import DTYPES, ArrayText, parsed

Strategy = st.SearchStrategy[Any]

SIZES = (0, 6)
"""Between which a named size is, unless the caller says otherwise."""


@entry_point
def arrays(
    text: str,
    *texts: str,
    sizes: Mapping[str, int | tuple[int, int]] | None = None,
    elements: Strategy | None = None,
    min_value: float | None = None,
    max_value: float | None = None,
    finite: bool = True,
    layouts: bool = False,
) -> Strategy:
    """Arrays of the types that texts describe; sizes with one name are equal in all of them.

    Args:
        text: dtype and extents, as in ``"f32[n,3]"`` or ``"bool[]"``. Extents are numbers, or names
            of sizes that are drawn. Dtypes have their short names, or NumPy's.
        *texts: more arrays. Then the strategy gives tuples, else single arrays.
        sizes: for some names, the size, or the smallest and the largest one. Others are between 0
            and 6.
        elements: a strategy of elements for all arrays, in place of `scalars` with what follows.
        min_value: the smallest element, where a dtype has smaller ones. Not for complex numbers.
        max_value: the largest element, where a dtype has larger ones. Not for complex numbers.
        finite: without NaNs and infinities. Ranges have none, either.
        layouts: also arrays that are not contiguous: transposed, reversed, and of every other row.

    Raises:
        TypeError: a text or a size is of another kind.
        ValueError: a text has another form, no text has a size that is given, or a range is empty.

    >>> from hypothesis import given
    >>> @given(arrays("f32[n,3]", "f32[3]", "i64[n]", sizes={"n": (1, 8)}, max_value=99))
    ... def test_shapes(drawn):
    ...     points, center, labels = drawn
    ...     assert np.maximum(points, center).shape == (len(labels), 3)
    >>> test_shapes()
    """
    described = [parsed(array_text) for array_text in (text, *texts)]
    ranges = {name: SIZES for array_text in described for name in array_text.names}
    for name, size in (sizes or {}).items():
        if name not in ranges:
            names = ", ".join(ranges) if ranges else "no names"
            raise ValueError(f"sizes has {name!r}, but the arrays have {names}")
        ranges[name] = _range(name, size)
    chosen = [
        scalars(array_text.dtype, min_value=min_value, max_value=max_value, finite=finite)
        if elements is None
        else elements
        for array_text in described
    ]
    named = st.fixed_dictionaries(
        {name: st.integers(least, most) for name, (least, most) in ranges.items()}
    )

    def with_sizes(drawn: Mapping[str, int]) -> Strategy:
        members = [_array(d, drawn, e, layouts) for d, e in zip(described, chosen, strict=True)]
        return st.tuples(*members) if texts else members[0]

    return named.flatmap(with_sizes)


def _range(name: str, size: int | tuple[int, int]) -> tuple[int, int]:
    pair = (size, size) if isinstance(size, int) else size
    if not (
        isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(end, int) for end in pair)
    ):
        raise TypeError(f"sizes[{name!r}] is an int or a pair of ints, not {size!r}")
    if not 0 <= pair[0] <= pair[1]:
        raise ValueError(f"sizes[{name!r}] has no size of at least 0: got {size!r}")
    return pair


def _array(
    described: ArrayText, drawn: Mapping[str, int], elements: Strategy, layouts: bool
) -> Strategy:
    shape = tuple(drawn[e] if isinstance(e, str) else e for e in described.extents)

    def made(shape: tuple[int, ...]) -> Strategy:
        if described.dtype != bfloat16:
            return npst.arrays(described.dtype, shape, elements=elements)
        # hypothesis does not know it, and float32 holds all of its numbers
        wide = npst.arrays(np.float32, shape, elements=elements.map(float))
        return wide.map(lambda x: x.astype(bfloat16))

    if not layouts or not shape:
        return made(shape)
    return st.one_of(
        made(shape),
        made(shape[::-1]).map(np.transpose),
        made(shape).map(np.flip),
        made((2 * shape[0], *shape[1:])).map(lambda x: x[::2]),
    )


@entry_point
def scalars(
    dtype: DTypeLike | str,
    *,
    min_value: float | None = None,
    max_value: float | None = None,
    finite: bool = True,
) -> Strategy:
    """NumPy scalars of a dtype, extreme ones, zeros of both signs and subnormal numbers included.

    Args:
        dtype: a dtype, its name, or its short name, such as ``"f32"``.
        min_value: the smallest one, where the dtype has smaller ones. Not for complex numbers.
        max_value: the largest one, where the dtype has larger ones. Not for complex numbers.
        finite: without NaNs and infinities. Ranges have none, either.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: there is no number between `min_value` and `max_value`, or the dtype is complex
            and one of them is given.

    >>> from hypothesis import given
    >>> @given(scalars("f16", min_value=0))
    ... def test_roots(x):
    ...     assert np.sqrt(x).dtype == "float16"
    >>> test_roots()
    """
    known = DTYPES[dtype] if isinstance(dtype, str) and dtype in DTYPES else canonical_dtype(dtype)
    bounds = (min_value, max_value)
    if known.kind == "c" and bounds != (None, None):
        raise ValueError(f"{known} has no order: leave out min_value and max_value")
    if None not in bounds and not bounds[0] <= bounds[1]:  # type: ignore[operator]
        raise ValueError(f"there is no number from min_value={min_value} to max_value={max_value}")
    if known.kind == "b":
        return st.booleans().map(np.bool_)
    if known.kind in "iu":
        return _integers(known, min_value, max_value)
    if known.kind == "c":
        part = _floats(np.zeros((), known).real.dtype, None, None, finite)
        return st.tuples(part, part).map(lambda pair: known.type(complex(*pair)))
    return _floats(known, min_value, max_value, finite)


def _integers(dtype: np.dtype[Any], least: float | None, most: float | None) -> Strategy:
    info = np.iinfo(dtype)
    low = info.min if least is None else max(info.min, math.ceil(least))
    high = info.max if most is None else min(info.max, math.floor(most))
    if low > high:
        raise ValueError(f"{dtype} has no number from min_value={least} to max_value={most}")
    return st.integers(low, high).map(dtype.type)


def _floats(
    dtype: np.dtype[Any], least: float | None, most: float | None, finite: bool
) -> Strategy:
    """Of a dtype of 2, 4 or 8 bytes. Numbers of bfloat16 are rounded ones of float32."""
    wide = np.dtype(np.float32) if dtype == bfloat16 else dtype
    unbounded = least is None and most is None
    special = unbounded and not finite
    largest = float(ml_dtypes.finfo(dtype).max)
    low = _inside(max(-largest, -largest if least is None else least), wide, math.inf)
    high = _inside(min(largest, largest if most is None else most), wide, -math.inf)
    if low > high:
        raise ValueError(f"{dtype} has no number from min_value={least} to max_value={most}")
    numbers = st.floats(
        None if special else low,
        None if special else high,
        allow_nan=special,
        allow_infinity=special,
        width=8 * wide.itemsize,  # type: ignore[arg-type]
    ).map(dtype.type)
    return numbers if special else numbers.filter(lambda x: low <= float(x) <= high)


def _inside(end: float, dtype: np.dtype[Any], towards: float) -> float:
    """An end of a range, rounded to a number of a dtype inside of the range."""
    with np.errstate(over="ignore"):
        rounded = dtype.type(end)
    if (float(rounded) > end) if towards < 0 else (float(rounded) < end):
        rounded = np.nextafter(rounded, dtype.type(towards))
    return float(rounded)
