"""Functions of CUDA that the preamble needs, for a host compiler; after <math.h> and <string.h>.

Those that a C library lacks are made of others, in long double: inverses by bisection.
"""

HOST_FUNCTIONS = """
static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits) {
  return ((unsigned long long)high << 32 | low) >> (bits & 31);
}
static int __popc(unsigned bits) { return __builtin_popcount(bits); }
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
template <class R> static R rsqrt(R x) {  // in half of all cases an ulp away, as CUDA's may be
  const R root = (R)(1 / sqrt((long double)x));
  unsigned char bits[sizeof(R)];
  memcpy(bits, &root, sizeof(R));
  return bits[0] & 1 ? nextafter(root, (R)INFINITY) : root;
}
template <class R> static R erfcx(R x) {
  if (x < 10) return (R)(exp((long double)x * x) * erfc((long double)x));
  long double y = x, found = y;  // a continued fraction
  for (int k = 60; k > 0; --k) found = y + k / 2.0L / found;
  return (R)(0.564189583547756286948L / found);
}
template <class R> static R normcdf(R x) {
  return (R)(erfc(-(long double)x * 0.707106781186547524401L) / 2);
}
template <class R> static R erfcinv(R z) {
  if (!(z >= 0 && z <= 2)) return (R)NAN;
  if (z == 0 || z == 1 || z == 2) return (R)(z == 0 ? INFINITY : z == 1 ? 0 : -INFINITY);
  long double low = -30, high = 30;
  for (int k = 0; k < 120; ++k) {
    const long double middle = (low + high) / 2;
    if (erfc(middle) > z) low = middle; else high = middle;
  }
  return (R)high;
}
template <class R> static R erfinv(R y) {
  if (!(y >= -1 && y <= 1)) return (R)NAN;
  if (y == 1 || y == -1) return (R)(y * INFINITY);
  if (y < 0) return -erfinv(-y);
  if (y < 1e-9) return (R)(y * 0.886226925452758013649L);
  long double low = 0, high = 30;
  for (int k = 0; k < 120; ++k) {
    const long double middle = (low + high) / 2;
    if (erf(middle) < y) low = middle; else high = middle;
  }
  return (R)high;
}
template <class R> static R normcdfinv(R p) {
  if (!(p >= 0 && p <= 1)) return (R)NAN;
  if (p == 0 || p == 0.5 || p == 1) return (R)(p == 0 ? -INFINITY : p == 1 ? INFINITY : 0);
  long double low = -40, high = 40;
  for (int k = 0; k < 120; ++k) {
    const long double middle = (low + high) / 2;
    if (erfc(-middle * 0.707106781186547524401L) / 2 < p) low = middle; else high = middle;
  }
  return (R)high;
}
static long double tg_bessel(int order, long double x) {
  long double found = 0, term = order ? x / 2 : 1;
  if (x < 60) {  // the power series; then the asymptotic one
    for (int k = 1; k < 200; ++k) {
      found += term;
      term *= x * x / 4 / (k * (k + order));
    }
    return found;
  }
  term = 1;
  for (int k = 1; k < 40; ++k) {
    found += term;
    term *= ((2 * k - 1) * (2 * k - 1) - 4 * order) / (8 * k * x);
  }
  return exp(x) * found / sqrt(2 * 3.14159265358979323846L * x);
}
template <class R> static R cyl_bessel_i0(R x) {
  return isinf(x) ? (R)INFINITY : x != x ? x : (R)tg_bessel(0, fabs((long double)x));
}
template <class R> static R cyl_bessel_i1(R x) {
  if (x != x || isinf(x)) return x;
  return (R)copysign(tg_bessel(1, fabs((long double)x)), (long double)x);
}
"""
