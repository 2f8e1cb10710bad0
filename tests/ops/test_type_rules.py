"""Type rules refuse what would make an ill-typed equation, and say what is needed."""

from __future__ import annotations

from typing import Any

import pytest

import tracegraph.ops  # noqa: F401  registers every op
from tracegraph.ir.op import get
from tracegraph.ir.types import ArrayType


def f32(*shape: int) -> ArrayType:
    return ArrayType("float32", shape)


def i64(*shape: int) -> ArrayType:
    return ArrayType("int64", shape)


WINDOW: dict[str, Any] = {"starts": (0,), "steps": (1,), "sizes": (1,)}
ROWS: dict[str, Any] = {"dims": (0,), "starts": (0,), "steps": (1,)}

REFUSED: list[tuple[str, tuple[ArrayType, ...], dict[str, Any], type[Exception], str]] = [
    ("reshape", (f32(2, 3),), {"shape": (4,)}, ValueError, "has 6 elements"),
    ("transpose", (f32(2, 3),), {"axes": (0, 0)}, ValueError, "permutation"),
    ("transpose", (f32(2, 3),), {"axes": (1,)}, ValueError, "permutation"),
    ("broadcast_to", (f32(3),), {"shape": (2,)}, ValueError, "1 or equal"),
    ("broadcast_to", (f32(2, 3),), {"shape": (3,)}, ValueError, "does not broadcast"),
    ("slice", (f32(5),), WINDOW | {"sizes": ()}, ValueError, "1 entries"),
    ("slice", (f32(5),), WINDOW | {"steps": (0,)}, ValueError, "step other than 0"),
    ("slice", (f32(5),), WINDOW | {"sizes": (-1,)}, ValueError, "at least 0"),
    ("slice", (f32(5),), WINDOW | {"sizes": (6,)}, ValueError, "extent 5"),
    ("slice", (f32(5),), WINDOW | {"steps": (-1,), "sizes": (2,)}, ValueError, "extent 5"),
    ("roll", (f32(5),), {"shifts": (1,), "axes": (1,)}, ValueError, "0..0"),
    ("roll", (f32(5, 5),), {"shifts": (1,), "axes": (0, 1)}, ValueError, "2 entries"),
    ("pad", (f32(5), i64()), {"low": (0,), "high": (0,)}, TypeError, "cast them"),
    ("pad", (f32(5), f32(1)), {"low": (0,), "high": (0,)}, ValueError, "scalar value"),
    ("pad", (f32(5), f32()), {"low": (-1,), "high": (0,)}, ValueError, "at least 0"),
    ("concatenate", (), {"axis": 0}, ValueError, "at least one"),
    ("concatenate", (f32(2), i64(2)), {"axis": 0}, TypeError, "one dtype"),
    ("concatenate", (f32(2, 3), f32(2, 4)), {"axis": 0}, ValueError, "but for axis 0"),
    ("concatenate", (f32(2), f32(2, 1)), {"axis": 0}, ValueError, "but for axis 0"),
    ("iota", (), {"size": -1, "dtype": "int64"}, ValueError, "at least 0"),
    ("gather", (f32(5),), {"dims": ()}, ValueError, "at least one"),
    ("gather", (f32(5), f32(2)), {"dims": (0,)}, TypeError, "integer"),
    ("gather", (f32(5, 5), i64(2), i64(3)), {"dims": (0, 1)}, ValueError, r"shape \(2,\)"),
    ("gather", (f32(5, 5), i64(2), i64(2)), {"dims": (1, 0)}, ValueError, "sorted"),
    ("gather", (f32(0, 5), i64(2)), {"dims": (0,)}, ValueError, "empty"),
    ("dynamic_slice", (f32(5),), {"sizes": (2,)}, ValueError, "starts"),
    ("dynamic_slice", (f32(5), i64(1)), {"sizes": (2,)}, ValueError, r"shape \(\)"),
    ("dynamic_slice", (f32(5), i64()), {"sizes": (6,)}, ValueError, "does not fit"),
    ("dynamic_update_slice", (f32(5), f32(6), i64()), {}, ValueError, "does not fit"),
    ("dynamic_update_slice", (f32(5), i64(2), i64()), {}, TypeError, "one dtype"),
    ("scatter_set", (f32(5, 3), f32(2), i64(2)), ROWS, ValueError, "one extent"),
    ("scatter_set", (f32(5, 3), f32(3, 3), i64(2)), ROWS, ValueError, "one extent"),
    ("scatter_set", (f32(5, 3), f32(2, 4), i64(2)), ROWS, ValueError, "extent 3"),
    ("scatter_add", (f32(5, 3), i64(2, 3), i64(2)), ROWS, TypeError, "one dtype"),
    ("scatter_add", (f32(5, 3), f32(2, 3), f32(2)), ROWS, TypeError, "integer"),
    ("scatter_add", (f32(5, 3), f32(2, 3)), ROWS, ValueError, "one per index"),
    ("sum", (f32(5),), {"axes": (1,)}, ValueError, "0..0"),
    ("sum", (f32(5, 5),), {"axes": (0, 0)}, ValueError, "distinct"),
    ("max", (f32(3, 0),), {"axes": (1,)}, ValueError, "no elements"),
    ("argmin", (f32(0),), {"axes": (0,)}, ValueError, "no elements"),
    ("any", (f32(3),), {"axes": (0,)}, TypeError, "bool"),
    ("cumsum", (f32(),), {"axis": 0}, ValueError, "axes"),
    ("matmul", (f32(2, 3), f32(2, 3)), {}, ValueError, "batch"),
    ("matmul", (f32(3), f32(3, 2)), {}, ValueError, "batch"),
    ("matmul", (f32(1, 2, 3), f32(2, 3, 2)), {}, ValueError, "same batch axes"),
    ("matmul", (f32(2, 3), i64(3, 2)), {}, TypeError, "one dtype"),
]


@pytest.mark.parametrize(("name", "types", "attrs", "error", "message"), REFUSED)
def test_refusal_names_the_op_and_the_need(
    name: str,
    types: tuple[ArrayType, ...],
    attrs: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=f"^{name}: .*{message}"):
        get(name).type_rule(*types, **attrs)


def test_results_of_weak_operands_are_strong() -> None:
    weak = ArrayType("float64", (), weak=True)
    assert not get("broadcast_to").type_rule(weak, shape=(3,)).weak
    assert not get("reshape").type_rule(weak, shape=(1,)).weak
    assert not get("sum").type_rule(weak, axes=()).weak
