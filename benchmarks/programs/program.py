"""Program: an algorithm that is written once, and its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.own import eager, jitted
from benchmarks.harness.row import MILLISECONDS, Draw, Inputs, Prepare, Results, Row

from . import language
from .language import Language

DTYPES = ("float32", "float64")
ALL = ("tracegraph", "numpy", "jax", "torch", "cupy")


@dataclass(frozen=True, kw_only=True)
class Program:
    """An algorithm.

    `write` makes a function of a language. `inputs` draws its arguments for one of the `sizes` and
    a dtype. `agrees` compares results. `libraries` run it. `derivative_of` names the program that
    it is the gradient of, which has the same sizes and inputs.
    """

    name: str
    title: str
    write: Callable[[Language], Callable[..., Any]]
    inputs: Callable[[Draw, int, np.dtype], Inputs]
    sizes: tuple[int, ...]
    agrees: Callable[[Results, Results], str | None]
    libraries: tuple[str, ...] = ALL
    derivative_of: str | None = None

    def rows(self) -> Iterator[Row]:
        """A row for each size and dtype."""
        for size in self.sizes:
            for dtype in DTYPES:
                yield self.row(size, dtype)

    def row(self, size: int, dtype: str) -> Row:
        """The row of one size and dtype."""
        variant = f"{size}_{'f32' if dtype == 'float32' else 'f64'}"
        function = self.derivative_of
        return Row(
            name=f"{self.name}_{variant}",
            title=self.title,
            inputs=partial(self._draw, size, np.dtype(dtype)),
            contestants=self.contestants(),
            unit=MILLISECONDS,
            agrees=self.agrees,
            derivative_of=f"{function}_{variant}" if function else None,
        )

    def _draw(self, size: int, dtype: np.dtype, draw: Draw) -> Inputs:
        return self.inputs(draw, draw.size(size), dtype)

    def contestants(self) -> Mapping[str, Prepare]:
        """How each library runs the program."""
        every = {
            "tracegraph": self._tracegraph,
            "numpy": self._numpy,
            "jax": self._jax,
            "torch": self._torch,
            "cupy": self._cupy,
        }
        return {library: every[library] for library in self.libraries}

    def _tracegraph(self, *inputs: Any) -> Callable[[], Any]:
        return jitted(self.write(language.traced()))(*inputs)

    def _numpy(self, *inputs: Any) -> Callable[[], Any]:
        return eager(self.write(language.eager(np)))(*inputs)

    def _jax(self, *inputs: Any) -> Callable[[], Any]:
        import jax

        return partial(jax.jit(self.write(language.jax())), *inputs)

    def _torch(self, *inputs: Any) -> Callable[[], Any]:
        return partial(self.write(language.torch()), *inputs)

    def _cupy(self, *inputs: Any) -> Callable[[], Any]:
        import cupy

        return partial(self.write(language.eager(cupy)), *inputs)
