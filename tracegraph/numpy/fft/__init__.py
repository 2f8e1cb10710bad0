"""`numpy.fft`: discrete Fourier transforms along any axes, of any length.

one_axis, several_axes   the functions for users
frequencies              what belongs to the elements of a result, and their order
plans                    transforms as the ops that they are made of
"""

from tracegraph.numpy.fft.frequencies import *
from tracegraph.numpy.fft.one_axis import *
from tracegraph.numpy.fft.several_axes import *
from tracegraph.public_names import set_all as _set_all

_set_all(__name__)
