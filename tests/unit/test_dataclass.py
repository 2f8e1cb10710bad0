"""Dataclasses whose methods are written when they are used: as Python's own."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegraph
from tracegraph.generated.dataclass import dataclass, write_constructors
from tracegraph.user_source import Kind, kinds

ROOT = Path(tracegraph.__file__).parents[1]


@dataclass(frozen=True, slots=True)
class _Point:
    """A point, at module level so that it is pickled."""

    x: int
    y: int = 0


@dataclass(frozen=True, slots=True)
class _Named(_Point):
    """A point that has a name."""

    name: str = dataclasses.field(default="p", compare=False)


class _Body:
    """What both decorators are given."""

    a: int
    b: list[int] = dataclasses.field(default_factory=list)
    c: float = dataclasses.field(default=1.5, repr=False, kw_only=True)
    d: int = dataclasses.field(default=7, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", self.a + 1)


_OWN = {"__eq__": lambda *_: True, "__hash__": lambda _: 1, "__repr__": lambda _: "text"}


def _classes(options: dict[str, bool], methods: tuple[str, ...]) -> list[Any]:
    own = {name: _OWN[name] for name in methods}
    bodies = [dict(vars(_Body)) | own for _ in range(2)]
    for body in bodies:
        del body["__dict__"], body["__weakref__"]
        body |= {k: copy.copy(v) for k, v in body.items() if isinstance(v, dataclasses.Field)}
    made = [type("Made", (), body) for body in bodies]
    return [
        each(cls, **options)
        for each, cls in zip((dataclasses.dataclass, dataclass), made, strict=True)
    ]


_OPTIONS = st.fixed_dictionaries(
    {name: st.booleans() for name in ("init", "repr", "eq", "frozen", "slots", "kw_only")}
)


@settings(max_examples=60, deadline=None)
@given(_OPTIONS, st.sets(st.sampled_from(sorted(_OWN))))
def test_a_class_is_as_that_of_python(options: dict[str, bool], methods: set[str]) -> None:
    """Its methods, the objects, what they raise: for all options, and methods of its own."""
    classes = _classes(options, tuple(sorted(methods)))
    assert len({str(_seen(cls, options)) for cls in classes}) == 1


def _seen(cls: Any, options: dict[str, bool]) -> list[Any]:
    """What is seen of a class and its objects."""
    seen: list[Any] = [str(inspect.signature(cls)), cls.__match_args__, dataclasses.fields(cls)]
    seen += [getattr(cls, "__slots__", None), cls.__doc__, cls.__init__.__qualname__]
    if not options["init"]:
        return seen
    one, other, third = cls(a=1, c=2.0), cls(a=1, c=2.0), cls(a=2, b=[3])
    seen += [one == other, one == third, one != other, one == 1]
    for act in (repr, hash, copy.copy, cls, _assign, _delete):
        try:
            found = act(one)
        except Exception as error:
            seen.append((type(error), str(error)))
        else:
            is_alike = act is not hash or (options["eq"] and options["frozen"])
            seen.append(re.sub("0x[0-9a-f]+", "", repr(found)) if is_alike else type(found))
    return seen


def _assign(item: Any) -> None:
    item.a = 3


def _delete(item: Any) -> None:
    del item.a


def test_subclasses_and_pickles() -> None:
    """Fields are inherited; a pickle of a frozen object with slots is that of its fields."""
    point = _Named(1, name="q")
    assert (point, repr(point), hash(point)) == (
        _Named(1),
        "_Named(x=1, y=0, name='q')",
        hash((1, 0)),
    )
    assert pickle.loads(pickle.dumps(point)) == copy.deepcopy(point) == dataclasses.replace(point)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.name = "r"  # type: ignore[misc]


@pytest.mark.parametrize("above", [dataclass, dataclasses.dataclass])
@pytest.mark.parametrize("below", [dataclass, dataclasses.dataclass])
def test_bases_may_be_of_either_decorator(above: Any, below: Any) -> None:
    base = above(frozen=True, slots=True)(type("Base", (), {"__annotations__": {"x": int}}))
    cls = below(frozen=True, slots=True)(type("Below", (base,), {"__annotations__": {"y": int}}))
    item = cls(1, 2)
    assert (item, hash(item), repr(item)) == (cls(1, y=2), hash((1, 2)), "Below(x=1, y=2)")
    for name in ("x", "y"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(item, name, 3)
    if below is dataclass:
        with pytest.raises(TypeError, match="non-frozen dataclass from a frozen one"):
            below(slots=True)(type("Wrong", (base,), {"__annotations__": {"z": int}}))


def test_constructors_are_written_before_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    made = dataclass(slots=True)(type("Made", (), {"__annotations__": {"x": int}}))
    monkeypatch.setitem(sys.modules, "some.module", SimpleNamespace(Made=made, other=3))
    before = vars(made)["__init__"]
    write_constructors("other")
    assert vars(made)["__init__"] is before
    write_constructors("some")
    assert inspect.isfunction(vars(made)["__init__"])
    assert made(3).x == 3


def test_packages_use_no_other() -> None:
    """Python's decorator takes 0.26 ms for each class."""
    files = [path for name in ("tracegraph", "lowering") for path in (ROOT / name).rglob("*.py")]
    found = re.compile(r"^from dataclasses import .*\bdataclass\b|^@dataclasses\.dataclass", re.M)
    others = [str(p) for p in files if found.search(p.read_text(encoding="utf-8"))]
    assert [p for p in others if not p.endswith("generated/dataclass.py")] == []


def test_generated_methods_count_as_code_of_this_package() -> None:
    for name in ("__init__", "__eq__", "__hash__"):
        assert kinds[getattr(_Point, name).__code__.co_filename] is Kind.OWN
