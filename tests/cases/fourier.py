"""Expressions of `numpy.fft`.

`x` has shape (3, 8), `z` (2, 3, 7), `c` (4, 6) of complex128, `k` (3, 5) of complex64, `q`
(2, 2, 3, 2, 2); `f` is of float32, `h` of float16, `i` of int32, `b` of bool, each of 6 elements;
`e` has shape (0, 4), `o` one element, `s` none: it is a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers.numpy_agreement import expressions

_RANDOM = np.random.default_rng(0)


def _complex(*shape: int) -> Any:
    return _RANDOM.normal(size=shape) + 1j * _RANDOM.normal(size=shape)


ARGUMENTS: dict[str, Any] = {
    "x": _RANDOM.normal(size=(3, 8)),
    "z": _RANDOM.normal(size=(2, 3, 7)),
    "c": _complex(4, 6),
    "k": _complex(3, 5).astype(np.complex64),
    "q": _complex(2, 2, 3, 2, 2),
    "f": _RANDOM.normal(size=6).astype(np.float32),
    "h": _RANDOM.normal(size=6).astype(np.float16),
    "i": np.array([3, 1, -4, 1, 5, -9], np.int32),
    "b": np.array([True, False, True, True, False, False]),
    "e": np.zeros((0, 4)),
    "o": np.array([2.5]),
    "s": np.float64(1.0),
}

_ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_REAL = ("rfft", "ihfft")

ONE_AXIS = [
    *(f"[xp.fft.{name}(v) for v in (x, z, f, i, b, h, e)]" for name in _ONE_AXIS),
    *(f"[xp.fft.{name}(v) for v in (c, k, q)]" for name in _ONE_AXIS if name not in _REAL),
    *(f"[xp.fft.{name}(x, n) for n in (1, 2, 5, 8, 11)]" for name in _ONE_AXIS),
    *(f"[xp.fft.{name}(z, None, a) for a in (0, 1, -1, -3)]" for name in _ONE_AXIS),
    *(f"[xp.fft.{name}(z, 5, axis=0)]" for name in _ONE_AXIS),
    *(
        f"[xp.fft.{name}(v, norm=m) for m in ('backward', 'ortho', 'forward') for v in (x, f, h)]"
        for name in _ONE_AXIS
    ),
    *(f"xp.fft.{name}(o, 1)" for name in _ONE_AXIS),
    *(f"xp.fft.{name}(e, 3, axis=0)" for name in ("fft", "ifft", "rfft", "ihfft")),
    "xp.fft.irfft(c, 7)",
    "xp.fft.hfft(k, 6, axis=0)",
]

SEVERAL_AXES = [
    *(f"xp.fft.{name}(c.real)" for name in ("fft2", "ifft2", "rfft2", "irfft2")),
    *(f"xp.fft.{name}(z)" for name in ("fftn", "ifftn", "rfftn", "irfftn")),
    *(f"[xp.fft.{name}(v) for v in (f, h)]" for name in ("fftn", "ifftn", "rfftn", "irfftn")),
    *(f"xp.fft.{name}(k)" for name in ("fft2", "ifft2", "irfft2", "fftn", "irfftn")),
    *(f"xp.fft.{name}(q)" for name in ("fft2", "ifftn", "irfftn")),
    *expressions("""
        xp.fft.rfftn(q.real); [xp.fft.fftn(z, axes=a) for a in ((0,), (0, 2), (2, 0), (1, 2, 0))];
        [xp.fft.ifftn(z, (4, 5), a, 'ortho') for a in ((0, 1), (-1, 0))];
        [xp.fft.rfftn(z, (4, 5), a, 'forward') for a in ((0, 1), (-1, 0), (1, 2))];
        [xp.fft.irfftn(z, (4, 5), a) for a in ((0, 1), (-1, 0), (1, 2))];
        [xp.fft.irfft2(z, axes=(2, 0), norm=m) for m in ('backward', 'ortho', 'forward')];
        xp.fft.rfft2(z, (-1, 6)); xp.fft.irfft2(z, (-1, -1));
        [xp.fft.fftn(c, axes=a) for a in ((0, 0), (1, 0, 1))];
        [xp.fft.rfftn(x, axes=a) for a in ((0, 0), (1, 0, 1), (0, 1, 1))];
        [xp.fft.irfftn(c, axes=a) for a in ((0, 0), (1, 0, 1))];
        [xp.fft.fftn(c, axes=()), xp.fft.ifftn(i, axes=())]; xp.fft.fft2(e, (2, 2))
    """),
]

FREQUENCIES = [
    "[xp.fft.fftshift(v) for v in (x, z, i, e)]",
    "[xp.fft.ifftshift(v) for v in (x, z, i, e)]",
    "[xp.fft.fftshift(z, a) for a in (0, -1, (1,), (0, 2))]",
    "[xp.fft.ifftshift(z, a) for a in (0, -1, (1,), (0, 2))]",
    "[xp.fft.fftfreq(n) + f[0] for n in (1, 4, 7)]",
    "[xp.fft.rfftfreq(n, d=0.1) + f[0] for n in (1, 4, 7)]",
    "[xp.fft.fftfreq(5, s), xp.fft.rfftfreq(6, s * 2)]",
]

REFUSED = [
    *(f"xp.fft.{name}(e, axis=0)" for name in _ONE_AXIS),
    *(f"xp.fft.{name}(c)" for name in _REAL),
    *expressions("""
        xp.fft.irfft(o); xp.fft.fft(x, 0); xp.fft.irfft(o, 0); xp.fft.fft(x, -2);
        xp.fft.fft(x, 2.5); xp.fft.fft(x, axis=2); xp.fft.rfft(x, 3, axis=-3); xp.fft.fft(s);
        xp.fft.rfft(c); xp.fft.ihfft(k); xp.fft.rfftn(c); xp.fft.rfft2(k);
        xp.fft.fft(x, norm='other'); xp.fft.hfft(x, norm='other'); xp.fft.fftn(x, (2, 2), (0,));
        xp.fft.fftn(x, axes=(0, 3)); xp.fft.rfftn(x, axes=()); xp.fft.irfftn(x, axes=());
        xp.fft.fft2(x[0]); xp.fft.fftshift(x, 4); xp.fft.fftfreq(2.5)[0] + s
    """),
]
TABLES = [*ONE_AXIS, *SEVERAL_AXES, *FREQUENCIES]
