"""Plans as bytes. What belongs to the program in hand is written as its place there.

Lines, constants and the program's name are those of the program that is lowered, not of the one
that was lowered when the Plan was kept. Ops and combiners are found by name.
"""

from __future__ import annotations

import io
import pickle
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cache
from importlib import import_module
from struct import Struct
from types import MappingProxyType
from typing import Any

import numpy as np

from lowering.disk_cache.store import CodeStore
from lowering.plan.plan import Origin
from tracegraph.cache import settings
from tracegraph.ir import combiners
from tracegraph.ir.custom_kernels import CustomKernel
from tracegraph.ir.op import Combiner, Op, find
from tracegraph.ir.scalar import Expr
from tracegraph.ir.types import ArrayType, canonical_type
from tracegraph.user_source import Source

_PACKAGES = ("lowering.", "tracegraph.")

_OTHERS = frozenset(
    {
        ("builtins", "complex"),
        ("builtins", "frozenset"),
        ("builtins", "slice"),
        ("collections", "OrderedDict"),
        ("ml_dtypes", "bfloat16"),
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy._core.numeric", "_frombuffer"),
        *(("numpy", name) for name in ("add", "multiply", "maximum", "minimum")),
        *(("numpy", name) for name in ("logical_and", "logical_or", "bitwise_xor")),
    }
)
"""What Plans hold besides classes of ours."""


_SECONDS = Struct("<d")
"""What an entry begins with: how long it took to make."""


class UnkeptError(Exception):
    """A Plan holds what cannot be found again in another process."""


@cache
def _combiners() -> Mapping[int, str]:
    found = vars(combiners).items()
    return {id(value): name for name, value in found if type(value) is Combiner}


def plan_name(name: str) -> str:
    """The name of a Plan, by that of its program. Those of kernels begin with it.

    >>> plan_name("<lambda>")
    'lambda'
    """
    return re.sub(r"\W+", "_", name).strip("_") or "program"


def dumped(value: Any, origin: Origin) -> bytes:
    """The bytes of Plans and of what belongs to them.

    Raises:
        UnkeptError: there is something that no other process has.
    """
    written = io.BytesIO()
    try:
        _Pickler(written, origin).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise UnkeptError(str(error)) from error
    return written.getvalue()


def loaded(data: bytes, origin: Origin) -> Any:
    """What `dumped` has written, for another program of the same key.

    Raises:
        Exception: the bytes are no such thing.
    """
    return _Unpickler(io.BytesIO(data), origin).load()


def kept(store: CodeStore, key: bytes, origin: Origin) -> Any:
    """What was kept by a key; None if there is nothing, or nothing that this process can read."""
    entry = store.get(key)
    if entry is None:
        return None
    try:
        value = loaded(entry[_SECONDS.size :], origin)
    except Exception:  # of another version of a package, though its key says it is not
        return None
    settings.counts.hit(*_SECONDS.unpack_from(entry))
    return value


def keep(store: CodeStore, key: bytes, origin: Origin, value: Any, seconds: float) -> None:
    """Keep a value by a key, if other processes can have it and there is room on the disk."""
    with suppress(UnkeptError, OSError):
        store.put(key, _SECONDS.pack(seconds) + dumped(value, origin))


def _own_op(op: Op) -> tuple[str, str] | None:
    """The module and the name of an op that algorithms of lowering use among themselves."""
    for module, found in list(sys.modules.items()):
        if module.startswith("lowering."):
            for name, value in vars(found).items():
                if value is op:
                    return module, name
    return None


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, origin: Origin) -> None:
        super().__init__(file, protocol=5)
        self._lines = {source: number for number, source in enumerate(origin.sources)}
        self._constants = {id(array): number for number, array in enumerate(origin.constants)}
        self._prefix = f"{plan_name(origin.name)}_k"
        self._places: Mapping[type, Callable[[Any], Any]] = {
            Op: self._op,
            Combiner: self._combiner,
            CustomKernel: self._kernel,
            Source: self._line,
            str: self._name,
            np.ndarray: self._constant,
        }

    def persistent_id(self, obj: Any) -> Any:
        place = self._places.get(type(obj))
        return None if place is None else place(obj)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Expr):  # one object for all equal ones, here as there
            cls: Any = type(obj)
            return _expression, (cls, *[getattr(obj, name) for name in _fields(cls)])
        if type(obj) is MappingProxyType:
            return _proxy, (dict(obj),)
        if type(obj) is ArrayType:
            return _type, (obj.dtype, obj.shape, obj.weak)
        return NotImplemented

    def _op(self, op: Op) -> Any:
        if find(op.name) is op:
            return ("op", op.name)
        place = _own_op(op)
        if place is None:
            raise UnkeptError(f"the op {op.name} is the user's")
        return ("own op", *place)

    def _combiner(self, combiner: Combiner) -> Any:
        name = _combiners().get(id(combiner))
        if name is None:
            raise UnkeptError(f"the combiner {combiner.name} is no global")
        return ("combiner", name)

    def _kernel(self, kernel: CustomKernel) -> Any:
        if kernel.made_by is None:
            raise UnkeptError(f"the kernel {kernel.name} is the user's")
        return ("kernel", *kernel.made_by)

    def _line(self, source: Source) -> Any:
        plain = source._replace(within=()) if source.within else source
        number = self._lines.get(plain)
        if number is None:
            raise UnkeptError(f"the line {source} is not one of the program")
        return ("line", number, source.within)

    def _name(self, text: str) -> Any:
        return ("name", text[len(self._prefix) :]) if text.startswith(self._prefix) else None

    def _constant(self, array: Any) -> Any:
        number = self._constants.get(id(array))
        return None if number is None else ("constant", number)


def _expression(cls: type[Expr], *fields: Any) -> Expr:
    return cls.make(*fields)


def _proxy(items: dict[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(items)


def _type(*fields: Any) -> ArrayType:
    return canonical_type(ArrayType(*fields))


@cache
def _fields(cls: Any) -> tuple[str, ...]:
    return tuple([each.name for each in fields(cls)])


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, origin: Origin) -> None:
        super().__init__(file)
        self._origin, self._prefix = origin, f"{plan_name(origin.name)}_k"

    def persistent_load(self, pid: Any) -> Any:
        match pid:
            case ("op", name):
                return find(name)
            case ("own op", str(module), str(name)) if module.startswith(_PACKAGES):
                return getattr(import_module(module), name)
            case ("combiner", name):
                return getattr(combiners, name)
            case ("kernel", make, arguments):
                return make(*arguments)
            case ("line", number, within):
                source = self._origin.sources[number]
                return source._replace(within=within) if within else source
            case ("name", rest):
                return self._prefix + rest
            case ("constant", number):
                return self._origin.constants[number]
        raise pickle.UnpicklingError(f"{pid!r} is no place")

    def find_class(self, module: str, name: str) -> Any:
        if not module.startswith(_PACKAGES) and (module, name) not in _OTHERS:
            raise pickle.UnpicklingError(f"{module}.{name} is in no Plan")
        return super().find_class(module, name)
