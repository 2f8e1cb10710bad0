// Circular functions and their inverses. Comes after numbers.h.
//
// The argument is reduced to r = x - k pi / 2, |r| <= pi / 4, in two parts. For |x| up to 2**30 three
// doubles of pi / 2 do: the first difference is exact, and so is the product with the second. Beyond, all
// digits of 2 / pi that count are multiplied (Payne and Hanek, 1983), in integers: a call that keeps
// loops from being vectorized. The functions of the namespace tgm_fast have no such part.

struct tgm_angle {
  double r, rest;
  tgm_u64 quadrant;  // k, of which the last two bits count
};
constexpr double tgm_near_angles = 0x1p30;

TG_INLINE tgm_angle tgm_near_angle(double x) {
  const double shifted = fma(x, 0x1.45f306dc9c883p-1, tgm_magic), k = shifted - tgm_magic;
  const double first = fma(-k, 0x1.921fb54442d18p+0, x);
  const tgm_pair product = tgm_two_product(k, 0x1.1a62633145c07p-54),
                 sum = tgm_two_sum(first, -product.high);
  const double rest = fma(-k, -0x1.f1976b7ed8fbcp-110, sum.low - product.low);
  // adding a zero to -0 would make it +0
  return {x == 0 ? x : sum.high, x == 0 ? x : rest, tgm_bits(shifted)};
}

// The digits of 2 / pi, after 64 zeros.
static const tgm_u64 tgm_two_over_pi[] = {0x0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
    0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x6492eea09d1921c, 0xfe1deb1cb129a73e,
    0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};

// For |x| from 2**20 on, infinities and NaN: x is an integer of 53 bits times 2**power. Of 2 / pi, digits
// that give multiples of 4 are left out, and 192 follow.
__attribute__((noinline)) tgm_angle tgm_far_angle(double x) {
  if (!(fabs(x) < tgm_inf)) return {x - x, 0, 0};
  const tgm_u64 bits = tgm_bits(x), whole = (bits & 0x000fffffffffffff) | 0x0010000000000000;
  const int start = (int)(bits >> 52 & 0x7ff) - 1075 + 62, word = start >> 6, shift = start & 63;
  tgm_u64 digits[3];
  for (int i = 0; i < 3; ++i) {
    const tgm_u64 next = tgm_two_over_pi[word + i + 1];
    digits[i] = tgm_two_over_pi[word + i] << shift | (shift ? next >> (64 - shift) : 0);
  }
  typedef unsigned __int128 wide;
  const wide low = (wide)whole * digits[2], middle = (wide)whole * digits[1] + (tgm_u64)(low >> 64);
  tgm_u64 parts[3] = {whole * digits[0] + (tgm_u64)(middle >> 64), (tgm_u64)middle, (tgm_u64)low};
  tgm_u64 quadrant = parts[0] >> 62;
  parts[0] <<= 2;
  parts[0] |= parts[1] >> 62;
  parts[1] = parts[1] << 2 | parts[2] >> 62;
  parts[2] <<= 2;
  const bool above = parts[0] >> 63;  // the next multiple is nearer
  if (above) {
    ++quadrant;
    for (tgm_u64& part : parts) part = ~part;
  }
  tgm_pair turns = {0, 0};
  double unit = 0x1p-32;
  for (int i = 0; i < 6; ++i) {
    const tgm_u64 half = i % 2 ? parts[i / 2] & 0xffffffff : parts[i / 2] >> 32;
    turns = tgm_add(turns, (double)half * unit);
    unit *= 0x1p-32;
  }
  const tgm_pair angle = tgm_multiply(turns, tgm_pair{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54});
  const bool negative = above != signbit(x);
  return {negative ? -angle.high : angle.high, negative ? -angle.low : angle.low,
      signbit(x) ? 0 - quadrant : quadrant};
}
TG_INLINE tgm_angle tgm_angle_of(double x) {
  return fabs(x) <= tgm_near_angles ? tgm_near_angle(x) : tgm_far_angle(x);
}

