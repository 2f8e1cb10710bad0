"""Imports point one way: between files up to a small circle, between folders without one.

Every import counts, those inside functions and under TYPE_CHECKING included.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

Imports = Mapping[str, Set[str]]
"""By module, the modules of both packages that it imports."""

LARGEST_CIRCLE = 5
"""Files that may be tied together by their imports."""

EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("tracegraph.staging.compiler", "lowering"): "the plug: tracegraph knows its compiler there",
}
"""Imports against the direction, each with the reason for it."""


@cache
def files() -> Mapping[str, Path]:
    """Every file of both packages by the name of its module."""
    found = {}
    for package in ("tracegraph", "lowering"):
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def imports() -> Imports:
    """The imports of both packages, without the exceptions."""
    return {
        module: {
            target
            for target in _imported(ast.parse(file.read_text(encoding="utf-8")))
            if target != module and (module, target) not in EXCEPTIONS
        }
        for module, file in files().items()
    }


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files())
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in files():
                    yield full
                elif node.module in files():
                    yield str(node.module)


def circles(graph: Imports) -> list[list[str]]:
    """Tarjan's algorithm: the strongly connected components of several nodes, largest first."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for target in graph[node]:
            if target not in order:
                visit(target)
                lowest[node] = min(lowest[node], lowest[target])
            elif target in stack:
                lowest[node] = min(lowest[node], order[target])
        if lowest[node] == order[node]:
            start = stack.index(node)
            found.append(sorted(stack[start:]))
            del stack[start:]

    for node in graph:
        if node not in order:
            visit(node)
    return sorted((c for c in found if len(c) > 1), key=len, reverse=True)


def described(circle: list[str], graph: Imports) -> str:
    """A circle with the imports that tie it together, one module a line."""
    members = set(circle)
    lines = (f"  {m} -> {', '.join(sorted(graph[m] & members))}" for m in circle)
    return "\n".join((f"{len(circle)} import one another:", *lines))


def test_circles_of_files_are_small() -> None:
    large = [c for c in circles(imports()) if len(c) > LARGEST_CIRCLE]
    assert not large, "\n".join(described(circle, imports()) for circle in large)


def test_every_exception_is_an_import() -> None:
    for module, target in EXCEPTIONS:
        assert target in set(_imported(ast.parse(files()[module].read_text(encoding="utf-8"))))
