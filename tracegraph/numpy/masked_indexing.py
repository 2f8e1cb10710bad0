"""Reading and writing at a traced mask: selected elements, and `where`.

An index at a mask may have integers, slices, None and an ellipsis beside it: `x[0, mask, 1:]`. The
region of the mask is what the index with full slices in place of the mask selects. Elements that a
mask selects may be indices in turn, `table[k[mask]]`, or be indexed: `x[mask][:, 0]`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph import numpy
from tracegraph.generated.dataclass import dataclass
from tracegraph.modes import check_indices
from tracegraph.numpy.dispatching.dispatch import copied, lifted
from tracegraph.numpy.shapes import broadcast_to
from tracegraph.tracing.conversions import Place
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.selected import Selected
from tracegraph.tracing.selected_operations import (
    aligned,
    fitted,
    have_same_mask,
    require_same_places,
)
from tracegraph.tracing.selection import BATCH, is_mask, parse

_LINEAR = {"set", "add", "subtract", "minimum", "maximum"}
"""Ways of updating whose derivatives are finite wherever the operands are."""


@dataclass(frozen=True, slots=True)
class _Masked:
    """An index at a mask, of an array.

    `inner` selects the region, whose axes of the mask `moved` puts first where NumPy has them so.
    """

    inner: tuple[Any, ...]
    region: Any
    mask: Any
    before: int
    moved: tuple[int, ...] | None
    entry: int | None
    """The number of the mask among several entries of the index."""

    def selected(self) -> Selected:
        """The selected elements, as a copy."""
        region, mask = copied(lifted(self.region)), copied(self.mask)
        return Selected(region, mask, self.before, Place.now(self.entry))

    def put(self, x: Any, region: Any) -> Any:
        """`x` with another region."""
        if self.moved is not None:
            region = numpy.transpose(region, tuple(int(a) for a in np.argsort(self.moved)))
        return FUNCTIONS["updated"](x, self.inner, region, "set")


def read(x: Any, entries: list[Any]) -> Selected:
    """`x[entries]`, where a traced mask, or what one selects, is indexed or an index.

    Raises:
        IndexError: the mask has another shape than what it selects from.
        BooleanMaskError: another mask or an index array is beside the mask.
    """
    if isinstance(x, Selected):
        return _of_selected(x, entries)
    if any(isinstance(e, Selected) for e in entries):
        first, inner = _at_all_places(entries)
        return _at_indices(first, x, inner)
    return _masked(x, entries).selected()


def updated(x: Any, entries: list[Any], value: Any, how: str, *, unique: bool = False) -> Any:
    """`x` changed where a traced mask is true, as `indexing.updated` has it.

    Raises:
        IndexError: the mask has another shape than what it selects from.
        BooleanMaskError: the value belongs to some number of true elements, or another mask or an
            index array is beside the mask.
        ValueError: the value does not broadcast to the region of the mask.
    """
    if isinstance(x, Selected):
        changed = x.copy()
        write_to_selected(changed, tuple(entries), value, how)
        return changed
    if any(isinstance(e, Selected) for e in entries):
        return _scattered(x, entries, value, how, unique=unique)
    masked = _masked(x, entries)
    selected = masked.selected()
    chosen = numpy.where(selected.condition, _changed(selected, value, how), masked.region)
    return masked.put(x, chosen)


def _scattered(x: Any, entries: list[Any], value: Any, how: str, *, unique: bool) -> Any:
    """`x` changed at selected indices: others are out of range, where writes are dropped."""
    first, inner = _at_all_places(entries)
    selected = _at_indices(first, x, inner)
    region = broadcast_to(fitted(_cast(value, x), selected), selected.region.shape)
    at = next(k for k, e in enumerate(entries) if isinstance(e, Selected))
    extent = np.shape(x)[_axis_of(at, entries, np.ndim(x))]
    dropping = numpy.where(first.condition, inner[at], extent)
    index = (*inner[:at], dropping, *inner[at + 1 :])
    with check_indices(False):
        return FUNCTIONS["updated"](x, index, region, how, unique=unique)


def write_to_selected(x: Selected, index: Any, value: Any, how: str = "set") -> None:
    """`x[index] = value` of selected elements: at all of them, at those that a mask of them
    selects, or at an index of the other axes.

    Raises:
        BooleanMaskError: an index of single ones among them.
        ValueError: the value does not broadcast to what is indexed.
    """
    entries = list(index) if isinstance(index, tuple) else [index]
    inside = _inside(x, entries)
    if inside is not None:
        x.region = numpy.where(inside.condition, _changed(inside, value, how), x.region)
        return
    inner = _around_count(x, entries)
    part = _at_other_axes(x, inner)
    changed = broadcast_to(_changed(part, value, how), part.region.shape)
    x.region = FUNCTIONS["updated"](x.region, inner, changed, "set")


def _changed(selected: Selected, value: Any, how: str) -> Any:
    """The region of selected elements, combined with a value: right where they are selected."""
    value = _cast(value, selected.region)
    if how in _LINEAR:
        region = fitted(value, selected)
        return region if how == "set" else getattr(numpy, how)(selected.region, region)
    combined = Selected.copy(selected)
    combined.assign(getattr(numpy, how)(selected, value), how)
    return combined.region


def _cast(value: Any, x: Any) -> Any:
    """A value that is written, in the dtype of `x`."""
    if isinstance(value, Selected):
        return FUNCTIONS["astype"](value, x.dtype)
    return FUNCTIONS["cast_to"](value, x)


def _masked(x: Any, entries: list[Any]) -> _Masked:
    at = next(k for k, e in enumerate(entries) if is_mask(e))
    mask, before, after = entries[at], entries[:at], entries[at + 1 :]
    if not all(_is_basic(e) for e in (*before, *after)):
        names = Selected(None, mask, 0, Place.now(at if len(entries) > 1 else None))
        names.refuse(
            "{read}, a mask beside index arrays or another mask,",
            "index with the mask alone, {array}[{mask}]; for rows and columns at two masks, write "
            "numpy.where(rows[:, None] & columns, value, x)",
        )
    covering: tuple[Any, ...] = (slice(None),) * mask.ndim
    if mask.ndim == 0:
        mask, covering = numpy.reshape(mask, (1,)), (None,)
    inner = (*before, *covering, *after)
    region = FUNCTIONS["getitem"](x, inner)
    shape = np.shape(x)
    leading = sum(e is None or isinstance(e, slice) for e in before)
    if any(e is Ellipsis for e in before):
        rest = (*before, *after)
        leading += len(shape) - entries[at].ndim
        leading -= sum(e is not None and e is not Ellipsis for e in rest)
    covered = region.shape[leading : leading + mask.ndim]
    if mask.shape != covered:
        raise IndexError(
            f"boolean index of shape {mask.shape} did not match the {mask.ndim} axes of shape "
            f"{covered} of the indexed array of shape {shape}"
        )
    moved = None
    if leading and _is_moved(entries, at):
        places = range(leading, leading + mask.ndim)
        moved = (*places, *(k for k in range(region.ndim) if k not in places))
        region, leading = numpy.transpose(region, moved), 0
    return _Masked(inner, region, mask, leading, moved, at if len(entries) > 1 else None)


def _is_basic(entry: Any) -> bool:
    """Whether an entry beside a mask is an integer, a slice, None or an ellipsis."""
    is_boolean = getattr(entry, "dtype", None) == np.bool_
    return not is_boolean and not (hasattr(entry, "ndim") and entry.ndim > 0)


def _is_moved(entries: list[Any], at: int) -> bool:
    """Whether NumPy puts the mask's axis first: an integer that is not adjacent selects with it."""
    advanced = [
        k
        for k, e in enumerate(entries)
        if k == at or not (e is None or e is Ellipsis or isinstance(e, slice))
    ]
    return advanced[-1] - advanced[0] + 1 != len(advanced)


