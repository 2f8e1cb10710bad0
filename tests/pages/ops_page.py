"""Write docs/ops.md: the derivative and the batching of every op, by its record.

Run it after an op was added: ``python -m tests.pages.ops_page``. A test compares the page.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tracegraph.ir.derivative import (
    Constant,
    Linear,
    NoDerivativeError,
    Partials,
    Product,
    Rewrite,
    UserRule,
)
from tracegraph.ir.op import Call, Effect, Elementwise, Op, Reduction, Scan, all_ops
from tracegraph.transforms.batching.batch import _CONTROL

PAGE = Path(__file__).parents[2] / "docs" / "ops.md"
LINE = 160
"""The longest formula that is written out."""

HEAD = """\
# Ops and their rules

This page is written by `tests/pages/ops_page.py` from the records of the ops. A traced program
consists of these {count} ops; [transforms.md](transforms.md) and [batching.md](batching.md) explain
the rules.

Of an op with the result *o*, the derivative is given by

- partial derivatives by its operands *x*, *y* and *z*: the tangent is the sum of the tangents of
  the operands times these; `where(condition, then, else)` chooses, none is an
  error, and *by cases* stands for a formula of several lines;
- *linear* in some operands together: the tangent is the op itself, applied to their tangents;
- *linear in each* of two operands: a product rule;
- a *rule* that gives the tangent in terms of linear ops.

Reverse mode transposes the tangent, so that there is one rule for both modes.
"""


@dataclass(frozen=True)
class Text:
    """An expression as text: what a partial derivative computes. `strength` is its operator's."""

    text: str
    strength: int = 9

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of a real number, which rules ask for."""
        return np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of a scalar."""
        return ()

    def inside(self, least: int) -> str:
        """The text as a part of an operator of this strength."""
        return self.text if self.strength >= least else f"({self.text})"

    def __neg__(self) -> Text:
        return Text(f"-{self.inside(4)}", 3)


def _text(x: Any) -> Text:
    return x if isinstance(x, Text) else Text(f"{float(x):.6g}", 9 if x >= 0 else 3)


def _operator(symbol: str, strength: int) -> tuple[Callable[..., Text], Callable[..., Text]]:
    def forward(x: Any, y: Any) -> Text:
        left, right = _text(x).inside(strength), _text(y).inside(strength + 1)
        return Text(f"{left} {symbol} {right}", strength)

    return forward, lambda x, y: forward(y, x)


for _name, _symbol, _strength in (
    ("add", "+", 1), ("sub", "-", 1), ("mul", "·", 3), ("truediv", "/", 3),
    ("lt", "<", 0), ("gt", ">", 0), ("le", "≤", 0), ("ge", "≥", 0),
):  # fmt: skip
    _forward, _reflected = _operator(_symbol, _strength)
    setattr(Text, f"__{_name}__", _forward)
    setattr(Text, f"__r{_name}__", _reflected)


class Writer:
    """The emitter of rules that writes formulas."""

    def __getattr__(self, name: str) -> Callable[..., Text]:
        infix = {"equal": "=", "less": "<", "greater": ">", "multiply": "·"}

        def record(*args: Any, **attrs: Any) -> Text:
            if name in ("stop_gradient", "with_derivative"):
                return _text(args[0])
            if name in infix:
                return _operator(infix[name], 3 if name == "multiply" else 0)[0](*args)
            return Text(f"{name}({', '.join(_text(x).text for x in args)})")

        return record


def partial(coefficient: Any, count: int) -> str:
    """The formula of a partial derivative."""
    if isinstance(coefficient, int):
        return str(coefficient)
    operands = [Text(name) for name in "xyz"[:count]]
    try:
        formula = coefficient(Writer(), Text("o"), *operands)
    except NoDerivativeError:
        return "none"
    text = _text(formula).text
    return f"`{text}`" if len(text) <= LINE else "by cases"


def operands_of(op: Op) -> list[str]:
    """The names of the operands."""
    parameters = inspect.signature(op.type_rule).parameters.values()
    return [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]


def derivative(op: Op) -> str:
    """What the record says of the derivative."""
    match op.derivative:
        case Constant():
            return "zero"
        case Partials(of=of):
            return ", ".join(partial(each, len(of)) for each in of)
        case Linear(of=None):
            return "linear"
        case Linear(of=of):
            names = operands_of(op)
            if len(names) == 1:
                return "linear" if of == (0,) else f"linear in operands {of}"
            return f"linear in {' and '.join(names[min(i, len(names) - 1)] for i in of)}"
        case Product():
            return "linear in each"
        case Rewrite(prepare=prepare, apply=apply):
            return f"a rule: {sentence(prepare if prepare.__doc__ else apply)}"
        case UserRule(choose=choose):
            return f"the user's: {sentence(choose)}"
    return "that of its regions"


def batching(op: Op) -> str:
    """How the op applies to all lanes, where its form does not say it."""
    if op.name in _CONTROL:
        return sentence(_CONTROL[op.name])
    match op.form:
        case Effect():
            return (
                "once"
                if op.name in ("host_call", "use_event", "mark_time")
                else "those that are live, in order"
            )
        case Call():
            return "in its regions"
    return sentence(op.batch) if op.batch else "the same for all lanes"


def sentence(function: Any) -> str:
    """The first sentence of a function's docstring, without its period."""
    text = inspect.getdoc(function) or ""
    found = " ".join(text.split("\n\n")[0].split()).removesuffix(".").replace("|", "\\|")
    assert found, f"{function} has no docstring"
    return found


def table(ops: Sequence[Op], with_batching: bool) -> list[str]:
    """A table of ops, in the order of their names."""
    titles = ["op", "derivative", *(["lanes"] if with_batching else [])]
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for op in sorted(ops, key=lambda op: op.name):
        cells = [f"`{op.name}`", derivative(op), *([batching(op)] if with_batching else [])]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def page() -> str:
    """The text of the page."""
    ops = list(all_ops())
    parts = [
        ("Elementwise", (Elementwise,), "Lanes are an axis in front."),
        ("Reductions and scans", (Reduction, Scan), "Axes move by one behind that of the lanes."),
    ]
    lines, rest = [HEAD.format(count=len(ops))], list(ops)
    for title, forms, said in parts:
        chosen = [op for op in ops if isinstance(op.form, forms)]
        rest = [op for op in rest if op not in chosen]
        smooth = [op for op in chosen if not isinstance(op.derivative, Constant)]
        names = ", ".join(f"`{op.name}`" for op in sorted(chosen, key=lambda op: op.name)
                          if op not in smooth)  # fmt: skip
        lines += [f"## {title}", "", said, "", *table(smooth, with_batching=False), ""]
        lines += [textwrap.fill(f"Derivative zero: {names}.", 120), ""]
    lines += ["## All others", "", *table(rest, with_batching=True)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
