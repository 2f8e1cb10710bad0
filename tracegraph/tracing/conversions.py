"""Conversions of traced values: what the user's line does that needs elements, and what to write.

NumPy and Python ask a value for its elements without saying what for. The expression of the user's
frame that is being evaluated says it: `np.float32(x)`, `table[k]`, `array[i] = x`.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import linecache
import re
import sys
import textwrap
import tokenize
from itertools import islice
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from tracegraph.tracing.function_table import FUNCTIONS, SPECIAL
from tracegraph.tracing.numpy_random import is_generator, is_maker, made_generator, twin
from tracegraph.user_source import Kind, kinds, user_frame

LONGEST = 60
"""Characters of an expression that is quoted; of a longer one, only what is called or indexed."""

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="
}  # fmt: skip
_WORD = re.compile(r"\b(?:el)?(if|while|assert)\W*(?:not\b\W*)*$")
_GRIDS = (np.mgrid, np.ogrid)
_INSTEAD = {
    "as_strided": "write numpy.lib.stride_tricks.sliding_window_view(x, window), or index with "
    "arrays of positions, x[i[:, None] + j]",
    "frompyfunc": "write tracegraph.numpy.vectorize(f)",
}
"""What to write for functions of NumPy that have no twin here, by their names."""
_CREATIONS = (
    "arange", "array", "empty", "eye", "full", "identity", "linspace", "ones", "tri", "zeros",
)  # fmt: skip
_STATIC = "make it static with jit(..., static_argnums=...)"
_SIZE = "take it from shapes (x.shape[0]), or use the largest size and a mask"
_VECTORIZE = "make the function with tracegraph.numpy.vectorize instead of numpy.vectorize"
_OUTSIDE = "compute it from the functions of tracegraph.numpy, or outside"


class Conversion(NamedTuple):
    """An expression that needs elements, as a message names it, and what to write instead."""

    operation: str
    instead: str


def conversion(is_size: bool = False) -> Conversion | None:
    """The user's expression that is being evaluated, if it is one with an advice of its own.

    `is_size`: the value is asked for as an index or a size.
    """
    frame, calls_package = user_frame()
    node = None if frame is None else expression_of(frame)
    if frame is None or node is None:
        return None
    if isinstance(node, ast.Call):
        if calls_package:
            return _of_package(node, frame)
        return _of_call(node, frame, is_size) or _of_method(node, frame, is_size)
    if isinstance(node, ast.Subscript):
        return _of_index(node, frame, is_size)
    if isinstance(node, ast.Compare):
        return of_comparison(node)
    return None


def of_comparison(node: ast.Compare) -> Conversion | None:
    """`x in table` or `a < x < b`, which ask for the truth of comparisons."""
    operands = [node.left, *node.comparators]
    texts = [ast.unparse(operand) for operand in operands]
    if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        sign = "~" if isinstance(node.ops[0], ast.NotIn) else ""
        found = f"{sign}tracegraph.numpy.isin({texts[0]}, {texts[1]})"
        return Conversion(
            quoted(node, "`in`"),
            f"write {found}, which is a traced boolean, to choose by with numpy.where or "
            "tracegraph.cond",
        )
    signs: list[Any] = [_OPERATORS.get(type(op)) for op in node.ops]
    if len(signs) < 2 or None in signs:
        return None
    parts = [f"({texts[k]} {sign} {texts[k + 1]})" for k, sign in enumerate(signs)]
    return Conversion(quoted(node, "a chained comparison"), f"write {' & '.join(parts)}")


def expression_of(frame: FrameType) -> ast.AST | None:
    """The innermost expression that a frame is at; None without its source."""
    return expression(_place(frame))


class Place(NamedTuple):
    """A place in a user's function: an instruction of its code."""

    code: CodeType
    instruction: int
    names: dict[str, Any]
    """The globals of the function."""
    entry: int | None = None
    """Which entry of an index it is about; None if the index is none of several."""

    @staticmethod
    def now(entry: int | None = None) -> Place | None:
        """Where the innermost frame of the user's own code is."""
        frame, _ = user_frame()
        return None if frame is None else _place(frame, entry)


def _place(frame: FrameType, entry: int | None = None) -> Place:
    return Place(frame.f_code, frame.f_lasti, frame.f_globals, entry)


