"""What notebooks ask of an object: its text, its picture, and a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from tracegraph.generated.dataclass import dataclass

if TYPE_CHECKING:
    from tracegraph.inspection.diagram import Diagram

AUTOMATIC_BOXES = 400
"""The most boxes that a notebook draws of its own accord."""


@dataclass(frozen=True, slots=True)
class Views:
    """The views of a class: one line, a text of several, and a picture as data."""

    line: Callable[[Any], str]
    text: Callable[[Any], str]
    diagram: Callable[[Any], Diagram]


VIEWS: dict[type, Views] = {}
"""What prints and draws an object, by its class, so that data need not import its printers."""


class Drawable:
    """Base of what can be drawn: programs, stages, plans and nodes."""

    __slots__ = ()

    _displayed_by: ClassVar[str]
    """The module that enters its views, imported when they are asked for."""

    @property
    def _views(self) -> Views:
        import_module(self._displayed_by)
        return next(VIEWS[each] for each in type(self).__mro__ if each in VIEWS)

    def diagram(self) -> Diagram:
        """What there is to draw, as data."""
        return self._views.diagram(self)

    def made_of(self) -> Diagram | None:
        """The picture of what it was made of, as the program of a plan; None if it has none."""
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._views.line(self)}>"

    def __str__(self) -> str:
        return self._views.text(self)

    def _repr_mimebundle_(
        self, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
    ) -> dict[str, str]:
        """What a notebook displays, by MIME type: text, and a picture unless that would be huge.

        It never raises: what cannot be drawn is text that says why.
        """
        forms: dict[str, Callable[[], str]] = {"text/plain": lambda: _line(self)}
        try:
            diagram = self.diagram()
            if diagram.drawn > AUTOMATIC_BOXES:
                forms["text/plain"] = lambda: _note(self, diagram.drawn)
            else:
                forms.update(_pictures(diagram))
            wanted = _wanted(forms, include, exclude)
            return {mime: forms[mime]() for mime in wanted}
        except Exception as error:
            reason = f"{_line(self)}\nno picture: {type(error).__name__}: {_text(error)}"
            return dict.fromkeys(_wanted(("text/plain",), include, exclude), reason)


def _pictures(diagram: Diagram) -> Mapping[str, Callable[[], str]]:
    from tracegraph.inspection.svg import svg  # imported when something is drawn

    drawn: list[str] = []

    def picture() -> str:
        if not drawn:
            drawn.append(svg(diagram))
        return drawn[0]

    def framed() -> str:
        return f'<div style="max-height: 45em; overflow: auto">\n{picture()}\n</div>'

    return {"image/svg+xml": picture, "text/html": framed}


def _wanted(
    mimes: Iterable[str], include: Iterable[str] | None, exclude: Iterable[str] | None
) -> list[str]:
    kept = None if include is None else set(include)
    left_out = set(exclude or ())
    return [m for m in mimes if (kept is None or m in kept) and m not in left_out]


def _note(shown: object, size: int) -> str:
    return (
        f"{_line(shown)}\n{size:,} boxes are not drawn here: print it for its text, or make a page "
        "by tracegraph.show(x), or by tracegraph.show(x, depth=1) without what is inside of loops "
        "and branches"
    )


def _line(shown: object) -> str:
    try:
        return repr(shown)
    except Exception as error:
        return f"<{type(shown).__name__} without a repr: {type(error).__name__}: {_text(error)}>"


def _text(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        return "its message cannot be shown"
