"""Calls of functions that bring rules for their derivatives: custom_jvp, custom_vjp, checkpoint …

    custom_jvp     function(args… token? captures…) -> results… token?
                   rule(args… token? tangents… captures…) -> results… token? tangents…
    custom_vjp     function and forward(args… token? captures…) -> results… token? residuals…
                   backward(residuals… cotangents… captures…) -> cotangents of args…
    custom_linear  forward(tangents… residuals… captures…) -> tangents…, and backward, as above
    checkpoint     function(operands…) -> results…
    linear_solve   solve(b… token? captures…) -> x… aux… token?
                   matvec(x… captures…) -> b…, and the solve of the transposed system
    custom_root    solve(x0… token? captures…) -> x… aux… token?
                   function(x… captures…), solve and transposed solve(y… x… captures…) of tangents

Tangents and cotangents are those of floats and complex numbers. Captures are the operands from
`args` on. `transforms/` has the rules of these ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracegraph.ir.derivative import Structural
from tracegraph.ir.interpret import run_region
from tracegraph.ir.op import Call, Op, register
from tracegraph.ir.program import Region
from tracegraph.ir.types import ArrayType

Types = tuple[ArrayType, ...]


def _call_type(*operands: ArrayType, regions: Sequence[Region] = (), **attrs: Any) -> Types:
    """The types of the first region's results; it takes the operands as they are."""
    if not regions:
        raise TypeError("needs a region")
    params = [(p.type.dtype, p.type.shape) for p in regions[0].params]
    if params != [(t.dtype, t.shape) for t in operands]:
        needed, got = (", ".join(map(str, ts)) for ts in (regions[0].params, operands))
        raise TypeError(f"the region takes ({needed}), not ({got})")
    return regions[0].result_types


def _linear_type(
    *operands: ArrayType,
    regions: Sequence[Region] = (),
    tangents: int,
    residuals: int,
    types: Types,
    forward: bool,
    fault: Exception | None = None,
) -> Types:
    """`forward`: whether there is a region for tangents, the backward one being linear. `fault` is
    what the backward rule has raised.
    """
    return _call_type(*operands, regions=regions) if forward else types


def _run(*operands: Any, regions: Sequence[Region], **attrs: Any) -> Any:
    return run_region(regions[0], operands)


def _call(name: str, doc: str, type_rule: Callable[..., Any] = _call_type) -> Op:
    """Register a call, which has tests of its own instead of samples."""
    return register(Op(name, doc, type_rule, _run, Call(), lambda: (), derivative=Structural()))


custom_jvp = _call("custom_jvp", "A function with a rule for its tangents.")
custom_vjp = _call("custom_vjp", "A function with rules for its cotangents.")
custom_linear = _call(
    "custom_linear", "The derivative of a custom_vjp, known by its transpose.", _linear_type
)
checkpoint = _call("checkpoint", "A function that derivatives compute again.")
linear_solve = _call("linear_solve", "The solution of a linear system, with its operator.")
custom_root = _call("custom_root", "A root of a function, with that function.")
