"""`show`: the picture of a program or a graph, in a notebook or as a file."""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from tracegraph.errors import NotDrawableError, ShowOptionError
from tracegraph.errors.tracebacks import entry_point
from tracegraph.inspection.diagram import Diagram
from tracegraph.inspection.drawable import Drawable

__all__ = ["show"]


@entry_point
def show(
    x: Any,
    path: str | os.PathLike[str] | None = None,
    depth: int | None = None,
    static: bool = False,
) -> Path | None:
    """Show a program, a stage of a jitted function, a plan or one of its nodes as a picture.

    In a notebook, without a path, the picture is displayed. Otherwise it is written to a file: one
    page of HTML that loads nothing, or with `static` an SVG. On the page, a click on an operation
    or a node shows its line of source, types, kernel text, bytes, schedule and why; a click on a
    region zooms in; where a value is used is shown when the mouse is over it. Boxes are opened and
    closed, and found by name, type or line; a click on a line of the source shows what is made of
    it.

    Args:
        x: a Program, Traced, Lowered, Compiled, a Plan, or a node of one.
        path: the file to write, with the suffix .html or .htm, or .svg if `static`. By default,
            a new file in the folder of temporary files.
        depth: how many levels of loops and branches to show: 1 is the outermost one.
        static: the picture alone, without a panel and without a script.

    Returns:
        The path of the file; None if a notebook displays the picture.

    Raises:
        NotDrawableError: it is none of these.
        ShowOptionError: the depth is not a positive int, or the suffix is another one.

    >>> import numpy as np, tempfile
    >>> import tracegraph
    >>> program = tracegraph.make_program(lambda x: 2 * x + 1)(np.ones(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tracegraph.show(program, f"{folder}/program.html").name
    'program.html'
    """
    if not isinstance(x, Drawable):
        raise NotDrawableError(x)
    if depth is not None and (type(depth) is not int or depth < 1):
        raise ShowOptionError(f"depth must be a positive int or None, not {depth!r}")
    target = None if path is None else _checked(Path(path), static)
    diagram = x.diagram().to_depth(depth)
    if target is None and _in_notebook():
        _display(x, diagram, static)
        return None
    text = _content(x, diagram, static)
    if target is None:
        target = _temporary(diagram, ".svg" if static else ".html")
    target.write_text(text, "utf-8")
    return target


def _checked(path: Path, static: bool) -> Path:
    if static and path.suffix.lower() != ".svg":
        why = "static=True writes the picture alone"
        raise ShowOptionError(f"the path must end in .svg, not {path.name!r}: {why}")
    if not static and path.suffix.lower() not in (".html", ".htm"):
        why = "it is a page; static=True writes .svg"
        raise ShowOptionError(f"the path must end in .html or .htm, not {path.name!r}: {why}")
    return path


def _content(x: Drawable, diagram: Diagram, static: bool) -> str:
    from tracegraph.inspection.page import page  # imported when something is drawn
    from tracegraph.inspection.svg import svg

    return svg(diagram) if static else page(diagram, str(x), x.made_of())


def _temporary(diagram: Diagram, suffix: str) -> Path:
    import tempfile  # slow to import, and seldom needed

    name = re.sub(r"[^A-Za-z0-9_]+", "-", diagram.title).strip("-")[:40]
    handle, path = tempfile.mkstemp(suffix, f"{name}-")
    os.close(handle)
    return Path(path)


def _in_notebook() -> bool:
    """Whether a kernel of IPython runs this: what it displays, a browser shows."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _display(x: Drawable, diagram: Diagram, static: bool) -> None:
    from tracegraph.inspection.svg import quoted

    content = _content(x, diagram, static)
    bundle = {"text/plain": repr(x)}
    if static:
        bundle["image/svg+xml"] = content
    else:  # in a frame of its own, where its script may run, and reaches nothing else
        bundle["text/html"] = (
            '<iframe sandbox="allow-scripts" style="width: 100%; height: 36em; border: 0" '
            f'title="{quoted(diagram.title)}" srcdoc="{quoted(content)}"></iframe>'
        )
    importlib.import_module("IPython.display").display(bundle, raw=True)
