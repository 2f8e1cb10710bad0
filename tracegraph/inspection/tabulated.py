"""Records that print as a report. Tables are imported when one is made, which takes a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracegraph.inspection.tables import Report


class Tabulated:
    """Base of records that print as a report, and that notebooks show as tables."""

    __slots__ = ()

    def report(self) -> Report:
        """Their text and their tables."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self.report())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows in a terminal."""
        printer.text(str(self))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """What a notebook displays, by MIME type."""
        return self.report()._repr_mimebundle_()