def _of_selected(x: Selected, entries: list[Any]) -> Selected:
    """Selected elements, indexed: by a mask of them, or by an index of the other axes."""
    inside = _inside(x, entries)
    if inside is not None:
        return inside
    return _at_other_axes(x, _around_count(x, entries))


def _inside(x: Selected, entries: list[Any]) -> Selected | None:
    """Those of selected elements that a mask of them selects, if the index is one."""
    given = [e for e in entries if e is not Ellipsis]
    if not any(isinstance(e, Selected) or is_mask(e) for e in given):
        return None
    mask = given[0]
    is_their_mask = isinstance(mask, Selected) and mask.dtype == np.bool_ and mask.ndim == 1
    if len(given) > 1 or not is_their_mask or x.before or not have_same_mask(x, mask):
        x.refuse("{read} at an index that is not a mask of these elements,")
    both = numpy.logical_and(x.mask, mask.region)
    return Selected(x.region, both, 0, Place.now())


def _around_count(x: Selected, entries: list[Any]) -> tuple[Any, ...]:
    """An index of selected elements as one of their region: it takes all along the count axis."""
    if not any(e is Ellipsis for e in entries):
        entries = [*entries, Ellipsis]
    taken = sum(_axes_of(e) for e in entries)
    if taken > x.ndim:
        raise IndexError(
            f"too many indices for array: array is {x.ndim}-dimensional, but {taken} were indexed"
        )
    inner: list[Any] = []
    axis = 0
    for entry in entries:
        covered = [slice(None)] * (x.ndim - taken) if entry is Ellipsis else [entry]
        for part in covered:
            if axis == x.before and _axes_of(part):
                if not (isinstance(part, slice) and part == slice(None)):
                    x.refuse(
                        "{read} at a position or a slice among these elements",
                        "write tracegraph.numpy.extract({mask}, {array}, size=n) for the first n "
                        "elements, and index those",
                    )
                inner += [slice(None)] * x.mask.ndim
            else:
                inner.append(part)
            axis += _axes_of(part)
    return tuple(inner)