// sin(r) - r and cos(r) - 1 + r**2 / 2.
TG_INLINE double tgm_sin_tail(double r, double square, double rest) {
  return fma(r * square,
      tgm_polynomial(square, -0x1.5555555555555p-3, 0x1.111111111111p-7, -0x1.a01a01a01992fp-13,
          0x1.71de3a545f836p-19, -0x1.ae645410e937bp-26, 0x1.61217d9252c03p-33, -0x1.ab16f5caa198ap-41),
      fma(-0.5 * square, rest, rest));
}
TG_INLINE double tgm_cos_tail(double r, double square, double rest) {
  return fma(square * square,
      tgm_polynomial(square, 0x1.5555555555555p-5, -0x1.6c16c16c16963p-10, 0x1.a01a019f4ddfdp-16,
          -0x1.27e4fa16cc2d1p-22, 0x1.1eeb67d026ec6p-29, -0x1.907cd8ff5ede7p-37),
      -r * rest);
}
TG_INLINE tgm_pair tgm_sin_pair(tgm_angle x) { return {x.r, tgm_sin_tail(x.r, x.r * x.r, x.rest)}; }
TG_INLINE tgm_pair tgm_cos_pair(tgm_angle x) {
  const double square = x.r * x.r;
  const tgm_pair sum = tgm_fast_two_sum(1, -0.5 * square);
  return {sum.high, sum.low + tgm_cos_tail(x.r, square, x.rest)};
}
// The sine of the angle and `more` quadrants.
TG_INLINE double tgm_sin_of(tgm_angle x, tgm_u64 more) {
  const tgm_pair s = tgm_sin_pair(x), c = tgm_cos_pair(x);
  const tgm_u64 quadrant = x.quadrant + more;
  const double sine = s.high + s.low, cosine = c.high + c.low;
  // of -0 the tail is +0
  const double y = quadrant & 1 ? cosine : x.r == 0 ? x.r : sine;
  return tgm_double(tgm_bits(y) ^ (quadrant & 2) << 62);
}
TG_INLINE double tgm_tan_of(tgm_angle x) {
  const tgm_pair s = tgm_sin_pair(x), c = tgm_cos_pair(x);
  const bool odd = x.quadrant & 1;
  const tgm_pair sine = tgm_fast_two_sum(s.high, s.low), cosine = tgm_fast_two_sum(c.high, c.low);
  const tgm_pair up = odd ? cosine : sine, down = odd ? tgm_negative(sine) : cosine;
  const double y = up.high / down.high;
  const double rest = (fma(-y, down.high, up.high) + fma(-y, down.low, up.low)) / down.high;
  const double found = fabs(y) < 0x1p1000 ? y + rest : y;
  return x.r == 0 && !odd ? x.r : found;
}

namespace tgm_fast {
TG_SHARED double sin(double x) { return tgm_sin_of(tgm_near_angle(x), 0); }
TG_SHARED double cos(double x) { return tgm_sin_of(tgm_near_angle(x), 1); }
TG_SHARED double tan(double x) { return tgm_tan_of(tgm_near_angle(x)); }
}  // namespace tgm_fast
template <class R>
TG_INLINE bool tgm_is_near_angle(R x) {
  return fabs(x) <= (R)tgm_near_angles;
}

TG_SHARED double sin(double x) { return tgm_sin_of(tgm_angle_of(x), 0); }
TG_SHARED double cos(double x) { return tgm_sin_of(tgm_angle_of(x), 1); }
TG_SHARED double tan(double x) { return tgm_tan_of(tgm_angle_of(x)); }

// ---- inverses -----------------------------------------------------------------------------------------

constexpr double tgm_pi_high = 0x1.921fb54442d18p+1, tgm_pi_low = 0x1.1a62633145c07p-53;

