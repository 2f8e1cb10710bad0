"""Tables: rows of text under columns, for terminals and, as HTML, for notebooks.

    Report  := ReportSection*                     a text: what `explain()` returns
    ReportSection := title TextTable? note*

A long table shows its costliest rows, or its first ones, and folds the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import nlargest
from typing import Any

from tracegraph.generated.dataclass import dataclass

MOST_ROWS = 40
"""The most rows of a table that its text shows, if it is not asked for all."""

MOST_OPEN = 12
"""The most rows of a table that a notebook shows before a click."""


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows of cells, as texts. Columns from `numbers` on are set to the right.

    `costs` are those of the rows, by which a long table is folded; without them the first rows
    stay. `last` is a row below all, as a sum, which stays, too.

    >>> print(TextTable(("node", "µs"), (("sort", "12"), ("map", "3")), 1))
    node  µs
    sort  12
    map    3
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: int | None = None
    costs: Sequence[float] = ()
    last: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The columns and all rows, aligned."""
        rows = [self.columns, *self.rows, *([] if self.last is None else [self.last])]
        first = len(self.columns) if self.numbers is None else self.numbers
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(
                [
                    cell.ljust(width) if number < first else cell.rjust(width)
                    for number, (cell, width) in enumerate(zip(row, widths, strict=True))
                ]
            ).rstrip()
            for row in rows
        ]

    def cut(self, most: int) -> TextTable:
        """The table with some of its rows: the costliest ones first, or those at the beginning.

        Indentation says what a row is inside of, and goes where rows change their places.
        """
        if not self.costs:
            return replace(self, rows=self.rows[:most])
        places = nlargest(most, range(len(self.rows)), key=self.costs.__getitem__)
        rows = [(first.strip(), *others) for first, *others in map(self.rows.__getitem__, places)]
        return replace(self, rows=rows, costs=())


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A line, a table, and lines below it; `what` its rows are, in the plural.

    Below a title, a table without rows is left out.
    """

    title: str = ""
    table: TextTable | None = None
    notes: Sequence[str] = ()
    what: str = "rows"

    def renamed(self, rename: Callable[[str], str]) -> ReportSection:
        """The section with other texts."""
        table = self.table
        if table is not None:
            rows = [tuple(map(rename, row)) for row in table.rows]
            table = replace(table, rows=rows)
        return replace(self, table=table, notes=tuple(map(rename, self.notes)))

    def lines(self, details: bool) -> Iterator[str]:
        """Its text; without `details`, a long table and long notes are cut."""
        if self.title:
            yield self.title
        table = self.table
        if table is not None and (table.rows or not self.title):
            count = len(table.rows)
            is_cut = not details and count > MOST_ROWS
            yield from (table.cut(MOST_ROWS) if is_cut else table).lines()
            if is_cut:
                kept = "the costliest" if table.costs else "the first"
                yield f"{kept} {MOST_ROWS} of {count} {self.what}; details=True shows all"
        most = len(self.notes) if details else MOST_ROWS
        yield from self.notes[:most]
        if len(self.notes) > most:
            yield f"  … {len(self.notes) - most} more; details=True shows all"


class Report(str):
    """The text of sections, which notebooks show as tables.

    >>> report = Report.of([ReportSection("one", TextTable(("a", "b"), (("1", "2"),)))])
    >>> print(report.upper())
    ONE
    A  B
    1  2
    """

    sections: tuple[ReportSection, ...]

    @classmethod
    def of(cls, sections: Iterable[ReportSection], details: bool = True) -> Report:
        """The report of some sections; without `details`, the text of long ones is cut."""
        kept = tuple(sections)
        return cls._made("\n".join([line for each in kept for line in each.lines(details)]), kept)

    @classmethod
    def _made(cls, text: str, sections: tuple[ReportSection, ...]) -> Report:
        made = cls(text)
        made.sections = sections
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Report._made, (str(self), self.sections)

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """What a notebook displays, by MIME type."""
        return {"text/plain": str(self), "text/html": html(self.sections)}


def escape(text: str) -> str:
    """Text for HTML."""
    from html import escape as escaped  # its table of names takes a millisecond to import

    return escaped(text)


def html(sections: Iterable[ReportSection]) -> str:
    """Sections as HTML, in the colours of the page around them; long tables are folded."""
    parts = [part for section in sections for part in _section(section)]
    return "\n".join(('<div class="tracegraph-report">', _STYLE, *parts, "</div>"))


_STYLE = """<style>
.tracegraph-report { font: 13px/1.5 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }
.tracegraph-report table { border-collapse: collapse; margin: 4px 0 8px; font: inherit }
.tracegraph-report th, .tracegraph-report td { padding: 2px 12px 2px 0; border: 0; text-align: left;
  white-space: pre; background: none; vertical-align: top }
.tracegraph-report th { font-weight: 600; border-bottom: 1px solid #8888 }
.tracegraph-report .number { text-align: right }
.tracegraph-report tr.last td { border-top: 1px solid #8888 }
.tracegraph-report p { margin: 4px 0; font-weight: 600; white-space: pre-wrap }
.tracegraph-report .note { font-weight: 400; opacity: 0.75 }
.tracegraph-report summary { cursor: pointer }
</style>"""


def _section(section: ReportSection) -> Iterator[str]:
    if section.title:
        yield f"<p>{escape(section.title)}</p>"
    table = section.table
    if table is not None and (table.rows or not section.title):
        count = len(table.rows)
        if count <= MOST_OPEN + 3:
            yield _table(table)
        else:
            kept = "the costliest" if table.costs else "the first"
            yield f'<p class="note">{kept} {MOST_OPEN} of {count} {escape(section.what)}</p>'
            yield _table(table.cut(MOST_OPEN))
            yield _folded(f"all {count}", _table(table))
    if len(section.notes) > 3:
        first, *others = section.notes
        yield _folded(first, _note("\n".join(others)))
    else:
        yield from map(_note, section.notes)


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{escape(title)}</summary>\n{content}\n</details>"


def _table(table: TextTable) -> str:
    first = len(table.columns) if table.numbers is None else table.numbers

    def row(cells: Iterable[str], tag: str, kind: str = "") -> str:
        parts = []
        for number, cell in enumerate(cells):
            right = ' class="number"' if number >= first else ""
            parts.append(f"<{tag}{right}>{escape(cell)}</{tag}>")
        return f"<tr{kind}>{''.join(parts)}</tr>"

    rows = [row(each, "td") for each in table.rows]
    if table.last is not None:
        rows.append(row(table.last, "td", ' class="last"'))
    head = f"<thead>{row(table.columns, 'th')}</thead>"
    return "\n".join((f"<table>{head}<tbody>", *rows, "</tbody></table>"))
