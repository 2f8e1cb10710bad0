"""What the array API standard asks a namespace about itself: version, devices and dtypes.

Source: https://data-apis.org/array-api/2024.12/API_specification/inspection.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.devices import canonical_device
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.trace import current_trace

__all__ = ["__array_api_version__", "__array_namespace_info__"]

__array_api_version__ = "2024.12"

_VERSIONS = ("2021.12", "2022.12", "2023.12", __array_api_version__)
"""Each version of the standard adds to those before it."""

_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]

_MOST_AXES = 64  # NumPy's limit

DTypes = dict[str, np.dtype[Any]]


def check_version(asked: str | None) -> None:
    """Raise an error if the namespace does not follow this version of the standard.

    Raises:
        ValueError: it does not.
    """
    if asked is not None and asked not in _VERSIONS:
        raise ValueError(
            f"api_version={asked!r}: tracegraph.array_api follows the versions "
            f"{', '.join(_VERSIONS)} of the array API standard"
        )


class NamespaceInfo:
    """What the namespace supports; `tracegraph.numpy.__array_namespace_info__()` makes one.

    >>> NamespaceInfo().capabilities()["max dimensions"]
    64
    """

    def capabilities(self) -> dict[str, Any]:
        """What arrays can do now: shapes that depend on elements are unknown while tracing."""
        eager = current_trace() is None
        return {
            "boolean indexing": eager,
            "data-dependent shapes": eager,
            "max dimensions": _MOST_AXES,
        }

    def default_device(self) -> str:
        """Where new arrays are: in host memory; while tracing, where the program will run."""
        trace = current_trace()
        return "host" if trace is None else trace.device

    def devices(self) -> list[str]:
        """The host and the device on which functions run by default; while tracing, only one."""
        if current_trace() is not None:
            return [self.default_device()]
        return list(dict.fromkeys(["host", canonical_device(FUNCTIONS["default_device"]())]))

    def default_dtypes(self, *, device: str | None = None) -> DTypes:
        """The dtypes of new arrays, by kind; they are the same on all devices."""
        return {
            "real floating": np.dtype(np.float64),
            "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.int64),
            "indexing": np.dtype(np.int64),
        }

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> DTypes:
        """The standard's dtypes by name, of one kind or of several; the same on all devices.

        Raises:
            ValueError: there is no such kind.
        """
        kinds = (
            kind if isinstance(kind, tuple) else ("bool", "numeric") if kind is None else (kind,)
        )
        for each in kinds:
            if each not in _KINDS:
                raise ValueError(f"kind {each!r} of dtypes is none of {', '.join(_KINDS)}")
        return {name: np.dtype(name) for each in kinds for name in _KINDS[each]}


__array_namespace_info__ = NamespaceInfo
