"""Errors: every class, with the wording of its message.

A message says what was got, what is required, what to change, and the user's line. Types, values
and texts come in from the caller: nothing here looks into programs. All classes are imported
from here, and name this module. May import `dtypes` and `user_source`.

    jitted_calls, control, tracers, prints  misuse by the user
    custom_kernels                          of users' own kernels
    callbacks                               functions of the host that programs call
    batching, transforms                    of vmap; of derivatives
    sharding                                of meshes, and what their devices do together
    inspection                              what `show` cannot draw
    keywords                                parameters that other libraries have; values of a
                                            wrong type
    running, programs                       programs that had to end; programs that are not well
                                            formed
    wording, pickling                       how values and places are named; errors of other
                                            processes
    tracebacks                              which frames users see
"""

import copyreg

from tracegraph.errors.batching import *
from tracegraph.errors.callbacks import *
from tracegraph.errors.control import *
from tracegraph.errors.custom_kernels import *
from tracegraph.errors.events import *
from tracegraph.errors.inspection import *
from tracegraph.errors.jitted_calls import *
from tracegraph.errors.keywords import *
from tracegraph.errors.pickling import by_content as _by_content
from tracegraph.errors.prints import *
from tracegraph.errors.programs import *
from tracegraph.errors.running import *
from tracegraph.errors.sharding import *
from tracegraph.errors.tracers import *
from tracegraph.errors.transforms import *
from tracegraph.errors.wording import *
from tracegraph.public_names import set_all as _set_all

_set_all(__name__, kind=type)  # wording is for those who raise them

for _class in [value for value in globals().values() if isinstance(value, type)]:
    _class.__module__ = __name__
    copyreg.pickle(_class, _by_content)
