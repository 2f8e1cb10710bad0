"""The CUDA C++ that units begin with, and the C++ types of dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from tracegraph.dtypes import BOOL, SHORT_NAMES, bfloat16, is_half

_C_TYPES: dict[np.dtype[Any], str] = {
    BOOL: "bool",
    np.dtype(np.float16): "tg_half",
    bfloat16: "tg_bfloat16",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.complex64): "tg_c64",
    np.dtype(np.complex128): "tg_c128",
}


def c_type(dtype: np.dtype[Any]) -> str:
    """The C++ type that an element of a dtype has in memory.

    >>> c_type(np.dtype(np.int16)), c_type(np.dtype(np.float16))
    ('tg_i16', 'tg_half')
    """
    return _C_TYPES.get(dtype) or f"tg_{SHORT_NAMES[dtype]}"


def value_type(dtype: np.dtype[Any]) -> str:
    """The C++ type that scalar expressions are computed in: float for 16-bit floats, else `c_type`.

    >>> value_type(np.dtype(np.float16))
    'float'
    """
    return "float" if is_half(dtype) else c_type(dtype)


def kind(dtype: np.dtype[Any]) -> str:
    """The key of a dtype in `Elementwise.c`: 'b', 'i', 'u', 'f' (also for bfloat16) or 'c'.

    >>> kind(bfloat16)
    'f'
    """
    return "f" if dtype == bfloat16 else dtype.kind


PARTS: Mapping[str, tuple[str, ...]] = {
    "preamble.cuh": (),
    "half.cuh": ("tg_half", "tg_bfloat16"),
    "complex.cuh": ("tg_c64", "tg_c128"),
    "powers.cuh": ("tg_power_3", "tg_power_4", "tg_power_minus_"),
    "callbacks.cuh": ("tg_reserve", "tg_frame", "tg_send_frame", "tg_await", "tg_answer"),
    "special.cuh": (
        *(
            "tg_betaln",
            "tg_digamma",
            "tg_entr",
            "tg_exp1",
            "tg_expi",
            "tg_expit",
            "tg_gammaln",
            "tg_i0e",
            "tg_i1e",
        ),
        *("tg_kl_div", "tg_log_expit", "tg_log_ndtr", "tg_logit", "tg_polygamma"),
        *("tg_rel_entr", "tg_xlog1py", "tg_xlogy", "tg_zeta"),
    ),
    "incomplete.cuh": ("tg_gammainc", "tg_betainc", "tg_ellipk", "tg_ellipe"),
    "random.cuh": ("tg_threefry",),
    "cluster.cuh": ("TG_CLUSTER", "tg_cluster_", "tg_of_peer"),
    "partials.cuh": ("tg_partial", "tg_publish", "tg_poll"),
    "atomics.cuh": ("tg_atomic_", "tg_empty_sum", "tg_add_sum", "tg_same_bits"),
    "groups.cuh": ("tg_group_end",),
    "matrices.cuh": ("tg_multiply_tf32", "tg_rounded_tf32"),
    "dependents.cuh": (),
    "prefetch.cuh": ("tg_prefetch_l2",),
    "peers.cuh": (
        *("tg_await_", "tg_post_", "tg_receive", "tg_room", "tg_word_of"),
        *("tg_copy_part", "tg_fold_part", "tg_arrivals_of"),
    ),
    "sorting.cuh": ("tg_sort_", "tg_count_digits", "tg_rows"),
    "selection.cuh": ("tg_largest", "tg_ranked", "tg_places"),
    "persistent.cuh": (
        *("tg_grid_barrier", "TG_CLUSTER_BARRIER", "tg_first_block", "tg_stop_watch", "tg_clock"),
        *("tg_exchange", "tg_arrivals_before"),
    ),
}
"""The files of `device` in their order, each with the names that kernels use it by.

A file without names is in every unit. Files that overload functions are used by their types.
"""

_NEEDS: Mapping[str, str] = {
    "incomplete.cuh": "special.cuh",
    "selection.cuh": "sorting.cuh",
}
"""Files that use functions of an earlier one."""


def preamble(kernels: str) -> str:
    """The files of `device` that the text of kernels uses, joined. All names begin with ``tg_``.

    To parse the rest would take NVRTC 9 ms, as long as to compile a small kernel.

    >>> len(preamble("")) < len(preamble("tg_c64 x;"))
    True
    """
    used = {
        name for name, marks in PARTS.items() if not marks or any(mark in kernels for mark in marks)
    }
    used |= {needed for name, needed in _NEEDS.items() if name in used}
    return "\n".join(_text(name) for name in PARTS if name in used)


@cache
def _text(name: str) -> str:
    return files("lowering.codegen").joinpath("device", name).read_text("utf-8")
