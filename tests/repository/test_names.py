"""A name has one meaning: no two classes share one, nor do files of different subjects."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]

FEATURES: Mapping[str, str] = {
    **dict.fromkeys(("branches", "loops", "control"), "control flow: op, plan, transforms, errors"),
    "calls": "calls with rules of their own (ops/calls): op, inlining, batching",
    "callbacks": "functions of the host: users' functions, op, record, batching, errors",
    "collectives": "what devices of a mesh do together: words, op, planning, library call",
    "custom_kernels": "users' kernels: record, op, planning, text, batching, assertion, errors",
    "diagram": "diagrams as data, of programs and of plans",
    "effects": "prints, checks and reports: record, op, planning, batching",
    "events": "events of other code: record, op, planning, errors",
    "executable": "what a call runs, on each backend",
    "folds": "folds: users' declarations, ops, native code",
    "fourier": "Fourier transforms: op, planning, library call",
    "sorting": "sorts: NumPy's functions, op, planning",
    "tridiagonal": "tridiagonal systems: users' function, op, program in its place",
}
"""Names of three files or more: one feature, in the layers where a reader looks for it."""


def parsed() -> Iterator[tuple[Path, ast.Module]]:
    """The files of both packages."""
    for package in ("tracegraph", "lowering"):
        for file in sorted((ROOT / package).rglob("*.py")):
            yield file.relative_to(ROOT), ast.parse(file.read_text(encoding="utf-8"))


def is_protocol(node: ast.ClassDef) -> bool:
    """Whether a class only says what others have, which may bear its name."""
    bases = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in bases)


def test_a_class_has_a_name_of_its_own() -> None:
    where = defaultdict(list)
    for file, module in parsed():
        for node in module.body:
            if isinstance(node, ast.ClassDef) and node.name[0] != "_" and not is_protocol(node):
                where[node.name].append(str(file))
    shared = {name: files for name, files in where.items() if len(files) > 1}
    assert not shared, f"rename all but one of each, by what it is: {shared}"


def test_files_of_one_name_are_of_one_feature() -> None:
    where = defaultdict(list)
    for file, _ in parsed():
        if file.name != "__init__.py":
            where[file.stem].append(str(file))
    common = {name: files for name, files in where.items() if len(files) > 2}
    unknown = {name: files for name, files in common.items() if name not in FEATURES}
    assert not unknown, f"name each by its subject, or list the feature: {unknown}"
    assert FEATURES.keys() == common.keys(), "these are no longer names of three files"
