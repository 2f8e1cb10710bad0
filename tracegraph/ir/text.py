"""The text of a Program: for reading, for error messages and for golden tests.

    program solve(x: f64[8]) {
      const c0: f64[8]
      a: f64[8] = subtract x c0            # solver.py:12
      b: f64[8], c: i64[] = while_loop[carry=2] a 0
        cond(d: f64[8], e: i64[]) {
          …
      return b, c
    }

Inputs are named by the paths of the arguments; those of a large argument are listed in groups:

    program predict(params: 160 arrays, x: f64[8]) {
      param params[0:80]['w']: 80 of f64[8,8]

Other values are a, b, …, z, aa, ab, … in order of definition, over all regions. Literals that are
not of a Python scalar's dtype carry theirs: `1.0:f32`. In programs of each device of a mesh, values
that may differ between devices along axes have these behind their types: `f64[8]{x}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tracegraph.dtypes import SHORT_NAMES
from tracegraph.inspection.argument_paths import grouped, large_roots, listed, short_names
from tracegraph.ir.program import NO_HINTS, Atom, Eqn, Literal, Program, Region, Value, walk
from tracegraph.ir.varying import EQUAL, Axes, VaryingAxes
from tracegraph.user_source import Source

COMMENT_COLUMN = 72
"""The rightmost column of comments. They are aligned; a longer line has its comment at its end."""

_STYLES = {"keyword": "\x1b[35m", "op": "\x1b[1m", "type": "\x1b[36m", "comment": "\x1b[2m"}
_ROLES = {"cond": ("true", "false"), "while_loop": ("cond", "body"), "scan": ("body",)}
_PLAIN_DTYPES = tuple(map(np.dtype, (np.bool_, np.int64, np.float64, np.complex128)))


def program_text(program: Program, ansi: bool = False, mark: Eqn | None = None) -> str:
    """The text of a program, with terminal colours if `ansi`, and an arrow at equation `mark`.

    >>> from tracegraph.ir.program import Program, Region, Value
    >>> from tracegraph.ir.types import ArrayType
    >>> x = Value(ArrayType("float64", (8,)))
    >>> print(program_text(Program("same", Region((x,), (), (x,)))))
    program same(a: f64[8]) {
      return a
    }
    """
    return _join(list(_Printer(mark).program(program)), ansi)


def input_names(program: Program) -> list[str | None]:
    """The names of the inputs that are arguments of the function; None for others."""
    names = short_names(program.paths())
    return [*names, *[None] * (len(program.inputs) - len(names))]


def program_line(program: Program) -> str:
    """A program in a line: the types that it takes and returns, and how long it is.

    >>> from tracegraph.ir.program import Program, Region, Value
    >>> from tracegraph.ir.types import ArrayType
    >>> x = Value(ArrayType("float64", (8,)))
    >>> program_line(Program("same", Region((x,), (), (x,))))
    'same(f64[8]) -> f64[8]: 0 operations'
    """
    takes = ", ".join(_inputs(program, lambda value: str(value.type)))
    gives = ", ".join(map(str, program.out_types))
    if len(program.outputs) != 1:
        gives = f"({gives})"
    count = sum(1 for _ in walk(program.body))
    return f"{program.name}({takes}) -> {gives}: {count} operation{'s' if count != 1 else ''}"


def _inputs(program: Program, text: Callable[[Value], str]) -> Iterator[str]:
    """A text for each input, and one for all those of an argument with very many."""
    large = large_roots(program.paths())
    roots = {number: name for name, members in large.items() for number in members}
    for number, value in enumerate(program.inputs):
        if number not in roots:
            yield text(value)
        elif number == large[roots[number]][0]:
            yield f"{roots[number]}: {len(large[roots[number]])} arrays"


def value_name(index: int) -> str:
    """The name of the index-th value: a, b, …, z, aa, ab, …

    >>> [value_name(i) for i in (0, 25, 26)]
    ['a', 'z', 'aa']
    """
    name = ""
    while index >= 0:
        index, letter = divmod(index, 26)
        name, index = chr(ord("a") + letter) + name, index - 1
    return name


def value_names(program: Program) -> Mapping[Value, str]:
    """The names of all values, as in the text of the program."""
    printer = _Printer(None)
    for _ in printer.program(program):
        pass
    return printer.names


def atom_text(atom: Atom, names: Mapping[Value, str]) -> str:
    """A value's name, or a literal with its dtype where it needs that."""
    return _literal_text(atom) if isinstance(atom, Literal) else names.get(atom, "<undefined>")


def role_names(eqn: Eqn) -> tuple[str, ...]:
    """The names of the regions of an equation: true and false, cond and body, 0, 1, …"""
    known = _ROLES.get(eqn.op.name, ())
    return known if len(known) == len(eqn.regions) else tuple(map(str, range(len(eqn.regions))))


class _Line:
    """One line: pieces of styled text, the comment that follows them, and whether it is marked."""

    def __init__(self, depth: int, *pieces: str | tuple[str, str]) -> None:
        self.pieces = [("", p) if isinstance(p, str) else p for p in ("  " * depth, *pieces)]
        self.width = sum(len(text) for _, text in self.pieces)
        self.source: Source | None = None
        self.marked = False


