"""The code of the kind that is chosen."""

from __future__ import annotations

from contextvars import Context
from functools import partial
from random import Random

from lowering.host.choice import chosen_kind
from lowering.host.code import MakeCode
from lowering.host.interpreter.interpreter import interpreted_code
from lowering.plan.plan import Plan


def chosen_code(quiet: Context, plan: Plan, order: Random | None) -> tuple[Plan, MakeCode]:
    """What makes the code, in a context where NumPy is quiet, and the Plan to make it of: the one
    given, or an equal one that is kept on disk with what was written for it.
    """
    if chosen_kind() == "native":
        from lowering.native.compilation.kept_modules import modules_kept_or_made
        from lowering.native.executable import native_code  # loads llvmlite
        from lowering.native.module import modules_of

        if order is None:
            plan, modules = modules_kept_or_made(plan)
        else:
            modules = modules_of(plan, order)
        return plan, partial(native_code, modules)
    return plan, lambda *args, **options: quiet.run(interpreted_code, *args, **options)
