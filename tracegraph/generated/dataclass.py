"""Dataclasses whose methods are written when they are first used.

Python's decorator writes and compiles the text of up to six methods for each class, which takes
0.26 ms: a third of the time of importing this package, and most programs make objects of a few
classes only. Here a class gets its fields and slots at once, and each method at its first use, from
then on the one that Python's decorator makes: calls take as long as with that.

Either decorator takes classes of the other as bases.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **options):
        """As `dataclasses.dataclass`, without `order`, `match_args` and `unsafe_hash`.

        >>> @dataclass(frozen=True, slots=True)
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(3), Point(1, y=2) == Point(1, 2)
        (Point(x=3, y=0), True)
        """
        return _finished(cls, **options) if cls else lambda cls: _finished(cls, **options)


def _finished(
    cls: Any,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    **layout: bool,
) -> type:
    is_documented = bool(cls.__doc__)
    if not is_documented:
        cls.__doc__ = cls.__name__  # Python's decorator would make one of the signature
    bases = (vars(base).get("__dataclass_params__") for base in cls.__mro__[1:])
    is_below = frozen and any(base is not None and base.frozen for base in bases)
    no_methods = dataclasses.dataclass(
        init=False, repr=False, eq=False, frozen=is_below, slots=slots, **layout
    )
    cls = no_methods(cls)
    params: Any = cls.__dataclass_params__  # which the decorator of a subclass reads
    params.init, params.repr, params.eq, params.frozen = init, repr, eq, frozen
    if not is_documented:
        cls.__doc__ = None
    own, hashes = vars(cls), "__hash__" in vars(cls)
    names = [*["__init__"] * init, *["__repr__"] * repr, *["__eq__"] * eq]
    if eq and frozen and (not hashes or (own["__hash__"] is None and "__eq__" in own)):
        names.append("__hash__")
    elif eq and not hashes:
        cls.__hash__ = None
    for name in names:
        if name == "__hash__" or name not in own:
            setattr(cls, name, _Unwritten(cls, name, frozen, slots))
    if frozen and not is_below:
        _freeze(cls, slots)
    return cls  # type: ignore[no-any-return]


class _Unwritten:
    """A method that is written when it is looked up, and takes the place of this then."""

    __slots__ = ("_cls", "_frozen", "_name", "_slots")

    def __init__(self, cls: Any, name: str, frozen: bool, slots: bool) -> None:
        self._cls, self._name, self._frozen, self._slots = cls, name, frozen, slots

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        cls, name = self._cls, self._name
        found = vars(cls)[name]  # another thread may have been quicker
        if found is self:
            found = _written(cls, name, self._frozen, self._slots)
            setattr(cls, name, found)
        return found.__get__(instance, owner)


def _written(cls: Any, name: str, frozen: bool, slots: bool) -> Callable[..., Any]:
    """The method that Python's decorator gives to a class with the same fields."""
    fields = dataclasses.fields(cls)
    body: dict[str, Any] = {each.name: each for each in fields}
    body["__annotations__"] = {each.name: each.type for each in fields}
    body["__module__"], body["__qualname__"] = cls.__module__, cls.__qualname__
    body["__doc__"] = cls.__name__
    if hasattr(cls, "__post_init__"):
        body["__post_init__"] = None
    decorate = dataclasses.dataclass(
        init=name == "__init__",
        repr=name == "__repr__",
        eq=name in ("__eq__", "__hash__"),
        frozen=frozen if name == "__init__" else name == "__hash__",
        slots=slots,
    )
    written: type = decorate(type(cls.__name__, (), body))
    method: Any = vars(written)[name]
    if method.__code__.co_filename == "<string>":  # this package's code, which tracebacks hide
        file = f"<tracegraph: {cls.__name__}.{name}>"
        method.__code__ = method.__code__.replace(co_filename=file)
    found: Callable[..., Any] = method
    return found


def _freeze(cls: Any, slots: bool) -> None:
    names = tuple([each.name for each in dataclasses.fields(cls)])

    def refuse_assignment(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def refuse_deletion(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = refuse_assignment, refuse_deletion
    if slots:  # objects without a dict are pickled by these
        own = vars(cls)
        for name, method in (("__getstate__", _state), ("__setstate__", _set_state)):
            if name not in own:
                setattr(cls, name, method)


def _state(item: Any) -> list[Any]:
    return [getattr(item, each.name) for each in dataclasses.fields(item)]


def _set_state(item: Any, state: Sequence[Any]) -> None:
    for each, value in zip(dataclasses.fields(item), state, strict=True):
        object.__setattr__(item, each.name, value)
