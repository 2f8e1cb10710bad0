"""Signatures: keys of calls, from the types of traced leaves and from static values."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Hashable, Iterable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from tracegraph import errors, tree
from tracegraph.arrays import leaf_types
from tracegraph.arrays.array import Array
from tracegraph.arrays.leaf_types import LeafKey
from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.argument_paths import MOST_LEAVES
from tracegraph.ir.types import ArrayType, canonical_type
from tracegraph.staging.retraces import Aspect, Change
from tracegraph.tracing.parameters import Parameters, parameters_of
from tracegraph.user_source import Kind, kinds, line_text

_NUMBER_CLASSES = frozenset({bool, float, complex})

LEAF_CLASSES = frozenset({np.ndarray, Array, bool, int, float, complex})
"""The classes of leaves that `direct_call` knows."""

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class StaticValue(NamedTuple):
    """A static argument: its position or keyword and its value.

    It includes the types in it, as 1, 1.0 and True are equal but trace differently.
    """

    where: int | str
    kind: Hashable
    value: Hashable


class CallKey(NamedTuple):
    """The key of a program: structure and types of the arguments, and static values."""

    structure: tree.Structure
    leaves: tuple[LeafKey, ...]
    static: tuple[StaticValue, ...]


DirectKey = tuple[Hashable, ...]
"""For each leaf its placement (Array), its dtype and shape (ndarray), or its class (number)."""


class FlatCall(NamedTuple):
    """A call's key, its leaves as they were passed, and as an executable takes them."""

    key: CallKey
    passed: list[Any]
    leaves: list[Any]


