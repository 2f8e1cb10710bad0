"""Compilation: what the graphs of a Plan for all streams share, and the compiler.

All but `compiled_plan` and `plan_code` serve any kernel.

compile          kernel source to cubin: NVRTC behind a disk cache
modules          loaded code, by the names of functions
plan_code        the code of a Plan
compiled_plan    code, constants and features of a Plan
feature_probes   what the device's graphs can do, found by trying
device_report    the same for users
"""
