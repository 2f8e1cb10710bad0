"""Printing kernels: their nests, stores and scalar expressions.

In a nest, `i0, i1, …` are the axes of its space and then of its loop, `acc0, …` the folded values,
and `t0, …` expressions that are used more than once, or are nested deeply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from lowering.plan.nests.analysis import (
    nest_accumulators,
    nest_expressions,
    nest_roots,
    nest_signals,
    nest_stores,
)
from lowering.plan.nests.kernel import (
    Accumulator,
    CallNest,
    Kernel,
    MapNest,
    Nest,
    PrintNest,
    Publish,
    ReduceNest,
    Require,
    RowNest,
    ScanNest,
    ScatterNest,
    SetCondition,
    Signal,
    Store,
)
from tracegraph.dtypes import SHORT_NAMES
from tracegraph.ir.scalar import (
    INDEX,
    Axis,
    Both,
    Clamp,
    Compare,
    Const,
    Expr,
    FloorDiv,
    Mod,
    Select,
    Sum,
)
from tracegraph.ir.scalar_values import Accumulated, Apply, AsIndex, AsValue, Load
from tracegraph.ir.subexpressions import subexpressions

Names = Mapping[Expr, str]

_INDENT = "  "

MAX_NESTING = 40
"""The depth of expressions in one line: text is written by recursion."""


def kernel_text(kernel: Kernel) -> str:
    """A kernel: its nests, one store a line."""
    nests = [_INDENT + line for nest in kernel.nests for line in _nest_lines(nest)]
    return "\n".join([f"kernel {kernel.name}", *nests])


def nest_line(nest: Nest) -> str:
    """A nest in a line: its points, and the ops that it evaluates: ``"map [8]: multiply, add"``."""
    folds = ", ".join(dict.fromkeys(map(_fold_name, nest_accumulators(nest))))
    head = _nest_head(nest, f" by {folds}" if folds else "")
    ops = [e.op.name for e in nest_expressions(nest) if isinstance(e, Apply)]
    return f"{head}: {', '.join(dict.fromkeys(ops))}" if ops else head


def expr_text(expr: Expr, names: Names | None = None) -> str:
    """A scalar expression in one line; sub-expressions in `names` are printed as their name."""
    known = names or {}
    found = known.get(expr)
    return _expression(expr, known) if found is None else found


# -- nests -------------------------------------------------------------------------------------


def _nest_lines(nest: Nest) -> Iterator[str]:
    yield _nest_head(nest)
    names = _named(nest_roots(nest))
    body = [f"{name} = {_expression(expr, names)}" for expr, name in names.items()]
    numbers = count()
    if isinstance(nest, ReduceNest):
        body += [_fold_text(next(numbers), each, names) for each in nest.accumulators]
    if isinstance(nest, RowNest):
        for each in nest.passes:
            body.append("pass")
            folds = [_fold_text(next(numbers), a, names) for a in each.accumulators]
            stores = [_store_text(store, names) for store in each.stores]
            body += [_INDENT + line for line in (*folds, *stores)]
        body += [_store_text(store, names) for store in nest.stores]
    else:
        body += [_store_text(store, names) for store in nest_stores(nest)]
    body += [_signal_text(each, names) for each in nest_signals(nest)]
    if isinstance(nest, PrintNest):
        body += [f"{_extents(a.shape)} {expr_text(a.value, names)}" for a in nest.arguments]
    yield from (_INDENT + line for line in body)


def _fold_text(number: int, accumulator: Accumulator, names: Mapping[Expr, str]) -> str:
    return f"acc{number} = {_fold_name(accumulator)} {expr_text(accumulator.value, names)}"


def _fold_name(accumulator: Accumulator) -> str:
    name = accumulator.combiner.name
    return f"arg {name}" if accumulator.arg else name


def _nest_head(nest: Nest, folds: str = "") -> str:
    tests = [f"{p.flag} == {str(p.value).lower()}" for p in nest.predicates]
    return _nest_kind(nest) + folds + (f" where {' and '.join(tests)}" if tests else "")


def _nest_kind(nest: Nest) -> str:
    space = _extents(nest.space)
    match nest:
        case CallNest(site=site, results=results):
            return f"call[{site}]" + (f" -> {', '.join(map(str, results))}" if results else "")
        case PrintNest(site=site):
            return f"print[{site}]"
        case MapNest():
            return f"map {space}"
        case ReduceNest(loop=loop):
            return f"reduce {space} over {_extents(loop)}"
        case RowNest(loop=loop):
            return f"rows {space} over {_extents(loop)}"
        case ScanNest(axis=axis, combiner=combiner):
            return f"scan {space} along i{axis} by {combiner.name}"
        case ScatterNest(repeats=repeats, combiner=combiner, any_order=any_order, grouped=grouped):
            by = "" if combiner is None else f" by {combiner.name}"
            order = "in any order" if any_order else "in groups" if grouped else "in order"
            return f"scatter {space}{by}" + (f", {repeats} axes {order}" if repeats else "")


def _extents(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _store_text(store: Store, names: Names) -> str:
    guard = "" if store.guard is None else f" if {expr_text(store.guard, names)}"
    target = f"{store.buffer}{_index(store.indices, names)}"
    return f"{target} = {expr_text(store.value, names)}{guard}"


def _signal_text(signal: Signal, names: Names) -> str:
    value = expr_text(signal.value, names)
    match signal:
        case SetCondition(condition=number):
            return f"condition[{number}] = {value}"
        case Publish(monitor=number):
            return f"monitor[{number}] = {value}"
        case Require(failure=number):
            return f"failure[{number}] unless {value}"


def _named(roots: Sequence[Expr]) -> dict[Expr, str]:
    """Names of the values with lines of their own, operands before users."""
    order = subexpressions(roots)
    uses = Counter(roots)
    for expr in order:
        uses.update(expr.children)
    names: dict[Expr, str] = {}
    depth: dict[Expr, int] = {}  # down to what has a name
    for expr in order:
        depth[expr] = 1 + max((depth[child] for child in expr.children), default=0)
        is_shared = uses[expr] > 1 and isinstance(expr, Apply | Select)
        if is_shared or depth[expr] > MAX_NESTING:
            names[expr] = f"t{len(names)}"
            depth[expr] = 0
    return names


# -- expressions -------------------------------------------------------------------------------


def _expression(expr: Expr, names: Names) -> str:
    """The expression itself, even if it has a name."""
    match expr:
        case Axis(number=number):
            return f"i{number}"
        case Const(value=value, dtype=dtype):
            return str(value) if dtype == INDEX else f"{SHORT_NAMES[dtype]}({value})"
        case Sum(terms=terms, offset=offset):
            parts = [_term(t, f, names) for t, f in terms] + ([str(offset)] if offset else [])
            return " + ".join(parts).replace("+ -", "- ")
        case FloorDiv(operand=operand, divisor=divisor):
            return f"{_tight(operand, names)} // {divisor}"
        case Mod(operand=operand, divisor=divisor):
            return f"{_tight(operand, names)} % {divisor}"
        case Clamp(operand=operand, low=low, high=high):
            return f"clamp({expr_text(operand, names)}, {low}, {high})"
        case Compare(relation=relation, left=left, right=right):
            return f"{expr_text(left, names)} {relation} {expr_text(right, names)}"
        case Both(left=left, right=right):
            return f"{expr_text(left, names)} and {expr_text(right, names)}"
    return _value(expr, names)


def _value(expr: Expr, names: Names) -> str:
    match expr:
        case Load(buffer=buffer, indices=indices, guard=guard):
            condition = "" if guard is None else f" if {expr_text(guard, names)}"
            loaded = f"{buffer}{_index(indices, names)}"
            return f"({loaded}{condition})" if condition else loaded
        case Select(predicate=predicate, chosen=chosen, other=other):
            return f"select({_list((predicate, chosen, other), names)})"
        case Apply(op=op, args=args, attrs=attrs, dtype=dtype):
            extra = "".join(f", {key}={value}" for key, value in attrs if key != "dtype")
            name = f"{op.name}<{SHORT_NAMES[dtype]}>" if op.name == "cast" else op.name
            return f"{name}({_list(args, names)}{extra})"
        case AsValue(operand=operand, dtype=dtype):
            return f"{SHORT_NAMES[dtype]}({expr_text(operand, names)})"
        case AsIndex(operand=operand):
            return f"index({expr_text(operand, names)})"
        case Accumulated(number=number):
            return f"acc{number}"
    raise TypeError(f"not a scalar expression: {type(expr).__name__}")


def _term(term: Expr, factor: int, names: Names) -> str:
    text = _tight(term, names)
    if factor == 1:
        return text
    return f"-{text}" if factor == -1 else f"{factor}*{text}"


def _tight(expr: Expr, names: Names) -> str:
    text = expr_text(expr, names)
    return f"({text})" if isinstance(expr, Sum | FloorDiv | Mod) else text


def _index(indices: Sequence[Expr], names: Names) -> str:
    return f"[{_list(indices, names)}]"


def _list(exprs: Sequence[Expr], names: Names) -> str:
    return ", ".join(expr_text(expr, names) for expr in exprs)
