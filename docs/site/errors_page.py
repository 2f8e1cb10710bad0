"""The page of errors: what each class means, a program that raises it, and what it then says.

The programs are the bodies of the functions in `error_programs`. They are run in the build, so
that messages are those of the code; a test runs them as well.
"""

from __future__ import annotations

import importlib
import inspect
import io
import linecache
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tracegraph
from tracegraph import errors

FAMILIES = {
    "tracers": "Traced values",
    "calls": "Calls and arrays",
    "control": "Loops and branches",
    "transforms": "vmap and derivatives",
    "devices": "Several devices",
    "host": "Functions of the host, and events",
    "kernels": "Your own CUDA code",
    "running": "Programs that run",
}
"""The files of `error_programs`, with the title of each one's part of the page."""

FILE = "example.py"
"""The name of a program's file in messages."""

INSTEAD, MESSAGE = "# Instead:\n", "# Message:\n"

SHOWN_ONLY = ("# On ", "# In ")
"""How a program begins that needs what a build does not have."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A program that raises an error: text that fails, text to write instead, maybe a message."""

    name: str
    wrong: str
    instead: str = ""
    example: str = ""

    @property
    def error(self) -> type[BaseException]:
        """The class."""
        return getattr(errors, self.name)

    @property
    def runs(self) -> bool:
        """Whether the program can be run anywhere."""
        return not self.example


def entry(function: Any) -> Entry:
    """The entry of a function of `error_programs`: its body, dedented."""
    lines = inspect.getsource(function).splitlines(keepends=True)
    body = textwrap.dedent("".join(lines[1:]))
    body, _, example = body.partition(MESSAGE)
    wrong, _, instead = body.partition(INSTEAD)
    assert body.startswith(SHOWN_ONLY) == bool(example), function.__name__
    parts = (part.strip() + "\n" for part in (wrong, instead))
    return Entry(function.__name__, *parts, example.strip())


def entries(family: str) -> tuple[list[str], list[Entry]]:
    """The imports that the programs of a file share, and its entries."""
    module = importlib.import_module(f"docs.site.error_programs.{family}")
    source = inspect.getsource(module)
    head = source[: source.index("\ndef ")].splitlines()
    imports = [line for line in head if line.startswith(("import ", "from "))]
    imports.remove("from __future__ import annotations")
    functions = [value for value in vars(module).values() if inspect.isfunction(value)]
    return imports, [entry(f) for f in functions if f.__module__ == module.__name__]


def classes() -> Iterator[type[BaseException]]:
    """All classes of errors and warnings."""
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, BaseException):
            yield value


def subclasses(error: type[BaseException]) -> list[type[BaseException]]:
    """The classes below one."""
    below = [each for each in classes() if each is not error and issubclass(each, error)]
    return sorted(below, key=lambda each: each.__name__)


def linked(error: type[BaseException]) -> str:
    """The name of a class, as a link where it has an entry."""
    ours = error.__module__ == errors.__name__
    return f":py:exc:`{error.__name__}`" if ours else f"``{error.__name__}``"


def names_of(imports: list[str]) -> dict[str, Any]:
    """What programs find defined."""
    names: dict[str, Any] = {"__name__": "example"}
    exec("\n".join(imports), names)
    return names


def run(text: str, names: dict[str, Any]) -> None:
    """Run a program as the file `example.py`, whose lines messages quote."""
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    with redirect_stdout(io.StringIO()):
        exec(compile(text, FILE, "exec", dont_inherit=True), names)


def message(each: Entry, names: dict[str, Any]) -> str:
    """What a program's error or warning says; it must be of the entry's class.

    Raises:
        Exception: what the program raises instead; a ValueError if it raises nothing.
    """
    if not each.runs:
        text = str(eval(each.example, {"tracegraph": tracegraph}))
        return text.partition("\n  at <string>")[0]  # the line is not that of the program
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run(each.wrong, names)
        except Exception as error:
            if type(error) is each.error:
                return str(error)
            raise
    for warning in caught:
        if warning.category is each.error:
            return str(warning.message)
    raise ValueError(f"the program of {each.name} raises nothing")


def indented(text: str, by: int = 3) -> str:
    """A text as the content of a directive."""
    return textwrap.indent(text.rstrip("\n"), " " * by) + "\n\n"


def block(language: str, text: str) -> str:
    """A block of code, or of what is printed, within an entry."""
    kind = "   :class: message\n" if language == "text" else ""
    return indented(f".. code-block:: {language}\n{kind}\n" + indented(text))


def program(text: str) -> str:
    """A program, or the comment in its place."""
    lines = text.splitlines()
    if all(line.startswith("# ") for line in lines):
        return indented(" ".join(line.removeprefix("# ") for line in lines))
    return block("python", text)


def text_of(each: Entry, names: dict[str, Any]) -> str:
    """An entry of the page, as reStructuredText."""
    bases = " and ".join(map(linked, each.error.__bases__))
    parts = [
        f".. py:exception:: {each.name}\n\n",
        indented(inspect.getdoc(each.error) or ""),
        indented(f"It derives from {bases}."),
        program(each.wrong),
        block("text", f"{each.name}: {message(each, names)}"),
    ]
    if each.instead.strip():
        parts += [indented("Instead:"), program(each.instead)]
    return "".join(parts)


def page() -> str:
    """The page, as reStructuredText."""
    parts = [
        ".. py:module:: tracegraph.errors\n\nErrors\n======\n\n",
        "Each class of ``tracegraph.errors``: what it means, the smallest program that raises it, "
        "what the error then says, and what to write instead. The programs were run when this "
        "page was made. Those that need a GPU, or a defect, were not: there the message is an "
        "example.\n\n",
        "A message ends with your line. ``TRACEGRAPH_TRACEBACK=full`` in the environment shows the "
        "frames of tracegraph as well.\n\n",
    ]
    done = set()
    for family, title in FAMILIES.items():
        imports, found = entries(family)
        parts.append(f"{title}\n{'-' * len(title)}\n\n")
        parts.append(".. code-block:: python\n\n" + indented("\n".join(imports)))
        for each in found:
            done.add(each.name)
            parts.append(text_of(each, names_of(imports)))
    parts.append("Classes above others\n--------------------\n\n")
    for error in classes():
        if error.__name__ not in done:
            below = ", ".join(map(linked, subclasses(error)))
            parts.append(f".. py:exception:: {error.__name__}\n\n")
            parts.append(indented(inspect.getdoc(error) or "") + indented(f"It may be {below}."))
    return "".join(parts)


def write(app: Any) -> None:
    """Write the page where the reference finds it."""
    path = Path(app.srcdir) / "reference" / "errors.rst"
    text = page()
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def setup(app: Any) -> None:
    """Write the page before Sphinx looks for files."""
    app.connect("builder-inited", write)
