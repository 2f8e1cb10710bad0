"""The unit of a user's kernel: the text, then checks that it takes what the node passes.

The checks are static assertions on the type of the function. So a missing parameter, or a pointer
to another dtype, is an error of the compiler and not of the device.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nodes import launched
from lowering.plan.plan import Plan
from tracegraph.dtypes import BOOL, SHORT_NAMES, bfloat16, is_half

_C_TYPES = {
    BOOL: "bool",
    np.dtype(np.int8): "signed char",
    np.dtype(np.uint8): "unsigned char",
    np.dtype(np.int16): "short",
    np.dtype(np.uint16): "unsigned short",
    np.dtype(np.int32): "int",
    np.dtype(np.uint32): "unsigned int",
    np.dtype(np.int64): "long long",
    np.dtype(np.uint64): "unsigned long long",
    np.dtype(np.float16): "__half",
    bfloat16: "__nv_bfloat16",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.complex64): "float2",
    np.dtype(np.complex128): "double2",
}

_CHECKS = """
namespace tracegraph_check {
template <class T> struct traits { static constexpr char kind = '?'; };
#define TRACEGRAPH_KIND(T, letter) \\
  template <> struct traits<T> { static constexpr char kind = letter; };
TRACEGRAPH_KIND(bool, 'b')
TRACEGRAPH_KIND(char, 'i')
TRACEGRAPH_KIND(signed char, 'i')
TRACEGRAPH_KIND(short, 'i')
TRACEGRAPH_KIND(int, 'i')
TRACEGRAPH_KIND(long, 'i')
TRACEGRAPH_KIND(long long, 'i')
TRACEGRAPH_KIND(unsigned char, 'u')
TRACEGRAPH_KIND(unsigned short, 'u')
TRACEGRAPH_KIND(unsigned int, 'u')
TRACEGRAPH_KIND(unsigned long, 'u')
TRACEGRAPH_KIND(unsigned long long, 'u')
TRACEGRAPH_KIND(float, 'f')
TRACEGRAPH_KIND(double, 'f')
template <class T> struct plain { using type = T; };
template <class T> struct plain<const T> { using type = T; };
template <class T> struct plain<volatile T> { using type = T; };
template <class T> struct plain<const volatile T> { using type = T; };
template <class T> struct size_of { static constexpr int value = sizeof(T); };
template <> struct size_of<void> { static constexpr int value = 0; };
template <char kind, int size, class T> struct element {
  static constexpr char found = traits<T>::kind;
  static constexpr bool value =
      found == '?' || (size_of<T>::value == size && (found == kind || size == 1)) ||
      (kind == 'e' && found == 'u' && size_of<T>::value == 2) ||
      (kind == 'c' && found == 'f' && size_of<T>::value * 2 == size);
};
template <char kind, int size, class T> struct pointer { static constexpr bool value = false; };
template <char kind, int size, class T> struct pointer<kind, size, T*> {
  static constexpr bool value = element<kind, size, typename plain<T>::type>::value;
};
template <char kind, int size, class T> struct scalar {
  static constexpr char found = traits<typename plain<T>::type>::kind;
  static constexpr bool value =
      size_of<T>::value == size &&
      (found == kind || (kind == 'e' && (found == '?' || found == 'u')));
};
template <int number, class First, class... Rest> struct at {
  using type = typename at<number - 1, Rest...>::type;
};
template <class First, class... Rest> struct at<0, First, Rest...> { using type = First; };
template <class F> struct parameters;
template <class... P> struct parameters<void(P...)> {
  static constexpr int count = sizeof...(P);
  template <int number> using type = typename at<number, P...>::type;
};
}
"""


def custom_kernel_source(node: CustomKernelNode) -> str:
    """The unit of a kernel that is compiled from source."""
    code = node.code
    assert code is not None
    entry, rows = code.entry, list(_parameters(node))
    function = f"tracegraph_check::parameters<decltype({entry})>"
    count = len(rows)
    lines = [
        f'extern "C" __global__ decltype({entry}) {entry};',
        f"static_assert({function}::count == {count},",
        f'  "{entry} must have {count} parameters");',
    ]
    for number, (name, dtype, is_pointer, _) in enumerate(rows):
        kind = "e" if is_half(dtype) else dtype.kind
        what = f"a pointer to {SHORT_NAMES[dtype]}" if is_pointer else SHORT_NAMES[dtype]
        test = "pointer" if is_pointer else "scalar"
        # of a parameter that is missing, the count is the one error
        lines += [
            f"static_assert(tracegraph_check::{test}<'{kind}', {dtype.itemsize},",
            f"  {function}::type<{number}>>::value,",
            f'  "parameter {number} of {entry}, {name}, must be {what}");',
        ]
    return "\n".join([node.launch.text, _CHECKS, *lines, ""])


def custom_kernel_texts(plan: Plan) -> list[str]:
    """The texts of all such kernels as users wrote them, each with a line that names it."""
    named = {
        node.launch.text: node.call.kernel.where
        for node in launched(plan.graph)
        if isinstance(node, CustomKernelNode) and node.code is not None
    }
    return [f"// kernel {where}: a unit of its own\n{text}" for text, where in named.items()]


def declaration(node: CustomKernelNode) -> str:
    """The declaration of a kernel that takes what the node passes."""
    entry = node.name if node.code is None else node.code.entry
    parameters = []
    for name, dtype, is_pointer, is_written in _parameters(node):
        const = "" if is_written or not is_pointer else "const "
        star = "*" if is_pointer else ""
        parameters.append(f"{const}{_C_TYPES[dtype]}{star} {name}")
    return f'extern "C" __global__ void {entry}({", ".join(parameters)});'


def _parameters(node: CustomKernelNode) -> Iterator[tuple[str, np.dtype[np.generic], bool, bool]]:
    """The name and dtype of each parameter; whether it is a pointer, and written to."""
    kernel = node.call.kernel
    written = {kernel.operands[operand] for operand in kernel.aliases.values()}
    dtypes = dict(zip(kernel.operands, [t.dtype for t in node.types], strict=True))
    for name in kernel.parameters:
        if name in kernel.scalars:
            yield name, kernel.scalars[name], False, False
        else:
            yield name, dtypes[name], True, name in written
    for number, buffer in enumerate(node.outputs):
        if number not in kernel.aliases:
            yield f"out{number}", buffer.type.dtype, True, True
