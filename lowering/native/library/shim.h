// What the device texts of lowering/codegen/device expect of CUDA, and a C library does not have.

typedef unsigned long size_t;
extern "C" void* memcpy(void*, const void*, size_t);

#define __device__ inline
#define TG_FLOATS_BY float
#define __align__(n) __attribute__((aligned(n)))

unsigned __shfl_sync(unsigned, unsigned, int);
unsigned __shfl_xor_sync(unsigned, unsigned, int);
void __syncwarp(unsigned);

TG_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits) {
  return (tgm_u32)(((tgm_u64)high << 32 | low) >> (bits & 31));
}
TG_INLINE int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }

// Conversions of float16 are instructions from and to float. From double, the number is rounded to odd
// first: digits that a float drops set its last digit, so that they count when it is rounded again.
TG_INLINE float tg_half_to_float(unsigned short bits) {
  return (float)__builtin_bit_cast(_Float16, bits);
}
TG_INLINE unsigned short tg_float_to_half(float x) {
  return __builtin_bit_cast(unsigned short, (_Float16)x);
}
TG_INLINE unsigned short tg_double_to_half(double x) {
  const float near = (float)x;
  const double error = fabs((double)near) - fabs(x);
  const tgm_u32 bits = tgm_bits(near), below = bits - (error > 0 ? 1 : 0);
  const bool exact = error == 0 || x != x || isinf(near);
  return tg_float_to_half(exact ? near : tgm_float(below | 1));
}
