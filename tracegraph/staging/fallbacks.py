"""Warnings about fallbacks: once for each function that runs another way than planned."""

from __future__ import annotations

import warnings
from typing import Any

from tracegraph.errors import FallbackWarning

_warned: set[str] = set()
"""The functions that were warned of, by the text that names them in messages."""


def warn_of_fallbacks(function: str, plan: Any, device: str) -> None:
    """Warn of a plan's fallbacks, at the user's line, unless that was done for this function.

    Raises:
        FallbackWarning: warnings are errors; then the next compilation warns again.
    """
    fallbacks = getattr(plan, "fallbacks", ())
    if not fallbacks or function in _warned:
        return
    sources = [source for fallback in fallbacks for source in fallback.sources]
    warning = FallbackWarning(function, device, list(map(str, fallbacks)))
    if sources:
        warnings.warn_explicit(warning, FallbackWarning, sources[0].file, sources[0].line)
    else:
        warnings.warn(warning, stacklevel=3)
    _warned.add(function)
