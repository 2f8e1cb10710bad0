"""The backends, one module each. What they offer is said in `tracegraph.backend`."""

from tracegraph.staging.interfaces import Backend, DeviceBuffer, Executable

__all__ = ["Backend", "DeviceBuffer", "Executable"]
