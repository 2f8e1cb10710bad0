"""What stands here for JAX's names that are not had: what an error says.

Names of `jax.lax` are listed under `tracegraph`, since its functions that are had are there. Names
that NumPy has are not listed: the error says that they are NumPy's.
"""

from __future__ import annotations

from collections.abc import Mapping

_LEAVES = "tracegraph.tree.leaves(x)"
_BLOCKS = "use tracegraph.device_put(x, mesh, spec), or in_specs of tracegraph.shard"
_PATHS = "a path is a tuple of keys, positions and names of fields; use tracegraph.tree.paths"
_SCATTER = "use x.at[i]"
_DTYPES = "dtypes are NumPy's, float64 included; there are no global options"
_CONV = (
    "use numpy.convolve for vectors, numpy.fft, or numpy.lib.stride_tricks.sliding_window_view "
    "and numpy.einsum"
)
_NO_WINDOWS = "use numpy.lib.stride_tricks.sliding_window_view(x, window), and reduce its last axes"

_JAX: Mapping[str, str] = {
    "lax": "control flow is tracegraph.cond, switch, while_loop, fori_loop, scan, map and "
    "associative_scan; collectives are tracegraph.psum and its relatives; other functions are "
    "those of tracegraph.numpy, tracegraph.dynamic_slice and tracegraph.stop_gradient",
    "tree_util": "use tracegraph.tree: map, flatten, unflatten, leaves, structure",
    "tree_map": "use tracegraph.tree.map",
    "tree_leaves": "use tracegraph.tree.leaves",
    "tree_flatten": "use tracegraph.tree.flatten",
    "scipy": "use tracegraph.special, tracegraph.linalg and tracegraph.sparse",
    "ShapeDtypeStruct": "use tracegraph.ArrayType(dtype, shape)",
    "make_jaxpr": "use tracegraph.make_program(f)(*args)",
    "jaxpr_util": "use tracegraph.make_program(f)(*args), which prints as a program",
    "stages": "use tracegraph.jit(f).trace(*args), .lower(*args) and .compile()",
    "local_devices": "use x.device, and tracegraph.features(device)",
    "default_backend": "use x.device, and tracegraph.features(device)",
    "default_device": "pass device= to tracegraph.jit and tracegraph.device_put",
    "device_count": "use tracegraph.features(device)",
    "local_device_count": "use tracegraph.features(device)",
    "host_count": "use tracegraph.process_count",
    "host_id": "use tracegraph.process_index",
    "multihost_utils": "use tracegraph.all_gather_to_host, and tracegraph.make_array_from_local",
    "device_put_replicated": "use tracegraph.device_put(x, mesh)",
    "device_put_sharded": "use tracegraph.make_array_from_local(blocks, mesh, spec)",
    "make_array_from_callback": "use tracegraph.make_array_from_local(blocks, mesh, spec)",
    "make_array_from_process_local_data": "use tracegraph.make_array_from_local",
    "make_mesh": "use tracegraph.Mesh(shape, axis_names)",
    "NamedSharding": _BLOCKS,
    "pmap": "use tracegraph.shard for devices, and tracegraph.vmap for many items",
    "smap": "use tracegraph.shard",
    "P": "use tracegraph.PartitionSpec",
    "pjit": "use tracegraph.jit, and tracegraph.shard for several devices",
    "with_sharding_constraint": _BLOCKS,
    "jacobian": "use tracegraph.jacrev or tracegraph.jacfwd",
    "fwd_and_bwd": "use tracegraph.vjp",
    "remat": "use tracegraph.checkpoint",
    "checkpoint_policies": "use tracegraph.checkpoint around each part to be repeated",
    "closure_convert": "nothing is needed: rules of tracegraph.custom_vjp may use arrays around "
    "them",
    "custom_gradient": "use tracegraph.custom_vjp",
    "custom_derivatives": "use tracegraph.custom_jvp, tracegraph.custom_vjp and "
    "tracegraph.custom_root",
    "disable_jit": "call the function without tracegraph.jit: its NumPy code runs as it is",
    "ensure_compile_time_eval": "what NumPy computes of known arrays is computed while a function "
    "is traced",
    "config": _DTYPES,
    "enable_x64": _DTYPES,
    "enable_checks": "use tracegraph.check_indices",
    "numpy_dtype_promotion": _DTYPES,
    "numpy_rank_promotion": _DTYPES,
    "default_matmul_precision": "use tracegraph.matmul_precision",
    "io_callback": "use tracegraph.pure_callback, tracegraph.debug.callback or "
    "tracegraph.host_call",
    "ffi": "use tracegraph.kernel for a kernel, tracegraph.host_call for a C function",
    "pallas": "use tracegraph.kernel, tracegraph.elementwise and tracegraph.reduction",
    "clear_caches": "use tracegraph.reset",
    "live_arrays": "use tracegraph.memory_stats",
    "effects_barrier": "use tracegraph.block_until_ready of the results",
    "profiler": "use tracegraph.jit(f).profile(*args), tracegraph.debug.ranges for Nsight Systems, "
    "or tracegraph.debug.timed for parts of a function",
    "debug_nans": "use tracegraph.debug.nans, a context",
    "debug_infs": "use tracegraph.debug.nans(infinities=True), a context",
    "named_scope": "use tracegraph.debug.timed",
    "named_call": "use tracegraph.debug.timed",
    "log_compiles": "use the last_call and stats methods of a jitted function",
    "image": "use numpy.interp, or numpy.take and a weighted sum",
    "dlpack": "use tracegraph.from_dlpack",
    "float0": "tangents of integers are None",
    "typing": "annotate arrays by tracegraph.Array",
    "experimental": "tracegraph.sparse has sparse matrices, and tracegraph.linalg Krylov methods",
    "compile": "use tracegraph.jit(f).lower(*args).compile()",
}

