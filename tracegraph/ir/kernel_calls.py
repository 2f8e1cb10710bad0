"""Calls of kernels that users declare: a kernel with the values of its scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.dtypes import SHORT_NAMES, type_text
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.custom_kernels import CustomKernel
from tracegraph.ir.kernel_launches import KernelLaunch, kernel_launch
from tracegraph.ir.types import ArrayType, type_of

SCALAR_DTYPES = tuple([dtype for dtype in SHORT_NAMES if dtype.kind != "c"])
"""The dtypes of values in kernel parameters, each of eight bytes at most."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value with its dtype, equal to those of the same bits."""

    dtype: np.dtype[Any]
    bits: bytes

    @classmethod
    def of(cls, value: Any, dtype: np.dtype[Any]) -> Scalar:
        """A number in a dtype, converted as NumPy converts an element that is assigned."""
        return cls(dtype, np.array(value, dtype).tobytes())

    @property
    def value(self) -> Any:
        """The NumPy scalar."""
        return np.frombuffer(self.bits, self.dtype)[0]

    @property
    def word(self) -> int:
        """Its bytes as the least significant ones of an integer."""
        return int.from_bytes(self.bits, "little")

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A kernel with the values of its scalars, in the order of its parameters."""

    kernel: CustomKernel
    scalars: tuple[Scalar, ...] = ()

    def __str__(self) -> str:
        names = [name for name in self.kernel.parameters if name in self.kernel.scalars]
        pairs = zip(names, self.scalars, strict=True)
        values = ", ".join(f"{name}={scalar}" for name, scalar in pairs)
        return f"{self.kernel.name}({values})" if values else self.kernel.name

    def arguments(self, operands: Sequence[Any], scalars: Sequence[Any] | None = None) -> list[Any]:
        """One for each parameter: operands, and scalars, by default as NumPy has them."""
        given = [scalar.value for scalar in self.scalars] if scalars is None else scalars
        arrays, values, names = iter(operands), iter(given), self.kernel.scalars
        return [next(values if name in names else arrays) for name in self.kernel.parameters]

    def launch(self, types: Sequence[ArrayType]) -> KernelLaunch:
        """What it launches for operands of these types.

        Raises:
            CustomKernelError: a declared extent, type or alias cannot be.
        """
        given = self.arguments([type_.strong() for type_ in types])
        return kernel_launch(self.kernel, types, given)

    def writer(self, count: int) -> Callable[..., None]:
        """A function of `count` operands and the outputs as NumPy arrays, which writes to these
        what `run` returns.
        """

        def write(*arrays: np.ndarray[Any, Any]) -> None:
            for out, value in zip(arrays[count:], self.run(*arrays[:count]), strict=True):
                out[...] = value

        return write

    def run(self, *operands: Any) -> tuple[np.ndarray[Any, Any], ...]:
        """The outputs of the reference for NumPy arrays, which it cannot change.

        Operands that an output is written over are copies, which it may.

        Raises:
            KernelResultError: it returned other types than those declared.
        """
        kernel = self.kernel
        arrays = [np.asarray(operand) for operand in operands]
        types = [ArrayType(array.dtype, array.shape) for array in arrays]
        launch = self.launch(types)
        replaced = set(kernel.aliases.values())
        given = [
            np.array(array) if number in replaced else read_only(array)
            for number, array in enumerate(arrays)
        ]
        returned = kernel.reference(*self.arguments(given))
        return self._checked(returned, launch)

    def traced(self, *operands: Any) -> tuple[Any, ...]:
        """The outputs of the reference for traced values, which it may write to as in `run`.

        Raises:
            KernelResultError: it returned others.
        """
        launch = self.launch(list(map(type_of, operands)))
        replaced = set(self.kernel.aliases.values())
        given = [x.copy() if number in replaced else x for number, x in enumerate(operands)]
        return self._checked(self.kernel.reference(*self.arguments(given)), launch, _as_it_is)

    def _checked(
        self, returned: Any, launch: KernelLaunch, array: Callable[[Any], Any] = np.asarray
    ) -> tuple[Any, ...]:
        label, wanted = self.kernel.label, launch.out_types
        found = (returned,) if launch.single else returned
        if launch.single and isinstance(returned, tuple):
            row = ("results", "one array", f"a tuple of {len(returned)}")
            raise errors.KernelResultError(label, [row])
        if not isinstance(found, (tuple, list)) or len(found) != len(wanted):
            got = f"{len(found)} results" if isinstance(found, (tuple, list)) else "one value"
            row = ("results", f"a tuple of {len(wanted)}", got)
            raise errors.KernelResultError(label, [row])
        arrays = tuple(map(array, found))
        rows = [
            (f"output {number}", str(type_), type_text(array.dtype, array.shape))
            for number, (array, type_) in enumerate(zip(arrays, wanted, strict=True))
            if (array.dtype, array.shape) != (type_.dtype, type_.shape)
        ]
        if rows:
            raise errors.KernelResultError(label, rows)
        return arrays


def _as_it_is(x: Any) -> Any:
    """A traced value or an array; what is neither becomes an array."""
    return x if hasattr(x, "dtype") else np.asarray(x)


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