// The arc tangent of up / down for 0 <= up / down <= 1: beyond tan(pi / 8), of the angle less pi / 4.
TG_INLINE tgm_pair tgm_atan_of_quotient(tgm_pair up, tgm_pair down) {
  const bool turned = up.high > 0x1.a827999fcef32p-2 * down.high;
  const tgm_pair difference = tgm_two_sum(up.high, -down.high), sum = tgm_two_sum(up.high, down.high);
  const double u = turned ? difference.high : up.high,
               u_rest = turned ? difference.low + (up.low - down.low) : up.low;
  const double d = turned ? sum.high : down.high,
               d_rest = turned ? sum.low + (up.low + down.low) : down.low;
  const double inverse = 1 / d, near = u * inverse;
  const double rest = (fma(-near, d, u) + fma(-near, d_rest, u_rest)) * inverse;
  const double t = near + rest, error = (near - t) + rest, square = t * t;
  const double tail = fma(t * square,
      tgm_polynomial(square, -0x1.5555555555555p-2, 0x1.9999999999952p-3, -0x1.249249248d684p-3,
          0x1.c71c71c2f380bp-4, -0x1.745d165a9c6e5p-4, 0x1.3b1392795fc5ap-4, -0x1.110e814671e04p-4,
          0x1.e199784c12a9ep-5, -0x1.ac761bf063541p-5, 0x1.74c978a6dcea9p-5, -0x1.1aff6be5c2d5p-5,
          0x1.0a5f9b30092c3p-6),
      fma(-square, error, error));
  const tgm_pair total = tgm_fast_two_sum(turned ? tgm_pi_high / 4 : 0, t);
  return {total.high, total.low + (tail + (turned ? tgm_pi_low / 4 : 0))};
}
TG_SHARED double atan(double x) {
  const double size = fabs(x);
  const bool above = size > 1;
  const tgm_pair first = {above ? 1 : size, 0},
                 second = {above ? (size < 0x1p1000 ? size : 0x1p1000) : 1, 0};
  const tgm_pair found = tgm_atan_of_quotient(first, second);
  const tgm_pair sum = tgm_fast_two_sum(above ? tgm_pi_high / 2 : 0, above ? -found.high : found.high);
  const double y = sum.high + (sum.low + (above ? tgm_pi_low / 2 - found.low : found.low));
  return size < 0x1p-28 || x != x ? x : copysign(y, x);
}
TG_SHARED double atan2(double y, double x) {
  const double a = fabs(x), b = fabs(y), most = a > b ? a : b, least = a > b ? b : a;
  // scaled, so that nothing overflows and no digit is lost
  const double scale = most > 0x1p900 ? 0x1p-200 : most < 0x1p-700 ? 0x1p300 : 1;
  const bool both = least == tgm_inf, one = most == tgm_inf, none = most == 0;
  const double up = both ? 1 : one || none ? 0 : least * scale, down = one || none ? 1 : most * scale;
  const tgm_pair found = tgm_atan_of_quotient({up, 0}, {down, 0});
  const bool steep = b > a, back = signbit(x);
  // steep: pi / 2 - found or pi / 2 + found; else found or pi - found
  const double base = steep ? tgm_pi_high / 2 : back ? tgm_pi_high : 0;
  const double base_rest = steep ? tgm_pi_low / 2 : back ? tgm_pi_low : 0;
  const bool minus = steep != back;
  const tgm_pair sum = tgm_fast_two_sum(base, minus ? -found.high : found.high);
  double angle = sum.high + (sum.low + (base_rest + (minus ? -found.low : found.low)));
  // a quotient that is tiny, perhaps subnormal, is the angle itself
  angle = !steep && !back && least < most * 0x1p-28 ? least / most : angle;
  angle = none && !back ? 0 : angle;
  return x != x || y != y ? tgm_nan : copysign(angle, y);
}

// (asin(x) - x) / x**3 of the square of x.
TG_INLINE double tgm_asin_tail(double square) {
  return tgm_polynomial(square, 0x1.5555555555556p-3, 0x1.3333333332ecap-4, 0x1.6db6db6e31f13p-5,
      0x1.f1c71c1db0623p-6, 0x1.6e8bb1c8209a2p-6, 0x1.1c4d35cf95421p-6, 0x1.c9cf07674736ap-7,
      0x1.782651caa6547p-7, 0x1.52420b04b37bep-7, 0x1.65a9c4dfcf8b2p-8, 0x1.1d189408314eep-6,
      -0x1.e6aaa8a0a04ccp-7, 0x1.d72b2bc8155f8p-6);
}
// Beyond 1/2: asin(x) = pi / 2 - 2 asin(sqrt((1 - x) / 2)).
struct tgm_asin_parts {
  double half;  // (1 - |x|) / 2
  tgm_pair angle;  // asin of |x|, or of the root of `half`
};
TG_INLINE tgm_asin_parts tgm_asin_of(double size) {
  const double half = 0.5 * (1 - size);
  const bool far = size > 0.5;
  const double square = far ? half : size * size, root = sqrt(half), s = far ? root : size;
  const double rest = far && half > 0 ? fma(-root, root, half) / (2 * root) : 0;
  return {half, {s, fma(s * square, tgm_asin_tail(square), rest)}};
}
TG_SHARED double asin(double x) {
  const double size = fabs(x);
  const tgm_pair angle = tgm_asin_of(size).angle;
  const tgm_pair sum = tgm_fast_two_sum(tgm_pi_high / 2, -2 * angle.high);
  const double far = sum.high + (sum.low + fma(-2, angle.low, tgm_pi_low / 2));
  const double y = size > 0.5 ? far : angle.high + angle.low;
  return size > 1 ? tgm_nan : size < 0x1p-28 || x != x ? x : copysign(y, x);
}
TG_SHARED double acos(double x) {
  const double size = fabs(x);
  const tgm_pair angle = tgm_asin_of(size).angle;
  const double sign = x < 0 ? -1 : 1;
  const bool far = size > 0.5;
  // pi / 2 - angle; 2 angle; pi - 2 angle
  const double base = far ? (x < 0 ? tgm_pi_high : 0) : tgm_pi_high / 2;
  const double base_rest = far ? (x < 0 ? tgm_pi_low : 0) : tgm_pi_low / 2;
  const double factor = far ? 2 * sign : -sign;
  const tgm_pair sum = tgm_two_sum(base, factor * angle.high);
  const double y = sum.high + (sum.low + fma(factor, angle.low, base_rest));
  return size > 1 ? tgm_nan : x != x ? x : y;
}
