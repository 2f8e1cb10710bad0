"""Arrays: results of jitted functions, in host or device memory, and ops that run on them eagerly.

Arrays of any library come in, and go out by DLPack, the CUDA array interface or NumPy. May import
`tracing/`, `ir/`, `errors/`, `tree`, `dtypes` and `devices`. Device memory is an interface that
backends implement; compiled calls come from tracing's `function_table`.

    array, creation                the Array class; making, copying and moving Arrays
    writable_array, device_writes  which of them may be written to, and how, with their views
    array_views                    views, as the functions that make them see them
    typed_operators                what type checkers know of its operators
    eager                          an op applied to arguments: recorded if one is traced, else run
    leaf_types, known_arrays       what counts as an array or a number, and its type
    borrowed_memory                memory of a GPU, borrowed from another library for a call
    device_buffer, device_calls    the interface of device memory; compiled calls on a device
    dlpack                         export and import without a copy
"""
