// Remainders, exponents and neighbours. Comes after numbers.h.

// For |x| < 2**52 |y|: the rounded quotient may be the next integer above, and not less.
TG_INLINE bool tgm_is_near_quotient(double x, double y) { return fabs(x) < 0x1p52 * fabs(y); }

// With a quotient below 2**52 each step is exact: both operands are multiples of the divisor's last
// digit, and the difference is less than the divisor.
__attribute__((noinline)) double tgm_far_fmod(double x, double y) {
  const double divisor = fabs(y);
  double rest = fabs(x);
  if (!(rest < tgm_inf) || divisor == 0 || divisor != divisor) return tgm_nan;
  while (rest >= divisor) {
    double scaled = divisor;
    while (scaled * 0x1p51 < rest) scaled *= 0x1p50;
    const double left = fma(-trunc(rest / scaled), scaled, rest);
    rest = left < 0 ? left + scaled : left;
  }
  return copysign(rest, x);
}

namespace tgm_fast {
TG_INLINE double fmod(double x, double y) {
  const double size = fabs(x), divisor = fabs(y), quotient = trunc(size / divisor);
  const double left = fma(-quotient, divisor, size), rest = left < 0 ? left + divisor : left;
  return copysign(size < divisor ? size : rest, x);
}
TG_BY_DOUBLE_OF_2(fmod)
}  // namespace tgm_fast

TG_SHARED double fmod(double x, double y) {
  return tgm_is_near_quotient(x, y) ? tgm_fast::fmod(x, y) : tgm_far_fmod(x, y);
}
TG_BY_DOUBLE_OF_2(fmod)

// Of finite numbers but zero.
TG_INLINE int ilogb(double x) {
  const bool tiny = fabs(x) < tgm_least_normal;
  return (int)(tgm_bits(tiny ? x * 0x1p54 : x) >> 52 & 0x7ff) - (tiny ? 1077 : 1023);
}
TG_INLINE int ilogb(float x) { return ilogb((double)x); }

// The mantissa is scaled, which rounds once.
TG_INLINE double ldexp(double x, int n) {
  const bool tiny = fabs(x) < tgm_least_normal;
  const tgm_u64 bits = tgm_bits(tiny ? x * 0x1p54 : x);
  const double mantissa = tgm_double((bits & 0x800fffffffffffff) | 0x3ff0000000000000);
  const int power = ilogb(x) + n, clamped = power > 2000 ? 2000 : power < -2000 ? -2000 : power;
  return x == 0 || !isfinite(x) ? x : tgm_scaled(mantissa, (tgm_i64)clamped);
}
TG_INLINE float ldexp(float x, int n) { return (float)ldexp((double)x, n); }

TG_INLINE double nextafter(double x, double y) {
  const tgm_u64 bits = tgm_bits(x);
  const tgm_u64 next = x == 0               ? (tgm_bits(y) & 0x8000000000000000) | 1
                       : (x < y) == (x > 0) ? bits + 1
                                            : bits - 1;
  return x != x || y != y ? x + y : x == y ? y : tgm_double(next);
}
TG_INLINE float nextafter(float x, float y) {
  const tgm_u32 bits = tgm_bits(x);
  const tgm_u32 next = x == 0               ? (tgm_bits(y) & 0x80000000) | 1
                       : (x < y) == (x > 0) ? bits + 1
                                            : bits - 1;
  return x != x || y != y ? x + y : x == y ? y : tgm_float(next);
}
