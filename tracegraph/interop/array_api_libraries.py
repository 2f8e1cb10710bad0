"""What libraries that take arrays of any kind must know of Arrays: a registration, experimental.

array-api-compat knows by class which arrays can be written to and which have no elements yet,
array-api-extra knows of `x.at[...]` of JAX's arrays alone, and SciPy looks for special functions
in libraries that it names. Until they ask the array, functions of theirs are replaced here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from types import SimpleNamespace, TracebackType
from typing import Any

from tracegraph import array_api, linalg, special
from tracegraph.arrays.array import Array
from tracegraph.interop.replacing import Replacements
from tracegraph.tracing.local_writes import LocalWrites
from tracegraph.tracing.tracer import Tracer

__all__ = ["ArrayApiRegistration", "register_array_api"]

_TRIED = "SciPy 1.17, scikit-learn 1.9, array-api-compat 1.12 to 1.16, array-api-extra 0.9 to 0.11"

_COMPAT = ("array_api_compat", "scipy._lib.array_api_compat", "sklearn.externals.array_api_compat")
_EXTRA = ("array_api_extra", "scipy._lib.array_api_extra", "sklearn.externals.array_api_extra")
"""The libraries, and the copies of them that others contain."""

_ONLY_IF_LOADED = "sklearn"
"""A package that takes long to import: it is not imported here."""

_lock = Lock()
_holders: set[ArrayApiRegistration] = set()
"""The registrations that have not ended."""
_replacements = Replacements()


class ArrayApiRegistration:
    """What `register_array_api` returns: `undo` ends the registration, as leaving a `with` does.

    >>> ArrayApiRegistration().undo()  # it is not active: nothing to end
    """

    __slots__ = ()

    def undo(self) -> None:
        """End it. Others that are active keep theirs; a second call does nothing."""
        with _lock:
            if self in _holders:
                _holders.remove(self)
                if not _holders:
                    _replacements.undo()

    def __enter__(self) -> ArrayApiRegistration:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.undo()


def register_array_api() -> ArrayApiRegistration:
    """Teach array-api-compat, array-api-extra, SciPy and scikit-learn what they must know of
    Arrays. Experimental: it replaces private functions of theirs, by name.

    Of those that are installed; scikit-learn has to be imported before. SciPy asks for the
    namespaces of arrays only if the environment variable ``SCIPY_ARRAY_API`` is 1 when it is
    imported.

    Returns:
        A handle, whose `undo` takes everything back; it is also a context manager.

    Raises:
        RuntimeError: a library lacks a function of this name; the message says which versions have
            it.

    >>> from array_api_compat import is_lazy_array  # doctest: +SKIP
    >>> with register_array_api():  # doctest: +SKIP
    ...     tracegraph.jit(lambda x: is_lazy_array(x) * x)(2.0)
    Array(2., dtype=float64)
    """
    registration = ArrayApiRegistration()
    with _lock:
        if not _holders:
            try:
                _register()
            except BaseException:
                _replacements.undo()
                raise
        _holders.add(registration)
    return registration


def _register() -> None:
    for copy in _present(_COMPAT):
        helpers = _module(f"{copy}.common._helpers")
        _ask_arrays(helpers, copy)
        _know_traced(helpers)
    for copy in _present(_EXTRA):
        _take_at_of(_module(f"{copy}._lib._at", f"{copy}._at"))
    for package in _present(("scipy",)):
        _name_namespace(_module(f"{package}._lib._array_api"))


def _present(packages: Iterable[str]) -> list[str]:
    """Those that are installed, and the contained ones of them that there are."""
    return [name for name in packages if _may_be_imported(name) and _is_there(name)]


def _may_be_imported(name: str) -> bool:
    outermost = name.partition(".")[0]
    return outermost != _ONLY_IF_LOADED or outermost in sys.modules


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def _module(*names: str) -> Any:
    """The first of these modules that there is."""
    for name in names:
        if _is_there(name):
            return import_module(name)
    raise _unknown(names[0])


def _unknown(name: str) -> RuntimeError:
    return RuntimeError(
        f"register_array_api replaces {name}, which is not there; it was tried with {_TRIED}"
    )


def _function(module: Any, name: str) -> Callable[..., Any]:
    if not hasattr(module, name):
        raise _unknown(f"{module.__name__}.{name}")
    found: Callable[..., Any] = getattr(module, name)
    return found


def _ask_arrays(helpers: Any, copy: str) -> None:
    """Let array-api-compat, and who imports it, ask our arrays whether they can be written to."""
    name = "is_writeable_array"
    others = _function(helpers, name)

    def is_writeable_array(x: object) -> Any:
        return x.is_local if isinstance(x, LocalWrites) else others(x)

    for package in (copy.partition(".")[0], _EXTRA[0]):
        _replacements.everywhere(package, name, others, is_writeable_array)


def _know_traced(helpers: Any) -> None:
    """Let array-api-compat know that traced values have no elements yet."""
    name = "_is_lazy_cls"
    others = _function(helpers, name)

    def is_lazy_cls(cls: type) -> Any:
        if issubclass(cls, Tracer):
            return True
        return False if issubclass(cls, Array) else others(cls)

    _replacements.set(helpers, name, is_lazy_cls)


def _take_at_of(updates: Any) -> None:
    """Let array-api-extra update our arrays by `x.at`, as it does those of JAX."""
    holder = updates if hasattr(updates, "is_jax_array") else getattr(updates, "_compat", updates)
    others = _function(holder, "is_jax_array")

    def has_at(x: object) -> bool:
        return isinstance(x, LocalWrites) or bool(others(x))

    if holder is updates:
        _replacements.set(updates, "is_jax_array", has_at)
    else:
        helpers = SimpleNamespace(**{**vars(holder), "is_jax_array": has_at})
        _replacements.set(updates, "_compat", helpers)


def _name_namespace(arrays: Any) -> None:
    """Let SciPy find our special functions."""
    others = _function(arrays, "scipy_namespace_for")
    ours = SimpleNamespace(special=special, linalg=linalg)

    def scipy_namespace_for(xp: Any) -> Any:
        return ours if xp is array_api else others(xp)

    _replacements.everywhere("scipy", "scipy_namespace_for", others, scipy_namespace_for)
    alternatives = _module("scipy.special._support_alternative_backends")
    forget = _function(
        alternatives._FuncInfo._wrapper_for, "cache_clear"
    )  # it remembers what it found
    forget()
    _replacements.afterwards(forget)
