"""The Array class: arrays in host or device memory; what jitted functions return."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tracegraph import errors, tree
from tracegraph.arrays import dlpack
from tracegraph.arrays.device_buffer import DeviceBuffer
from tracegraph.arrays.device_calls import copy
from tracegraph.arrays.shard_view import ArrayShard
from tracegraph.arrays.typed_operators import TypedOperators
from tracegraph.arrays.writable_array import WritableArray, as_ndarray
from tracegraph.devices import canonical_device
from tracegraph.errors.names_elsewhere import OF_ARRAYS, answer, missing_of_array
from tracegraph.errors.tracebacks import hide_frames
from tracegraph.ir.types import ArrayType, row_major_strides
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.layouts import copy_order
from tracegraph.tracing.operators import ArrayOperators
from tracegraph.tracing.tracer import Tracer
from tracegraph.tracing.views import order_of

if TYPE_CHECKING:
    from typing import Self


Placement = tuple[np.dtype[Any], tuple[int, ...], bool, str]
"""Dtype, shape, weakness and device; a plain tuple, which is hashed and compared in C."""


@lru_cache(4096)
def placement(type_: ArrayType, device: str) -> Placement:
    """The placement of an Array of this type on a device."""
    return type_.dtype, type_.shape, type_.weak, device


def _writing(name: str, instead: str) -> Callable[..., NoReturn]:
    """A method of ndarray that writes to it, and what to do instead."""

    def method(self: Array, *args: Any, **kwargs: Any) -> NoReturn:
        raise errors.ImmutableArrayError(f"x.{name}(...)", instead)

    method.__name__ = name
    method.__doc__ = f"Refused, as it writes to the array: {instead}."
    return method


class _ArrayClass(type):
    """The class of Array: a traced value is an instance, as it stands for one.

    So annotations and checks of users hold in traced functions. Code of this package that means
    arrays with elements asks for `type(x) is Array`.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, ArrayOperators)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, ArrayOperators)


