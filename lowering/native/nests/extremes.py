"""Which of two extremes comes first, by the rules of argmax and argmin."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.native.types import Parts, memory_parts, register_parts
from lowering.native.writer import Writer


def is_better(
    writer: Writer, dtype: np.dtype[Any], greatest: bool, value: Parts, old: Parts
) -> str:
    """Whether a value comes before an extreme that was found earlier: a NaN before numbers."""
    if dtype.kind == "c":
        return _is_better_complex(writer, dtype, greatest, value, old)
    (type_,) = register_parts(dtype)
    x, y = value[0], old[0]
    if dtype.kind != "f":
        sign = "s" if dtype.kind == "i" else "u"
        return writer.assign(f"icmp {sign}{'gt' if greatest else 'lt'} {type_} {x}, {y}")
    beyond = writer.assign(f"fcmp {'ogt' if greatest else 'olt'} {type_} {x}, {y}")
    return _or_first_nan(writer, beyond, type_, (x,), (y,))


def is_same(writer: Writer, dtype: np.dtype[Any], value: Parts, best: Parts) -> str:
    """Whether a value is the extreme; all NaNs are the same."""
    (type_,) = register_parts(dtype)
    if dtype.kind != "f":
        return writer.assign(f"icmp eq {type_} {value[0]}, {best[0]}")
    same = writer.assign(f"fcmp oeq {type_} {value[0]}, {best[0]}")
    nans = [_is_nan(writer, type_, each) for each in (value, best)]
    both = writer.assign(f"and i1 {nans[0]}, {nans[1]}")
    return writer.assign(f"or i1 {same}, {both}")


def _is_better_complex(
    writer: Writer, dtype: np.dtype[Any], greatest: bool, value: Parts, old: Parts
) -> str:
    """Complex numbers are ordered by the real part, then by the imaginary part."""
    write, (type_, _) = writer.assign, memory_parts(dtype)
    relation = "ogt" if greatest else "olt"
    real, imaginary = (
        write(f"fcmp {relation} {type_} {x}, {y}") for x, y in zip(value, old, strict=True)
    )
    same = write(f"fcmp oeq {type_} {value[0]}, {old[0]}")
    beyond = write(f"or i1 {real}, {write(f'and i1 {same}, {imaginary}')}")
    return _or_first_nan(writer, beyond, type_, value, old)


def _or_first_nan(writer: Writer, beyond: str, type_: str, value: Parts, old: Parts) -> str:
    write = writer.assign
    is_nan, was_nan = (_is_nan(writer, type_, parts) for parts in (value, old))
    first = write(f"and i1 {is_nan}, {write(f'xor i1 {was_nan}, true')}")
    ordered = write(f"and i1 {beyond}, {write(f'xor i1 {was_nan}, true')}")
    return write(f"or i1 {ordered}, {first}")


def _is_nan(writer: Writer, type_: str, parts: Parts) -> str:
    found = [writer.assign(f"fcmp uno {type_} {x}, {x}") for x in parts]
    return found[0] if len(found) == 1 else writer.assign(f"or i1 {found[0]}, {found[1]}")
