"""Random bits, and numbers that are equally probable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import as_array, lifted
from tracegraph.random.keys import cast, pairs, shape_of, split

__all__ = ["bernoulli", "bits", "rademacher", "randint", "uniform"]

Shape = int | Sequence[int]

_UPPER = np.uint64(32)


def bits(key: Any, shape: Shape = (), dtype: DTypeLike = np.uint64) -> Any:
    """Random bits as unsigned integers: JAX's.

    Shape: `shape`.
    Dtype: `dtype`: uint8, uint16, uint32 or uint64.

    Raises:
        TypeError: `key` is not a key; `dtype` is not an unsigned integer.
        ValueError: `shape` is negative.

    >>> tracegraph.random.bits(tracegraph.random.key(0), (2,), np.uint32)
    array([4070199207, 4202968722], dtype=uint32)
    """
    target = np.dtype(dtype)
    if target.kind != "u":
        raise TypeError(f"bits are unsigned integers, got dtype {target}")
    return _bits_of(pairs(key, shape_of(shape)), target)


def _bits_of(pairs: Any, dtype: np.dtype[Any]) -> Any:
    """The bits of a dtype that JAX makes of numbers of 64 bits."""
    if dtype.itemsize == 8:
        return pairs
    return cast(apply(get("bitwise_xor"), pairs, apply(get("right_shift"), pairs, _UPPER)), dtype)


def floating(dtype: DTypeLike) -> np.dtype[Any]:
    """A dtype of real floating-point numbers.

    Raises:
        TypeError: it is another one.
    """
    target = np.dtype(dtype)
    if target.kind != "f" and target != ml_dtypes.bfloat16:
        raise TypeError(f"the dtype must be one of real floating-point numbers, got {target}")
    return target


def uniform(
    key: Any,
    shape: Shape = (),
    dtype: DTypeLike = np.float64,
    minval: Any = 0.0,
    maxval: Any = 1.0,
) -> Any:
    """Numbers of equal probability, at least `minval` and below `maxval`.

    From 0 to 1 they are JAX's: multiples of 2**-52, or 2**-23 for float32. In other ranges they are
    JAX's, except where those are infinite or rounded to `maxval`. If there is no number from
    `minval` to below `maxval`, they are `minval`.

    Args:
        key: a key.
        shape: of the result.
        dtype: of the result.
        minval: the least number, broadcast to the shape.
        maxval: the bound above, broadcast to the shape.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or bounds do not broadcast to it.

    >>> tracegraph.random.uniform(tracegraph.random.key(0), (2,), np.float32)
    array([0.947667 , 0.9785799], dtype=float32)
    """
    target = floating(dtype)
    drawn = unit(key, shape_of(shape), target)
    if is_known(minval) and is_known(maxval) and (minval, maxval) == (0, 1):
        return drawn
    bounds = [as_array(bound, target) for bound in (minval, maxval)]
    if all(isinstance(bound, (np.ndarray, np.generic)) for bound in bounds):
        found = _of_known(drawn, *bounds)
    else:
        found = _of_traced(drawn, *map(lifted, bounds))
    if found.shape != drawn.shape:
        shapes = ", ".join(str(bound.shape) for bound in bounds)
        raise ValueError(f"bounds of shapes {shapes} broadcast to {found.shape}, beyond the shape "
                         f"{drawn.shape}")  # fmt: skip
    return found


def is_known(bound: Any) -> bool:
    """Whether a bound is one number, known while the function is traced."""
    return isinstance(bound, (int, float, np.generic))


def _plain(drawn: Any, low: Any, high: Any) -> Any:
    """Numbers from 0 to 1 as numbers from `low` to `high`, if no number leaves the range."""
    spread = apply(get("subtract"), high, low)
    return apply(get("add"), apply(get("multiply"), drawn, spread), low)


def _of_known(drawn: Any, low: Any, high: Any) -> Any:
    """As `_of_traced`, without what these bounds do not need: by the greatest number of each."""
    greatest = 1 - ml_dtypes.finfo(low.dtype).eps
    with np.errstate(all="ignore"):
        high = np.where(high < low, low, high)
        spread = high - low
        if np.all(np.isfinite(spread)):
            found, top = _plain(drawn, lifted(low), lifted(high)), greatest * spread + low
        else:
            scale = np.where(np.isfinite(spread), 1, 0.5).astype(low.dtype)
            halves = low * scale, high * scale
            found = apply(get("divide"), _plain(drawn, *map(lifted, halves)), lifted(scale))
            top = (greatest * (halves[1] - halves[0]) + halves[0]) / scale
        if np.all(top < high):
            return found
        below = np.maximum(np.nextafter(high, low), low)
        return apply(get("minimum"), found, lifted(below))


def _of_traced(drawn: Any, low: Any, high: Any) -> Any:
    """Numbers from 0 to 1 as numbers from `low` on and below `high`.

    Bounds whose difference leaves the range of the dtype are halved, and the numbers doubled. A
    number that rounding has moved to `high` is moved back, with its derivatives.
    """
    dtype = drawn.dtype
    high = apply(get("where"), apply(get("less"), high, low), low, high)
    fits = apply(get("isfinite"), apply(get("subtract"), high, low))
    scale = apply(get("where"), fits, dtype.type(1), dtype.type(0.5))
    halves = (apply(get("multiply"), bound, scale) for bound in (low, high))
    back = apply(get("divide"), dtype.type(1), scale)
    found = apply(get("multiply"), _plain(drawn, *halves), back)
    below = apply(get("nextafter"), constant(high), constant(low))
    excess = apply(get("subtract"), constant(found), below)
    return apply(get("subtract"), found, apply(get("maximum"), excess, dtype.type(0)))


def constant(x: Any) -> Any:
    """A value by which nothing is differentiated."""
    return apply(get("stop_gradient"), x)


def unit(key: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Numbers from 0 on and below 1: random mantissas of 1 … 2, less 1."""
    word, dropped = _word(dtype)
    return _of_mantissas(apply(get("right_shift"), bits(key, shape, word), dropped), dtype)


