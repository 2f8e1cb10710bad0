"""Functions and methods that are not recorded, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

_PRINTS = "prints, reads or writes text and files"
_MEMORY = "is about memory, not values"
_SETTINGS = "is about settings, dtypes or documentation, not arrays"
_ITERATES = "is an object of Python's that iterates"
_HOST = "gives Python objects, which a traced value cannot"


def _each(reason: str, names: str, space: str = "") -> dict[str, str]:
    return {space + name: reason for name in names.split()}


FUNCTIONS: Mapping[str, str] = {
    **_each(
        _PRINTS,
        """array2string array_repr array_str base_repr binary_repr format_float_positional
        format_float_scientific frombuffer fromfile fromregex fromstring genfromtxt get_printoptions
        info load loadtxt printoptions save savetxt savez savez_compressed set_printoptions
        show_config show_runtime""",
        "numpy.",
    ),
    **_each(_MEMORY, "from_dlpack may_share_memory require shares_memory", "numpy."),
    **_each(
        _SETTINGS,
        """asmatrix bmat busday_count busday_offset datetime_as_string datetime_data errstate
        fromcallable fromfunction fromiter get_include getbufsize geterr geterrcall is_busday
        isdtype isscalar issubdtype iterable mintypecode nested_iters promote_types setbufsize
        seterr seterrcall test typename""",
        "numpy.",
    ),
}

METHODS: Mapping[str, str] = {
    **_each(_PRINTS, "dump dumps tobytes tofile"),
    **_each(_MEMORY, "byteswap getfield newbyteorder resize setfield setflags"),
    **_each(_HOST, "as_integer_ratio bit_count fromhex hex is_integer item to_device tolist"),
    **_each(_ITERATES, "next"),
}

_SHAPES = "takes a shape or a number of elements, which is never traced"

OF_SHAPES = _each(
    _SHAPES,
    """arange bartlett blackman broadcast_shapes empty eye full hamming hanning identity indices
    kaiser linspace mask_indices ndindex ones tri tril_indices triu_indices zeros""",
    "numpy.",
)
"""Functions whose arguments stay static in a replay."""
