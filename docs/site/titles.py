"""Links whose text is the name of a page's file, as on GitHub, show the title of the page."""

from __future__ import annotations

import re
from typing import Any

from sphinx.addnodes import pending_xref

FILE = re.compile(r"^(\.\./)?(docs/|tutorials/)?\w+\.md$")


def shorten(_: Any, page: Any) -> None:
    """Take away such texts: a link without one shows the title."""
    for link in page.findall(pending_xref):
        if FILE.match(link.astext()) and "#" not in link["reftarget"]:
            link["refexplicit"] = False
            link.children.clear()


def setup(app: Any) -> None:
    """Do so when a page has been read."""
    app.connect("doctree-read", shorten)
