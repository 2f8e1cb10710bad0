"""Saved programs: functions as files that outlive the process.

    trees       structures of arguments and results as JSON
    entries     a program with the types and the trees that it is for
    exported    `Exported`: the programs of a function, called as a jitted one
    export      a function -> Exported
    targets     programs compiled for some GPUs beforehand
    container   a zip of JSON and constants: limits, digests
    packing     Exported -> bytes
    files       `save`, and `load` with its checks
    flat_programs    a program -> the file that C runs

Words: here a *function* is exported to a file. `Compiled.export_graph` hands out a CUDA graph of
this process; the two have nothing in common.
"""

from tracegraph.saving.export import export as export
from tracegraph.saving.exported import Exported as Exported
from tracegraph.saving.files import load as load
from tracegraph.saving.files import save as save
