"""Links that pages do not write: of code that is a public name, and of files that are pages.

A page says `tracegraph.scan` or `StructureError`, as on GitHub, and the site links the entry in the
reference. A link whose text is the name of a page's file shows the title of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.addnodes import desc_signature, pending_xref

from tracegraph import errors

FILE = re.compile(r"^(\.\./)?(docs/|tutorials/)?\w+\.md$")
NAME = re.compile(r"^(tracegraph(?:\.\w+)+)(?:\(\.*\))?$")

WITHOUT_LINKS = (nodes.reference, pending_xref, nodes.title, desc_signature)
"""What holds no further links."""


def target(text: str) -> str | None:
    """The full name of what a piece of code names, if it is one of ours."""
    found = NAME.match(text)
    if found:
        return found[1]
    return f"tracegraph.errors.{text}" if text in errors.__all__ else None


def around(node: nodes.Node) -> Iterator[nodes.Node]:
    """What a node is in."""
    while node.parent is not None:
        node = node.parent
        yield node


def link_names(page: nodes.document, name: str) -> None:
    """Let code that is a public name link its entry; what has none stays as it is."""
    for code in list(page.findall(nodes.literal)):
        path = target(code.astext())
        if path is None or any(isinstance(node, WITHOUT_LINKS) for node in around(code)):
            continue
        link = pending_xref(
            "", code.deepcopy(), refdomain="py", reftype="obj", reftarget=path, refdoc=name
        )
        code.replace_self(link)


def show_titles(page: nodes.document) -> None:
    """Take away texts that are names of files: a link without a text shows the title."""
    for link in page.findall(pending_xref):
        if FILE.match(link.astext()) and "#" not in link["reftarget"]:
            link["refexplicit"] = False
            link.children.clear()


def connect(app: Any, page: nodes.document) -> None:
    """Do both when a page has been read."""
    link_names(page, app.env.docname)
    show_titles(page)


def setup(app: Any) -> None:
    """Let Sphinx call `connect`."""
    app.connect("doctree-read", connect)
