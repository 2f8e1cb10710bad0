// Native arithmetic and functions of float16 and bfloat16. Comes after preamble.cuh. They take fewer
// instructions than float with a rounding, and give the same result or nearly the same.
//
// A float has more than twice the digits of both types, so double rounding of a sum, difference,
// product or quotient is innocuous: one native instruction gives the same bits.

#ifdef __CUDA_ARCH__
#define TG_HALF_OPERATION(name, instruction, sign) \
  __device__ inline tg_half name(tg_half x, tg_half y) { \
    tg_half result; \
    asm(instruction ".rn.f16 %0, %1, %2;" : "=h"(result.bits) : "h"(x.bits), "h"(y.bits)); \
    return result; \
  }
#else
#define TG_HALF_OPERATION(name, instruction, sign) \
  __device__ inline tg_half name(tg_half x, tg_half y) { \
    return tg_cast<tg_half>(tg_cast<float>(x) sign tg_cast<float>(y)); \
  }
#endif
TG_HALF_OPERATION(tg_half_add, "add", +)
TG_HALF_OPERATION(tg_half_subtract, "sub", -)
TG_HALF_OPERATION(tg_half_multiply, "mul", *)
#undef TG_HALF_OPERATION

// Before sm_90, bfloat16 has a fused multiply-add only: a sum is 1 * x + y, a difference -1 * y + x, and
// a product x * y - 0, which keeps the sign of zero.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define TG_BFLOAT16_OPERATION(name, sign, x_, y_, z_) \
  __device__ inline tg_bfloat16 name(tg_bfloat16 x, tg_bfloat16 y) { \
    tg_bfloat16 result; \
    asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(result.bits) : "h"(x_), "h"(y_), "h"(z_)); \
    return result; \
  }
#else
#define TG_BFLOAT16_OPERATION(name, sign, x_, y_, z_) \
  __device__ inline tg_bfloat16 name(tg_bfloat16 x, tg_bfloat16 y) { \
    return tg_cast<tg_bfloat16>(tg_cast<float>(x) sign tg_cast<float>(y)); \
  }
#endif
TG_BFLOAT16_OPERATION(tg_half_add, +, x.bits, (tg_u16)0x3f80, y.bits)
TG_BFLOAT16_OPERATION(tg_half_subtract, -, y.bits, (tg_u16)0xbf80, x.bits)
TG_BFLOAT16_OPERATION(tg_half_multiply, *, x.bits, y.bits, (tg_u16)0x8000)
#undef TG_BFLOAT16_OPERATION

// ---- quotients ------------------------------------------------------------------------------------

// 1 / divisor with a relative error of 2**-40, as the sum of two floats of one sign: sums and products
// of them are infinite, zero and NaN as those of 1 / divisor. A common divisor is inverted once.
struct tg_inverse { float high, low; };
__device__ inline tg_inverse tg_invert(float divisor) {
#ifdef __CUDA_ARCH__
  float near;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(divisor));
#else
  const float near = 1 / divisor;
#endif
  // smaller than the inverse, although `near` may be off by 2**-23 in either direction
  const float high = near * (1 - 0x1p-21f);
  const float rest = fmaf(-high, divisor, 1.0f);
  // `rest` is NaN where the inverse is zero or infinite
  return tg_inverse{high, high * fmaxf(rest, 0x1p-24f)};
}

// Rounding the quotient of two float16 to float first is innocuous: a quotient is a midpoint between two
// float16, or at least 2**-23 of itself away from one.
__device__ inline tg_half tg_half_divide(tg_half x, tg_half y) {
  const float dividend = tg_cast<float>(x);
  const tg_inverse inverse = tg_invert(tg_cast<float>(y));
  return tg_cast<tg_half>(fmaf(dividend, inverse.high, dividend * inverse.low));
}