_LAX: Mapping[str, str] = {
    "cummax": "use numpy.maximum.accumulate",
    "cummin": "use numpy.minimum.accumulate",
    "cumlogsumexp": "use numpy.logaddexp.accumulate",
    "approx_max_k": "use tracegraph.numpy.top_k",
    "approx_min_k": "use tracegraph.numpy.top_k of -x",
    "top_k": "use tracegraph.numpy.top_k",
    "sort_key_val": "use numpy.argsort, and numpy.take_along_axis",
    "select": "use numpy.where, or numpy.select",
    "select_n": "use numpy.where, or numpy.choose",
    "clamp": "use numpy.clip(x, low, high)",
    "rsqrt": "use 1 / numpy.sqrt(x)",
    "integer_pow": "use numpy.power",
    "logistic": "use tracegraph.nn.sigmoid",
    "lgamma": "use tracegraph.special.gammaln",
    "digamma": "use tracegraph.special.digamma",
    "polygamma": "use tracegraph.special.polygamma",
    "igamma": "use tracegraph.special.gammainc",
    "igammac": "use tracegraph.special.gammaincc",
    "betainc": "use tracegraph.special.betainc",
    "zeta": "use tracegraph.special.zeta",
    "erf": "use tracegraph.special.erf",
    "erfc": "use tracegraph.special.erfc",
    "erf_inv": "use tracegraph.special.erfinv",
    "relu": "use tracegraph.nn.relu",
    "add": "use x + y, or numpy.add",
    "sub": "use x - y, or numpy.subtract",
    "mul": "use x * y, or numpy.multiply",
    "div": "use x / y, or numpy.divide; of integers x // y, which rounds down",
    "rem": "use numpy.fmod",
    "neg": "use -x, or numpy.negative",
    "eq": "use x == y, or numpy.equal",
    "ne": "use x != y, or numpy.not_equal",
    "lt": "use x < y, or numpy.less",
    "le": "use x <= y, or numpy.less_equal",
    "gt": "use x > y, or numpy.greater",
    "ge": "use x >= y, or numpy.greater_equal",
    "is_finite": "use numpy.isfinite",
    "population_count": "use numpy.bitwise_count",
    "shift_left": "use numpy.left_shift",
    "shift_right_arithmetic": "use numpy.right_shift of signed integers",
    "shift_right_logical": "use numpy.right_shift of unsigned integers",
    "convert_element_type": "use x.astype(dtype)",
    "bitcast_convert_type": "use x.view(dtype)",
    "reduce_precision": "use x.astype(dtype)",
    "iota": "use numpy.arange(size, dtype=dtype)",
    "broadcasted_iota": "use numpy.indices, or numpy.arange and numpy.broadcast_to",
    "broadcast": "use numpy.broadcast_to",
    "broadcast_in_dim": "use numpy.expand_dims, and numpy.broadcast_to",
    "collapse": "use numpy.reshape",
    "rev": "use numpy.flip",
    "slice": "use x[start:stop:step]",
    "slice_in_dim": "use x[start:stop:step], with : for the axes before",
    "index_in_dim": "use numpy.take(x, i, axis)",
    "index_take": "use numpy.take(x, i, axis)",
    "gather": "use x[i], numpy.take or numpy.take_along_axis",
    "dynamic_slice_in_dim": "use tracegraph.dynamic_slice, with a start for each axis",
    "dynamic_index_in_dim": "use numpy.take(x, i, axis)",
    "dynamic_update_slice_in_dim": "use tracegraph.dynamic_update_slice, with a start for each "
    "axis",
    "dynamic_update_index_in_dim": "use x.at[i].set(y)",
    "scatter": f"{_SCATTER}.set(y)",
    "scatter_add": f"{_SCATTER}.add(y)",
    "scatter_mul": f"{_SCATTER}.multiply(y)",
    "scatter_min": f"{_SCATTER}.min(y)",
    "scatter_max": f"{_SCATTER}.max(y)",
    "scatter_apply": f"{_SCATTER}.apply(function)",
    "segment_sum": "use tracegraph.sparse.segment_sum",
    "reduce": "use the reduce method of a ufunc, or tracegraph.reduction",
    "reduce_sum": "use numpy.sum",
    "reduce_prod": "use numpy.prod",
    "reduce_max": "use numpy.max",
    "reduce_min": "use numpy.min",
    "reduce_and": "use numpy.all",
    "reduce_or": "use numpy.any",
    "reduce_window": _NO_WINDOWS,
    "dot_general": "use numpy.einsum, or numpy.tensordot",
    "batch_matmul": "use numpy.matmul",
    "ragged_dot": "use tracegraph.sparse.CSR, or a product for each group",
    "conv": _CONV,
    "conv_general_dilated": _CONV,
    "conv_transpose": _CONV,
    "conv_with_general_padding": _CONV,
    "rng_uniform": "use tracegraph.random.uniform",
    "rng_bit_generator": "use tracegraph.random.bits",
    "optimization_barrier": "nothing is needed: results do not depend on what is fused",
    "after_all": "nothing is needed: effects keep their order",
    "pvary": "nothing is needed: what is the same on all devices may meet what differs",
    "pcast": "nothing is needed: what is the same on all devices may meet what differs",
    "pshuffle": "use tracegraph.ppermute",
    "pswapaxes": "use tracegraph.all_to_all",
    "pbroadcast": "use tracegraph.psum of a value that is zero on other devices",
    "Precision": _DTYPES,
}

