"""The array API namespace of Arrays and of traced values: what `x.__array_namespace__()` gives.

It has the functions of `tracegraph.numpy`, under the same names and with the same signatures, but
it returns no arrays of NumPy: where no argument is an Array or traced, `tracegraph.numpy` gives
what NumPy gives, and these functions make an Array of it. So functions that make arrays make them
in host memory, or on `device=`, and in a traced function they make traced ones. `unique_values`
sorts.

Code that is written for any library, as SciPy's is, gets this namespace. Code that is written for
NumPy takes `tracegraph.numpy`.

    of_arrays      functions that return Arrays, made of those of `tracegraph.numpy`
    linalg, fft    the extensions of the standard

Source: https://data-apis.org/array-api/2024.12/

>>> import tracegraph.array_api as xp
>>> xp.zeros(3)
Array([0., 0., 0.], dtype=float64)
>>> xp.zeros(3).__array_namespace__() is xp
True
"""

from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING

from tracegraph import numpy as _numpy
from tracegraph.array_api.of_arrays import functions_of as _functions_of
from tracegraph.array_api.of_arrays import unique_values as _unique_values
from tracegraph.errors.names_elsewhere import names_of as _names_of
from tracegraph.numpy.dispatching.namespace_info import check_version as _check_version
from tracegraph.public_names import set_all as _set_all
from tracegraph.tracing.function_table import ARRAY_API as _ARRAY_API

if TYPE_CHECKING:
    from tracegraph.numpy import *
else:
    from tracegraph.array_api import fft as fft
    from tracegraph.array_api import linalg as linalg

    globals().update(
        _functions_of(_numpy, set(_numpy.__all__) - {"fft", "lib", "linalg"}, __name__),
        unique_values=_unique_values,
    )
    _set_all(__name__, "__array_api_version__", "__array_namespace_info__", "fft", "linalg")
    __getattr__ = _names_of(__name__)


def _namespace(api_version: str | None = None) -> _ModuleType:
    """The namespace, if it follows the version of the standard."""
    _check_version(api_version)
    from tracegraph import array_api

    return array_api


_ARRAY_API["namespace"] = _namespace
