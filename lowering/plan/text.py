"""Printing Plans.

    plan name {
      buffer: type [@ offset] [= input]             one line per buffer; outputs over inputs
      effect[number]: what it is  # file:line       monitors, failures and prints
      number: node [after numbers]  # file:line     kernels with their nests, bodies indented
    }

In a nest, `i0, i1, …` are the axes of its space and then of its loop, `acc0, …` the folded values,
and `t0, …` expressions that are used more than once, or are nested deeply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from lowering.plan.kernel import (
    Accumulator,
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
from lowering.plan.nest_analysis import nest_roots, nest_signals, nest_stores
from lowering.plan.plan import (
    Graph,
    IfElseNode,
    KernelNode,
    LibraryNode,
    MatrixOperand,
    MemcpyNode,
    Node,
    Plan,
    SwitchNode,
    WhileNode,
)
from tracegraph.ir.program import lines_of
from tracegraph.ir.scalar import (
    INDEX,
    Accumulated,
    Apply,
    AsIndex,
    AsValue,
    Axis,
    Both,
    Clamp,
    Compare,
    Const,
    Expr,
    FloorDiv,
    Load,
    Mod,
    Select,
    Sum,
)
from tracegraph.ir.subexpressions import subexpressions
from tracegraph.ir.types import SHORT_NAMES

Names = Mapping[Expr, str]

_INDENT = "  "

MAX_NESTING = 40
"""Expressions in one another in one line: text is written by recursion over them."""


def plan_text(plan: Plan) -> str:
    """A plan with all it holds: buffers and where they lie, nodes, edges, kernels, bodies."""
    lines = [f"plan {plan.name} {{"]
    lines += [f"{_INDENT}{buffer}: {buffer.type}" for buffer in plan.inputs]
    for number, buffer in enumerate(plan.outputs):
        memory = f" = {buffer}" if number in plan.aliases else ""
        lines.append(f"{_INDENT}output[{number}]: {buffer.type}{memory}")
    lines += [f"{_INDENT}{buffer}: {buffer.type}" for buffer, _ in plan.constants]
    placed = sorted(plan.offsets.items(), key=lambda item: (item[1], item[0].number))
    lines += [f"{_INDENT}{buffer}: {buffer.type} @ {offset}" for buffer, offset in placed]
    held = " in each launch" if plan.per_launch else ""
    lines.append(f"{_INDENT}arena: {plan.arena_bytes} bytes{held}, conditions: {plan.conditions}")
    if plan.tabled:
        lines.append(f"{_INDENT}addresses by table in bodies: {', '.join(map(str, plan.tabled))}")
    lines += [_INDENT + line for line in _effect_lines(plan)]
    lines += [_INDENT + line for line in _graph_lines(plan.graph)]
    return "\n".join([*lines, "}"])


def _effect_lines(plan: Plan) -> Iterator[str]:
    """What the numbers of monitors, failures and prints stand for."""
    for name, told in (
        ("monitor", [(m.label, m.source) for m in plan.monitors]),
        ("failure", [(f.error, f.source) for f in plan.failures]),
        ("print", [(repr(p.template), p.source) for p in plan.prints]),
    ):
        for number, (text, source) in enumerate(told):
            yield f"{name}[{number}]: {text}" + (f"  # {source}" if source else "")


def kernel_text(kernel: Kernel) -> str:
    """A kernel: its nests, one store a line."""
    nests = [_INDENT + line for nest in kernel.nests for line in _nest_lines(nest)]
    return "\n".join([f"kernel {kernel.name}", *nests])


def expr_text(expr: Expr, names: Names | None = None) -> str:
    """A scalar expression in one line; sub-expressions in `names` are printed as their name."""
    known = names or {}
    found = known.get(expr)
    return _expression(expr, known) if found is None else found


# -- graphs ------------------------------------------------------------------------------------


def _graph_lines(graph: Graph) -> Iterator[str]:
    for number, node in enumerate(graph.nodes):
        before = sorted(i for i, j in graph.edges if j == number)
        after = f" after {', '.join(map(str, before))}" if before else ""
        sources = lines_of(node.sources)
        head, *body = _node_lines(node)
        yield f"{number}: {head}{after}" + (f"  # {sources}" if sources else "")
        yield from (_INDENT + line for line in body)


def _node_lines(node: Node) -> Iterator[str]:
    match node:
        case KernelNode(kernel=kernel):
            yield from kernel_text(kernel).split("\n")
        case MemcpyNode(target=target, source_buffer=source):
            yield f"memcpy {target} = {source}"
        case LibraryNode(batch=batch, m=m, n=n, k=k):
            left, right = _matrix(node.left), _matrix(node.right)
            sizes = f"batch={batch}, m={m}, n={n}, k={k}"
            yield f"matmul {_matrix(node.target)} = {left} @ {right}  ({sizes})"
        case IfElseNode(condition=number, then=then, otherwise=otherwise):
            yield f"if condition[{number}]"
            yield from _body_lines("then", then)
            yield from _body_lines("else", otherwise)
        case SwitchNode(condition=number, branches=branches):
            yield f"switch condition[{number}]"
            for value, branch in enumerate(branches):
                yield from _body_lines(f"case {value}", branch)
        case WhileNode(condition=number, body=body):
            yield f"while condition[{number}]"
            yield from _body_lines("body", body)


def _body_lines(label: str, body: Graph) -> Iterator[str]:
    yield label
    yield from (_INDENT + line for line in _graph_lines(body))


def _matrix(operand: MatrixOperand) -> str:
    strides = (operand.batch_stride, operand.row_stride, operand.column_stride)
    start = f"+{operand.offset}" if operand.offset else ""
    return f"{operand.buffer}{start}:{','.join(map(str, strides))}"


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
    fold = f"arg {accumulator.combiner.name}" if accumulator.arg else accumulator.combiner.name
    return f"acc{number} = {fold} {expr_text(accumulator.value, names)}"


def _nest_head(nest: Nest) -> str:
    tests = [f"{p.flag} == {str(p.value).lower()}" for p in nest.predicates]
    return _nest_kind(nest) + (f" where {' and '.join(tests)}" if tests else "")


def _nest_kind(nest: Nest) -> str:
    space = _extents(nest.space)
    match nest:
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
        case ScatterNest(repeats=repeats, combiner=combiner):
            by = "" if combiner is None else f" by {combiner.name}"
            return f"scatter {space}{by}" + (f", {repeats} axes in order" if repeats else "")


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
    """Names of the values that get lines of their own, operands before users."""
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