// A quotient of two bfloat16 is a midpoint only below 2**-126, where the spacing of floats exceeds the
// error of the product; elsewhere it is at least 2**-17 of itself away from one. Both operands are
// scaled to keep the inverse in the range of float. Digits that a scaled dividend loses, or its
// overflow, do not change the rounded quotient.
__device__ inline tg_bfloat16 tg_half_divide(tg_bfloat16 x, tg_bfloat16 y) {
  const float divisor = tg_cast<float>(y), size = fabs(divisor);
  const float scale = size > 0x1p64f ? 0x1p-64f : size < 0x1p-64f ? 0x1p64f : 1.0f;
  const tg_inverse inverse = tg_invert(divisor * scale);
  return tg_cast<tg_bfloat16>(tg_cast<float>(x) * scale * (inverse.high + inverse.low));
}

// ---- exponentials ---------------------------------------------------------------------------------

__device__ inline float tg_power_of_two(float exponent) {
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
  return power;
#else
  return exp2f(exponent);
#endif
}

// The error is at most 0.502 ulp: the exponent is rounded to 2**-20.
__device__ inline tg_half tg_half_exp(tg_half x) {
  return tg_cast<tg_half>(tg_power_of_two(tg_cast<float>(x) * 0x1.715476p+0f));
}

// For bfloat16 the result is squared: its smallest results are below the range of the instruction, but
// their square roots are not.
__device__ inline tg_bfloat16 tg_half_exp(tg_bfloat16 x) {
  const float root = tg_power_of_two(tg_cast<float>(x) * 0x1.715476p-1f);
  return tg_cast<tg_bfloat16>(root * root);
}

// ---- sines ----------------------------------------------------------------------------------------

// The sine or cosine of |x| < 2**17 to the precision of 16-bit types, by Cody and Waite's reduction to
// the remainder of a multiple of pi (of pi / 2 for the cosine). The product with the first part of pi is
// exact, since its last digit is 2**-22. Both parts are positive, so zeros keep their sign.
template <bool cosine> __device__ inline float tg_near_sin(float x) {
  const float magic = 0x1.8p23f;  // the spacing of floats of this size is 1
  const float inverse = 0x1.45f306p-2f;
  const float turned = cosine ? fmaf(x, inverse, 0.5f) + magic : fmaf(x, inverse, magic);
  const float turns = cosine ? turned - magic - 0.5f : turned - magic;
  const float angle = fmaf(-turns, 0x1.4442d2p-23f, fmaf(-turns, 0x1.921fb4p+1f, x));
  const float square = angle * angle;
  float ratio = fmaf(0x1.5d239cp-19f, square, -0x1.9f62ccp-13f);
  ratio = fmaf(ratio, square, 0x1.110e74p-7f);
  ratio = fmaf(ratio, square, -0x1.555548p-3f);
  ratio = fmaf(ratio, square, 1.0f);
  return tg_bits<float>(tg_bits<tg_u32>(angle * ratio) ^ tg_bits<tg_u32>(turned) << 31);
}

__device__ inline tg_half tg_half_sin(tg_half x) {
  return tg_cast<tg_half>(tg_near_sin<false>(tg_cast<float>(x)));
}
__device__ inline tg_half tg_half_cos(tg_half x) {
  return tg_cast<tg_half>(tg_near_sin<true>(tg_cast<float>(x)));
}

// Large angles of bfloat16 are rare: a call keeps their code out of the kernel, and comes last, so that
// the other angles do not wait for it.
__attribute__((noinline)) __device__ float tg_far_sin(float x) { return sin(x); }
__attribute__((noinline)) __device__ float tg_far_cos(float x) { return cos(x); }
__device__ inline tg_bfloat16 tg_half_sin(tg_bfloat16 x) {
  const float angle = tg_cast<float>(x);
  float result = tg_near_sin<false>(angle);
  if (fabs(angle) >= 0x1p17f) result = tg_far_sin(angle);
  return tg_cast<tg_bfloat16>(result);
}
__device__ inline tg_bfloat16 tg_half_cos(tg_bfloat16 x) {
  const float angle = tg_cast<float>(x);
  float result = tg_near_sin<true>(angle);
  if (fabs(angle) >= 0x1p17f) result = tg_far_cos(angle);
  return tg_cast<tg_bfloat16>(result);
}
