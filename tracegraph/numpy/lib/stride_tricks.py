"""The functions of `numpy.lib.stride_tricks` that trace."""

from tracegraph.numpy.sliding import sliding_window_view

__all__ = ["sliding_window_view"]
