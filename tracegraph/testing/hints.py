"""Hints: what is known to make the runs of a function differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tracegraph.ir.program import Program, walk
from tracegraph.testing.differences import Tolerance, differences, of_results
from tracegraph.testing.outcomes import Outcome, outcome
from tracegraph.testing.trials import Trial
from tracegraph.testing.ways import Way
from tracegraph.user_source import lines_of

FREE_ORDER = ("sum", "prod", "cumsum", "cumprod", "matmul", "scatter_add", "scatter_multiply")
"""Ops whose order of additions or multiplications is not specified."""

ROUNDING = Tolerance(ulps=0, rtol=1e-3, atol=1e-6)
"""A larger difference does not come from rounding."""


def hints(
    trial: Trial, eager: Outcome, faults: Mapping[Way, Outcome | None], traced: Outcome
) -> Iterator[str]:
    """Lines that may explain why a way gave something else, or another exception or print.

    Args:
        trial: what was run.
        eager: the outcome of the eager run.
        faults: by way, the outcome that differs, or None.
        traced: the outcome of tracing; its prints are those of Python.
    """
    again = outcome(trial.eager)
    if differences(eager, again, Tolerance()):
        yield (
            "a second eager run differs from the first: the function depends on more than its "
            "arguments, such as np.random or objects that it changes. Traced, its Python code ran "
            "once"
        )
        return
    if traced.printed:
        yield (
            "Python's print() in it ran while it was traced "
            f"({traced.printed.splitlines()[0]!r}); tracegraph.debug.print prints values when the "
            "program runs"
        )
        return
    way, fault = next((way, fault) for way, fault in faults.items() if fault is not None)
    if isinstance(eager.error, IndexError) and fault.error is None:
        yield (
            "traced indices out of range do not raise: reads clamp and writes are dropped, unless "
            "the function is traced inside `with tracegraph.check_indices():`"
        )
        return
    if way.name in ("interpreted", "optimized"):
        yield (
            "the program that was traced differs, before anything is planned: the function's "
            "Python code ran once, without values. Python numbers among the arguments were arrays "
            "then, and arrays had no memory layout"
        )
        return
    sums = _free_order(trial.traced.program)
    rounding = fault.error is None and not of_results(eager.result, fault.result, ROUNDING)
    if rounding and sums and fault.printed.count("\n") == eager.printed.count("\n"):
        same_prints = fault.printed == eager.printed
        allowance = "rtol= or ulps=" if same_prints else "fewer digits, as in {:.6g}"
        yield (
            f"{sums} may add in another order than NumPy, which rounds differently; if that is "
            f"all, allow for it by {allowance}"
        )
    if not rounding and any(w.name == "interpreted" and f is None for w, f in faults.items()):
        yield (
            "the program that was traced agrees, and the difference is none of rounding: this is a "
            "bug of tracegraph, please report it"
        )


def _free_order(program: Program) -> str:
    """The names and lines of sums of floating-point numbers, or nothing."""
    sums = [
        eqn
        for eqn in walk(program.body)
        if eqn.op.name in FREE_ORDER and eqn.outputs[0].type.dtype.kind not in "biu"
    ]
    names = ", ".join(dict.fromkeys(eqn.op.name for eqn in sums))
    places = lines_of(eqn.source for eqn in sums if eqn.source is not None)
    return f"{names} at {places}" if places else names
