"""The functions of the array API standard 2024.12, with their parameters.

Source: https://data-apis.org/array-api/2024.12/API_specification/
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

SIGNATURES = """
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
asarray(obj, /, *, dtype=None, device=None, copy=None)
empty(shape, *, dtype=None, device=None)
empty_like(x, /, *, dtype=None, device=None)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
from_dlpack(x, /, *, device=None, copy=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
meshgrid(*arrays, indexing="xy")
ones(shape, *, dtype=None, device=None)
ones_like(x, /, *, dtype=None, device=None)
tril(x, /, *, k=0)
triu(x, /, *, k=0)
zeros(shape, *, dtype=None, device=None)
zeros_like(x, /, *, dtype=None, device=None)
astype(x, dtype, /, *, copy=True, device=None)
can_cast(from_, to, /)
finfo(type, /)
iinfo(type, /)
isdtype(dtype, kind)
result_type(*arrays_and_dtypes)
clip(x, /, min=None, max=None)
take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)
matmul(x1, x2, /)
matrix_transpose(x, /)
tensordot(x1, x2, /, *, axes=2)
vecdot(x1, x2, /, *, axis=-1)
broadcast_arrays(*arrays)
broadcast_to(x, /, shape)
concat(arrays, /, *, axis=0)
expand_dims(x, /, *, axis=0)
flip(x, /, *, axis=None)
moveaxis(x, source, destination, /)
permute_dims(x, /, axes)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
roll(x, /, shift, *, axis=None)
squeeze(x, /, axis)
stack(arrays, /, *, axis=0)
tile(x, repetitions, /)
unstack(x, /, *, axis=0)
argmax(x, /, *, axis=None, keepdims=False)
argmin(x, /, *, axis=None, keepdims=False)
count_nonzero(x, /, *, axis=None, keepdims=False)
nonzero(x, /)
searchsorted(x1, x2, /, *, side="left", sorter=None)
where(condition, x1, x2, /)
unique_all(x, /)
unique_counts(x, /)
unique_inverse(x, /)
unique_values(x, /)
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
max(x, /, *, axis=None, keepdims=False)
mean(x, /, *, axis=None, keepdims=False)
min(x, /, *, axis=None, keepdims=False)
prod(x, /, *, axis=None, dtype=None, keepdims=False)
std(x, /, *, axis=None, correction=0.0, keepdims=False)
sum(x, /, *, axis=None, dtype=None, keepdims=False)
var(x, /, *, axis=None, correction=0.0, keepdims=False)
all(x, /, *, axis=None, keepdims=False)
any(x, /, *, axis=None, keepdims=False)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
__array_namespace_info__()
"""

FOURIER = """
fftn(x, /, *, s=None, axes=None, norm="backward")
ifftn(x, /, *, s=None, axes=None, norm="backward")
rfftn(x, /, *, s=None, axes=None, norm="backward")
irfftn(x, /, *, s=None, axes=None, norm="backward")
fft(x, /, *, n=None, axis=-1, norm="backward")
ifft(x, /, *, n=None, axis=-1, norm="backward")
rfft(x, /, *, n=None, axis=-1, norm="backward")
irfft(x, /, *, n=None, axis=-1, norm="backward")
hfft(x, /, *, n=None, axis=-1, norm="backward")
ihfft(x, /, *, n=None, axis=-1, norm="backward")
fftfreq(n, /, *, d=1.0, dtype=None, device=None)
rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
fftshift(x, /, *, axes=None)
ifftshift(x, /, *, axes=None)
"""
"""The extension `fft`."""

OF_ONE = """
abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag
isfinite isinf isnan log log1p log2 log10 logical_not negative positive real reciprocal round
sign signbit sin sinh square sqrt tan tanh trunc
"""

OF_TWO = """
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign
divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and
logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract
"""


def signatures(text: str) -> Iterator[tuple[str, inspect.Signature]]:
    """Each function of a table with its parameters."""
    for line in filter(None, text.split("\n")):
        names: dict[str, Callable[..., Any]] = {}
        exec(f"def {line}: ...", names)
        name = line.partition("(")[0]
        yield name, inspect.signature(names[name])


_ELEMENTWISE = [f"{name}(x, /)" for name in OF_ONE.split()]
_ELEMENTWISE += [f"{name}(x1, x2, /)" for name in OF_TWO.split()]

STANDARD = dict(signatures("\n".join([SIGNATURES, *_ELEMENTWISE])))
"""Each function of the standard with its signature."""

EXTENSION = {f"fft.{name}": signature for name, signature in signatures(FOURIER)}
"""Those of the extension `fft`."""