_NOT_SPECIAL = "use tracegraph.pure_callback of SciPy's function"

NAMES: Mapping[str, Mapping[str, str]] = {
    "tracegraph": {**_LAX, **_JAX},
    "tracegraph.tree": {
        "sum": f"use sum({_LEAVES})",
        **{
            f"tree_{name}": f"use tracegraph.tree.{name}"
            for name in (
                *("map", "leaves", "flatten", "unflatten", "structure", "reduce", "all"),
                *("transpose", "broadcast", "map_with_path", "flatten_with_path"),
                "leaves_with_path",
            )
        },
        "reduce_associative": "use tracegraph.tree.reduce",
        "tree_reduce_associative": "use tracegraph.tree.reduce",
        "keystr": "use tracegraph.tree.paths(structure, name), which has the expression of each "
        "leaf; a path is a tuple of keys, positions and names of fields",
        "DictKey": _PATHS,
        "GetAttrKey": _PATHS,
        "SequenceKey": _PATHS,
        "FlattenedIndexKey": _PATHS,
        "KeyPath": "use tracegraph.tree.Path",
        "Partial": "close over arrays, or pass them; a function is no tree",
        "PyTreeDef": "use tracegraph.tree.Structure",
        "treedef_children": "use the children method of tracegraph.tree.structure(x)",
        "register_static": "use tracegraph.register_dataclass, with fields declared by "
        "dataclasses.field(metadata={'static': True})",
        "static": "use tracegraph.register_dataclass, with fields declared by "
        "dataclasses.field(metadata={'static': True})",
        "register_pytree_node": "use tracegraph.tree.register(cls, to_children, from_children)",
        "register_pytree_with_keys": "use tracegraph.tree.register(cls, to_children, "
        "from_children)",
        "register_pytree_node_class": "use tracegraph.register_dataclass of a dataclass",
        "register_pytree_with_keys_class": "use tracegraph.register_dataclass of a dataclass",
    },
    "tracegraph.nn": {
        "initializers": "draw weights by tracegraph.random, such as "
        "tracegraph.random.normal(key, shape) / fan_in**0.5; JAX's lecun_normal is "
        "tracegraph.random.truncated_normal(key, -2, 2, shape) / 0.87962566103423978 / fan_in**0.5",
        "logmeanexp": "use tracegraph.nn.logsumexp(x, axis) - log(n)",
        "normalize": "use tracegraph.nn.standardize",
        "sparse_plus": "use numpy.where(x >= 1, x, numpy.maximum(x + 1, 0)**2 / 4)",
        "sparse_sigmoid": "use numpy.clip((x + 1) / 2, 0, 1)",
        "dot_product_attention": "use tracegraph.nn.softmax(q @ k.mT / d**0.5) @ v",
        "dropout": "use numpy.where(tracegraph.random.bernoulli(key, keep, x.shape), x / keep, 0)",
        "max_pool": _NO_WINDOWS,
        "avg_pool": _NO_WINDOWS,
        "log1mexp": "use numpy.log1p(-numpy.exp(-x)), or numpy.log(-numpy.expm1(-x)) of small x",
        "scaled_matmul": "use numpy.matmul",
    },
    "tracegraph.numpy": {
        "ndarray": "the class of arrays is tracegraph.Array",
        "float_": "use numpy.float64",
        "roots": "use numpy.roots outside, or tracegraph.pure_callback",
        "random": "use tracegraph.random",
        "fromfunction": "use numpy.fromfunction, or tracegraph.vmap of the function",
        "float8_e4m3fn": "dtypes are those of NumPy, and bfloat16",
        "float8_e5m2": "dtypes are those of NumPy, and bfloat16",
        "int4": "use numpy.int8",
        "uint4": "use numpy.uint8",
        "int2": "use numpy.int8",
        "uint2": "use numpy.uint8",
    },
    "tracegraph.random": {
        "key_data": "a key is an array itself: tracegraph.random.key(seed)",
        "wrap_key_data": "a key is an array itself: tracegraph.random.key(seed)",
        "key_impl": "there is one generator: tracegraph.random.key(seed)",
        "rbg_key": "there is one generator: tracegraph.random.key(seed)",
        "threefry_2x32": "use tracegraph.random.bits",
        "clone": "use the key again, or tracegraph.random.split",
        "seed": "use tracegraph.random.key(seed)",
        "default_rng": "use tracegraph.random.key(seed), and pass the key",
        "rand": "use tracegraph.random.uniform",
        "randn": "use tracegraph.random.normal",
        "shuffle": "use tracegraph.random.permutation",
        "lognormal": "use numpy.exp(sigma * tracegraph.random.normal(key, shape))",
        "maxwell": "use numpy.sqrt(tracegraph.random.chisquare(key, 3.0, shape))",
        "double_sided_maxwell": "use tracegraph.random.rademacher times "
        "numpy.sqrt(tracegraph.random.chisquare(key, 3.0, shape))",
        "multinomial": "count tracegraph.random.categorical by numpy.bincount, or draw "
        "tracegraph.random.binomial of what is left, class by class",
        "triangular": "use the inverse distribution function of tracegraph.random.uniform",
        "wald": "use tracegraph.pure_callback of NumPy's generator",
    },
    "tracegraph.special": {
        "erf_inv": "use tracegraph.special.erfinv",
        "gammasgn": "use numpy.sign(tracegraph.special.gamma(x))",
        "factorial": "use tracegraph.special.gamma(n + 1)",
        "poch": "use numpy.exp(tracegraph.special.gammaln(z + m) - tracegraph.special.gammaln(z))",
        "multigammaln": "sum tracegraph.special.gammaln(a - numpy.arange(d) / 2), and add "
        "d (d - 1) / 4 log(pi)",
        "sigmoid": "use tracegraph.special.expit",
        **dict.fromkeys(
            (
                *("bernoulli", "bessel_jn", "ellipeinc", "ellipkinc", "expn", "fresnel", "hyp1f1"),
                *("hyp2f1", "lpmn", "lpmn_values", "sici", "spence", "sph_harm", "sph_harm_y"),
                "wofz",
            ),
            _NOT_SPECIAL,
        ),
    },
}
"""By module, names of other libraries and what to write instead."""
