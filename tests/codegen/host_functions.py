"""Functions of CUDA that the preamble needs, for a host compiler; after <string.h>."""

HOST_FUNCTIONS = """
static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits) {
  return ((unsigned long long)high << 32 | low) >> (bits & 31);
}
static int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
static float tg_half_to_float(unsigned short bits) {
  _Float16 half;
  memcpy(&half, &bits, 2);
  return half;
}
static unsigned short tg_float_to_half(float x) {
  _Float16 half = x;
  unsigned short bits;
  memcpy(&bits, &half, 2);
  return bits;
}
static unsigned short tg_double_to_half(double x) {
  _Float16 half = x;
  unsigned short bits;
  memcpy(&bits, &half, 2);
  return bits;
}
"""
