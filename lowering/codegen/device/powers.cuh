// Powers whose exponent is known: products, and roots that a step of Newton's method corrects, all within
// two ulps. CUDA's pow takes some 100 instructions of double, for float as well.
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
// A corrected result, or the first one at 0, infinities and NaN. The root of -0.0 is negative.
template <class R> __device__ inline R tg_corrected(R x, R first, R corrected) {
  return first > 0 && first < INFINITY ? corrected : x == -INFINITY ? (R)0 : (R)fabs(first);
}
template <class R> __device__ inline R tg_power_minus_1_2(R x) {
  const R root = rsqrt(x), error = fma(-(x * root), root, (R)1);
  return tg_corrected(x, root, fma(root, (R)0.5 * error, root));
}
// The error is that of the square as it was rounded, so that its rounding is corrected, too.
template <class R> __device__ inline R tg_power_minus_3_2(R x) {
  const R root = rsqrt(x), square = root * root, cube = square * root;
  return tg_corrected(x, cube, fma(cube, (R)1.5 * fma(-x, square, (R)1), cube));
}
