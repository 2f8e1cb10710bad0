"""NumPy's functions for traced values and Arrays, under NumPy's names and with its signatures.

Without a tracer or Array among the arguments, a function is NumPy's own. While tracing, functions
that create arrays make traced ones. `tracegraph.array_api`, the array API namespace of our arrays,
is made of these functions. What is public, each file says in `__all__`. May import `ir/`, `ops/`,
`tracing/`, `arrays/` and `control/`.

    ufuncs, elementwise                        one result element from one of each operand
    special_values, bits, polynomials          i0 and infinities; packed bits; coefficients
    reductions, nan_reductions                 over axes
    statistics, covariance                     means, variances, correlations
    sorting                                    elements in order, and the order; partitions, top_k
    medians, quantiles                         by sorting; quantile_methods, sorted_rows
    shapes, axes, flips, splitting             views: another shape, order, direction, parts; roll
    joining, repeating, editing                joined and repeated arrays; insert, delete, blocks
    selecting, choosing, differences           elements at indices, diagonals, by case; neighbours
    searching, histograms                      positions in sorted arrays; elements in bins
    finding, counting, grids                   positions of true elements; counts; coordinates
    placing, windows                           writes to an array; windows at traced positions
    index_modes, index_checks                  indices out of range
    contractions, einsum, chains, linalg       products that sum over axes
    fft                                        Fourier transforms
    creation, generated, geometric             new arrays; eager_arrays have .at under NumPy
    inquiry, comparing                         types; whole arrays compared, membership
    unique, sets                               distinct elements
    cumulative, namespace_info                 what the array API standard adds
    indexing                                   x[i], x[i] = v, x.at[i].set(v)
    masked_indexing, selected_functions        x[mask], and functions of what a traced mask selects
    mapping                                    functions of one slice, or of one element
    ufunc_methods                              np.add.reduce(x), np.maximum.accumulate(x)
    protocols, array_protocols, methods        how NumPy's calls and the methods of arrays get here
    attached, powers, even_functions           values with rules for their derivatives
    dispatch, output, docstrings               what the functions share

>>> import tracegraph.numpy as tnp
>>> tnp.add([1, 2], 3)
array([4, 5])
"""

from typing import TYPE_CHECKING

from ml_dtypes import bfloat16 as bfloat16
from numpy import bool as bool
from numpy import complex64 as complex64
from numpy import complex128 as complex128
from numpy import e as e
from numpy import euler_gamma as euler_gamma
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import index_exp as index_exp
from numpy import inf as inf
from numpy import int8 as int8
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import isdtype as isdtype
from numpy import issubdtype as issubdtype
from numpy import mgrid as mgrid
from numpy import nan as nan
from numpy import newaxis as newaxis
from numpy import ogrid as ogrid
from numpy import pi as pi
from numpy import s_ as s_
from numpy import uint8 as uint8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64

from tracegraph.arrays.creation import from_dlpack as from_dlpack
from tracegraph.errors.names_elsewhere import names_of as _names_of
from tracegraph.numpy import fft as fft
from tracegraph.numpy import lib as lib
from tracegraph.numpy import linalg as linalg
from tracegraph.numpy.axes import *
from tracegraph.numpy.bits import *
from tracegraph.numpy.broadcasting import *
from tracegraph.numpy.choosing import *
from tracegraph.numpy.comparing import *
from tracegraph.numpy.contractions import *
from tracegraph.numpy.counting import *
from tracegraph.numpy.covariance import *
from tracegraph.numpy.creation import *
from tracegraph.numpy.cumulative import *
from tracegraph.numpy.differences import *
from tracegraph.numpy.dispatching.namespace_info import *
from tracegraph.numpy.editing import *
from tracegraph.numpy.einsum import *
from tracegraph.numpy.elementwise import *
from tracegraph.numpy.finding import *
from tracegraph.numpy.flips import *
from tracegraph.numpy.generated import *
from tracegraph.numpy.geometric import *
from tracegraph.numpy.grids import *
from tracegraph.numpy.histograms import *
from tracegraph.numpy.inquiry import *
from tracegraph.numpy.interpolation import *
from tracegraph.numpy.joining import *
from tracegraph.numpy.mapping import *
from tracegraph.numpy.medians import *
from tracegraph.numpy.nan_reductions import *
from tracegraph.numpy.padding import *
from tracegraph.numpy.placing import *
from tracegraph.numpy.polynomials import *
from tracegraph.numpy.quantiles import *
from tracegraph.numpy.reductions import *
from tracegraph.numpy.repeating import *
from tracegraph.numpy.searching import *
from tracegraph.numpy.selecting import *
from tracegraph.numpy.sets import *
from tracegraph.numpy.shapes import *
from tracegraph.numpy.sliding import *
from tracegraph.numpy.sorting import *
from tracegraph.numpy.special_values import *
from tracegraph.numpy.splitting import *
from tracegraph.numpy.statistics import *
from tracegraph.numpy.ufuncs import *
from tracegraph.numpy.unique import *
from tracegraph.public_names import set_all as _set_all

_set_all(__name__, "__array_api_version__", "__array_namespace_info__", "fft", "lib", "linalg")

if not TYPE_CHECKING:  # a type checker would find any name in a module that has this
    __getattr__ = _names_of(__name__)
