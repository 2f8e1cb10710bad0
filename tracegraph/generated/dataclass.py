"""Dataclasses whose methods are written when they are first used.

Python's decorator writes and compiles the text of up to six methods for each class, which takes
0.26 ms: a third of the time of importing this package, and most programs make objects of a few
classes only. Here a class gets its fields and slots at once, and each method at its first use: from
then on it is one like those of Python's decorator, and calls take as long as with these.

The text of one method is written in a third of the time that Python's decorator takes for a class.
Constructors of classes with alike fields share their code.

Either decorator takes classes of the other as bases.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from tracegraph.generated.functions import define

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **options):
        """As `dataclasses.dataclass`, without `order`, `match_args`, `unsafe_hash` and `InitVar`.

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


def write_constructors(*packages: str) -> None:
    """Write the constructors of the classes in these packages, as far as they are imported.

    For a moment in which there is nothing else to do: their first use takes no time then.
    """
    starts = tuple([f"{package}." for package in packages])
    for name, module in [*sys.modules.items()]:
        if name.startswith(starts):
            for each in [*vars(module).values()]:
                if isinstance(each, type) and type(vars(each).get("__init__")) is _Unwritten:
                    each.__init__  # type: ignore[misc] # noqa: B018 - to look it up writes it


def _written(cls: Any, name: str, frozen: bool, slots: bool) -> Callable[..., Any]:
    """The method that Python's decorator gives to a class with the same fields."""
    fields = dataclasses.fields(cls)
    match name:
        case "__init__":
            return _constructor(cls, fields, frozen, slots)
        case "__repr__":
            shown = ", ".join([f"{f.name}={{self.{f.name}!r}}" for f in fields if f.repr])
            text = f'def __repr__(self): return f"{{self.__class__.__qualname__}}({shown})"'
            return _owned(cls, recursive_repr()(define(text, name, "a class", {})))
        case "__hash__":
            hashed = [f for f in fields if (f.compare if f.hash is None else f.hash)]
            text = f"def __hash__(self): return hash({_values('self', hashed)})"
        case _:
            sides = [_values(side, [f for f in fields if f.compare]) for side in ("self", "other")]
            text = f"""
def __eq__(self, other):
    if other.__class__ is not self.__class__:
        return NotImplemented
    return {sides[0]} == {sides[1]}
"""
    return _owned(cls, define(text, name, "a class", {}))


def _values(item: str, fields: Sequence[dataclasses.Field[Any]]) -> str:
    """The text of a tuple of the values of fields."""
    return "(" + "".join([f"{item}.{each.name}, " for each in fields]) + ")"


def _same(value: Any) -> Any:
    return value


class _Factory:
    """The default of a parameter whose value a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Factory()


def _constructor(
    cls: Any, fields: Sequence[dataclasses.Field[Any]], frozen: bool, slots: bool
) -> Callable[..., Any]:
    """The method `__init__` of a class, with the same parameters as that of Python's decorator.

    Classes with alike fields share its code, in which only names differ.
    """
    missing = dataclasses.MISSING
    scope: dict[str, Any] = {"__made": _MADE, "__set": object.__setattr__}
    kinds: list[_Kind] = []
    names: list[str] = []
    types: tuple[dict[str, Any], dict[str, Any]] = {}, {}  # of parameters; of those by name alone
    defaults: tuple[dict[str, Any], dict[str, Any]] = {}, {}
    for each in fields:
        default, factory = each.default, each.default_factory
        if not each.init and factory is missing and (default is missing or not slots):
            continue  # the class has it, or who constructs the object assigns it
        if each.init:
            named = bool(each.kw_only)
            types[named][each.name] = each.type
            if factory is not missing or default is not missing:
                defaults[named][each.name] = default if factory is missing else _MADE
            elif defaults[0] and not named:
                raise TypeError(f"non-default argument {each.name!r} follows default argument")
        if factory is not missing:
            scope[f"__factory{len(names)}"] = factory
        elif not each.init:
            scope[f"__factory{len(names)}"] = partial(_same, default)
        kinds.append((each.init, f"__factory{len(names)}" in scope, each.init and named))
        names.append(each.name)
    code = _shared_code(tuple(kinds), frozen, hasattr(cls, "__post_init__"))
    own = "self" if "self" not in names else "__self"
    real = {"__own": own, **{f"__{number}": name for number, name in enumerate(names)}}
    renamed = code.replace(
        co_varnames=tuple([real.get(name, name) for name in code.co_varnames]),
        co_names=tuple([real.get(name, name) for name in code.co_names]),
        co_consts=tuple([real.get(c, c) if type(c) is str else c for c in code.co_consts]),
    )
    written: Any = FunctionType(renamed, scope, "__init__", tuple(defaults[0].values()))
    written.__kwdefaults__ = defaults[1] or None
    written.__annotations__ = {**types[0], **types[1], "return": None}
    return _owned(cls, written)


_Kind = tuple[bool, bool, bool]
"""Of a field: whether it is a parameter, whether a factory may make it, and whether it is passed by
name alone.
"""


@cache
def _shared_code(kinds: tuple[_Kind, ...], frozen: bool, finishes: bool) -> CodeType:
    """The code of a constructor whose fields have numbers for names."""
    store = " __set(__own, '{0}', {1})" if frozen else " __own.{0} = {1}"
    plain: list[str] = ["__own"]
    named: list[str] = []
    lines: list[str] = []
    for number, (passed, made, by_name) in enumerate(kinds):
        name, value = f"__{number}", f"__{number}"
        if passed:
            (named if by_name else plain).append(name)
        if made:
            new = f"__factory{number}()"
            value = f"{new} if {name} is __made else {name}" if passed else new
        lines.append(store.format(name, value))
    if finishes:
        lines.append(" __own.__post_init__()")
    parameters = ", ".join([*plain, *["*"] * bool(named), *named])
    body = "\n".join(lines) or " pass"
    code: CodeType = define(
        f"def __init__({parameters}):\n{body}", "__init__", "a class", {}
    ).__code__
    return code


def _owned(cls: Any, method: Any) -> Callable[..., Any]:
    """A method as one that is written in a class."""
    method.__module__, method.__qualname__ = cls.__module__, f"{cls.__qualname__}.{method.__name__}"
    return method  # type: ignore[no-any-return]


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