class MaskedRead(NamedTuple):
    """The expressions of a read at a mask, `x[before, mask]`, as the user wrote them."""

    read: str = "x[mask]"
    array: str = "x"
    """What the mask selects from; `x[before, :]`, if other entries are beside it."""
    mask: str = "mask"

    @staticmethod
    def at(place: Place | None) -> MaskedRead:
        """The read at a place; general names if its source is not known."""
        node = None if place is None else _subscript(expression(place))
        if place is None or node is None:
            return MaskedRead()
        array, index = ast.unparse(node.value), node.slice
        read = f"{array}[{ast.unparse(index)}]"
        if place.entry is None or not isinstance(index, ast.Tuple):
            return MaskedRead(read, array, ast.unparse(index))
        if any(isinstance(e, ast.Starred) for e in index.elts):
            return MaskedRead(read)
        entries = [ast.unparse(e) for e in index.elts]
        read = f"{array}[{', '.join(entries)}]"
        mask, entries[place.entry] = entries[place.entry], ":"
        return MaskedRead(read, f"{array}[{', '.join(entries)}]", mask)


def _subscript(node: ast.AST | None) -> ast.Subscript | None:
    """`x[index]` in an expression that is one, or the call of a method of `x.at[index]`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        at = node.func.value
        if isinstance(at, ast.Subscript) and isinstance(at.value, ast.Attribute):
            return ast.Subscript(at.value.value, at.slice) if at.value.attr == "at" else None
    return node if isinstance(node, ast.Subscript) else None


def _lines(place: Place) -> tuple[list[bytes], int] | None:
    """The text of an instruction, and what is before it on its first line; None without source."""
    code = place.code
    positions = next(islice(code.co_positions(), place.instruction // 2, None), None)
    if positions is None or None in positions:
        return None
    first, last, start, end = positions
    assert first is not None and last is not None and start is not None  # noqa: PT018
    lines = [s.encode() for s in linecache.getlines(code.co_filename, place.names)]
    lines = lines[first - 1 : last]
    if not lines:
        return None
    lines[-1] = lines[-1][:end]
    return lines, start


def expression(place: Place) -> ast.AST | None:
    """The innermost expression of an instruction; None without its source."""
    found = _lines(place)
    if found is None:
        return None
    lines, start = found
    lines[0] = lines[0][start:]
    try:
        return ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except SyntaxError:  # it is a statement, or the file has changed since
        return None


def tested(frame: FrameType) -> tuple[str, ast.expr] | None:
    """What a frame asks for a truth: `if`, `while` or `assert`, and the expression behind it.

    An instruction that tests has the place of the expression, or of all of the statement.
    """
    place = _place(frame)
    found, node = _lines(place), expression(place)
    if found is None:
        return None
    lines, start = found
    if isinstance(node, ast.IfExp):
        return "if", node.test
    if isinstance(node, ast.expr):
        before = _WORD.search(lines[0][:start].decode(errors="replace"))
        return None if before is None else (before[1], node)
    lines[0] = lines[0][start:].removeprefix(b"el")
    try:
        statement = ast.parse(textwrap.dedent((b" " * start + b"".join(lines)).decode())).body[0]
    except SyntaxError:
        return None
    if not isinstance(statement, (ast.If, ast.While, ast.Assert)):
        return None
    return type(statement).__name__.lower(), statement.test


def _of_package(node: ast.Call, frame: FrameType) -> Conversion:
    name, called = ast.unparse(node.func), value(node.func, frame)
    own = getattr(called, "__name__", "")
    if own in SPECIAL and str(getattr(called, "__module__", "")).startswith("scipy.special"):
        return Conversion(
            quoted(node, f"{name}(...)"),
            f"write tracegraph.special.{own}, with the same arguments",
        )
    return Conversion(
        quoted(node, f"{name}(...)"),
        f"{name} works on the elements of NumPy arrays; write it with numpy's functions, or return "
        "its arguments from the traced function, and call it then",
    )


def _of_call(node: ast.Call, frame: FrameType, is_size: bool) -> Conversion | None:
    called, name = value(node.func, frame), ast.unparse(node.func)
    text = quoted(node, f"{name}(...)")
    ours = twin(called)
    if ours is not None:
        return Conversion(
            text,
            f"NumPy draws numbers once, while the function is traced; write {ours}, which takes a "
            "key of tracegraph.random.key as its first argument and traced parameters",
        )
    if called is range:
        return Conversion(
            text, f"use tracegraph.fori_loop instead of `for i in {text}`, or {_STATIC}"
        )
    if isinstance(called, type) and issubclass(called, (np.generic, int, float, complex)):
        argument = ast.unparse(node.args[0]) if node.args else "x"
        argument = argument if argument.isidentifier() else "x"
        known_as = called.__name__
        dtype = f"numpy.{known_as}" if issubclass(called, np.generic) else known_as
        return Conversion(text, f"write {argument}.astype({dtype}), or {_STATIC}")
    module = getattr(called, "__module__", None) or ""
    if module.partition(".")[0] == "numpy" and called is not None:
        own = getattr(called, "__name__", "")
        if is_size or called is np.arange:
            what = "what decides its size" if node.args[1:] or node.keywords else "it"
            return Conversion(text, f"{_STATIC.replace('it', what, 1)}, {_SIZE}")
        if isinstance(called, np.vectorize):
            return Conversion(text, _VECTORIZE)
        if own not in FUNCTIONS:
            return Conversion(text, _INSTEAD.get(own, _OUTSIDE))
        more = ", or numpy.stack to put values side by side" if own in ("array", "asarray") else ""
        return Conversion(text, f"write tracegraph.numpy.{own}, with the same arguments{more}")
    if module.partition(".")[0] == "math":
        return Conversion(text, f"write numpy.{getattr(called, '__name__', '')}, or {_STATIC}")
    if _is_installed(module):
        return _of_package(node, frame)
    return None


def _of_method(node: ast.Call, frame: FrameType, is_size: bool) -> Conversion | None:
    """A method of an array of NumPy's, or a call of what `numpy.vectorize` returns."""
    name = ast.unparse(node.func)
    text = quoted(node, f"{name}(...)")
    if isinstance(node.func, ast.Call) and value(node.func.func, frame) is np.vectorize:
        made = ast.unparse(node.func.func)
        own = ast.unparse(node).replace(made, "tracegraph.numpy.vectorize", 1)
        return Conversion(text, f"write {own}" if len(own) <= LONGEST else _VECTORIZE)
    if not isinstance(node.func, ast.Attribute):
        return None
    owner, attribute = ast.unparse(node.func.value), node.func.attr
    array = value(node.func.value, frame)
    if not isinstance(array, np.ndarray) and (is_size or array is not None):
        return None
    arguments = ", ".join(ast.unparse(each) for each in (*node.args, *node.keywords))
    if attribute == "item":
        return Conversion(text, f"write tracegraph.numpy.asarray({owner})[{arguments}]")
    if attribute == "fill":
        return Conversion(text, f"write {owner} = tracegraph.numpy.full_like({owner}, {arguments})")
    if attribute not in FUNCTIONS:
        return None
    return Conversion(text, f"write tracegraph.numpy.asarray({owner}).{attribute}({arguments})")


