"""The strategy of random programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from numpy.typing import NDArray

from tracegraph.generated.dataclass import dataclass
from tracegraph.testing.blocks import draw_block
from tracegraph.testing.values import Known, arrays


@dataclass(frozen=True)
class RandomProgram:
    """A function and arguments for it. `text` lists its steps.

    >>> RandomProgram(np.negative, (np.arange(2.0),), "v1 = negative(v0)")
    program on
      v0 = array([0., 1.])
    v1 = negative(v0)
    """

    function: Callable[..., tuple[Any, ...]]
    arguments: tuple[NDArray[Any], ...]
    text: str

    def __repr__(self) -> str:
        arguments = "\n".join(f"  v{i} = {a!r}" for i, a in enumerate(self.arguments))
        return f"program on\n{arguments}\n{self.text}"


@st.composite
def programs(
    draw: st.DrawFn, max_steps: int = 8, max_depth: int = 2, effects: bool = False
) -> RandomProgram:
    """Random functions of one to three arrays, with nested control flow, and arguments for them.

    They are written with plain NumPy and tracegraph's control flow, and are exact by construction:
    every number is a small whole one, in whatever dtype, so that neither the order of a sum nor the
    rounding of fused arithmetic can show, and all ways of running one must agree.

    Args:
        draw: given by hypothesis.
        max_steps: how many steps the outermost level has at most.
        max_depth: how deeply branches and loops are nested.
        effects: whether they print.

    >>> import numpy as np
    >>> from hypothesis import given, settings
    >>> @settings(max_examples=3)
    ... @given(programs(max_steps=2))
    ... def test_shapes(program):
    ...     assert all(np.ndim(y) <= 4 for y in program.function(*program.arguments))
    >>> test_shapes()
    """
    arguments = tuple(draw(arrays()) for _ in range(draw(st.integers(1, 3))))
    known = [Known.of(a) for a in arguments]
    block = draw_block(draw, known, max_depth, max_steps, "  ", effects)
    made = range(block.first, len(block.known))
    chosen = draw(st.lists(st.sampled_from([*made, 0]), min_size=1, max_size=3))
    results = [*chosen, made[-1]]

    def function(*values: Any) -> tuple[Any, ...]:
        env = block.run(values)
        return tuple(env[i] for i in results)

    return RandomProgram(function, arguments, f"{block.text}\n  return {results}")