def _word(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], Any]:
    """The integers that numbers of a dtype are made of, and how many of their bits are not used."""
    mantissa = _mantissa(dtype)
    width = 8 if mantissa < 8 else 8 * dtype.itemsize
    word = np.dtype(f"u{width // 8}")
    return word, word.type(width - mantissa)


def _of_mantissas(drawn: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.itemsize == 2:
        return apply(get("multiply"), cast(drawn, dtype), dtype.type(2.0 ** -_mantissa(dtype)))
    one = np.ones((), dtype)
    between = apply(get("bitwise_or"), drawn, one.view(drawn.dtype)[()])
    return apply(get("subtract"), apply(get("bits"), between, dtype=dtype), one[()])


def _mantissa(dtype: np.dtype[Any]) -> int:
    return int(ml_dtypes.finfo(dtype).nmant)


def randint(key: Any, shape: Shape, minval: Any, maxval: Any, dtype: DTypeLike = np.int64) -> Any:
    """Integers from `minval` to `maxval` - 1; `minval` if that is not below `maxval`.

    JAX's for dtypes of 32 and 64 bits. Their probabilities differ by less than the number of
    integers over 2**64, or 2**128 for 64 bits.

    Args:
        key: a key.
        shape: of the result.
        minval: the least integer, broadcast to the shape.
        maxval: the bound above, itself excluded; it may be one more than the greatest number of the
            dtype.
        dtype: of the result, an integer.

    Raises:
        TypeError: `key` is not a key; `dtype` or a bound is not an integer.
        ValueError: `shape` is negative, or bounds do not broadcast to it.

    >>> tracegraph.random.randint(tracegraph.random.key(0), (5,), 0, 10)
    array([5, 1, 5, 7, 3])
    """
    target = np.dtype(dtype)
    if target.kind not in "iu":
        raise TypeError(f"randint makes integers, got dtype {target}")
    word = np.dtype(f"u{max(target.itemsize, 4)}")
    extents = shape_of(shape)
    low, _ = _bound(minval, target)
    high, beyond = _bound(maxval, target)
    first, second = split(key)
    upper, lower = bits(first, extents, word), bits(second, extents, word)

    more = apply(get("greater"), high, low)
    wide_low, wide_high = cast(low, word), cast(high, word)
    span = apply(get("subtract"), wide_high, wide_low)
    span = apply(get("where"), more, span, word.type(1))
    all_of_them = apply(get("logical_and"), beyond, more)
    span = apply(get("add"), span, cast(all_of_them, word))

    def remainder(x: Any) -> Any:
        return apply(get("remainder"), x, span)

    # (upper * 2**bits + lower) % span without wider integers
    root = remainder(word.type(1 << 4 * word.itemsize))
    power = remainder(apply(get("multiply"), root, root))
    offset = apply(get("multiply"), remainder(upper), power)
    offset = remainder(apply(get("add"), offset, remainder(lower)))
    offset = apply(get("where"), apply(get("equal"), span, word.type(0)), lower, offset)
    found = cast(apply(get("add"), wide_low, offset), target)
    if found.shape != extents:
        raise ValueError(f"the bounds broadcast to {found.shape}, beyond the shape {extents}")
    return found


def _bound(bound: Any, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """A bound within the range of a dtype, and whether it was above."""
    limits = np.iinfo(dtype)
    if isinstance(bound, int):
        inside = min(max(bound, limits.min), limits.max)
        return lifted(np.asarray(inside, dtype)), np.bool_(bound > limits.max)
    bound = lifted(as_array(bound))
    if bound.dtype.kind not in "iu":
        raise TypeError(f"bounds of randint must be integers, got {bound.dtype}")
    own = np.iinfo(bound.dtype)
    beyond: Any = np.bool_(False)
    if own.max > limits.max:
        greatest = bound.dtype.type(limits.max)
        beyond = apply(get("greater"), bound, greatest)
        bound = apply(get("minimum"), bound, greatest)
    if own.min < limits.min:
        bound = apply(get("maximum"), bound, bound.dtype.type(limits.min))
    return cast(bound, dtype), beyond


def bernoulli(key: Any, p: Any = 0.5, shape: Shape | None = None) -> Any:
    """Booleans that are true with probability `p`.

    They are JAX's, unless `p` is small: JAX's are true with the next greater multiple of 2**-10
    for float16, 2**-23 for float32, and 2**-52 for float64.

    Shape: `shape`, to which `p` broadcasts; by default that of `p`.
    Dtype: bool.

    Raises:
        TypeError: `key` is not a key; `p` is not of real floating-point numbers.
        ValueError: `shape` is negative, or `p` does not broadcast to it.

    >>> tracegraph.random.bernoulli(tracegraph.random.key(0), shape=(3,))
    array([ True,  True, False])
    """
    probability = lifted(as_array(p))
    dtype = floating(probability.dtype)
    extents = probability.shape if shape is None else shape_of(shape)
    rare = 2.0 ** -(_mantissa(dtype) // 2)
    known: Any = p if is_known(p) else probability
    if isinstance(known, (int, float, np.generic, np.ndarray)) and np.all(~np.less(known, rare)):
        found = apply(get("less"), unit(key, extents, dtype), probability)
    else:
        found = _rare(pairs(key, extents), probability, dtype.type(rare))
    return within(found, extents, "p")


def _rare(drawn: Any, p: Any, rare: Any) -> Any:
    """Booleans of numbers of 64 bits; below `rare` by more of their bits."""
    word, dropped = _word(p.dtype)
    shifted = apply(get("right_shift"), _bits_of(drawn, word), dropped)
    number = _of_mantissas(shifted, p.dtype)
    plain = apply(get("less"), number, p)
    return apply(get("where"), apply(get("less"), p, rare), _rarely(drawn, number, p), plain)


def _rarely(drawn: Any, number: Any, p: Any) -> Any:
    """Booleans that are true with small probabilities, which need more bits.

    The probability less the number drawn, in steps of that, is compared with a number from 0 on and
    below 1, of bits that the other one does not have.
    """
    dtype = p.dtype
    steps = 2.0 ** _mantissa(dtype)
    if dtype.itemsize == 8:
        more = cast(apply(get("bitwise_and"), drawn, np.uint64(0xFFF)), dtype)
        more = apply(get("multiply"), more, dtype.type(2.0**-12))
    else:
        number, p = cast(number, np.float32), cast(p, np.float32)
        lower = apply(get("right_shift"), cast(drawn, np.uint32), np.uint32(8))
        more = apply(get("multiply"), cast(lower, np.float32), np.float32(2.0**-24))
    apart = apply(get("multiply"), apply(get("subtract"), p, number), p.dtype.type(steps))
    return apply(get("less"), more, apart)


def rademacher(key: Any, shape: Shape = (), dtype: DTypeLike = np.int64) -> Any:
    """Numbers that are 1 or -1, with equal probability: JAX's.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `shape` is negative.

    >>> tracegraph.random.rademacher(tracegraph.random.key(0), (3,))
    array([ 1,  1, -1])
    """
    target = np.dtype(dtype)
    positive, one = cast(bernoulli(key, 0.5, shape), target), target.type(1)
    return apply(get("subtract"), apply(get("add"), positive, positive), one)


def within(found: Any, shape: tuple[int, ...], name: str) -> Any:
    """A result whose parameters must not have extended its shape.

    Raises:
        ValueError: they have.
    """
    if found.shape != shape:
        raise ValueError(f"{name} broadcasts to {found.shape}, beyond the shape {shape}")
    return found
