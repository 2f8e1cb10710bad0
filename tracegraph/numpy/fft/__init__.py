"""`numpy.fft`: discrete Fourier transforms along any axes, of any length.

one_axis, several_axes   the functions for users
frequencies              what belongs to the elements of a result, and their order
plans                    transforms as the ops that they are made of
"""

from tracegraph.numpy.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from tracegraph.numpy.fft.one_axis import fft, hfft, ifft, ihfft, irfft, rfft
from tracegraph.numpy.fft.several_axes import (
    fft2,
    fftn,
    ifft2,
    ifftn,
    irfft2,
    irfftn,
    rfft2,
    rfftn,
)

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
