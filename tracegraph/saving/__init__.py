"""Saved programs: functions as files that outlive the process.

    trees       structures of arguments and results as JSON
    entries     a program with the types and the trees that it is for
    exported    `Exported`: the programs of a function, called as a jitted one
    exporting   a function -> Exported
    targets     programs compiled for some GPUs beforehand
    container   a zip of JSON and constants: limits, digests
    packing     Exported -> bytes
    files       `save`, and `load` with its checks
    flat_programs    a program -> the file that C runs

Words: here a *function* is exported to a file. `Compiled.export_graph` hands out a CUDA graph of
this process; the two have nothing in common.
"""

from typing import TYPE_CHECKING
from typing import Any as _Any

from tracegraph.saving.exported import Exported as Exported
from tracegraph.saving.files import load as load
from tracegraph.saving.files import save as save

if TYPE_CHECKING:
    from tracegraph.saving.exporting import export as export
else:

    def __getattr__(name: str) -> _Any:
        """`export`, which a process that loads functions does not need."""
        if name != "export":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from tracegraph.saving.exporting import export

        return export
