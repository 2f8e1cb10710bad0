"""Arrays that may be written to: those that the caller's code has made, and views of them."""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from tracegraph import errors, tree
from tracegraph.arrays.device_writes import EAGER, derived, is_read_at, write
from tracegraph.errors.tracebacks import hide_frames
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.local_writes import LocalWrites
from tracegraph.tracing.selection import Plain, plain
from tracegraph.tracing.trace import innermost
from tracegraph.tracing.views import Layout, Strides, TracerView, layout_of, root_of, strides_of

if TYPE_CHECKING:
    from typing import Self

    from tracegraph.arrays.device_buffer import DeviceBuffer


class WritableArray(LocalWrites):
    """What an Array knows of writes and views.

    In host memory, views are NumPy's, and share it. On a device, a buffer is a value: a write gives
    the outermost base another one, and its views are stale, which are computed again when they are
    next read.
    """

    __slots__ = (
        *("_alias", "_axis_order", "_exported", "_local", "_place", "_stale", "_strides", "_type"),
        *("_views", "memory", "placement"),
    )

    memory: Any
    placement: Any
    _type: ArrayType
    _exported: DeviceBuffer
    """Memory that was exported to another library, whose work on it is not known. It stays
    allocated and unchanged as long as this Array lives, even if the Array is donated."""
    _local: bool
    """On a device: whether it is no view, and may be written to."""
    _strides: Strides | None
    _alias: TracerView | None
    _axis_order: tuple[int, ...] | None
    _views: WeakValueDictionary[int, WritableArray]
    """On a device: all views of it, also of views, by their ids."""
    _place: tuple[WritableArray, Plain | None]
    _stale: bool
    """Whether its base was written to since its elements were computed: a view on a device."""

    if TYPE_CHECKING:  # what the class has
        data: Any
        copy: Any
        placed: Any
        __array__: Any

    def __setitem__(self, index: Any, value: Any) -> None:
        try:
            self.check_writable()
            data: Any = self.memory
            if isinstance(data, np.ndarray):
                with np.errstate(all="ignore"):
                    data[tree.map(as_ndarray, index)] = as_ndarray(value)
                return
            del data  # a reference to memory that is written to in place if there is no other
            if not is_read_at(value, self, index):
                write(self, index, value)
        except BaseException as error:
            hide_frames(error)
            raise

    def local(self) -> Self:
        """Say that no other Array stands for these elements, so that they may be written to; return
        this array. It has memory of its own.
        """
        if not isinstance(self.memory, np.ndarray):
            self._local = not hasattr(self.memory, "blocks")
        elif self.memory.base is None:
            self.memory.setflags(write=True)
        return self

    @property
    def is_local(self) -> bool:
        """Whether it may be written to: the caller's code has made it, or it is a view of such.

        Results of operations on Arrays, copies and new arrays of `tracegraph.array_api` are. In
        host memory, it is NumPy's flag that says so, which views inherit.
        """
        data = self.memory
        if isinstance(data, np.ndarray):
            owner = data.base
            return data.flags.writeable and (
                not isinstance(owner, np.ndarray) or owner.flags.writeable
            )
        root: Any = self
        while root.alias is not None:
            if root.alias.read_only is not None:
                return False
            root = root.alias.base
        return root.memory is not None and getattr(root, "_local", False)

    def check_writable(self, operation: str = "`x[index] = value`", instead: str = "") -> None:
        """Raise unless an operation may write to it; `instead` says what to do where it may not.

        Raises:
            ImmutableArrayError: it is not local; or a function is traced, which captures it as it
                is.
            DonatedArrayError: it was donated.
        """
        if innermost.trace is not None or not self.is_local:
            _ = _outermost(self).data  # raises if it was donated
            raise errors.ImmutableArrayError(operation, instead)

    def own(self) -> Self:
        """An Array of the same elements that may be written to, and is not changed with this one.

        On a device, the two are one buffer until one of them is written to.
        """
        data = self.data
        if isinstance(data, np.ndarray):
            copied: Self = self.copy()
            return copied
        handle: Self = self.placed(data, self._type, self.placement)
        return handle.local()

    def kept(self) -> Self:
        """An Array of the same elements that no write changes; itself if nothing can."""
        data = self.data
        if isinstance(data, np.ndarray):
            may_change = data.flags.writeable
            if isinstance(data.base, np.ndarray):
                may_change = may_change or data.base.flags.writeable
            return self.own() if may_change else self
        return self.own() if self.remembers_views else self

    def _store(self, value: Any) -> None:
        self[...] = value

    def _replaced(self, result: Any, name: str, other: Any) -> Any:
        """`x += y` writes to `x`, if it is local; else, and if `y` is traced, `x` is rebound."""
        if type(result) is not type(self) or innermost.trace is not None or not self.is_local:
            return result
        data: Any = self.memory
        found: Any = result.memory
        if self._type != result._type or not self.shape or type(data) is not type(found):
            return super()._replaced(result, name, other)
        if not isinstance(data, np.ndarray):
            del data  # as in `__setitem__`
            if self.alias is None:
                self.renew(found, self.placement)
            else:
                write(self, ..., result)
                self.memory, self.placement, self._stale = found, result.placement, False
        elif data.base is None and found.base is None and getrefcount(data) <= _ALONE:
            self.memory = found  # nothing else refers to the memory
        else:
            data[...] = found
        return self

    # ---- views on a device, as `tracing.views` knows them ----

    owner = EAGER

    @property
    def remembers_views(self) -> bool:
        """Whether views of it know their base, and are computed again after a write: on a device,
        if it is a view or local. Views in host memory share it.
        """
        if isinstance(self.memory, np.ndarray):
            return False
        return self.alias is not None or getattr(self, "_local", False)

    @property
    def has_layout(self) -> bool:
        """Whether `views.strides_of` says how NumPy would lay it out: on a device."""
        return not isinstance(self.memory, np.ndarray)

    @property
    def own_strides(self) -> Strides | None:
        """The strides, in elements, of a view that does not know its base, on a device."""
        return getattr(self, "_strides", None)

    def as_read_only(self, layout: Layout) -> Self:
        """Say that it is a view, laid out like this, of what no write changes; return it."""
        self._local, self._alias = False, None
        self._strides, self._axis_order = layout
        return self

    @property
    def alias(self) -> TracerView | None:
        """What it is a view of, on a device."""
        return getattr(self, "_alias", None)

    @alias.setter
    def alias(self, view: TracerView | None) -> None:
        if view is None and self.alias is not None:  # it is a copy after all: writes leave it alone
            getattr(_outermost(self), "_views", {}).pop(id(self), None)
        self._alias, self._strides = view, None

    @property
    def axis_order(self) -> tuple[int, ...] | None:
        """As of a tracer: how NumPy would lay it out. In host memory, its strides say so."""
        return getattr(self, "_axis_order", None)

    @axis_order.setter
    def axis_order(self, order: tuple[int, ...] | None) -> None:
        self._axis_order = order

    @property
    def atom(self) -> None:
        """What a view remembers of its base, which is nothing: a write makes views stale."""

    def as_view(self) -> Self:
        """Let the outermost base know of a new view, if it is one; else it is local."""
        if self.alias is None:
            return self.local()
        root = _outermost(self)
        views = getattr(root, "_views", None)
        if views is None:
            views = root._views = WeakValueDictionary()
        views[id(self)] = self
        self._local = False
        return self

    def read_at(self, base: WritableArray, index: Any) -> None:
        """Note the index, if it is of ints and slices, at which a view was read from its base."""
        self._place = (base, plain(index if isinstance(index, tuple) else (index,)))

    def renew(self, memory: DeviceBuffer, where: Any) -> None:
        """Take other elements, of the same type, as it was written to: its views are stale."""
        self.memory, self.placement = memory, where
        for view in list(getattr(self, "_views", {}).values()):
            if view.memory is not None:
                view.memory = view.placement = None
                view._stale = True

    def refresh(self) -> None:
        """Compute the elements of a view again, if its base was written to."""
        view = self.alias
        if self.memory is None and view is not None and getattr(self, "_stale", False):
            fresh = derived(view)
            self.memory, self.placement, self._stale = fresh.data, fresh.placement, False

    def _export(self, data: DeviceBuffer) -> None:
        """Keep memory that others have; from then on the Array is read-only."""
        self._exported = data
        root = _outermost(self)
        root.as_read_only(layout_of(root.shape, strides_of(root)))


def _outermost(array: Any) -> Any:
    """What a view on a device is a view of in the end; an Array that is no view itself."""
    return root_of(array)


def _references() -> int:
    """The references to an object that a slot alone has, as `_replaced` counts them."""
    array = [np.empty(0)]
    data = array[0]
    return getrefcount(data)


_ALONE = _references()


def as_ndarray(x: Any) -> Any:
    """An Array in an index, or a value, as an ndarray."""
    return x.__array__() if isinstance(x, WritableArray) else x
