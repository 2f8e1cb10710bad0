"""Errors: every class, with the wording of its message.

A message says what was got, what is required, what to change, and the user's line. Types, values
and texts come in from the caller: nothing here looks into programs. All classes are imported
from here, and name this module. May import `dtypes` and `user_source`.

    jitted_calls, control, tracers, prints  misuse by the user
    custom_kernels                          of users' own kernels
    callbacks                               functions of the host that programs call
    batching, transforms                    of vmap; of derivatives
    inspection                              what `show` cannot draw
    keywords                                parameters that other libraries have
    running, programs                       programs that had to end; programs that are not well
                                            formed
    wording, pickling                       how values and places are named; errors of other
                                            processes
    tracebacks                              which frames users see
"""

import copyreg

from tracegraph.errors.batching import (
    BatchRuleError,
    LaneCountError,
    OutAxesError,
    VmapAxesError,
    VmapError,
)
from tracegraph.errors.callbacks import (
    CallbackBatchError,
    CallbackDeadlockError,
    CallbackResultError,
    CallbackStructureError,
    CallbackTimeoutError,
    CallbackTypesError,
    HostCallError,
    HostCallInBodyError,
)
from tracegraph.errors.control import (
    BoundRangeError,
    CheckpointsError,
    ConditionError,
    ControlFlowError,
    EffectInConditionError,
    EndlessTraceError,
    IntegerError,
    LeafMismatchError,
    LeafTypeError,
    NoBranchesError,
    NotCallableError,
    ParametersError,
    PredicateError,
    ProgressError,
    ScanBodyError,
    ScanLengthError,
    ScheduleError,
    StaticLengthError,
    StepLimitOptionError,
    StructureError,
    UnschedulableError,
    no_slices_text,
)
from tracegraph.errors.custom_kernels import (
    CapturedCallError,
    CustomKernelError,
    KernelCompileError,
    KernelLaunchError,
    KernelResultError,
)
from tracegraph.errors.events import EventError, EventInBodyError
from tracegraph.errors.inspection import NotDrawableError, ShowOptionError
from tracegraph.errors.jitted_calls import (
    ArgumentTypesError,
    DonatedArrayError,
    EndlessTreeError,
    ImmutableArrayError,
    IntegerRangeError,
    RawMemoryError,
    UnhashableStaticError,
    UnsupportedArgumentError,
    UnsupportedResultError,
)
from tracegraph.errors.keywords import KeywordError, refuses
from tracegraph.errors.pickling import by_content
from tracegraph.errors.prints import (
    PrintArgumentError,
    PrintFormatError,
)
from tracegraph.errors.programs import (
    ResultTypeError,
    VerificationError,
)
from tracegraph.errors.running import (
    CapturingStreamError,
    CleanUpWarning,
    ClosedError,
    DeviceLostError,
    ExportError,
    FallbackWarning,
    FrozenRandomWarning,
    IndexRangeError,
    InstantiationError,
    NodeError,
    NoGraphError,
    NotInstantiatedError,
    OutOfMemoryError,
    RepeatedIndexError,
    RetraceWarning,
    StepLimitError,
    StoppedError,
    TimeLimitError,
    UpdateError,
    index_range_text,
    iteration_limit_text,
    repeated_index_text,
    step_limit_text,
)
from tracegraph.errors.tracers import (
    BooleanMaskError,
    EscapedTracerError,
    InPlaceCastError,
    ShapeDependentError,
    StaticArgumentError,
    TracerArrayError,
    TracerBoolError,
    TracerComplexError,
    TracerFloatError,
    TracerFormatError,
    TracerHashError,
    TracerIndexError,
    TracerIntegerError,
    TracerItemError,
    TracerIterationError,
    TracerMisuseError,
    TracerSliceError,
    TracerWriteError,
    UnrepresentableError,
    UnsupportedAttributeError,
    UnsupportedByTracerError,
)
from tracegraph.errors.transforms import (
    ArgumentNumberError,
    CustomRuleError,
    DerivativeError,
    DifferentiatedTypeError,
    NonlinearError,
    ReverseLoopError,
    ScalarResultError,
    TangentMismatchError,
    TransformError,
)
from tracegraph.errors.wording import (
    function_text,
    structure_text,
    value_text,
)

__all__ = [
    "ArgumentNumberError",
    "ArgumentTypesError",
    "BatchRuleError",
    "BooleanMaskError",
    "BoundRangeError",
    "CallbackBatchError",
    "CallbackDeadlockError",
    "CallbackResultError",
    "CallbackStructureError",
    "CallbackTimeoutError",
    "CallbackTypesError",
    "CapturedCallError",
    "CapturingStreamError",
    "CheckpointsError",
    "CleanUpWarning",
    "ClosedError",
    "ConditionError",
    "ControlFlowError",
    "CustomKernelError",
    "CustomRuleError",
    "DerivativeError",
    "DeviceLostError",
    "DifferentiatedTypeError",
    "DonatedArrayError",
    "EffectInConditionError",
    "EndlessTraceError",
    "EndlessTreeError",
    "EscapedTracerError",
    "EventError",
    "EventInBodyError",
    "ExportError",
    "FallbackWarning",
    "FrozenRandomWarning",
    "HostCallError",
    "HostCallInBodyError",
    "ImmutableArrayError",
    "InPlaceCastError",
    "IndexRangeError",
    "InstantiationError",
    "IntegerError",
    "IntegerRangeError",
    "KernelCompileError",
    "KernelLaunchError",
    "KernelResultError",
    "KeywordError",
    "LaneCountError",
    "LeafMismatchError",
    "LeafTypeError",
    "NoBranchesError",
    "NoGraphError",
    "NodeError",
    "NonlinearError",
    "NotCallableError",
    "NotDrawableError",
    "NotInstantiatedError",
    "OutAxesError",
    "OutOfMemoryError",
    "ParametersError",
    "PredicateError",
    "PrintArgumentError",
    "PrintFormatError",
    "ProgressError",
    "RawMemoryError",
    "RepeatedIndexError",
    "ResultTypeError",
    "RetraceWarning",
    "ReverseLoopError",
    "ScalarResultError",
    "ScanBodyError",
    "ScanLengthError",
    "ScheduleError",
    "ShapeDependentError",
    "ShowOptionError",
    "StaticArgumentError",
    "StaticLengthError",
    "StepLimitError",
    "StepLimitOptionError",
    "StoppedError",
    "StructureError",
    "TangentMismatchError",
    "TimeLimitError",
    "TracerArrayError",
    "TracerBoolError",
    "TracerComplexError",
    "TracerFloatError",
    "TracerFormatError",
    "TracerHashError",
    "TracerIndexError",
    "TracerIntegerError",
    "TracerItemError",
    "TracerIterationError",
    "TracerMisuseError",
    "TracerSliceError",
    "TracerWriteError",
    "TransformError",
    "UnhashableStaticError",
    "UnrepresentableError",
    "UnschedulableError",
    "UnsupportedArgumentError",
    "UnsupportedAttributeError",
    "UnsupportedByTracerError",
    "UnsupportedResultError",
    "UpdateError",
    "VerificationError",
    "VmapAxesError",
    "VmapError",
    "function_text",
    "index_range_text",
    "iteration_limit_text",
    "no_slices_text",
    "refuses",
    "repeated_index_text",
    "step_limit_text",
    "structure_text",
    "value_text",
]

for _name in __all__:
    _value = globals()[_name]
    if isinstance(_value, type):
        _value.__module__ = __name__
        copyreg.pickle(_value, by_content)
