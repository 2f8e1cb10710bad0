"""Gaps: the free bytes of an arena, of which the lowest that suffice are found without a search.

The gaps are kept by their size, of which there are few, so that a long program with much memory
alive takes no longer for a buffer than a short one.
"""

from __future__ import annotations

from heapq import heappop, heappush


class Gaps:
    """Which bytes from 0 on are free.

    >>> gaps = Gaps()
    >>> [gaps.take(512), gaps.take(256)]
    [0, 512]
    >>> gaps.free(0, 512)
    >>> [gaps.take(1024), gaps.take(256)]
    [768, 0]
    """

    __slots__ = ("_ends", "_starts", "_starts_by_size", "_top")

    def __init__(self) -> None:
        self._top = 0  # all is free from here on
        self._ends: dict[int, int] = {}  # of the gaps below, by start
        self._starts: dict[int, int] = {}  # by end
        self._starts_by_size: dict[int, list[int]] = {}  # heaps, with gaps that are gone as well

    def take(self, nbytes: int) -> int:
        """The start of the lowest so many bytes that are free, and are no more."""
        start, size = self._lowest(nbytes)
        if start == self._top:
            self._top += nbytes
            return start
        end = start + size
        del self._ends[start], self._starts[end]
        if size > nbytes:
            self._enter(start + nbytes, end)
        return start

    def free(self, start: int, nbytes: int) -> None:
        """Give back bytes that were taken."""
        end = start + nbytes
        if start in self._starts:
            start = self._starts.pop(start)
            del self._ends[start]
        if end == self._top:
            self._top = start
            return
        if end in self._ends:
            end = self._ends.pop(end)
            del self._starts[end]
        self._enter(start, end)

    def _enter(self, start: int, end: int) -> None:
        self._ends[start], self._starts[end] = end, start
        heappush(self._starts_by_size.setdefault(end - start, []), start)

    def _lowest(self, nbytes: int) -> tuple[int, int]:
        """The start and size of the lowest gap of at least so many bytes."""
        found = self._top, nbytes
        emptied = []
        for size, starts in self._starts_by_size.items():
            if size < nbytes:
                continue
            while starts and self._ends.get(starts[0]) != starts[0] + size:
                heappop(starts)
            if not starts:
                emptied.append(size)
            elif starts[0] < found[0]:
                found = starts[0], size
        for size in emptied:
            del self._starts_by_size[size]
        return found
