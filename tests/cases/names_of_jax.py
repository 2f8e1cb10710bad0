"""The names of JAX that its users reach for, by its modules, and where they look for them here."""

from __future__ import annotations

from collections.abc import Mapping

HERE: Mapping[str, str] = {
    "jax": "tracegraph",
    "jax.lax": "tracegraph",
    "jax.random": "tracegraph.random",
    "jax.nn": "tracegraph.nn",
    "jax.tree": "tracegraph.tree",
    "jax.tree_util": "tracegraph.tree",
    "jax.scipy.special": "tracegraph.special",
    "jax.numpy": "tracegraph.numpy",
}
"""By module of JAX, the module of ours."""

NAMES_OF_JAX: Mapping[str, str] = {
    "jax": """
        Array ShapeDtypeStruct block_until_ready checkpoint checkpoint_policies
        closure_convert config custom_derivatives custom_gradient custom_jvp custom_vjp debug
        debug_infs debug_nans
        default_backend default_device default_matmul_precision device_count device_get
        device_put device_put_replicated device_put_sharded devices disable_jit distributed
        dlpack dtypes effects_barrier enable_checks enable_x64 ensure_compile_time_eval errors
        eval_shape ffi float0 fwd_and_bwd grad hessian host_count image jacfwd jacobian jacrev
        jit jvp lax linear_transpose linearize live_arrays local_device_count local_devices
        log_compiles make_array_from_callback make_jaxpr make_mesh named_call named_scope nn
        numpy numpy_dtype_promotion numpy_rank_promotion ops pmap process_count process_index
        profiler pure_callback random remat scipy shard_map sharding smap stages tree
        tree_util typing value_and_grad vjp vmap clear_caches experimental pjit io_callback
        core jaxpr_util pallas
    """,
    "jax.lax": """
        abs acos add after_all all_gather all_to_all approx_max_k approx_min_k argmax argmin
        associative_scan axis_index axis_size batch_matmul betainc bitcast_convert_type
        bitwise_and broadcast broadcast_in_dim broadcast_shapes broadcasted_iota cbrt ceil
        clamp collapse concatenate cond conv conv_general_dilated conv_transpose
        conv_with_general_padding convert_element_type cumlogsumexp cummax cummin cumprod
        cumsum custom_linear_solve custom_root digamma div dot dot_general
        dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_update_index_in_dim
        dynamic_update_slice dynamic_update_slice_in_dim eq erf erf_inv erfc exp expand_dims
        expm1 fft floor fori_loop full full_like gather ge gt igamma igammac imag index_in_dim
        index_take integer_pow iota is_finite le lgamma linalg log log1p logistic lt map max
        min mul ne neg nextafter optimization_barrier pad pmax pmean pmin polygamma
        population_count pow ppermute psum ragged_dot real reciprocal reduce reduce_and
        reduce_max reduce_min reduce_or reduce_precision reduce_prod reduce_sum reduce_window
        rem reshape rev rng_bit_generator rng_uniform round rsqrt scan scatter scatter_add
        scatter_apply scatter_max scatter_min scatter_mul select select_n shift_left
        shift_right_arithmetic shift_right_logical sign sin slice slice_in_dim sort
        sort_key_val split sqrt square squeeze stop_gradient sub switch tan tanh top_k
        transpose while_loop with_sharding_constraint zeta dtype Precision
    """,
    "jax.random": """
        PRNGKey ball bernoulli beta binomial bits categorical cauchy chisquare choice clone
        dirichlet double_sided_maxwell exponential f fold_in gamma generalized_normal
        geometric gumbel key key_data key_impl laplace loggamma logistic lognormal maxwell
        multinomial multivariate_normal normal orthogonal pareto permutation poisson
        rademacher randint rayleigh rbg_key split t threefry_2x32 triangular truncated_normal
        uniform wald weibull_min wrap_key_data shuffle
    """,
    "jax.nn": """
        celu dot_product_attention elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh
        identity initializers leaky_relu log1mexp log_sigmoid log_softmax logmeanexp logsumexp
        mish normalize one_hot relu relu6 scaled_matmul selu sigmoid silu soft_sign softmax
        softplus sparse_plus sparse_sigmoid squareplus standardize swish tanh
    """,
    "jax.tree": """
        all broadcast flatten flatten_with_path leaves leaves_with_path map map_with_path
        reduce reduce_associative static structure transpose unflatten
    """,
    "jax.tree_util": """
        DictKey FlattenedIndexKey GetAttrKey KeyPath Partial PyTreeDef SequenceKey keystr
        register_dataclass register_pytree_node register_pytree_node_class
        register_pytree_with_keys register_pytree_with_keys_class register_static tree_all
        tree_broadcast tree_flatten tree_flatten_with_path tree_leaves tree_leaves_with_path
        tree_map tree_map_with_path tree_reduce tree_reduce_associative tree_structure
        tree_transpose tree_unflatten treedef_children
    """,
    "jax.scipy.special": """
        bernoulli bessel_jn beta betainc betaln digamma ellipe ellipk ellipeinc ellipkinc entr
        erf erfc erfcx erf_inv erfinv exp1 expi expit expn factorial fresnel gamma gammainc
        gammaincc gammaln gammasgn hyp1f1 hyp2f1 i0 i0e i1 i1e kl_div log_ndtr log_softmax
        logit logsumexp lpmn lpmn_values multigammaln ndtr ndtri poch polygamma rel_entr sici
        softmax spence sph_harm sph_harm_y wofz xlog1py xlogy zeta
    """,
    "jax.numpy": """
        abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis
        apply_over_axes arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax
        argmin argpartition argsort argwhere around array array_equal array_equiv array_repr
        array_split array_str asarray asin asinh astype atan atan2 atanh atleast_1d atleast_2d
        atleast_3d average bartlett bfloat16 bincount bitwise_and bitwise_count bitwise_invert
        bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman
        block bool bool_ broadcast_arrays broadcast_shapes broadcast_to c_ can_cast cbrt
        cdouble ceil character choose clip column_stack complex128 complex64 complex_
        complexfloating compress concat concatenate conj conjugate convolve copy copysign
        corrcoef correlate cos cosh count_nonzero cov cross csingle cumprod cumsum
        cumulative_prod cumulative_sum deg2rad degrees delete diag diag_indices
        diag_indices_from diagflat diagonal diff digitize divide divmod dot double dsplit
        dstack dtype e ediff1d einsum einsum_path empty empty_like equal euler_gamma exp exp2
        expand_dims expm1 extract eye fabs fft fill_diagonal finfo fix flatnonzero flexible
        flip fliplr flipud float16 float32 float64 float8_e4m3fn float8_e5m2 float_
        float_power floating floor floor_divide fmax fmin fmod frexp from_dlpack frombuffer
        fromfile fromfunction fromiter frompyfunc fromstring full full_like gcd generic
        geomspace get_printoptions gradient greater greater_equal hamming hanning heaviside
        histogram histogram2d histogram_bin_edges histogramdd hsplit hstack hypot i0 identity
        iinfo imag index_exp indices inexact inf inner insert int16 int2 int32 int4 int64 int8
        int_ integer interp intersect1d invert isclose iscomplex iscomplexobj isdtype isfinite
        isin isinf isnan isneginf isposinf isreal isrealobj isscalar issubdtype iterable ix_
        kaiser kron lcm ldexp left_shift less less_equal lexsort linalg linspace load log
        log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor
        logspace mask_indices matmul matrix_transpose matvec max maximum mean median meshgrid
        mgrid min minimum mod modf moveaxis multiply nan nan_to_num nanargmax nanargmin
        nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile
        nanstd nansum nanvar ndarray ndim negative newaxis nextafter nonzero not_equal number
        object_ ogrid ones ones_like outer packbits pad partition percentile permute_dims pi
        piecewise place poly polyadd polyder polydiv polyfit polyint polymul polysub polyval
        positive pow power printoptions prod promote_types ptp put put_along_axis quantile r_
        rad2deg radians ravel ravel_multi_index real reciprocal remainder repeat reshape
        resize result_type right_shift rint roll rollaxis roots rot90 round s_ save savez
        searchsorted select set_printoptions setdiff1d setxor1d shape sign signbit
        signedinteger sin sinc single sinh size sort sort_complex spacing split sqrt square
        squeeze stack std subtract sum swapaxes take take_along_axis tan tanh tensordot tile
        trace transpose trapezoid tri tril tril_indices tril_indices_from trim_zeros triu
        triu_indices triu_indices_from true_divide trunc ufunc uint uint16 uint2 uint32 uint4
        uint64 uint8 union1d unique unique_all unique_counts unique_inverse unique_values
        unpackbits unravel_index unsignedinteger unstack unwrap vander var vdot vecdot vecmat
        vectorize vsplit vstack where zeros zeros_like
    """,
}
"""By module of JAX, its names, but those of its inner parts and of several machines."""
