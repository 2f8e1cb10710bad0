// Powers whose exponent is known: products, and roots of which one step of Newton's method and the
// rounding errors of the products (as fma gives them) make results that are within an ulp or two. CUDA's
// pow takes some 150 instructions of double.
template <class R> __device__ inline R tg_power_3(R x) { return x * x * x; }
template <class R> __device__ inline R tg_power_4(R x) {
  const R square = x * x;
  return square * square;
}
template <class R> __device__ inline R tg_power_minus_2(R x) {
  const R inverse = 1 / x;
  return inverse * inverse;
}
// Of minus infinity, the power is infinity, and the root NaN.
template <class R> __device__ inline R tg_power_3_2(R x) {
  return isinf(x) ? (R)fabs(x) : x * sqrt(x);
}
// 1 - x * root * root, for a root that is the inverse one but for rounding.
template <class R> __device__ inline R tg_root_error(R x, R root) {
  const R product = x * root;
  return fma(-product, root, (R)1) - fma(x, root, -product) * root;
}
// A corrected result, or the first one at 0, infinities and NaN. The root of -0.0 is negative.
template <class R> __device__ inline R tg_corrected(R x, R first, R corrected) {
  if (first > 0 && isfinite(first)) {
    return corrected;
  }
  return isinf(x) ? (R)0 : (R)fabs(first);
}
template <class R> __device__ inline R tg_power_minus_1_2(R x) {
  const R root = rsqrt(x);
  return tg_corrected(x, root, fma(root * (R)0.5, tg_root_error(x, root), root));
}
template <class R> __device__ inline R tg_power_minus_3_2(R x) {
  const R root = rsqrt(x), square = root * root, cube = square * root;
  const R lost = fma(square, root, -cube) + fma(root, root, -square) * root;
  return tg_corrected(x, cube, cube + fma(cube, (R)1.5 * tg_root_error(x, root), lost));
}
