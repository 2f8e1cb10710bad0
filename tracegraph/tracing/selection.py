"""Selection: an index expression parsed against a shape, by NumPy's rules.

    index := entry | "(" entry* ")"
    entry := int | slice | "..." | None | bool | mask | integer array       basic, or advanced
           | traced integer                                                 an int if it has no axes

Every axis of the array becomes a strided range, and some are then indexed by arrays, which are
broadcast together to the batch axes. `layout` says where the batch axes are among the others.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache
from types import EllipsisType, NoneType
from typing import Any, Final

import numpy as np

from tracegraph.errors import BooleanMaskError, TracerIndexError, TracerSliceError
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.types import broadcast_shapes
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.operators import ArrayOperators
from tracegraph.tracing.selected import Selected
from tracegraph.tracing.tracer import Tracer

Ints = tuple[int, ...]

NEW_AXIS: Final = -1
BATCH: Final = -2
_INTEGER: Final = -3
_SEPARATOR: Final = -4


@dataclass(frozen=True, slots=True)
class Selection:
    """What an index selects.

    `starts`, `steps` and `sizes` have one int per axis of the array; an axis in `arrays` is whole.
    `arrays` maps axes to integer arrays that broadcast to shape `batch`; `gathers` says whether one
    of them has axes. `layout` lists what the result's axes are: axes of the array, NEW_AXIS, or
    BATCH for the batch axes. `copies`: NumPy's result is not a view, as an index is an array, even
    one without axes, or every axis was given an integer. `shape` is that of the result.
    """

    starts: Ints
    steps: Ints
    sizes: Ints
    arrays: dict[int, Any]
    batch: Ints
    gathers: bool
    layout: Ints
    copies: bool
    shape: Ints

    @property
    def kept(self) -> Ints:
        """The axes of the array that are axes of the result, in order."""
        return tuple(entry for entry in self.layout if entry >= 0)

    @property
    def dims(self) -> Ints:
        """The axes that arrays index, in order."""
        return tuple(sorted(self.arrays))

    @property
    def rest(self) -> Ints:
        """The axes that no array indexes, in order."""
        return tuple(axis for axis in range(len(self.sizes)) if axis not in self.arrays)

    def is_whole(self, shape: Ints) -> bool:
        """Whether the strided ranges select every element of `shape` in its order."""
        return self.sizes == shape and all(step == 1 for step in self.steps)


def entries_of(index: Any) -> list[Any]:
    """The entries of an index, with every list, array and Array as a NumPy array or tracer."""
    return [_entry(e) for e in (index if isinstance(index, tuple) else (index,))]


def _entry(entry: Any) -> Any:
    if is_mask(entry) and entry.size == 0:  # it selects nothing, whatever runs
        return np.zeros(entry.shape, np.bool_)
    if entry is None or entry is Ellipsis or isinstance(entry, (slice, Tracer, Selected)):
        return entry
    if isinstance(entry, (list, tuple)) and any(isinstance(e, Tracer) for e in entry):
        return FUNCTIONS["asarray"](entry)
    if isinstance(entry, (list, tuple, np.ndarray, ArrayOperators, bool, np.bool_)):
        array = np.asarray(entry)
        empty_list = array.size == 0 and not hasattr(entry, "dtype")
        return array.astype(np.intp) if empty_list else array
    try:
        return operator.index(entry)
    except TypeError:
        raise _bad_entry(entry) from None


def _bad_entry(entry: Any) -> IndexError:
    what = getattr(entry, "dtype", type(entry).__name__)
    return IndexError(
        "only integers, slices, ellipsis, None, and integer or boolean arrays are valid indices; "
        f"got {what}"
    )


def is_mask(entry: Any) -> bool:
    """Whether an entry is a traced boolean mask."""
    return isinstance(entry, Tracer) and entry.dtype == np.bool_


def may_be_masked(x: Any, index: Any) -> bool:
    """Whether a traced mask may be among the entries of an index: it is quick to say no."""
    for entry in index if isinstance(index, tuple) else (index,):
        if isinstance(entry, _MASKING):
            return True
    return isinstance(x, Selected)


_MASKING = (Tracer, Selected, list, tuple)


def is_masked(x: Any, entries: Sequence[Any]) -> bool:
    """Whether a traced mask, or what one selects, is indexed or among the entries of an index."""
    return isinstance(x, Selected) or any(is_mask(e) or isinstance(e, Selected) for e in entries)


def parse(index: Any, shape: Ints) -> Selection:
    """What `index` selects from an array of `shape`.

    Raises:
        IndexError: an index out of range, too many of them, or one of a wrong kind.
        BooleanMaskError: a traced mask.
    """
    known = plain(index if isinstance(index, tuple) else (index,))
    return _parsed(entries_of(index), shape) if known is None else _parsed_plain(known, shape)


Plain = tuple[int | tuple[int | None, ...] | EllipsisType | None, ...]
"""An index of ints, None, "..." and slices; a slice is the tuple of its bounds and step."""


def plain(index: tuple[Any, ...]) -> Plain | None:
    """A hashable form of the index, if its meaning depends only on the shape; otherwise None."""
    entries: list[Any] = []
    for entry in index:
        if type(entry) is slice:
            entry = (entry.start, entry.stop, entry.step)
            if not _BOUNDS.issuperset(map(type, entry)):
                return None
        elif type(entry) not in _PLAIN_ENTRIES:
            return None
        entries.append(entry)
    return tuple(entries)


_BOUNDS = frozenset({int, NoneType})
_PLAIN_ENTRIES = frozenset({int, NoneType, EllipsisType})


@lru_cache(maxsize=1024)
def _parsed_plain(index: Plain, shape: Ints) -> Selection:
    """Selections, memoized: functions use few indices, on the same shapes."""
    return _parsed([slice(*e) if isinstance(e, tuple) else e for e in index], shape)


def _parsed(entries: list[Any], shape: Ints) -> Selection:
    builder = _Builder(shape)
    consumed = sum(_axes_of(e) for e in entries)
    if consumed > len(shape):
        raise IndexError(
            f"too many indices for array: array is {len(shape)}-dimensional, but {consumed} were "
            "indexed"
        )
    if sum(e is Ellipsis for e in entries) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not any(e is Ellipsis for e in entries):
        builder.explicit_rest = False
        entries.append(Ellipsis)
    for entry in entries:
        builder.add(entry, len(shape) - consumed)
    return builder.finish()


def _axes_of(entry: Any) -> int:
    """How many axes of the array an entry takes up."""
    if entry is None or entry is Ellipsis:
        return 0
    if is_mask(entry):
        raise BooleanMaskError(entry)
    if isinstance(entry, np.ndarray) and entry.dtype == np.bool_:
        return entry.ndim
    if hasattr(entry, "dtype") and entry.dtype.kind not in "iu":
        raise _bad_entry(entry)
    return 1


_MOST = 64
"""NumPy's limit of axes, and of arrays of an index."""