def _of_index(node: ast.Subscript, frame: FrameType, is_size: bool) -> Conversion | None:
    indexed, name = value(node.value, frame), ast.unparse(node.value)
    if _is_store(frame):
        variable = _viewed(node.value)
        made = _creation(variable, frame)
        if made is not None:
            return Conversion(
                f"the assignment {quoted(node, f'{name}[...]')} = ...",
                _made_here(ast.unparse(variable), made),
            )
        zeros = "tracegraph.numpy.zeros(shape) or numpy.zeros_like(traced, shape=shape)"
        if isinstance(indexed, list):
            zeros = f"{zeros}, or append traced values to a list"
        return Conversion(
            f"the assignment {quoted(node, f'{name}[...]')} = ...",
            f"the array is NumPy's own; make it with {zeros} instead",
        )
    text = quoted(node, f"{name}[...]")
    if indexed is np.r_ or indexed is np.c_:
        own = name.rpartition(".")[2]
        return Conversion(text, f"write tracegraph.numpy.{own}[{_index_text(node)}]")
    if any(indexed is grid for grid in _GRIDS):
        return Conversion(text, f"{_STATIC}, or compute with numpy.arange of a static size")
    index = _index_text(node)
    whole = f"tracegraph.numpy.asarray({name})"
    instead = f"write {whole}[{index}]"
    part = next((e for e in ast.walk(node.slice) if isinstance(e, ast.Slice)), None)
    if isinstance(indexed, (str, bytes)) or isinstance(node.value, ast.Constant):
        instead = _STATIC
    elif part is not None and part.lower is not None:
        at = ast.unparse(part.lower)
        instead = (
            f"a slice at a traced start has a static size: tracegraph.dynamic_slice({whole}, "
            f"({at},), (size,)), or {whole}[{at} + numpy.arange(size)]; or {_STATIC}"
        )
    elif part is not None and part.upper is not None:
        instead = (
            f"the elements before a traced stop are numpy.where(numpy.arange(n) < "
            f"{ast.unparse(part.upper)}, {whole}, 0), with 0 for the others; or {_STATIC}"
        )
    elif isinstance(indexed, (list, tuple)) or is_size:
        instead = _of_list(node, indexed, instead)
    elif (made := _creation(_viewed(node.value), frame)) is not None:
        instead = f"{instead}; to write to it, too, {_made_here(name, made)}"
    return Conversion(text, instead)


def _index_text(node: ast.Subscript) -> str:
    """The index of a subscript; one of several entries without parentheses."""
    return ast.unparse(ast.Subscript(ast.Name("x"), node.slice))[2:-1]


