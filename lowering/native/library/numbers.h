// The C++ of this folder is compiled to LLVM IR alone, without a C library. Here are bits of floats,
// fused operations, sums and products without error, and polynomials.
//
// Coefficients interpolate a function at Chebyshev's nodes, and are rounded: test_polynomials.py makes
// them. Leading terms are kept apart, so that those that are rounded count little.
//
// Functions have no branches, tables or calls, so that LLVM vectorizes loops around them: both sides of
// a choice are computed. What has a slow part says so.

// A function that others share: build.py keeps it by itself, and LLVM inlines it when it compiles.
#define TG_SHARED __attribute__((noinline))
#define TG_INLINE inline __attribute__((always_inline))

typedef unsigned int tgm_u32;
typedef unsigned long long tgm_u64;
typedef long long tgm_i64;

TG_INLINE tgm_u64 tgm_bits(double x) { return __builtin_bit_cast(tgm_u64, x); }
TG_INLINE tgm_u32 tgm_bits(float x) { return __builtin_bit_cast(tgm_u32, x); }
TG_INLINE double tgm_double(tgm_u64 bits) { return __builtin_bit_cast(double, bits); }
TG_INLINE float tgm_float(tgm_u32 bits) { return __builtin_bit_cast(float, bits); }

constexpr double tgm_inf = __builtin_inf(), tgm_nan = __builtin_nan("");
constexpr double tgm_least_normal = 0x1p-1022;

TG_INLINE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
TG_INLINE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TG_INLINE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TG_INLINE double fabs(double x) { return __builtin_fabs(x); }
TG_INLINE float fabs(float x) { return __builtin_fabsf(x); }
TG_INLINE double copysign(double x, double y) { return __builtin_copysign(x, y); }
TG_INLINE float copysign(float x, float y) { return __builtin_copysignf(x, y); }
TG_INLINE double floor(double x) { return __builtin_floor(x); }
TG_INLINE float floor(float x) { return __builtin_floorf(x); }
TG_INLINE double ceil(double x) { return __builtin_ceil(x); }
TG_INLINE float ceil(float x) { return __builtin_ceilf(x); }
TG_INLINE double trunc(double x) { return __builtin_trunc(x); }
TG_INLINE float trunc(float x) { return __builtin_truncf(x); }
TG_INLINE double rint(double x) { return __builtin_rint(x); }
TG_INLINE float rint(float x) { return __builtin_rintf(x); }
TG_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
TG_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
TG_INLINE bool isnan(double x) { return x != x; }
TG_INLINE bool isnan(float x) { return x != x; }
TG_INLINE bool isinf(double x) { return fabs(x) == tgm_inf; }
TG_INLINE bool isinf(float x) { return fabs(x) == (float)tgm_inf; }
TG_INLINE bool isfinite(double x) { return fabs(x) < tgm_inf; }
TG_INLINE bool isfinite(float x) { return fabs(x) < (float)tgm_inf; }
TG_INLINE bool signbit(double x) { return tgm_bits(x) >> 63; }
TG_INLINE bool signbit(float x) { return tgm_bits(x) >> 31; }
// A NaN is ignored, as in C.
TG_INLINE double fmax(double x, double y) { return x > y || y != y ? x : y; }
TG_INLINE float fmax(float x, float y) { return x > y || y != y ? x : y; }
TG_INLINE double fmin(double x, double y) { return x < y || y != y ? x : y; }
TG_INLINE float fmin(float x, float y) { return x < y || y != y ? x : y; }
TG_INLINE float fmaxf(float x, float y) { return fmax(x, y); }

// Adding this number rounds to an integer, which is then in the lowest bits.
constexpr double tgm_magic = 0x1.8p52;
constexpr float tgm_magic_f = 0x1.8p23f;

// 2**n for |n| up to 2044 as a product of two powers, whose product with x is rounded once.
TG_INLINE double tgm_scaled(double x, tgm_i64 n) {
  const tgm_u64 whole = (tgm_u64)(n + 2048), half = whole >> 1;
  return x * tgm_double((half - 1) << 52) * tgm_double((whole - half - 1) << 52);
}
TG_INLINE float tgm_scaled(float x, int n) {
  const tgm_u32 whole = (tgm_u32)(n + 256), half = whole >> 1;
  return x * tgm_float((half - 1) << 23) * tgm_float((whole - half - 1) << 23);
}

// A polynomial by Horner's rule, the constant coefficient first.
template <class R>
TG_INLINE R tgm_polynomial(R, double c) {
  return (R)c;
}
template <class R, class... Rest>
TG_INLINE R tgm_polynomial(R x, double c, Rest... rest) {
  return fma(tgm_polynomial(x, rest...), x, (R)c);
}

// ---- double-double: the unevaluated sum of two, the second at most half an ulp of the first ---------

struct tgm_pair {
  double high, low;
};

TG_INLINE tgm_pair tgm_two_sum(double x, double y) {
  const double high = x + y, part = high - x;
  return {high, (x - (high - part)) + (y - part)};
}
// For |x| >= |y|, or x = 0.
TG_INLINE tgm_pair tgm_fast_two_sum(double x, double y) {
  const double high = x + y;
  return {high, (x - high) + y};
}
TG_INLINE tgm_pair tgm_two_product(double x, double y) {
  const double high = x * y;
  return {high, fma(x, y, -high)};
}
TG_INLINE tgm_pair tgm_add(tgm_pair x, tgm_pair y) {  // |x| >= |y|, roughly
  const tgm_pair sum = tgm_two_sum(x.high, y.high);
  return tgm_fast_two_sum(sum.high, sum.low + (x.low + y.low));
}
TG_INLINE tgm_pair tgm_add(tgm_pair x, double y) {
  const tgm_pair sum = tgm_two_sum(x.high, y);
  return tgm_fast_two_sum(sum.high, sum.low + x.low);
}
TG_INLINE tgm_pair tgm_multiply(tgm_pair x, tgm_pair y) {
  const tgm_pair product = tgm_two_product(x.high, y.high);
  return tgm_fast_two_sum(product.high, product.low + fma(x.high, y.low, x.low * y.high));
}
TG_INLINE tgm_pair tgm_multiply(tgm_pair x, double y) {
  const tgm_pair product = tgm_two_product(x.high, y);
  return tgm_fast_two_sum(product.high, fma(x.low, y, product.low));
}
TG_INLINE tgm_pair tgm_divide(tgm_pair x, tgm_pair y) {
  const double inverse = 1 / y.high, high = x.high * inverse;
  const double rest = fma(-high, y.high, x.high) + fma(-high, y.low, x.low);
  return tgm_fast_two_sum(high, rest * inverse);
}
TG_INLINE tgm_pair tgm_negative(tgm_pair x) { return {-x.high, -x.low}; }
TG_INLINE tgm_pair tgm_root(tgm_pair x) {  // x > 0
  const double high = sqrt(x.high), rest = fma(-high, high, x.high) + x.low;
  return tgm_fast_two_sum(high, rest / (2 * high));
}

// The float function that rounds the result of the double one.
#define TG_BY_DOUBLE_OF_1(name) \
  TG_INLINE float name(float x) { return (float)name((double)x); }
#define TG_BY_DOUBLE_OF_2(name) \
  TG_INLINE float name(float x, float y) { return (float)name((double)x, (double)y); }
