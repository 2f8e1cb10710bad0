"""einops for Arrays and traced values: importing this module registers them."""

from __future__ import annotations

from typing import Any

from einops import _backends

from tracegraph import array_api
from tracegraph.tracing.operators import ArrayOperators

_NumpyBackend: Any = _backends.NumpyBackend


class TracegraphBackend(_NumpyBackend):  # type: ignore[misc] # einops finds it as a subclass
    """NumPy's backend over the functions of Arrays."""

    framework_name = "tracegraph"

    def __init__(self) -> None:
        super().__init__()
        self.np = array_api

    def is_appropriate_type(self, tensor: object) -> bool:
        """Whether it is an Array or a traced value."""
        return isinstance(tensor, ArrayOperators)

    def from_numpy(self, x: Any) -> Any:
        """An Array of an ndarray."""
        return array_api.asarray(x)

    def to_numpy(self, x: Any) -> Any:
        """An ndarray of an Array."""
        return x.__array__()