def _of_list(node: ast.Subscript, indexed: Any, of_numbers: str) -> str:
    """What to write for a list or tuple, or what else asks for an index."""
    values = indexed if isinstance(indexed, (list, tuple)) else ()
    if values and all(callable(each) for each in values):
        return f"write tracegraph.switch({ast.unparse(node.slice)}, {ast.unparse(node.value)}, ...)"
    return (
        f"of numbers, or of arrays alike, {of_numbers}; of functions, use tracegraph.switch; or "
        f"{_STATIC}"
    )


def called_function() -> tuple[str, str] | None:
    """The name of the NumPy function that the user's frame calls, and the expression."""
    frame, _ = user_frame()
    node = None if frame is None else expression_of(frame)
    if frame is None or not isinstance(node, ast.Call):
        return None
    name, called = ast.unparse(node.func), value(node.func, frame)
    if (getattr(called, "__module__", None) or "").partition(".")[0] != "numpy":
        return None
    return getattr(called, "__name__", ""), quoted(node, f"{name}(...)")


def written_array_advice(array: Any) -> str:
    """What to write instead of an array that NumPy made, which traced values are written to."""
    frame, _ = user_frame()
    if frame is not None:
        for name, value in frame.f_locals.items():
            if isinstance(value, np.ndarray) and _owner(value) is _owner(array):
                made = _creation(ast.Name(name), frame)
                if made is not None:
                    return _made_here(name, made)
    return "make the array in the traced function with tracegraph.numpy.zeros or numpy.zeros_like"


def _owner(array: Any) -> Any:
    """The array whose memory a view shows; another array itself."""
    base = getattr(array, "base", None)
    return array if base is None else base


def _made_here(name: str, made: ast.Call) -> str:
    """The advice for an array in a local variable that a call of NumPy made."""
    own = f"tracegraph.numpy.{ast.unparse(made.func).rpartition('.')[2]}"
    advised = quoted(ast.Call(ast.Name(own), made.args, made.keywords), f"{own}(...)")
    given = quoted(made, f"{ast.unparse(made.func)}(...)")
    return (
        f"the array is NumPy's own; write {name} = {advised} instead of {name} = {given} in line "
        f"{made.lineno}"
    )


def _viewed(node: ast.expr) -> ast.expr:
    """The variable whose part or view an expression is: y of `y.T`, `y[1:]`, `y.ravel()`."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            break
    return node


def _creation(node: ast.expr, frame: FrameType) -> ast.Call | None:
    """The call of NumPy that made the array in a local variable, as its function's source shows."""
    code = frame.f_code
    lines = linecache.getlines(code.co_filename, frame.f_globals)[code.co_firstlineno - 1 :]
    if not isinstance(node, ast.Name) or not lines:
        return None
    try:
        tree = ast.parse(textwrap.dedent("".join(inspect.getblock(lines))))
    except (SyntaxError, tokenize.TokenError):  # a lambda in a longer expression, or a changed file
        return None
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    assignment = None
    for each in ast.walk(tree):
        if not isinstance(each, ast.Assign) or each.lineno > frame.f_lineno:
            continue
        named = any(isinstance(t, ast.Name) and t.id == node.id for t in each.targets)
        if named and (assignment is None or each.lineno > assignment.lineno):
            assignment = each
    if assignment is None or not isinstance(assignment.value, ast.Call):
        return None
    called = value(assignment.value.func, frame)
    is_numpys = called in [getattr(np, each) for each in _CREATIONS]
    return assignment.value if is_numpys else None


def value(node: ast.expr, frame: FrameType) -> Any:
    """What a name, or an attribute of a module, refers to; None for anything else.

    Nothing of the user's own runs for it. A display of a list or tuple is one without elements.
    """
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals, vars(builtins)):
            if node.id in names:
                return names[node.id]
    if isinstance(node, ast.Attribute):
        owner = value(node.value, frame)
        if isinstance(owner, (ModuleType, np.dtype)) or node.attr == "dtype":
            return getattr(owner, node.attr, None)
        if is_generator(owner):
            return getattr(owner, node.attr, None)
        held = inspect.getattr_static(owner, node.attr, None)
        if is_generator(held) or type(held) in _CONTAINERS:
            return held
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        owner = value(node.value, frame)
        if type(owner) in _CONTAINERS:
            try:
                return owner[node.slice.value]
            except (LookupError, TypeError):
                return None
    if isinstance(node, ast.Call) and is_maker(value(node.func, frame)):
        return made_generator()
    if isinstance(node, (ast.Tuple, ast.List)):
        return ()
    return None


_CONTAINERS = (dict, list, tuple, np.ndarray)
"""Classes that run nothing of the user's own when they are read."""


def _is_store(frame: FrameType) -> bool:
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "STORE_SUBSCR"


def _is_installed(module: str) -> bool:
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and kinds[file] is Kind.INSTALLED


def quoted(node: ast.AST, short: str) -> str:
    """The text of an expression; of a long one, a short text."""
    text = ast.unparse(node)
    return text if len(text) <= LONGEST else short
