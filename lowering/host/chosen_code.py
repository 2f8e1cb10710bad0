"""The code of the kind that is chosen."""

from __future__ import annotations

from contextvars import Context

from lowering.host.choice import chosen_kind
from lowering.host.code import MakeCode
from lowering.host.interpreter.interpreter import interpreted_code


def chosen_code(quiet: Context) -> MakeCode:
    """What makes the code, in a context where NumPy is quiet."""
    if chosen_kind() == "native":
        from lowering.native.executable import native_code  # loads llvmlite

        return native_code
    return lambda *args, **options: quiet.run(interpreted_code, *args, **options)
