"""Methods of arrays: fills the table of functions that operators and methods call."""

from __future__ import annotations

from tracegraph import numpy
from tracegraph.arrays.creation import array_of
from tracegraph.numpy import (
    bit_views,
    comparing,
    elementwise,
    indexing,
    masked_indexing,
    selected_functions,
    ufuncs,
)
from tracegraph.numpy.dispatching import array_protocols, protocols
from tracegraph.tracing.function_table import FUNCTIONS

FUNCTIONS.update({name: value for name, value in vars(numpy).items() if callable(value)})
FUNCTIONS.update(
    getitem=indexing.getitem,
    setitem=indexing.setitem,
    updated=indexing.updated,
    cast_to=indexing.cast_to,
    apply_to_selected=selected_functions.apply_to_selected,
    refusal_by_name=selected_functions.refusal_by_name,
    setitem_of_selected=masked_indexing.write_to_selected,
    viewed=bit_views.viewed,
    raised=ufuncs.raised,
    compared_with_no_number=comparing.compared_with_no_number,
    rounded_to_int=elementwise.rounded_to_int,
    adopted=array_of,
    ufunc_of_tracers=protocols.array_ufunc,
    function_of_tracers=protocols.array_function,
    ufunc_of_arrays=array_protocols.array_ufunc,
    function_of_arrays=array_protocols.array_function,
)
