"""Imports point one way, between files and between folders.

Every import counts, those inside functions and under TYPE_CHECKING included. A part is a folder
with all below it but folders that the tables list by themselves, or a file at the top of a package.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

Imports = Mapping[str, Set[str]]
"""By module, the modules of both packages that it imports."""

EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("tracegraph.staging.compiler", "lowering"): "the plug: tracegraph knows its compiler there",
    ("lowering.cuda.open_devices", "lowering.driver"): "the plug: the driver is opened there",
}
"""Imports against the direction of the tables, each with the reason for it."""

GROUND = {
    *("user_source", "dtypes", "devices", "version", "concurrency"),
    *("modes", "current_stream"),
}
"""Parts of tracegraph that import no other."""

BY_ALL = {"generated", "public_names", "single_imports"}
"""Parts of tracegraph without imports that any part of it may import."""

Table = Mapping[str, Set[str]]
"""What each part of a package may import of it."""

TRACEGRAPH: Table = {
    **dict.fromkeys(GROUND | BY_ALL, frozenset()),
    "errors": {"dtypes", "user_source"},
    "tree": {"errors"},
    "limits": {"errors"},
    "distributed": {"limits", "errors"},
    "progress": {"errors", "user_source"},
    "inspection": {"errors", "user_source"},
    "ir": {"inspection", "errors", "progress", "dtypes", "user_source"},
    "ops": {"ir", "limits", "progress", "errors", "dtypes", "modes"},
    "passes": {"ir"},
    "tracing": {"ir", "errors", "user_source", "devices", "modes"},
    "arrays": {"tracing", "ir", "tree", "errors", "dtypes", "devices"},
    "numpy": {
        *("control", "arrays", "tracing", "ops", "ir", "tree", "errors"),
        *("dtypes", "devices", "modes", "user_source"),
    },
    "array_api": {"numpy", "arrays", "tracing", "errors"},
    "special": {"numpy", "arrays", "ops", "tracing", "ir", "errors"},
    "nn": {"special", "numpy", "errors", "dtypes"},
    "random": {
        *("sharding", "transforms", "special", "control", "numpy", "arrays", "tracing", "ir"),
        "errors",
    },
    "sparse": {"numpy", "arrays", "tracing", "ir", "tree", "errors"},
    "sharding": {"distributed", "tracing", "ir", "tree", "errors", "concurrency", "devices"},
    "control": {
        *("arrays", "tracing", "ops", "ir", "tree", "errors"),
        *("limits", "progress", "dtypes", "user_source"),
    },
    "transforms": {
        *("sharding", "control", "arrays", "tracing", "passes", "ops", "ir", "tree", "errors"),
        *("limits", "dtypes", "user_source"),
    },
    "c_functions": {"tracing", "errors"},
    "callbacks": {
        *("c_functions", "staging", "control", "tracing", "ops", "ir", "tree", "errors"),
        "user_source",
    },
    "custom": {
        *("control", "numpy", "arrays", "tracing", "ops", "ir", "errors", "dtypes"),
        "user_source",
    },
    "linalg": {"transforms", "control", "numpy", "arrays", "ir"},
    "event": {"control", "ir", "errors"},
    "debug": {"callbacks", "control", "staging", "ir", "errors", "modes", "user_source"},
    "staging": {
        *("sharding", "distributed", "arrays", "tracing", "passes", "ops", "ir", "tree", "errors"),
        "inspection",
        *GROUND,
    },
    "saving": {
        *("custom", "transforms", "sharding", "staging", "passes", "tracing", "ir", "tree"),
        *("errors", "modes", "version", "user_source", "devices"),
    },
    "__main__": {"saving", "errors"},
    "streams": {"staging", "devices", "current_stream"},
    "memory": {"staging", "devices"},
    "capabilities": {"staging", "devices"},
    "raw_memory": {"staging", "arrays", "ir", "errors", "devices"},
    "cache": {"staging", "errors"},
    "interop": {
        *("array_api", "linalg", "special", "staging", "transforms", "arrays", "tracing", "ir"),
        *("tree", "errors"),
    },
    "torch": {
        *("interop", "arrays", "ir", "tree", "errors", "dtypes", "devices"),
        *("current_stream", "modes"),
    },
    "jax": {"interop", "numpy", "arrays", "ir", "tree", "errors", "devices"},
    "tracegraph": {
        *("arrays", "callbacks", "capabilities", "control", "custom", "debug", "errors", "event"),
        *("ir", "limits", "linalg", "memory", "raw_memory", "nn", "numpy", "random", "inspection"),
        *("saving", "sharding", "distributed", "sparse", "special", "staging", "streams"),
        *("concurrency", "transforms", "tree", "version", "modes", "array_api", "interop"),
        *("torch", "jax", "cache"),
    },
    "testing": {
        *("tracegraph", "debug", "staging", "arrays", "ir", "tree", "errors", "dtypes"),
        *("streams", "user_source"),
    },
}

BY_LOWERING = GROUND | {
    *("ir", "ops", "passes", "control", "arrays", "staging", "numpy", "tracing"),
    *("errors", "limits", "progress", "inspection", "sharding", "transforms", "tree", "version"),
    *("cache", "distributed", "generated", "single_imports"),
}
"""Parts of tracegraph that lowering may import."""

ABOVE_LOWERING = {"testing"}
"""Parts of tracegraph that may import lowering. Nothing imports them."""

CODE = frozenset({"host.arena", "host.code", "host.result_pool", "host.section_times"})
"""What the interpreter and native code have in common: memory, and the interface of code."""

PLAN = frozenset({"plan", "plan.nests", "plan.calls", "plan.records", "plan.target"})
"""The Plan: nests and calls know no node, and what planning is given knows neither."""

LOWERING: Table = {
    "errors": frozenset(),
    "algorithms": frozenset(),
    "plan.target": frozenset(),
    "plan.nests": {"plan.target"},
    "plan.calls": {"plan.nests"},
    "plan.records": {"plan.nests"},
    "plan": {"plan.nests", "plan.calls", "plan.target", "errors"},
    "plan.reports": PLAN,
    "draft": PLAN,
    "planning.expansion": PLAN,
    "planning": {"planning.expansion", "algorithms", "draft", *PLAN},
    "allocation": {"draft", *PLAN},
    "scheduling": {"draft", "planning", "allocation", *PLAN},
    "fusion": {"draft", *PLAN},
    "legalization": PLAN,
    "codegen": PLAN,
    "disk_cache": PLAN,
    "native.library": {"codegen"},
    "host.arena": PLAN,
    "host.result_pool": {"host.arena"},
    "host.section_times": frozenset(),
    "host.code": CODE | PLAN,
    "host.interpreter": CODE | PLAN,
    "native": {"native.library", "disk_cache", "host.interpreter", *CODE, *PLAN},
    "cuda": {"plan.reports", "legalization", "codegen", "disk_cache", "errors", *PLAN},
    "driver": {"cuda", "errors", *PLAN},
    "mesh": {"cuda", *PLAN},
    "host": {"native", "host.interpreter", "plan.reports", *CODE, *PLAN},
    "backends": {
        *("algorithms", "cuda", "host", "mesh", "host.result_pool", "native", "codegen"),
        "legalization",
        *("plan.reports", *PLAN),
    },
    "lower": {
        *("backends", "fusion", "scheduling", "allocation", "planning", "planning.expansion"),
        *("draft", *PLAN),
    },
    "lowering": {"lower", "disk_cache", "backends", "cuda", "plan", "plan.reports"},
    "testing": {"backends", "cuda", "legalization", "errors", *PLAN},
}

LARGE_FOLDERS = {"tracegraph/numpy", "tracegraph/ops", "tracegraph/ir"}
"""Folders with a file for each family of functions, ops or records."""

MOST_FILES = 20
"""Files of any other folder with code: more need folders of their own."""


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
    """The imports of both packages, the exceptions included."""
    return {
        module: set(_imported(ast.parse(file.read_text(encoding="utf-8")))) - {module}
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


def part(module: str) -> tuple[str, str]:
    """The package of a module, and the part of it that it belongs to.

    >>> part("lowering.plan.nests.kernel"), part("lowering.plan.plan"), part("lowering")
    (('lowering', 'plan.nests'), ('lowering', 'plan'), ('lowering', 'lowering'))
    """
    package, _, below = module.partition(".")
    first, _, rest = below.partition(".")
    listed = f"{first}.{rest.partition('.')[0]}"
    return package, listed if listed in LOWERING else first or package


def may_import(module: str, target: str) -> bool:
    """Whether the tables allow an import."""
    if (module, target) in EXCEPTIONS:
        return True
    (package, own), (other_package, other) = part(module), part(target)
    if package != other_package:
        return other in BY_LOWERING if package == "lowering" else own in ABOVE_LOWERING
    table = TRACEGRAPH if package == "tracegraph" else LOWERING
    return own == other or other in table[own] | BY_ALL


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


def test_no_files_import_one_another() -> None:
    found = circles(imports())
    assert not found, "\n".join(described(circle, imports()) for circle in found)


def test_parts_import_what_they_may() -> None:
    wrong = [
        f"{module} imports {target}"
        for module, targets in imports().items()
        for target in sorted(targets)
        if not may_import(module, target)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("table", [TRACEGRAPH, LOWERING], ids=["tracegraph", "lowering"])
def test_the_tables_point_one_way(table: Table) -> None:
    found = circles(table)
    assert not found, "\n".join(described(circle, table) for circle in found)


def test_every_exception_is_an_import() -> None:
    for module, target in EXCEPTIONS:
        assert target in imports()[module]


def test_the_folder_of_lowering_has_few_names() -> None:
    names = [path.name for path in (ROOT / "lowering").iterdir() if path.name != "__pycache__"]
    assert len(names) <= MOST_FILES, sorted(names)
    assert "lower.py" in names


def test_folders_have_few_files() -> None:
    counts = Counter(
        str(path.parent.relative_to(ROOT))
        for package in ("tracegraph", "lowering", "tests", "benchmarks")
        for path in (ROOT / package).rglob("*")
        if path.suffix in {".py", ".cuh", ".js"}
    )
    full = {f: n for f, n in counts.items() if n > MOST_FILES and f not in LARGE_FOLDERS}
    assert not full