def _join(lines: list[_Line], ansi: bool) -> str:
    def paint(style: str, text: str) -> str:
        return f"{_STYLES[style]}{text}\x1b[0m" if ansi and style else text

    widths = [line.width for line in lines if line.source is not None]
    column = max((w for w in widths if w <= COMMENT_COLUMN), default=0)
    out = []
    for line in lines:
        text = "".join(paint(*piece) for piece in line.pieces)
        if line.source is not None:
            text += " " * (max(column - line.width, 0) + 2) + paint("comment", f"# {line.source}")
        out.append(f"{text}  <-- here" if line.marked else text)
    return "\n".join(out)


class _Printer:
    def __init__(self, mark: Eqn | None) -> None:
        self.names: dict[Value, str] = {}
        self.count = 0
        self.mark = mark
        self.taken: set[str | None] = set()
        self.axes: Mapping[Atom, Axes] = {}

    def define(self, value: Value, name: str | None = None) -> str:
        """Name a value, unless it has a name (it may, in a program that is not well formed)."""
        if value not in self.names:
            self.names[value] = name or self.letters()
        return self.names[value]

    def letters(self) -> str:
        """The next name that no argument has."""
        while True:
            name = value_name(self.count)
            self.count += 1
            if name not in self.taken:
                return name

    def program(self, program: Program) -> Iterator[_Line]:
        if any(program.varying):
            more = len(program.body.params) - len(program.varying)
            sets = (*program.varying, *[EQUAL] * more)
            self.axes = VaryingAxes().everywhere(program.body, sets)
        names = input_names(program)
        self.taken.update(names)
        for value, name in zip(program.inputs, names, strict=True):
            self.define(value, name)
        yield _Line(0, ("keyword", "program"), f" {program.name}(", *self.header(program), ") {")
        for line in large_arguments(program):
            yield _Line(1, ("keyword", "param"), f" {line}")
        for i, value in enumerate(program.body.params[len(program.inputs) :]):
            self.define(value, f"c{i}")
            yield _Line(1, ("keyword", "const"), " ", *self.typed([value]))
        yield from self.block(program.body, 1)
        yield _Line(0, "}")

    def block(self, region: Region, depth: int) -> Iterator[_Line]:
        for eqn in region.eqns:
            yield from self.equation(eqn, depth)
        results = ", ".join(self.atom(a) for a in region.results)
        yield _Line(depth, ("keyword", "return"), f" {results}" if results else "")

    def equation(self, eqn: Eqn, depth: int) -> Iterator[_Line]:
        operands = "".join(f" {self.atom(a)}" for a in eqn.operands)
        left = self.typed(eqn.outputs)
        name = ("op", eqn.op.name)
        line = _Line(depth, *left, " = " if left else "", name, attrs_text(eqn), operands)
        line.source, line.marked = eqn.source, eqn is self.mark
        yield line
        for role, region in zip(role_names(eqn), eqn.regions, strict=True):
            parameters = self.typed(region.params)
            yield _Line(depth + 1, ("keyword", role), "(", *parameters, ") {")
            yield from self.block(region, depth + 2)
            yield _Line(depth + 1, "}")

    def header(self, program: Program) -> Iterator[str | tuple[str, str]]:
        """The inputs with their types; those of a large argument are one."""
        texts = _inputs(program, lambda value: f"{self.names[value]}: {self.type(value)}")
        for number, text in enumerate(texts):
            name, _, type_ = text.rpartition(": ")
            yield f"{', ' if number else ''}{name}: "
            yield "type", type_

    def typed(self, values: tuple[Value, ...] | list[Value]) -> list[str | tuple[str, str]]:
        pieces: list[str | tuple[str, str]] = []
        for i, value in enumerate(values):
            separator = ", " if i else ""
            pieces += [f"{separator}{self.define(value)}: ", ("type", self.type(value))]
        return pieces

    def type(self, value: Value) -> str:
        """The type of a value, and along which axes of devices it may differ."""
        axes = self.axes.get(value)
        return f"{value.type}{{{','.join(sorted(axes))}}}" if axes else str(value.type)

    def atom(self, atom: Atom) -> str:
        return atom_text(atom, self.names)


def large_arguments(program: Program) -> Iterator[str]:
    """A line for each group of alike inputs of an argument with very many."""
    paths = program.paths()
    for members in large_roots(paths).values():
        types = [str(program.inputs[k].type) for k in members]
        yield from listed(grouped([paths[k] for k in members], types))


def _literal_text(literal: Literal) -> str:
    dtype = literal.type.dtype
    suffix = "" if dtype in _PLAIN_DTYPES else f":{SHORT_NAMES[dtype]}"
    return f"{literal.value!s}{suffix}"


def attrs_text(eqn: Eqn) -> str:
    """The attributes of an equation, then its hints: `[carry=1, schedule=unrolled, unroll=4]`."""
    shown = {**eqn.attrs, **eqn.hints.given()} if eqn.hints is not NO_HINTS else eqn.attrs
    text = ", ".join(f"{name}={_attr_text(value)}" for name, value in shown.items())
    return f"[{text}]" if shown else ""


def _attr_text(value: Any) -> str:
    return SHORT_NAMES.get(value, str(value)) if isinstance(value, np.dtype) else str(value)
