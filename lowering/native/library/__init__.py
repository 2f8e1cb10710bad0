"""The library of native code: the functions of ops as LLVM IR, made of the ops' C++ texts.

    symbols   the name, signature and C++ text of each function
    source    the C++ of the whole library
    build     C++ -> functions.ll, by clang: a command for developers
    load      the text of the functions that a program needs, with all that they call

The C++ of this folder is the mathematics that CUDA's library has and a CPU has not: functions that
LLVM vectorizes. `pool.h` is the native half of the pool of threads. Users need no compiler: the
repository and the wheel hold functions.ll.
"""
