"""Pages of the reference, written before the build reads its files: one entry a public name.

Signatures and texts are those of the code; `public` says which names are on which page. Git ignores
the files.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

from docs.site import public


def entry(module: str, name: str) -> str:
    """The directive that documents a name."""
    value = getattr(importlib.import_module(module), name)
    if inspect.isclass(value):
        path = f"{module}.{name}"
        hidden = ", ".join(public.NOT_SHOWN.get(path, ()))
        without = f"   :exclude-members: {hidden}\n" if hidden else ""
        return f".. autoclass:: {path}\n   :members:\n{without}"
    return f".. autofunction:: {module}.{name}\n"


def module_of(title: str) -> str:
    """The directive that makes a page the place of a module, if its title is one."""
    return f".. py:module:: {title}\n\n" if title.startswith("tracegraph.") else ""


def titled(title: str) -> str:
    """The title of a page."""
    return f"{title}\n{'=' * len(title)}\n\n"


def text_of(page: public.Page) -> str:
    """A page of names, as reStructuredText."""
    entries = "\n".join(entry(page.module, name) for name in page.names)
    intro = f"{page.intro}\n\n" if page.intro else ""
    return module_of(page.title) + titled(page.title) + intro + entries


def returned() -> str:
    """The page of classes that users meet as results."""
    parts = [titled("What jit returns"), "What these hold and do, stage by stage.\n\n"]
    for path, members in public.RETURNED.items():
        parts.append(f".. autoclass:: {path}()\n   :members: {', '.join(members)}\n\n")
    return "".join(parts)


def row(title: str, page: str, text: str) -> str:
    """A row of an overview: a page, and what it has."""
    return f"   * - :doc:`{title} <{page}>`\n     - {text}\n"


def links(page: public.Page) -> str:
    """The names of a page, each a link."""
    return ", ".join(f":py:obj:`{name} <{page.module}.{name}>`" for name in page.names)


def overview(rows: list[str]) -> str:
    """A table of pages."""
    return ".. list-table::\n   :widths: 25 75\n\n" + "".join(rows) + "\n"


def toctree(pages: list[str]) -> str:
    """The pages of the navigation below this one."""
    return ".. toctree::\n   :hidden:\n\n" + "".join(f"   {page}\n" for page in pages) + "\n"


def index(own: list[public.Page], modules: list[public.Page]) -> str:
    """The first page of the reference."""
    rows = [row(page.title, f"names/{page.file}", links(page)) for page in own]
    rows.append(row("What jit returns", "names/returned", "stages, and what they hold"))
    beside = [row(page.title, f"names/{page.file}", page.intro) for page in modules]
    beside.insert(0, row("tracegraph.numpy", "numpy", public.doc_of("tracegraph.numpy")))
    beside.append(row("tracegraph.errors", "errors", "Every class, and a program that raises it."))
    below = [f"names/{page.file}" for page in (*own, *modules)]
    below[len(own) : len(own)] = ["names/returned", "numpy"]
    return "".join(
        [
            titled("Reference"),
            "Every public name, with its signature, shapes, dtypes, the errors that it raises, and "
            "an example that the tests run.\n\n",
            overview(rows),
            "Modules\n-------\n\n",
            overview(beside),
            toctree(below),
        ]
    )


def numpy_index(pages: list[public.Page]) -> str:
    """The page of `tracegraph.numpy`."""
    rows = [row(page.title, f"names/{page.file}", links(page)) for page in pages]
    rows.insert(0, row("Constants and types", "numpy_constants", "and index objects"))
    return "".join(
        [
            module_of("tracegraph.numpy"),
            titled("tracegraph.numpy"),
            public.doc_of("tracegraph.numpy"),
            " A traced function may call NumPy's own functions: these pages say what they then do."
            "\n\n",
            overview(rows),
            toctree(["numpy_constants", *(f"names/{page.file}" for page in pages)]),
        ]
    )


def texts() -> dict[str, str]:
    """All pages, by the names of their files."""
    pages = list(public.pages())
    own = [page for page in pages if page.module == "tracegraph"]
    of_numpy = [page for page in pages if page.file.startswith("numpy.")]
    modules = [page for page in pages if page not in own and page not in of_numpy]
    return {
        **{f"names/{page.file}": text_of(page) for page in pages},
        "names/returned": returned(),
        "index": index(own, modules),
        "numpy": numpy_index(of_numpy),
    }


def write(app: Any) -> None:
    """Write all pages; a page that is as it was keeps its time."""
    folder = Path(app.srcdir) / "reference"
    (folder / "names").mkdir(exist_ok=True)
    wanted = {folder / f"{name}.rst": text for name, text in texts().items()}
    for path in (folder / "names").glob("*.rst"):
        if path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def setup(app: Any) -> None:
    """Write the pages before Sphinx looks for files."""
    app.connect("builder-inited", write)
