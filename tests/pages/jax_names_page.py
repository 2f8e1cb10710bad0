"""Write docs/jax_names.md: what to write for names of JAX that are not had, by what errors say.

Run it after a name was added: ``python -m tests.pages.jax_names_page``. A test compares the page.
"""

from __future__ import annotations

import re
from pathlib import Path

from tracegraph.errors.names_of_jax import NAMES

PAGE = Path(__file__).parents[2] / "docs" / "jax_names.md"

HEAD = """\
# JAX's names, one by one

This page is written by `tests/pages/jax_names_page.py` from the texts of errors:
`tracegraph.remat` raises an `AttributeError` that says what this table says. A name that is neither
here nor in tracegraph is NumPy's, or is not had. [From JAX](from_jax.md) has the larger picture.
"""

THEIRS = {
    "tracegraph": "jax, jax.lax and others",
    "tracegraph.tree": "jax.tree and jax.tree_util",
    "tracegraph.nn": "jax.nn",
    "tracegraph.numpy": "jax.numpy",
    "tracegraph.random": "jax.random",
    "tracegraph.special": "jax.scipy.special",
}


def marked(text: str) -> str:
    """Calls and full names in it as code; no bar or star of the rest means anything."""
    text = text.replace("|", "\\|")
    code = r"(\b(?:tracegraph|numpy)\.\w+(?:\.\w+|\([^()]*\)|\[[^]]*\])*)"
    parts = re.split(code, text)
    parts[::2] = [part.replace("*", "\\*") for part in parts[::2]]
    parts[1::2] = [f"`{part}`" for part in parts[1::2]]
    return "".join(parts)


def page() -> str:
    """The text of the page."""
    lines = [HEAD]
    for module, names in NAMES.items():
        lines += [f"## {THEIRS[module]}", "", "| name | here |", "|---|---|"]
        lines += [f"| `{name}` | {marked(text)} |" for name, text in sorted(names.items())]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
