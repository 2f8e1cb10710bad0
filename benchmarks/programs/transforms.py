"""Derivatives and batches, each written once and run by every library that has them.

``--rows transforms`` runs them, with the tracing of gradients beside them.
"""

from __future__ import annotations

from . import gradients, lanes, loop_gradients
from .program import Program

_MODULES = (gradients, loop_gradients, lanes)

TRANSFORMS: tuple[Program, ...] = tuple(
    program for module in _MODULES for program in module.PROGRAMS
)
