"""Retraces: what changed from one build of a function to the next, and a warning about many."""

from __future__ import annotations

import warnings
from collections import Counter, deque
from collections.abc import Iterable
from typing import Literal, NamedTuple

from tracegraph.errors import RetraceWarning
from tracegraph.user_source import user_source

WARNED_BUILDS = 64
"""The number of builds of one function at which a warning says what keeps changing."""

REMEMBERED = 1000
"""Changes that are remembered: those of the last builds."""

Aspect = Literal["shape", "dtype", "shape and dtype", "static value", "structure", "device", "mode"]


class Change(NamedTuple):
    """What differs between two builds: of which argument, in what, and how it reads."""

    where: str
    aspect: Aspect
    text: str


class Retraces:
    """The changes between the builds of one function, and how often each kind has come.

    Functions of this package, such as copies and eager ops, are built for all that users pass them:
    it does not `warn` of these.
    """

    def __init__(self, *, warn: bool = True) -> None:
        self._warns = warn
        self._texts: deque[str] = deque(maxlen=REMEMBERED)
        self._counts: Counter[tuple[str, Aspect]] = Counter()
        self._builds = 1

    @property
    def texts(self) -> tuple[str, ...]:
        """What had changed, for each of the last builds."""
        return tuple(self._texts)

    def note(self, function: str, changes: Iterable[Change]) -> None:
        """Enter what has changed in a further build, and warn if it is one of many.

        Raises:
            RetraceWarning: warnings are errors.
        """
        found = tuple(changes)
        self._texts.append(", ".join(change.text for change in found))
        self._counts.update({(change.where, change.aspect): 1 for change in found})
        self._builds += 1
        if self._warns and self._builds == WARNED_BUILDS:
            self._warn(function)

    def _warn(self, function: str) -> None:
        often = self._counts.most_common(3)
        most = often[0][1]
        kinds = [kind for kind, count in often if 2 * count >= most]
        changing = [(where, aspect, self._counts[where, aspect]) for where, aspect in kinds]
        warning = RetraceWarning(function, self._builds, changing, self._texts[-1])
        source = user_source()
        if source is None:
            warnings.warn(warning, stacklevel=2)
        else:
            warnings.warn_explicit(warning, RetraceWarning, source.file, source.line)
