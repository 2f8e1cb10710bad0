"""Control flow: cond, switch, while_loop, fori_loop, scan, map.

Each takes functions over pytrees. While a function is traced, these are traced in turn into the
regions of one equation; else the same call runs as plain Python, with a real `if` or `while`.
"""

from tracegraph.control.branches import cond, switch
from tracegraph.control.loops import fori_loop, while_loop
from tracegraph.control.scans import map, scan

__all__ = ["cond", "fori_loop", "map", "scan", "switch", "while_loop"]
