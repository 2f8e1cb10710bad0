"""Addresses: where memory is, as the driver knows it."""

from __future__ import annotations

from cuda.bindings import driver

from lowering.driver.error_checks import called

_MEMORY_TYPE = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
_ORDINAL = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


def locate(address: int) -> str | None:
    """Where an address is: ``"cuda:0"``, ``"host"`` if it is pinned there, None if unknown.

    The plural form of the call accepts any address.
    """
    kind, ordinal = called(driver.cuPointerGetAttributes, 2, [_MEMORY_TYPE, _ORDINAL], address)
    match driver.CUmemorytype(int(kind)) if int(kind) else None:
        case None:
            return None
        case driver.CUmemorytype.CU_MEMORYTYPE_HOST:
            return "host"
        case _:
            return f"cuda:{int(ordinal)}"