def direct_call(passed: Iterable[Any]) -> tuple[DirectKey, list[Any]] | None:
    """The key of leaves, as they were passed, and as an executable takes them.

    None if there is something else among them.

    Calls with equal keys also have equal keys by `Signature.bind`. This key is computed faster, but
    nothing is checked: it is valid only once `bind` has accepted a call with it.
    """
    key: list[Any] = []
    leaves: list[Any] = []
    for x in passed:
        kind = type(x)
        if kind is Array:
            if x.memory is None:
                x.refresh()
            key.append(x.placement)
            leaves.append(x.memory)
            continue
        if kind is np.ndarray:
            key.append((x.dtype, x.shape))
        elif kind in _NUMBER_CLASSES or (kind is int and -(2**63) <= x < 2**63):
            key.append(kind)
        else:
            return None
        leaves.append(x)
    return tuple(key), leaves


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function, and which of them are static or donated.

    `function` names it in messages, with file and line.
    """

    function: str
    names: tuple[str, ...]
    rest: str
    static: frozenset[int | str]
    donated: frozenset[int | str]

    @classmethod
    def of(
        cls,
        fun: Callable[..., Any],
        static_argnums: int | Iterable[int] = (),
        static_argnames: str | Iterable[str] = (),
        donate_argnums: int | Iterable[int] = (),
        donate_argnames: str | Iterable[str] = (),
        *,
        taken_by: str = "jit",
    ) -> Signature:
        """The signature of a function, which the public function `taken_by` takes.

        Raises:
            TypeError: not callable, or an option is of another type.
            ValueError: there is no such parameter, or one is both static and donated.
        """
        if not callable(fun):
            raise TypeError(f"{taken_by} takes a function, got {fun!r}")
        function = describe(fun)
        parameters = parameters_of(fun)
        names, rest = parameters.positional, parameters.rest or "args"
        if all(map(_is_empty, (static_argnums, static_argnames, donate_argnums, donate_argnames))):
            return cls(function, names, rest, frozenset(), frozenset())
        # Without parameters to go by, any position may exist.
        limit = None if parameters.rest or not parameters.all else len(names)

        def positions(option: str, argnums: int | Iterable[int]) -> list[int]:
            found = []
            for n in _positions(option, argnums):
                if n < 0 and parameters.rest:
                    raise ValueError(
                        f"{option} has {n}, but {function} takes any number of positional "
                        f"arguments, by *{parameters.rest}: count from the start"
                    )
                found.append(n + len(names) if n < 0 else n)
                if found[-1] < 0 or (limit is not None and found[-1] >= limit):
                    raise ValueError(
                        f"{option} has {n}, but {function} takes {len(names)} positional arguments"
                    )
            return found

        def named(option: str, argnames: str | Iterable[str]) -> set[int | str]:
            found = set[int | str]()
            for name in _words(option, argnames):
                _require_parameter(option, name, parameters, function)
                found |= {name, names.index(name)} if name in names else {name}
            return found

        static = _with_names(positions("static_argnums", static_argnums), names)
        static |= named("static_argnames", static_argnames)
        donated = _with_names(positions("donate_argnums", donate_argnums), names)
        donated |= named("donate_argnames", donate_argnames)
        for both in sorted(map(str, donated & static)):
            raise ValueError(f"argument {both} of {function} cannot be both static and donated")
        return cls(function, names, rest, frozenset(static), frozenset(donated))

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, abstract: bool = False
    ) -> FlatCall:
        """The key and leaves of a call. With `abstract`, leaves may be ArrayTypes.

        Raises:
            UnhashableStaticError: a static value cannot be hashed.
            UnsupportedArgumentError: a leaf is not an array or a number.
            IntegerRangeError: a leaf is a Python int beyond 64 bits.
        """
        static: tuple[StaticValue, ...] = ()
        if self.static:
            args, kwargs, static = self._split(args, kwargs)
        if not kwargs and LEAF_CLASSES.issuperset(map(type, args)):  # the usual case, made fast
            passed, structure = list(args), _flat_structure(len(args))
        else:
            passed, structure = self._flattened(args, kwargs)
        classify = _classify_abstract if abstract else leaf_types.classify
        keys, leaves = [], []
        for i, leaf in enumerate(passed):
            try:
                key, value = classify(leaf)
            except errors.EscapedTracerError:
                raise
            except TypeError as error:
                path = self.paths(structure)[i]
                raise errors.UnsupportedArgumentError(self.function, path, str(error)) from None
            except OverflowError:
                what = f"argument {self.paths(structure)[i]} of {self.function}"
                raise errors.IntegerRangeError(leaf, what=what) from None
            keys.append(key)
            leaves.append(value)
        return FlatCall(CallKey(structure, tuple(keys), static), passed, leaves)

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The leaves of a call as they were passed, which may be traced values."""
        if self.static:
            args, kwargs, _ = self._split(args, kwargs)
        return self._flattened(args, kwargs)[0]

    def _split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], tuple[StaticValue, ...]]:
        """Separate static values; None, which has no leaves, takes the place of positional ones."""
        static: list[tuple[int | str, Any]] = [
            *((i, x) for i, x in enumerate(args) if i in self.static),
            *((name, kwargs[name]) for name in sorted(kwargs) if name in self.static),
        ]
        for where, value in static:
            try:
                hash(value)
            except TypeError:
                what = f"static argument {self.name(where)} of {self.function}"
                raise errors.UnhashableStaticError(what, value) from None
        traced_args = tuple(None if i in self.static else x for i, x in enumerate(args))
        traced_kwargs = {name: x for name, x in kwargs.items() if name not in self.static}
        return (
            traced_args,
            traced_kwargs,
            tuple([StaticValue(w, tree.kind_of(v), v) for w, v in static]),
        )

    def rebuild(self, key: CallKey, leaves: Iterable[Any]) -> Arguments:
        """The arguments of a call with other leaves."""
        if key.structure is _flat_structure(len(key.leaves)) and not key.static:
            return tuple(leaves), {}
        args, kwargs = tree.unflatten(key.structure, leaves)
        if not key.static:
            return args, kwargs
        positional = {s.where: s.value for s in key.static if isinstance(s.where, int)}
        named = {s.where: s.value for s in key.static if isinstance(s.where, str)}
        return tuple(positional.get(i, x) for i, x in enumerate(args)), {**kwargs, **named}

    def name(self, where: int | str) -> str:
        """The name of an argument given by position or keyword."""
        if isinstance(where, str):
            return where
        if where < len(self.names):
            return self.names[where]
        return f"{self.rest}[{where - len(self.names)}]"

    def _flattened(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], tree.Structure]:
        """The leaves and the structure of the arguments.

        Raises:
            EndlessTreeError: an argument holds itself, or is nested too deeply.
        """
        try:
            return tree.flatten((args, kwargs))
        except errors.EndlessTreeError:
            given: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
            for where, argument in given:
                try:
                    tree.flatten(argument)
                except errors.EndlessTreeError as error:
                    what = f"argument {self.name(where)}"
                    raise errors.EndlessTreeError(error.path, error.holds_itself, what) from None
            raise

    def paths(self, structure: tree.Structure) -> list[str]:
        """The Python expression of each leaf, such as ``state['v'][1]``."""
        # Every accessor begins with [0][position] or [1][keyword] of the pair (args, kwargs).
        return [
            accessor[2:].codify(self.name(accessor[1].entry)) for accessor in structure.accessors()
        ]

    def donated_leaves(self, structure: tree.Structure) -> tuple[int, ...]:
        """Numbers of the leaves that belong to donated arguments."""
        if not self.donated:
            return ()
        # As in `paths`, the second entry is a position or a keyword.
        return tuple(
            i
            for i, accessor in enumerate(structure.accessors())
            if accessor[1].entry in self.donated
        )

    def types(self, key: CallKey) -> tuple[ArrayType, ...]:
        """The types of the leaves.

        Raises:
            UnsupportedArgumentError: a dtype that arrays cannot have.
        """
        types = []
        for i, leaf in enumerate(key.leaves):
            try:
                types.append(_leaf_type(*leaf))
            except TypeError as error:
                path = self.paths(key.structure)[i]
                reason = f"has an unsupported dtype ({error})"
                raise errors.UnsupportedArgumentError(self.function, path, reason) from None
        return tuple(types)

    def differences(self, old: CallKey, new: CallKey) -> str:
        """What changed between two calls, argument by argument."""
        return ", ".join(change.text for change in self.changes(old, new))

    def changes(self, old: CallKey, new: CallKey) -> list[Change]:
        """The same for each argument that changed."""
        if old.structure != new.structure:
            before, after = self.shown(old), self.shown(new)
            text = f"the structure of the arguments changed from {before} to {after}"
            return [Change(self._restructured(old, new), "structure", text)]
        paths = self.paths(new.structure)
        changes = [
            Change(path, _aspect(was, now), f"{path}: {ArrayType(*was)} -> {ArrayType(*now)}")
            for path, was, now in zip(paths, old.leaves, new.leaves, strict=True)
            if was != now
        ]
        old_static = {s.where: s for s in old.static}
        new_static = {s.where: s for s in new.static}
        changes += [
            Change(
                self.name(where),
                "static value",
                f"static {self.name(where)}: {_value_at(old_static, where)} -> "
                f"{_value_at(new_static, where)}",
            )
            for where in {**old_static, **new_static}
            if old_static.get(where) != new_static.get(where)
        ]
        return changes

    def _restructured(self, old: CallKey, new: CallKey) -> str:
        """The names of the arguments whose structure differs."""
        before, after = self._structures(old), self._structures(new)
        differing = (n for n in {**before, **after} if before.get(n) != after.get(n))
        return ", ".join(differing)

    def _structures(self, key: CallKey) -> dict[str, tree.Structure]:
        """The structure of each argument by its name."""
        args, kwargs = key.structure.children()
        positional = {self.name(i): child for i, child in enumerate(args.children())}
        return positional | dict(zip(kwargs.entries(), kwargs.children(), strict=True))

    def shown(self, key: CallKey, fold: bool = False) -> str:
        """The arguments of a call as types, such as ``f64[3], scale=~f64[]``; "none" without.

        With `fold`, an argument of very many arrays is their number.
        """

        def folded(x: Any) -> Any:
            count = len(tree.leaves(x)) if fold else 0
            return _Shown(f"{count} arrays") if count > MOST_LEAVES else x

        args, kwargs = self.rebuild(key, [_Shown(ArrayType(*leaf)) for leaf in key.leaves])
        texts = [repr(folded(x)) for x in args]
        return ", ".join([*texts, *(f"{k}={folded(x)!r}" for k, x in kwargs.items())]) or "none"


