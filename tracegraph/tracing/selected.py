"""Selected elements: what a read at a traced mask gives, `x[mask]`.

How many there are is known when the graph runs, so that they are no array of the program. They are
represented by the values at all places, and the mask:

    x[before, mask, after]     region: axes before, those of the mask, axes after

An elementwise function is computed at all places, a reduction leaves out those that are not
selected, and a write to the same places is a `where`. The axis that NumPy's array has in place of
those of the mask is the *count axis*, number `before`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tracegraph import errors
from tracegraph.errors.names_elsewhere import missing_of_array
from tracegraph.ir.types import ArrayType, result_type
from tracegraph.tracing.conversions import MaskedRead, Place
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.operators import ArrayOperators, InPlaceOperators
from tracegraph.tracing.tracer import Tracer

_COUNT = "write numpy.count_nonzero({mask}) for the number of elements"


def _refused(operation: str, instead: str = "") -> Callable[..., NoReturn]:
    def method(self: Selected, *args: Any, **kwargs: Any) -> NoReturn:
        self.refuse(operation, instead, is_of_shape=True)

    return method


class Selected(ArrayOperators, InPlaceOperators):
    """The elements of a traced array at which a traced mask is true, as NumPy's copy of them.

    Args:
        region: the values at all places; a tracer that shares memory with no other.
        mask: a traced boolean array of at least one axis, which nothing writes to.
        before: how many axes of the region come before those of the mask.
        place: where in the user's code they were read, for messages.
        guarded: whether functions may be applied to the region, as values at places that are not
            selected do no harm; see `selected_operations`.
    """

    __slots__ = ("before", "guarded", "mask", "place", "region")

    __array_priority__ = Tracer.__array_priority__

    def __init__(
        self, region: Any, mask: Any, before: int, place: Place | None, guarded: bool = False
    ) -> None:
        self.region = region
        self.mask = mask
        self.before = before
        self.place = place
        self.guarded = guarded
        mask.owner.uses.selects = True

    def like(self, region: Any) -> Selected:
        """The elements of another region at the same places of the mask, with as many axes after.

        Its other places carry no derivative.
        """
        before = region.ndim - self.mask.ndim - self.after
        return Selected(region, self.mask, before, self.place, guarded=True)

    @property
    def after(self) -> int:
        """How many axes of the region come after those of the mask."""
        return int(self.region.ndim - self.before - self.mask.ndim)

    @property
    def condition(self) -> Any:
        """The mask, broadcast against the region by its trailing axes of extent 1."""
        return FUNCTIONS["reshape"](self.mask, self.mask.shape + (1,) * self.after)

    @property
    def mask_axes(self) -> tuple[int, ...]:
        """The axes of the region that are those of the mask."""
        return tuple(range(self.before, self.before + self.mask.ndim))

    @property
    def type(self) -> ArrayType:
        """The type of the region: that of the elements, but for the shape."""
        return self.region.type  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype."""
        return self.region.dtype  # type: ignore[no-any-return]

    @property
    def weak(self) -> bool:
        """Whether they are Python numbers."""
        return bool(self.region.weak)

    @property
    def ndim(self) -> int:
        """Number of axes: those of the mask are one."""
        return int(self.before + 1 + self.after)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def descent(self) -> str:
        """Where they come from, for messages."""
        return f"selected by a mask, {self.mask.descent}"

    @property
    def read_text(self) -> MaskedRead:
        """The user's expression that read them."""
        return MaskedRead.at(self.place)

    def refusal(
        self, operation: str, instead: str = "", is_of_shape: bool = False
    ) -> errors.BooleanMaskError:
        """The error of an operation that needs the number of elements.

        `operation` and `instead` may name `{read}`, `{array}` and `{mask}`, the user's expressions.
        `is_of_shape`: a function may have asked for it, which the message should name then.
        """
        names = self.read_text._asdict()
        error = errors.BooleanMaskError.of_read(
            self.mask, operation.format(**names), instead.format(**names), **names
        )
        error.is_of_shape = is_of_shape
        return error

    def refuse(self, operation: str, instead: str = "", is_of_shape: bool = False) -> NoReturn:
        """Raise the `refusal`.

        Raises:
            BooleanMaskError: always.
        """
        raise self.refusal(operation, instead, is_of_shape)

    def assign(self, value: Any, name: str = "assignment") -> None:
        """Replace all elements: `x += y`.

        Raises:
            InPlaceCastError: the dtype of the value does not convert by "same_kind".
            ValueError: the value does not broadcast to these elements.
        """
        type_ = value.type
        if result_type(self.type, type_) != self.dtype and not np.can_cast(
            type_.dtype, self.dtype, "same_kind"
        ):
            raise errors.InPlaceCastError(name, type_, self)
        self[...] = FUNCTIONS["astype"](value, self.dtype)

    def __setitem__(self, index: Any, value: Any) -> None:
        FUNCTIONS["setitem_of_selected"](self, index, value)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return FUNCTIONS["ufunc_of_tracers"](ufunc, method, inputs, kwargs)

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        return FUNCTIONS["function_of_tracers"](func, args, kwargs)

    def copy(self, order: str = "C") -> Selected:
        """New elements with the same values."""
        return Selected(self.region, self.mask, self.before, self.place, self.guarded)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Selected:
        return self.copy()

    def __repr__(self) -> str:
        return f"Selected<{self.type} where {self.mask.type}> {self.descent}"

    @property
    def shape(self) -> NoReturn:
        """Refused: the number of elements is not known."""
        self.refuse("the shape of {read}", _COUNT, is_of_shape=True)

    @property
    def size(self) -> NoReturn:
        """Refused: the number of elements is not known."""
        self.refuse("the size of {read}", _COUNT, is_of_shape=True)

    nbytes = property(_refused("nbytes of {read}", _COUNT))
    __len__ = _refused("len() of {read}", _COUNT)
    __iter__ = _refused(
        "iteration over {read}",
        "write what is done for one element with numpy's functions of {read}, or loop over all "
        "places with tracegraph.fori_loop and choose by {mask}[i]",
    )
    __bool__ = _refused(
        "bool() of {read}",
        "write numpy.any({read}) or numpy.all({read}), and tracegraph.cond or numpy.where",
    )
    __array__ = _refused("conversion of {read} to a NumPy array")
    __index__ = __int__ = __float__ = __complex__ = _refused(
        "conversion of {read} to a number",
        "write numpy.sum({read}) if one element is selected, or {array}[numpy.argmax({mask})]",
    )
    item = tolist = tobytes = _refused("conversion of {read} to numbers")

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("_") and name not in Selected.__slots__:
            if hasattr(np.ndarray, name):
                self.refuse(f"{{read}}.{name}", is_of_shape=True)
            raise missing_of_array(errors.value_text(self), name, self)
        raise AttributeError(name)

    def _replaced(self, result: Any, name: str, other: Any) -> Selected:
        self.assign(result, name)
        return self
