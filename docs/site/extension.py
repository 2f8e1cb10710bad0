"""The parts of the site that are made in the build, each a file: `setup` connects them."""

from __future__ import annotations

from typing import Any

from docs.site import docstrings, errors_page, links, mathml, reference


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    for part in (mathml, docstrings, reference, errors_page, links):
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
