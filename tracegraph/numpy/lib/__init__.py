"""The parts of `numpy.lib` that trace."""

from tracegraph.numpy.lib import stride_tricks

__all__ = ["stride_tricks"]