def _axes_of(entry: Any) -> int:
    if entry is None or entry is Ellipsis:
        return 0
    return entry.ndim if getattr(entry, "dtype", None) == np.bool_ else 1


def _at_all_places(entries: list[Any]) -> tuple[Selected, tuple[Any, ...]]:
    """Selected indices, the first, and the index with those at all places of the mask."""
    first = next(e for e in entries if isinstance(e, Selected))
    inner: list[Any] = []
    for entry in entries:
        if isinstance(entry, Selected):
            if entry.dtype == np.bool_:
                entry.refuse("an index {read}, a mask that is selected,")
            require_same_places(entry, first)
            inner.append(entry.region)
        elif hasattr(entry, "ndim") and entry.ndim > 0:
            inner.append(aligned(entry, first))
        else:
            inner.append(entry)
    return first, tuple(inner)


def _axis_of(at: int, entries: list[Any], rank: int) -> int:
    """The axis that an entry of an index is about."""
    before = entries[:at]
    axis = sum(_axes_of(e) for e in before)
    if any(e is Ellipsis for e in before):
        axis += rank - sum(_axes_of(e) for e in entries)
    return axis


def _at_indices(first: Selected, x: Any, inner: tuple[Any, ...]) -> Selected:
    """The elements of an array at selected indices: the axes of the mask are batch axes."""
    selection = parse(inner, np.shape(x))
    before = selection.layout.index(BATCH) + len(selection.batch) - first.mask.ndim - first.after
    return Selected(FUNCTIONS["getitem"](x, inner), first.mask, before, first.place)


def _at_other_axes(x: Selected, inner: tuple[Any, ...]) -> Selected:
    """Selected elements at an index of their region that keeps the axes of the mask."""
    selection = parse(inner, x.region.shape)
    others = selection.layout[: selection.layout.index(x.before)]
    before = sum(len(selection.batch) if entry == BATCH else 1 for entry in others)
    region = copied(FUNCTIONS["getitem"](x.region, inner))
    return Selected(region, x.mask, before, x.place, x.guarded)