class Array(WritableArray, TypedOperators, metaclass=_ArrayClass):
    """An n-dimensional array, in host memory or on a device.

    It works like an ndarray: operators, methods, indexing, and NumPy's functions, all of which
    return Arrays. Work on a device is asynchronous; reading elements waits for it. To replace
    elements, make a new Array with `x.at[index].set(value)`, or write `x[index] = value`: results
    of operations may be written to, also through views, as ndarrays may. Arguments and results of
    jitted functions, and what `tracegraph.asarray` makes, are read-only.

    Made by `tracegraph.asarray`, `tracegraph.from_dlpack` and by jitted functions.

    >>> import tracegraph
    >>> tracegraph.asarray([1.0, 2.0]) + 1
    Array([2., 3.], dtype=float64)
    """

    __slots__ = ("__weakref__",)

    # Ahead of ndarray in NumPy's operator dispatch, behind Tracer.
    __array_priority__ = 100

    memory: NDArray[Any] | DeviceBuffer | None
    """What `data` gives; None once the array is donated, or while it is stale."""
    _type: ArrayType
    placement: Placement | None
    """Type and device, as the key of a call has them; None where the memory is."""

    def __init__(self, data: NDArray[Any] | DeviceBuffer, *, weak: bool = False) -> None:
        """Wrap `data` without a copy; an ndarray becomes read-only."""
        if isinstance(data, np.ndarray):
            data.setflags(write=False)
            self._type = ArrayType(data.dtype, data.shape, weak)
            self.placement = placement(self._type, "host")
        else:
            if not hasattr(data, "to_host"):
                raise TypeError(
                    f"Array wraps memory; of {errors.value_text(data)} write tracegraph.asarray(x)"
                )
            self._type = data.type
            self.placement = placement(self._type, getattr(data, "where", data.device))
        self.memory = data

    @classmethod
    def sharing(cls, data: NDArray[Any], *, weak: bool = False) -> Array:
        """An Array of an ndarray of this package's own, which may be written to if that may.

        It is a view of what the ndarray is a view of.
        """
        array = cls.__new__(cls)
        array.memory = data
        array._type = type_ = ArrayType(data.dtype, data.shape, weak)
        array.placement = placement(type_, "host")
        return array

    @classmethod
    def placed(cls, data: NDArray[Any] | DeviceBuffer, type_: ArrayType, where: Placement) -> Array:
        """An Array made without checks, of a device buffer or a read-only ndarray."""
        array = cls.__new__(cls)
        array.memory = data
        array._type = type_
        array.placement = where
        return array

    @staticmethod
    def placed_text(array: str, data: str, type_: str, where: str) -> tuple[str, ...]:
        """`placed` as lines of a generated function with `PLACED_SCOPE`: each name is a variable.

        Written out, it takes 35 ns less than the call of 160.
        """
        return (
            f"{array} = new(Array)",
            f"{array}.memory = {data}",
            f"{array}._type = {type_}",
            f"{array}.placement = {where}",
        )

    @property
    def data(self) -> NDArray[Any] | DeviceBuffer:
        """The memory: an ndarray, which is read-only unless the array is local, or the backend's
        device buffer.

        Raises:
            DonatedArrayError: the array was donated to a jitted function.
        """
        memory = self.memory
        return self._computed_again() if memory is None else memory

    def _computed_again(self) -> NDArray[Any] | DeviceBuffer:
        self.refresh()
        if self.memory is None:
            raise errors.DonatedArrayError(
                f"this Array of type {self._type} was donated to a jitted function, which may have "
                "reused its memory; use that function's results, or leave it out of donate_argnums"
            )
        return self.memory

    def invalidate(self) -> None:
        """Give up the memory: the array was donated."""
        self.memory = self.placement = None

    @property
    def type(self) -> ArrayType:
        """Dtype, shape, and whether the type is weak (a result of Python numbers only)."""
        return self._type

    @property
    def weak(self) -> bool:
        """Whether the dtype adapts to those of other operands, as a Python number's does."""
        return self._type.weak

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self._type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis."""
        return self._type.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._type.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._type.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._type.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._type.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from an element to the next along each axis."""
        data = self.data
        if isinstance(data, np.ndarray):
            return data.strides
        return tuple([n * self.itemsize for n in row_major_strides(self.shape)])

    @property
    def flags(self) -> Any:
        """NumPy's flags of the memory: `writeable` if the Array may be written to.

        Raises:
            AttributeError: the Array is on a device.
        """
        return self._on_host("flags").flags

    @property
    def ctypes(self) -> Any:
        """The memory as NumPy gives it to C functions, which must not write to it.

        Raises:
            AttributeError: the Array is on a device.
        """
        return self._on_host("ctypes").ctypes

    def tobytes(self, order: Literal["C", "F", "A", "K"] | None = "C") -> bytes:
        """The elements as bytes, in an order of `numpy.ndarray.tobytes`."""
        return self.__array__().tobytes(order)

    def _on_host(self, name: str) -> NDArray[Any]:
        data = self.data
        if isinstance(data, np.ndarray):
            return data.view()
        raise AttributeError(
            f"an Array on {self.device} has no {name}: write numpy.asarray(x).{name}", name=name
        )

    @property
    def device(self) -> str:
        """Where the memory is: ``"host"``, or a device such as ``"cuda:0"``."""
        return "host" if isinstance(self.data, np.ndarray) else self.data.device

    def to_device(self, device: str, /, *, stream: None = None) -> Array:
        """The array on a device: itself if it is there, else a copy. `stream` must be None.

        Raises:
            ValueError: a stream was given, or there is no such device.
        """
        if stream is not None:
            raise ValueError("to_device orders its copy itself; pass stream=None")
        chosen, data = canonical_device(device), self.data
        if chosen == self.device:
            return self
        if chosen == "host":
            host = Array(self.__array__())
            return host.local() if self.is_local else host
        in_host_memory = isinstance(data, np.ndarray) and not self.weak
        moved: Array = copy(data if in_host_memory else self, chosen, donate=in_host_memory)
        return moved.local() if self.is_local else moved

    @property
    def addressable_shards(self) -> tuple[ArrayShard, ...]:
        """The blocks of an Array that is divided over a mesh, one for each device of this process,
        in order; of any other Array, itself. Their data are Arrays on the memory of the block,
        without a copy.

        >>> import tracegraph
        >>> mesh = tracegraph.Mesh(2, "x", device="host")
        >>> x = tracegraph.device_put(np.arange(4), mesh, tracegraph.PartitionSpec("x"))
        >>> [shard.data for shard in x.addressable_shards]
        [Array([0, 1], dtype=int64), Array([2, 3], dtype=int64)]
        """
        data: Any = self.data
        if not hasattr(data, "blocks"):
            return (ArrayShard(0, tuple([slice(0, n) for n in self.shape]), self),)
        pairs = zip(data.indices, data.blocks, strict=True)
        blocks = [(index, b.view() if isinstance(b, np.ndarray) else b) for index, b in pairs]
        numbered = zip(data.mesh.local_devices, blocks, strict=True)
        return tuple([ArrayShard(device, index, Array(b)) for device, (index, b) in numbered])

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all blocks are on devices of this process.

        >>> import tracegraph
        >>> tracegraph.asarray([1.0]).is_fully_addressable
        True
        """
        data: Any = self.data
        return not hasattr(data, "blocks") or data.mesh.processes == 1

    def synchronize(self) -> Self:
        """Wait until the elements are computed, and return this array."""
        data = self.memory
        if data is None:
            data = self.data  # raises
        if not isinstance(data, np.ndarray):
            data.synchronize()
        return self

    # ---- reading elements on the host ----

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        data = self.memory
        if isinstance(data, np.ndarray):
            # A view: to set the shape of it leaves this Array as it is.
            view = data.view()
            view.setflags(False)  # type: ignore[call-arg]
            if dtype is None and not copy:
                return view
            return np.array(view, dtype=dtype, copy=copy)
        buffer: Any = self.data
        if copy is False:
            raise ValueError(f"an Array on {self.device} becomes an ndarray only by a copy")
        host: NDArray[Any] = buffer.to_host()
        return host if dtype is None else host.astype(dtype, copy=False)

    def item(self, *args: Any) -> Any:
        """One element as a Python number: the only one, or the one at an index."""
        return self.__array__().item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self.__array__().tolist()

    def __bool__(self) -> bool:
        return bool(self.__array__())

    def __int__(self) -> int:
        return int(self.__array__())

    def __float__(self) -> float:
        return float(self.__array__())

    def __complex__(self) -> complex:
        return complex(self.__array__())

    def __index__(self) -> int:
        return self.__array__().__index__()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an Array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise TypeError("iteration over an Array without axes; use .item() for its element")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __repr__(self) -> str:
        self.refresh()
        if self.memory is None:
            return f"Array(<donated>, type={self._type})"
        if not self._is_whole:
            return f"Array(<in several processes>, type={self._type}, device={self.device!r})"
        host = self.__array__()
        elements = np.array2string(host, separator=", ", prefix="Array(")
        facts = [f"dtype={self.dtype}"]
        if not self.size:
            facts.insert(0, f"shape={self.shape}")
        if self.device != "host":
            facts.append(f"device={self.device!r}")
        return f"Array({elements}, {', '.join(facts)})"

    def __str__(self) -> str:
        return str(self.__array__()) if self._is_whole else repr(self)

    @property
    def _is_whole(self) -> bool:
        """Whether all elements can be read in this process."""
        whole: bool = getattr(self.data, "is_whole", True)
        return whole

    def __format__(self, spec: str) -> str:
        return format(self.item() if not self.shape else self.__array__(), spec)

    # ---- indexing ----

    def __getitem__(self, index: Any) -> Array:
        try:
            data = self.data
            parts = index if isinstance(index, tuple) else (index,)
            if isinstance(data, np.ndarray) and not any(isinstance(i, Tracer) for i in parts):
                return Array.sharing(np.asarray(data[tree.map(as_ndarray, index)]))
            view: Array = super().__getitem__(tree.map(_static_mask, index))
            if type(view) is Array and view.alias is not None:
                view.read_at(self, index)
            return view
        except BaseException as error:
            hide_frames(error)
            raise

    # ---- writing: see `WritableArray` ----

    resize = _writing("resize", "write `x = numpy.resize(x, shape)`")

    # ---- NumPy's protocols ----

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        try:
            return FUNCTIONS["ufunc_of_arrays"](ufunc, method, inputs, kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        try:
            return FUNCTIONS["function_of_arrays"](function, types, args, kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    # ---- exchange with other libraries ----

    def __dlpack_device__(self) -> tuple[int, int]:
        if hasattr(self.data, "blocks"):
            raise BufferError(
                f"an Array that is divided over {self.device} is no single piece of memory; export "
                "its blocks, x.addressable_shards[i].data, or numpy.asarray(x)"
            )
        return dlpack.device_of(self.device)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        data = self.data
        if hasattr(data, "blocks"):
            self.__dlpack_device__()  # raises
        if dl_device == dlpack.HOST and not isinstance(data, np.ndarray):
            if copy is False:
                raise BufferError(f"an Array on {data.device} gets to the host only by a copy")
            data = data.to_host()
        if isinstance(data, np.ndarray):
            return dlpack.export_host(data, max_version=max_version, dl_device=dl_device, copy=copy)
        self._export(data)
        return dlpack.export_device(data, stream=stream, dl_device=dl_device, copy=copy)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        data = self.data
        if isinstance(data, np.ndarray):
            raise AttributeError("an Array in host memory has no __cuda_array_interface__")
        self._export(data)
        return data.__cuda_array_interface__

    def copy(self, order: str = "C") -> Array:
        """An Array of the same elements in memory of its own, where they are.

        It stays valid if this Array is donated. It is laid out by `order`, as NumPy has it; device
        memory is always by rows, and the order says which views of the copy there can be.
        """
        known_order, data = order_of(order), self.data
        if isinstance(data, np.ndarray):
            return Array.sharing(data.copy(known_order), weak=self.weak)  # type: ignore[arg-type]
        copied: Array = copy(self, None, donate=False)
        copied.axis_order = copy_order(self, known_order)
        return copied.local()

    def __copy__(self) -> Array:
        return self.copy("K")

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        return self.copy("K")

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (np.array(self.__array__()), self.weak)


def _missing(array: Array, name: str) -> AttributeError:
    return missing_of_array(f"an Array of type {array.type}", name, array)


answer(Array, OF_ARRAYS, _missing)


PLACED_SCOPE = {"Array": Array, "new": Array.__new__}
"""The globals in what `Array.placed_text` returns."""


def _unpickle(data: NDArray[Any], weak: bool) -> Array:
    """A copy on the host, as the machine that unpickles it may lack the device."""
    return Array.sharing(data, weak=weak)


def _static_mask(x: Any) -> Any:
    """A mask on the host: the shape of the result depends on its elements."""
    return x.__array__() if type(x) is Array and x.dtype == np.bool_ else x
