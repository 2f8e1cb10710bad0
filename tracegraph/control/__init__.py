"""Control flow: cond, switch, while_loop, fori_loop, scan, map, associative_scan.

Each takes functions over pytrees. While tracing, it traces them into the regions of one equation;
otherwise the same call runs as plain Python, with a real `if` or `while`, which defines the result.
May import `ir/`, `ops/`, `tracing/` and `arrays/`, but neither `numpy/` nor `staging/`.

    branches               cond, switch
    loops                  while_loop, fori_loop
    scans, scan_tracing    scan and map: run as Python, and traced
    associative_scans      associative_scan: blocks of elements, then blocks of their totals
    regions                functions over pytrees traced into regions that share their captures
    carry                  types and structure of what iterations hand on
    steps, schedules       counting and limiting steps; hints for lowering
    slices                 slices along the leading axis
"""

from tracegraph.control.associative_scans import *
from tracegraph.control.branches import *
from tracegraph.control.loops import *
from tracegraph.control.scans import *
from tracegraph.public_names import set_all as _set_all

_set_all(__name__)
