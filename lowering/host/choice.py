"""The choice of what runs plans on the CPU: the environment variable TRACEGRAPH_HOST."""

from __future__ import annotations

import os
from typing import Literal

VARIABLE = "TRACEGRAPH_HOST"

Kind = Literal["plain", "native"]


def chosen_kind() -> Kind:
    """What TRACEGRAPH_HOST asks for; the interpreter if it is not set.

    Raises:
        ValueError: it is something else.
    """
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "plain", "native"):
        raise ValueError(
            f"{VARIABLE} is {value!r}; it takes 'plain', which interprets plans by NumPy, "
            "'native', which compiles them to machine code, or nothing: unset it"
        )
    return "native" if value == "native" else "plain"