@dataclass(slots=True)
class _Builder:
    """Collects ranges and arrays, entry by entry; `axis` is the next axis of the array."""

    shape: Ints
    axis: int = 0
    explicit_rest: bool = True
    has_array: bool = False
    ranges: list[tuple[int, int, int]] = field(default_factory=list)
    arrays: dict[int, Any] = field(default_factory=dict)
    layout: list[int] = field(default_factory=list)
    booleans: list[Ints] = field(default_factory=list)  # shapes of index arrays of no axis

    def add(self, entry: Any, unindexed: int) -> None:
        """Take one entry; the ellipsis covers `unindexed` axes."""
        if entry is None:
            self.layout.append(NEW_AXIS)
        elif entry is Ellipsis:
            for _ in range(unindexed):
                self._slice(slice(None))
            if unindexed == 0 and self.explicit_rest:
                self.layout.append(_SEPARATOR)
        elif isinstance(entry, slice):
            self._slice(entry)
        elif isinstance(entry, int):
            self._integer(entry)
        elif isinstance(entry, np.ndarray) and entry.dtype == np.bool_:
            self._mask(entry)
        elif isinstance(entry, np.ndarray) and entry.ndim == 0:
            self.has_array = True
            self._integer(int(entry))
        else:
            self._array(entry)

    def _slice(self, entry: slice) -> None:
        try:
            start, stop, step = entry.indices(self.shape[self.axis])
        except TracerIndexError:
            for bound in ("start", "stop", "step"):
                if isinstance(tracer := getattr(entry, bound), Tracer):
                    raise TracerSliceError(bound, tracer) from None
            raise
        self.ranges.append((start, step, len(range(start, stop, step))))
        self.layout.append(self.axis)
        self.axis += 1

    def _integer(self, entry: int) -> None:
        extent = self.shape[self.axis]
        if not -extent <= entry < extent:
            raise _out_of_range(entry, self.axis, extent)
        self.ranges.append((entry % extent, 1, 1))
        self.layout.append(_INTEGER)
        self.axis += 1

    def _array(self, entry: Any) -> None:
        extent = self.shape[self.axis]
        if isinstance(entry, np.ndarray):
            entry = entry.astype(np.int64)
            outside = entry[(entry < -extent) | (entry >= extent)]
            if outside.size:
                raise _out_of_range(int(outside.flat[0]), self.axis, extent)
            entry = np.where(entry < 0, entry + extent, entry)
        self.arrays[self.axis] = entry
        self.ranges.append((0, 1, extent))
        self.layout.append(BATCH if entry.ndim else _INTEGER)
        self.axis += 1

    def _mask(self, mask: np.ndarray[Any, Any]) -> None:
        if mask.ndim == 0:  # an index array of as many elements as are true, of no axis
            self.booleans.append((int(mask),))
            self.layout.append(BATCH)
            return
        covered = self.shape[self.axis : self.axis + mask.ndim]
        for k, (extent, have) in enumerate(zip(covered, mask.shape, strict=True)):
            if have not in (extent, 0):  # one without elements selects none, as NumPy has it
                raise IndexError(
                    "boolean index did not match indexed array along axis "
                    f"{self.axis + k}; size of axis is {extent} but size of corresponding boolean "
                    f"axis is {have}"
                )
        for positions in mask.nonzero():
            self._array(positions)

    def finish(self) -> Selection:
        """The selection, with the arrays broadcast and the batch axes placed."""
        gathers = BATCH in self.layout
        try:
            batch = broadcast_shapes(*(a.shape for a in self.arrays.values()), *self.booleans)
        except ValueError:
            shapes = (*(a.shape for a in self.arrays.values()), *self.booleans)
            listed = " ".join(map(str, shapes))
            raise IndexError(
                f"shape mismatch: indexing arrays could not be broadcast together with shapes "
                f"{listed}"
            ) from None
        starts, steps, sizes = zip(*self.ranges, strict=True) if self.ranges else ((), (), ())
        layout = _place_batch(self.layout)
        shape = _shape(layout, batch, sizes)
        self._require_few(shape)
        return Selection(
            starts=starts,
            steps=steps,
            sizes=sizes,
            arrays=self.arrays,
            batch=batch,
            gathers=gathers,
            layout=layout,
            copies=self.has_array
            or gathers
            or (bool(self.layout) and all(entry == _INTEGER for entry in self.layout)),
            shape=shape,
        )

    def _require_few(self, shape: Ints) -> None:
        """Require no more index arrays and axes than NumPy has."""
        arrays = len(self.arrays) + len(self.booleans)
        if arrays >= _MOST:
            raise IndexError(f"an index has fewer than {_MOST} arrays, got {arrays}")
        if len(shape) > _MOST:
            raise IndexError(
                f"an indexed array has up to {_MOST} axes, this would have {len(shape)}"
            )


def _shape(layout: Ints, batch: Ints, sizes: Ints) -> Ints:
    """The shape of the result."""
    out: list[int] = []
    for entry in layout:
        out += batch if entry == BATCH else [1 if entry == NEW_AXIS else sizes[entry]]
    return tuple(out)


def _place_batch(layout: Sequence[int]) -> Ints:
    """The result's axes: the batch axes at the advanced indices if these are adjacent, else first.

    An integer beside an index array counts as an advanced index, and an ellipsis separates even if
    it covers no axis.
    """
    others = [e for e in layout if e >= 0 or e == NEW_AXIS]
    if BATCH not in layout:
        return tuple(others)
    advanced = [k for k, e in enumerate(layout) if e in (BATCH, _INTEGER)]
    if advanced[-1] - advanced[0] + 1 != len(advanced):
        return (BATCH, *others)
    before = sum(e >= 0 or e == NEW_AXIS for e in layout[: advanced[0]])
    return (*others[:before], BATCH, *others[before:])


def _out_of_range(index: int, axis: int, extent: int) -> IndexError:
    return IndexError(f"index {index} is out of bounds for axis {axis} with size {extent}")
