"""Texts of array types with names for extents, such as ``"f32[n,3]"``."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tracegraph.dtypes import SHORT_NAMES, canonical_dtype
from tracegraph.generated.dataclass import dataclass

DTYPES = {short: dtype for dtype, short in SHORT_NAMES.items()}

_TEXT = re.compile(r"\s*(\w+)\s*\[([^\[\]]*)\]\s*")


@dataclass(frozen=True, slots=True)
class ArrayText:
    """The dtype of an array, and its extents: numbers, and names of sizes."""

    dtype: np.dtype[Any]
    extents: tuple[int | str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The sizes that it names."""
        return tuple(extent for extent in self.extents if isinstance(extent, str))


def parsed(text: str) -> ArrayText:
    """An array type with names for extents.

    >>> parsed("f32[n,3]")
    ArrayText(dtype=dtype('float32'), extents=('n', 3))

    Raises:
        TypeError: not a string.
        ValueError: the text is not of the form ``dtype[extent,…]``.
    """
    if not isinstance(text, str):
        raise TypeError(f"an array is described by a text such as 'f32[n,3]', got {text!r}")
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} does not describe an array; write it like 'f32[n,3]' or 'i64[]'"
        )
    items = [item.strip() for item in found[2].split(",")] if found[2].strip() else []
    return ArrayText(dtype_of(found[1], text), tuple(_extent(item, text) for item in items))


def dtype_of(name: str, text: str) -> np.dtype[Any]:
    """The dtype of a short name, or of NumPy's.

    Raises:
        ValueError: there is no such dtype.
    """
    try:
        return DTYPES[name] if name in DTYPES else canonical_dtype(name)
    except TypeError:
        raise ValueError(
            f"{text!r} has the dtype {name!r}; the dtypes are {', '.join(DTYPES)}"
        ) from None


def _extent(item: str, text: str) -> int | str:
    if item.isdecimal():
        return int(item)
    if item.isidentifier():
        return item
    raise ValueError(
        f"{text!r} has the extent {item!r}; an extent is a number of at least 0, or a name"
    )
