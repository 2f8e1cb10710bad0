"""Fourier transforms: the functions of `tracegraph.numpy.fft`, which return Arrays."""

from typing import TYPE_CHECKING

from tracegraph.array_api.of_arrays import functions_of as _functions_of
from tracegraph.errors.names_elsewhere import names_of as _names_of
from tracegraph.numpy import fft as _fft
from tracegraph.public_names import set_all as _set_all

if TYPE_CHECKING:
    from tracegraph.numpy.fft import *
else:
    globals().update(_functions_of(_fft, _fft.__all__, __name__))
    _set_all(__name__)
    __getattr__ = _names_of(__name__)