def _aspect(was: LeafKey, now: LeafKey) -> Aspect:
    """In what two types differ; weak and strong ones count as two dtypes."""
    (dtype, shape, weak), (new_dtype, new_shape, new_weak) = was, now
    same_dtype = (dtype, weak) == (new_dtype, new_weak)
    if shape == new_shape:
        return "dtype"
    return "shape" if same_dtype else "shape and dtype"


@lru_cache(maxsize=1024)
def _leaf_type(*leaf: Any) -> ArrayType:
    return canonical_type(ArrayType(*leaf))


@cache
def _flat_structure(n: int) -> tree.Structure:
    """The structure of n positional leaves."""
    return tree.structure(((0,) * n, {}))


def _value_at(static: dict[int | str, StaticValue], where: int | str) -> str:
    return repr(static[where].value) if where in static else "absent"


def _classify_abstract(leaf: Any) -> tuple[LeafKey, Any]:
    if isinstance(leaf, ArrayType):
        return (leaf.dtype, leaf.shape, leaf.weak), leaf
    return leaf_types.classify(leaf)


class _Shown(str):
    """Text that prints without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def describe(fun: Callable[..., Any]) -> str:
    """A function's name with the file and line of its definition; its name alone, if it is this
    package's, such as that of an op.

    >>> describe(len)
    'len'
    """
    name = getattr(fun, "__qualname__", None) or type(fun).__qualname__
    wrapped = inspect.unwrap(fun) if hasattr(fun, "__wrapped__") else fun
    code = getattr(wrapped, "__code__", None)
    if code is None:
        return name
    if kinds[code.co_filename] is Kind.OWN:
        return name.rpartition("<locals>.")[2]
    return f"{name} ({line_text(code.co_filename, code.co_firstlineno)})"


def _require_parameter(option: str, name: str, parameters: Parameters, function: str) -> None:
    if name in parameters.all or parameters.any_keyword:
        return
    raise ValueError(
        f"{option} has {name!r}, but the parameters of {function} are {', '.join(parameters.all)}"
    )


def _is_empty(option: object) -> bool:
    return isinstance(option, tuple) and not option


def _with_names(nums: Iterable[int], names: tuple[str, ...]) -> set[int | str]:
    """Positions and the names that the same arguments have as keywords."""
    return {*nums, *(names[n] for n in nums if n < len(names))}


def _positions(option: str, argnums: int | Iterable[int]) -> tuple[int, ...]:
    """One position, or several; NumPy's integers are such."""
    values = tuple(argnums) if isinstance(argnums, Iterable) else (argnums,)
    try:
        if not any(isinstance(n, bool) for n in values):
            return tuple(map(operator.index, values))
    except TypeError:
        pass
    raise TypeError(f"{option}: expected int or several, got {argnums!r}")


def _words(option: str, argnames: str | Iterable[str]) -> tuple[str, ...]:
    """One name, or several."""
    several = isinstance(argnames, Iterable) and not isinstance(argnames, str)
    values: Any = tuple(argnames) if several else (argnames,)
    if not all(isinstance(name, str) for name in values):
        raise TypeError(f"{option}: expected str or several, got {argnames!r}")
    found: tuple[str, ...] = values
    return found
