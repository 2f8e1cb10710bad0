"""C functions that a thread of the driver can call, and what they are called with.

A function pointer of ctypes has what keeps it alive, and the types that were declared. These show
whether it is a function of Python's, or of another C type.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.tracing.tracer import Tracer

_FUNCTION_POINTER: Any = ctypes.CFUNCTYPE(None).__mro__[1]
"""The base of all function pointers of ctypes, which has no public name."""

_POINTER: Any = ctypes.POINTER(ctypes.c_int).__mro__[1]
"""The base of all pointers to data."""

_DATA: Any = ctypes.c_int.__mro__[2]
"""The base of all that ctypes has in memory."""

_REFERENCE: Any = type(ctypes.byref(ctypes.c_int()))
"""What `byref` returns."""

_ADDRESSES = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_wchar_p)
"""Numbers of ctypes that are addresses."""

_WORDS = (ctypes.c_int64, ctypes.c_uint64, ctypes.c_longlong, ctypes.c_ulonglong, ctypes.c_size_t)
"""Numbers of ctypes that may be meant as addresses."""

_UNUSED = "iIlLqQhHbBcu?PzZ"
"""The codes of simple types that a result may have, as nobody reads the register that it is in."""

_PYTHON_API = 4
"""The flag of ctypes for functions that need the GIL."""

_DECLARE = (
    "declare it as it is, by `f.argtypes = [ctypes.c_void_p]` and `f.restype = None`, or call it "
    "from a C function of the type void (*)(void *)"
)


def c_function(function: Any) -> int:
    """The address of a C function.

    Raises:
        HostCallError: it is not a C function, or needs the GIL, or is declared with other types.
    """
    if not isinstance(function, _FUNCTION_POINTER):
        if callable(function):
            raise errors.HostCallError(
                f"{errors.value_text(function)} is a Python function, which a thread of the driver "
                "cannot call; call it by tracegraph.debug.callback"
            )
        raise errors.HostCallError(
            "the function must be a function pointer of ctypes, of the C type void (*)(void *), "
            f"not {errors.value_text(function)}"
        )
    address = ctypes.cast(function, ctypes.c_void_p).value
    if not address:
        raise errors.HostCallError("the function pointer is null")
    thunks = any(type(kept).__name__ == "CThunkObject" for kept in _kept_by(function, set()))
    if thunks and not _is_in_library(address):
        raise errors.HostCallError(
            "the function pointer calls a Python function, which would need the GIL in a thread of "
            "the driver; call that function by tracegraph.debug.callback"
        )
    if type(function)._flags_ & _PYTHON_API:
        raise errors.HostCallError(
            "the function is one of Python's C API, which needs the GIL; a thread of the driver "
            "does not have it"
        )
    _require_types(function)
    return address


def _require_types(function: Any) -> None:
    """Check the types that are declared of a function; without a declaration, it is trusted."""
    declared = function.argtypes
    if declared is not None:
        if len(declared) != 1:
            raise errors.HostCallError(
                "the function must take one argument, a void *, and is declared with "
                f"{len(declared)}; {_DECLARE}"
            )
        (argument,) = declared
        if not _is_class(argument, (*_ADDRESSES, _POINTER)):
            raise errors.HostCallError(
                f"the function must take a void *, and is declared with {_name(argument)}; "
                f"{_DECLARE}"
            )
    result = function.restype
    unused = result is None or _is_class(result, (_POINTER, _FUNCTION_POINTER))
    if not unused and getattr(result, "_type_", " ") not in list(_UNUSED):
        raise errors.HostCallError(
            f"the function must return nothing, and is declared to return {_name(result)}; "
            f"{_DECLARE}"
        )


def _is_class(found: object, bases: tuple[Any, ...]) -> bool:
    return isinstance(found, type) and issubclass(found, bases)


def _name(declared: object) -> str:
    return declared.__qualname__ if isinstance(declared, type) else errors.value_text(declared)


def _kept_by(thing: Any, seen: set[int]) -> Iterator[Any]:
    """What an object of ctypes keeps alive, and what the objects do that it is a part of."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, dict):
        for part in thing.values():
            yield from _kept_by(part, seen)
    elif isinstance(thing, tuple | list):
        for part in thing:
            yield from _kept_by(part, seen)
    elif isinstance(thing, _DATA):
        yield from _kept_by(thing._objects, seen)
        yield from _kept_by(thing._b_base_, seen)
    else:
        yield thing


class _Found(ctypes.Structure):
    """What `dladdr` says of an address."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _is_in_library(address: int) -> bool:
    """Whether an address is in a loaded library: a table of functions may have some of both."""
    try:
        dladdr = ctypes.CDLL(None).dladdr
    except (AttributeError, OSError, TypeError):  # there is none on Windows
        return False
    return bool(dladdr(ctypes.c_void_p(address), ctypes.byref(_Found())))


def user_data(data_given: Any) -> tuple[int, bytes | None, Any]:
    """The address that is passed on, or the bytes that a copy of is made; and what owns more.

    Raises:
        HostCallError: it is neither an address nor bytes, or might be both.
    """
    if data_given is None:
        return 0, None, None
    if isinstance(data_given, Tracer) or (
        callable(data_given) and not isinstance(data_given, type)
    ):
        raise errors.HostCallError(
            f"user_data must be bytes, an address or None, not {errors.value_text(data_given)}; to "
            "call Python with values of the program, use tracegraph.debug.callback"
        )
    if isinstance(data_given, int | np.integer) and not isinstance(data_given, bool):
        address = int(data_given)
        if not 0 <= address < 2**64:
            raise errors.HostCallError(f"user_data must be an address of 64 bits, not {data_given}")
        return address, None, None
    if isinstance(data_given, (*_ADDRESSES, _POINTER)):
        return ctypes.cast(data_given, ctypes.c_void_p).value or 0, None, data_given
    _refuse_doubtful(data_given)
    try:
        data = memoryview(data_given).tobytes()
    except TypeError:
        raise errors.HostCallError(
            f"user_data must be bytes, an address or None, not {errors.value_text(data_given)}"
        ) from None
    return 0, data, data_given if isinstance(data_given, _DATA) else None


def _refuse_doubtful(given: Any) -> None:
    """Refuse objects that have bytes, but may be meant as an address, or are not data."""
    if isinstance(given, _REFERENCE):
        raise errors.HostCallError(
            "user_data is what ctypes.byref returned, which may have an offset; pass "
            "ctypes.pointer(x), or ctypes.addressof(x) + offset"
        )
    if isinstance(given, _WORDS):
        raise errors.HostCallError(
            f"user_data is {errors.value_text(given)}: pass x.value if it is an address, "
            "ctypes.pointer(x) for the address of the number, or bytes(x) for a copy of it"
        )
    if isinstance(given, np.bool_ | ctypes.py_object):
        raise errors.HostCallError(
            f"user_data must be bytes, an address or None, not {errors.value_text(given)}"
        )
