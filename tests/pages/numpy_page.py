"""Write docs/numerics.md: what of NumPy is supported, by the code that answers NumPy's calls.

Run it after a function was added: ``python -m tests.pages.numpy_page``. A test compares the page.
"""

from __future__ import annotations

import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tracegraph
from tracegraph import errors
from tracegraph.numpy.dispatching import protocols
from tracegraph.numpy.dispatching.dispatch import SIZES

PAGE = Path(__file__).parents[2] / "docs" / "numerics.md"

HEAD = """\
# NumPy's functions, one by one

This page is written by `tests/pages/numpy_page.py` from the code that answers NumPy's calls. It has
every function of `numpy`, `numpy.linalg` and `numpy.fft` of NumPy 2.4 that is passed on when an
argument is a traced value. [numpy.md](numpy.md) explains how they are used.
"""


def dispatched() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The ufuncs and functions that NumPy passes on, once each, by their first full name."""
    seen = set()
    for prefix, namespace in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        for name in sorted(dir(namespace)):
            function = getattr(namespace, name)
            passed_on = isinstance(function, np.ufunc) or hasattr(function, "_implementation")
            if not name.startswith("_") and passed_on and function not in seen:
                seen.add(function)
                yield f"{prefix}{name}", function


def counterpart(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """What answers a call with a traced value."""
    if isinstance(function, np.ufunc):
        return getattr(protocols.functions, function.__name__, None)
    return protocols._counterpart(function)[1]


def limits_of(function: Callable[..., Any], ours: Callable[..., Any]) -> list[str]:
    """What a counterpart lacks: keywords, or a result whose size depends on elements."""
    if isinstance(function, np.ufunc):
        return []
    parameters = inspect.signature(ours).parameters.values()
    names = {parameter.name for parameter in parameters}
    theirs = inspect.signature(function).parameters.values()
    lacking = sorted(p.name for p in theirs if p.name not in names and p.kind is p.KEYWORD_ONLY)
    lacking += sorted(
        p.name
        for p in theirs
        if p.name not in names and p.kind is p.POSITIONAL_OR_KEYWORD and p.default is not p.empty
    )
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        lacking = []
    found = [f"without `{name}=`" for name in lacking]
    own = sorted((names & SIZES) - {p.name for p in theirs})
    if own:
        keywords = " and ".join(f"`{name}=`" for name in own)
        found.append(f"`tracegraph.numpy` takes {keywords} for a static size")
    return found


def advice(function: Callable[..., Any]) -> str:
    """What the error says to do instead, for a function that is refused."""
    said = []

    def f(x: Any) -> Any:
        try:
            if isinstance(function, np.ufunc):
                protocols.array_ufunc(function, "__call__", [x] * function.nin, {})
            else:
                protocols.array_function(function, [x], {})
        except (errors.UnsupportedByTracerError, errors.ShapeDependentError) as error:
            said.append(str(error).partition("; ")[2].partition("\n")[0])
        return x

    tracegraph.make_program(f)(np.ones(3))
    (text,) = said
    return text


def page() -> str:
    """The text of the page."""
    whole, part, refused = [], [], []
    for name, function in dispatched():
        ours = counterpart(function)
        limits = [] if ours is None else limits_of(function, ours)
        if ours is None or function.__name__ in protocols._SHAPE_DEPENDENT:
            refused.append((name, advice(function)))
        elif limits:
            part.append((name, "; ".join(limits)))
        else:
            whole.append(name)
    lines = [HEAD, f"## Supported: {len(whole)}", ""]
    lines += [textwrap.fill(", ".join(f"`{name}`" for name in whole), 120), ""]
    lines += [f"## Supported in part: {len(part)}", "", "| function | how far |", "|---|---|"]
    lines += [f"| `{name}` | {text} |" for name, text in part]
    usual, _ = Counter(text for _, text in refused).most_common(1)[0]
    lines += ["", f"## Refused: {len(refused)}", ""]
    lines += ["The error says the same, with your line.", ""]
    lines += ["| function | instead |", "|---|---|"]
    lines += [f"| `{name}` | {text} |" for name, text in refused if text != usual]
    rest = ", ".join(f"`{name}`" for name, text in refused if text == usual)
    lines += ["", textwrap.fill(f"All others: {usual}: {rest}", 120)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
