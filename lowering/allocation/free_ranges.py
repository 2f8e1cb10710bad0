"""Free-list allocator, first fit: the lowest free range of an arena that is large enough.

Free ranges are kept in heaps by size. Buffers of a program have few sizes, so that the search looks
at few heaps, however much memory is live.
"""

from __future__ import annotations

from heapq import heappop, heappush


class FreeRanges:
    """The free bytes of an arena that grows as needed. Adjacent free ranges are merged.

    >>> free = FreeRanges()
    >>> [free.allocate(512), free.allocate(256)]
    [0, 512]
    >>> free.free(0, 512)
    >>> [free.allocate(1024), free.allocate(256)]
    [768, 0]
    """

    __slots__ = ("_ends", "_starts", "_starts_by_size", "_top")

    def __init__(self) -> None:
        self._top = 0  # every byte from here on is free
        self._ends: dict[int, int] = {}  # of the free ranges below, by start
        self._starts: dict[int, int] = {}  # by end
        self._starts_by_size: dict[int, list[int]] = {}  # heaps; stale entries go when met

    def allocate(self, nbytes: int) -> int:
        """Take the lowest free range of this size; its start."""
        start, size = self._lowest(nbytes)
        if start == self._top:
            self._top += nbytes
            return start
        end = start + size
        del self._ends[start], self._starts[end]
        if size > nbytes:
            self._insert(start + nbytes, end)
        return start

    def free(self, start: int, nbytes: int) -> None:
        """Return bytes that were allocated."""
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
        self._insert(start, end)

    def _insert(self, start: int, end: int) -> None:
        self._ends[start], self._starts[end] = end, start
        heappush(self._starts_by_size.setdefault(end - start, []), start)

    def _lowest(self, nbytes: int) -> tuple[int, int]:
        """The start and size of the lowest free range of at least this size."""
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
