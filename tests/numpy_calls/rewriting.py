"""Test modules whose calls, operators and subscripts go through a recorder.

The modules are imported from their syntax trees: `f(x, k=1)` becomes `recorded_call(f, x, k=1)`,
`x + y` becomes `recorded_operator("add", x, y)`. So methods of arrays are seen, which no patch of
NumPy's namespaces shows, and NumPy's own calls of itself are not.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

CALL, OPERATOR = "recorded_call", "recorded_operator"

_OF_FRAMES = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec"})
"""Functions that look at the frame they are called from: they stay as they are."""

_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.USub: "neg",
    ast.UAdd: "pos",
    ast.Invert: "invert",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


class _Rewriter(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _OF_FRAMES:
            return node
        return ast.Call(_name(CALL), [node.func, *node.args], node.keywords)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _operator(_OPERATORS[type(node.op)], node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        name = _OPERATORS.get(type(node.op))
        if name is None or isinstance(node.operand, ast.Constant):
            return node
        return _operator(name, node.operand)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        name = _OPERATORS.get(type(node.ops[0]))
        if name is None or len(node.ops) > 1:
            return node
        return _operator(name, node.left, node.comparators[0])

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return _operator("getitem", node.value, _index(node.slice))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Subscript):
            return node
        return ast.Expr(_operator("setitem", target.value, _index(target.slice), node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        name = "i" + _OPERATORS[type(node.op)].rstrip("_")
        read = ast.Name(node.target.id, ast.Load())
        return ast.Assign([node.target], _operator(name, read, node.value))


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _operator(name: str, *operands: ast.expr) -> ast.Call:
    return ast.Call(_name(OPERATOR), [ast.Constant(name), *operands], [])


def _index(node: ast.expr) -> ast.expr:
    """An index as an expression of its own, with `slice(a, b, c)` for `a:b:c`."""
    if isinstance(node, ast.Slice):
        parts = [p or ast.Constant(None) for p in (node.lower, node.upper, node.step)]
        return ast.Call(_name("slice"), parts, [])
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_index(e) for e in node.elts], ast.Load())
    return node


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(name, path)
        self.functions = functions

    def get_code(self, fullname: str) -> CodeType:
        tree = _Rewriter().visit(ast.parse(self.get_data(self.path)))
        return compile(ast.fix_missing_locations(tree), self.path, "exec")

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self.functions)
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def __init__(self, files: Sequence[Path], functions: Mapping[str, Callable[..., Any]]) -> None:
        self.files, self.functions = {f.resolve() for f in files}, functions

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        found: ModuleSpec | None = PathFinder.find_spec(name, path, target)
        if found is None or found.origin is None or Path(found.origin).resolve() not in self.files:
            return None
        found.loader = _Loader(name, found.origin, self.functions)
        return found


def rewrite_imports(
    files: Sequence[Path], call: Callable[..., Any], operator: Callable[..., Any]
) -> None:
    """From now on, import these files such that they call `call` and `operator` instead."""
    sys.meta_path.insert(0, _Finder(files, {CALL: call, OPERATOR: operator}))
