"""Tracer: what a traced function gets in place of an array."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tracegraph import errors
from tracegraph.devices import canonical_device
from tracegraph.errors.names_elsewhere import missing_of_array
from tracegraph.ir.program import Atom
from tracegraph.ir.types import ArrayType
from tracegraph.tracing import views
from tracegraph.tracing.conversions import conversion
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.local_writes import LocalWrites
from tracegraph.tracing.operators import ArrayOperators
from tracegraph.tracing.truth import truth_conversion

MisuseError = type[errors.TracerMisuseError]


def _misuse(error: MisuseError, operation: str | None = None) -> Callable[..., NoReturn]:
    def method(self: Tracer, *args: Any, **kwargs: Any) -> NoReturn:
        raise error(self, operation)

    return method


def _converted(error: MisuseError) -> Callable[..., NoReturn]:
    """A method that Python or NumPy calls for elements: the user's expression says what for."""

    def method(self: Tracer, *args: Any, **kwargs: Any) -> NoReturn:
        raise error(self, *(conversion() or ()))

    return method


class Tracer(LocalWrites, ArrayOperators):
    """Stands for an array while a function is traced.

    It behaves as an ndarray does where the elements need not be known: operators, methods,
    indexing, NumPy's functions, and assignment to arrays that the function has made itself.

    Args:
        owner: the trace that it belongs to.
        atom: its value now; local mutation replaces it.
        origin: which argument or parameter it is, if it is one; such tracers are read-only. A
            function is called only when a message needs the text.
    """

    __slots__ = ("__weakref__", "_atom", "alias", "axis_order", "origin", "owner")

    __array_priority__ = 1000.0  # for old-style array classes without __array_ufunc__

    def __init__(
        self, owner: views.Recorder, atom: Atom, origin: str | Callable[[], str] | None = None
    ) -> None:
        self.owner = owner
        self._atom = atom
        self.origin = origin
        self.alias: views.TracerView | None = None
        self.axis_order: tuple[int, ...] | None = None  # None: strides fall; see `layouts`

    @property
    def atom(self) -> Atom:
        """Its value now."""
        return self._atom if self.alias is None else views.current(self)

    def follow(self, base: Atom) -> Atom:
        """The value of a view whose base has the value `base`: derived again if that is new."""
        if self.alias is not None and self.alias.seen is not base:
            self._atom = views.derived(self, self.alias)
            self.alias.seen = base
        return self._atom

    def set_atom(self, atom: Atom) -> None:
        """Give it another value, of the same type."""
        self._atom = atom

    has_layout = True
    own_strides: views.Strides | None = None

    def local(self) -> Tracer:
        """The tracer itself: what the function computes belongs to it."""
        return self

    @property
    def is_local(self) -> bool:
        """Whether it may be written to: see `views.check_writable`."""
        return views.read_only_reason(self) is None

    def check_writable(self, operation: str = "", instead: str = "") -> None:
        """Raise a TracerWriteError unless it may be written to: see `views.check_writable`."""
        views.check_writable(self, instead)

    def _store(self, value: Any) -> None:
        views.store(self, self.owner.read(FUNCTIONS["broadcast_to"](value, self.shape)))

    @property
    def type(self) -> ArrayType:
        """Dtype, shape and weakness."""
        return self._atom.type

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype."""
        return self._atom.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents: known while tracing."""
        return self._atom.type.shape

    @property
    def weak(self) -> bool:
        """Whether it is the value of a Python scalar, whose dtype adapts to that of arrays."""
        return self._atom.type.weak

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._atom.type.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._atom.type.size

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self._atom.type.nbytes

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def device(self) -> str:
        """Where the program that is being traced will run, and all of its arrays will be."""
        return self.owner.device

    def to_device(self, device: str, /, *, stream: None = None) -> Tracer:
        """The value itself: all arrays of a program are on its device. `stream` must be None.

        Raises:
            UnsupportedByTracerError: another device.
            ValueError: a stream was given.
        """
        if stream is not None:
            raise ValueError("to_device orders its copy itself; pass stream=None")
        if canonical_device(device) != self.device:
            raise errors.UnsupportedByTracerError(
                f"device {device!r} in a program that runs on {self.device!r}",
                "pass x.device, or move arrays before the call",
            )
        return self

    @property
    def read_only(self) -> str | None:
        """What it is, for the message, if it must not be written to."""
        if self.origin is None or isinstance(self.origin, str):
            return self.origin and f"{self.origin}, which is read-only"
        return "an argument, which belongs to the caller"

    @property
    def descent(self) -> str:
        """Where it comes from, for messages: an argument, or the user's line that computed it."""
        if self.origin is not None:
            return self.origin if isinstance(self.origin, str) else self.origin()
        return self.owner.origin_of(self._atom)

    def __repr__(self) -> str:
        how = f"from {self.descent}" if self.origin is not None else self.descent
        return f"Tracer<{self.type}> {how}"

    def __format__(self, spec: str) -> str:
        if spec:
            raise errors.TracerFormatError(self)
        return repr(self)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError(f"len() of a traced value of type {self.type}, which has no axes")
        return self.shape[0]

    def factor(self, x: Any) -> Any:
        """The other factor of `*`, as an array. An int would repeat a list, but must be known.

        Raises:
            TracerIndexError: a list or tuple times a traced int.
        """
        if isinstance(x, (list, tuple)) and self.ndim == 0 and self.dtype.kind in "biu":
            self.__index__()
        return self.operand(x)

    def __index__(self) -> NoReturn:
        self.owner.index_error = errors.TracerIndexError(self, *(conversion(is_size=True) or ()))
        raise self.owner.index_error

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise errors.TracerIterationError(self)
        return (self[i] for i in range(self.shape[0]))

    def __setitem__(self, index: Any, value: Any) -> None:
        FUNCTIONS["setitem"](self, index, value)

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

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("_") and name not in Tracer.__slots__:
            if hasattr(np.ndarray, name):
                raise errors.UnsupportedAttributeError(name)
            raise missing_of_array(errors.value_text(self), name, self)
        raise AttributeError(name)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.copy()

    def __bool__(self) -> NoReturn:
        raise errors.TracerBoolError(self, *(truth_conversion() or ()))

    __int__ = _converted(errors.TracerIntegerError)
    __trunc__ = _misuse(errors.TracerIntegerError)
    __hash__ = _misuse(errors.TracerHashError)  # type: ignore[assignment]
    __float__ = _converted(errors.TracerFloatError)
    __complex__ = _converted(errors.TracerComplexError)
    __array__ = _converted(errors.TracerArrayError)
    item = _misuse(errors.TracerItemError, ".item()")
    tolist = _misuse(errors.TracerItemError, ".tolist()")
    tobytes = _misuse(errors.TracerItemError, ".tobytes()")
