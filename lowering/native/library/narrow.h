// float32 functions. Most are computed in double, with fewer terms and no compensation: their errors are
// little more than half a unit in the last place. exp, exp2 and log are computed in float, which is
// faster, and have errors below one unit. Comes after the functions of double.

// exp(r) - 1 for |r| <= log(2) / 2, with an error of 2**-38.
TG_INLINE double tgm_light_tail(double r) {
  return fma(r * r,
      tgm_polynomial(r, 0x1p-1, 0x1.55555567507b9p-3, 0x1.5555555c8601cp-5, 0x1.1110c63a1644ap-7,
          0x1.6c1685916fe81p-10, 0x1.a1516a5685407p-13, 0x1.a11313af8dccap-16),
      r);
}
struct tgm_light {
  double tail, scale;
};  // exp(x) = scale (1 + tail)
TG_INLINE tgm_light tgm_light_exp(double x) {  // |x| < 700
  const double shifted = fma(x, 0x1.71547652b82fep0, tgm_magic), k = shifted - tgm_magic;
  const double r = fma(-k, 0x1.62e42fefa39efp-1, x);
  return {tgm_light_tail(r), tgm_double((tgm_bits(shifted) + 1023) << 52)};
}
TG_INLINE double tgm_light_exp_of(double x) {
  const tgm_light e = tgm_light_exp(x);
  return fma(e.scale, e.tail, e.scale);
}
// exp(x) - 1
TG_INLINE double tgm_light_expm1(double x) {
  const tgm_light e = tgm_light_exp(x);
  return fma(e.scale, e.tail, e.scale - 1);
}
TG_INLINE double tgm_within(double x, double most) { return x > most ? most : x < -most ? -most : x; }

TG_INLINE float expm1(float x) {
  const float y = (float)tgm_light_expm1(tgm_within(x, 120));
  return x == 0 ? x : y;
}
// With e = exp(|x|) - 1, sinh is (e + e / (e + 1)) / 2.
TG_INLINE float sinh(float x) {
  const double e = tgm_light_expm1(fabs(tgm_within(x, 120)));
  return x != x ? x : copysign((float)(0.5 * (e + e / (e + 1))), x);
}
TG_INLINE float cosh(float x) {
  const double e = tgm_light_exp_of(fabs(tgm_within(x, 120)));
  return (float)(0.5 * (e + 1 / e));
}
TG_INLINE float tanh(float x) {
  const double e = tgm_light_expm1(2 * fabs(tgm_within(x, 12)));
  return x != x ? x : copysign((float)(e / (e + 2)), x);
}

// ---- logarithms ---------------------------------------------------------------------------------------

// log(x) for a double that is positive, normal and finite.
TG_INLINE double tgm_light_log(double x) {
  const tgm_u64 above = tgm_bits(x) - 0x3fe6a09e667f3bcd;
  const tgm_u64 biased = (above + 0x4000000000000000) >> 52;
  const double k = tgm_double(biased | 0x4330000000000000) - (0x1p52 + 1024);
  const double f = tgm_double(tgm_bits(x) - (above & 0xfff0000000000000)) - 1;
  const double s = f / (2 + f), square = s * s;
  const double tail = tgm_polynomial(
      square, 0x1.5555554ba8b0ep-1, 0x1.9999eb9d6ddfep-2, 0x1.245c273432202p-2, 0x1.ddd4dad98e4c4p-3);
  return fma(k, 0x1.62e42fefa39efp-1, fma(s * square, tail, 2 * s));
}
TG_INLINE double tgm_light_log_of(float x) {
  const double y = tgm_light_log(x > 0 && x < (float)tgm_inf ? x : 1);
  return tgm_log_special(x, y);
}
TG_INLINE float log2(float x) { return (float)(tgm_light_log_of(x) * 0x1.71547652b82fep0); }
TG_INLINE float log10(float x) { return (float)(tgm_light_log_of(x) * 0x1.bcb7b1526e50ep-2); }
// log(1 + x): 1 + x is rounded, and the error of that counts where x is small.
TG_INLINE double tgm_light_log1p(double x) {
  const double sum = 1 + x;
  return tgm_light_log(sum) + (x < 1 ? x - (sum - 1) : 0);
}
TG_INLINE float log1p(float x) {
  const bool inside = x > -1 && x < (float)tgm_inf;
  const double y = tgm_light_log1p(inside ? x : 0);
  const double special = x == -1 ? -tgm_inf : x < -1 ? tgm_nan : x;
  return x == 0 ? x : (float)(inside ? y : special);
}
TG_INLINE float asinh(float x) {
  const double size = fabs((double)x), z = size < tgm_inf ? size : 1;
  const double y = tgm_light_log1p(z + z * (z / (1 + sqrt(fma(z, z, 1)))));
  return x != x || isinf(x) ? x : copysign((float)y, x);
}
TG_INLINE float acosh(float x) {
  const double t = x >= 1 && x < (float)tgm_inf ? (double)x - 1 : 0;
  const double y = tgm_light_log1p(t + sqrt(t * (t + 2)));
  return x < 1 ? (float)tgm_nan : x != x || isinf(x) ? x : (float)y;
}
TG_INLINE float atanh(float x) {
  const double size = fabs((double)x), z = size < 1 ? size : 0;
  const float y = (float)(0.5 * tgm_light_log1p(2 * z / (1 - z)));
  const float special = size == 1 ? (float)tgm_inf : (float)tgm_nan;
  return x != x ? x : copysign(size < 1 ? y : special, size > 1 ? 1.0f : x);
}

// ---- powers -------------------------------------------------------------------------------------------

TG_INLINE float pow(float x, float y) {
  const float size = fabs(x);
  const bool usual = size > 0 && size < (float)tgm_inf;
  const double finite = tgm_light_log(usual ? (double)size : 1);
  const double logarithm = size == 0 ? -tgm_inf : usual ? finite : (double)size;
  float found = (float)tgm_light_exp_of(tgm_within(y * logarithm, 200));
  const float half = 0.5f * y;
  const bool whole = trunc(y) == y, odd = whole && trunc(half) != half;
  found = size == 1 && y == y ? 1 : found;
  found = signbit(x) && odd ? -found : found;
  found = x < 0 && !whole && size != (float)tgm_inf ? (float)tgm_nan : found;
  return y == 0 || x == 1 ? 1 : found;
}
TG_INLINE float cbrt(float x) {
  const bool ends = x != x || x == 0 || isinf(x);
  const double size = ends ? 1 : fabs((double)x);
  const tgm_u64 bits = tgm_bits(size);
  const tgm_u64 exponent = bits >> 52, third = (exponent * 0x55555556) >> 32;
  const double m = tgm_double((bits & 0x000fffffffffffff) | ((exponent - 3 * third + 1023) << 52));
  const double first = tgm_polynomial(
      m, 0x1.6ef7d7cd66d8cp-1, 0x1.50ba80e69b747p-2, -0x1.16bdce74d65dbp-5, 0x1.aaa35d014643bp-10);
  const double y = tgm_cbrt_step(tgm_cbrt_step(first, m), m) * tgm_double((third + 682) << 52);
  return ends ? x : copysign((float)y, x);
}
TG_INLINE float hypot(float x, float y) {
  const double a = x, b = y;
  const float found = (float)sqrt(fma(a, a, b * b));
  return isinf(x) || isinf(y) ? (float)tgm_inf : found;
}

// ---- circular functions -------------------------------------------------------------------------------

struct tgm_light_angle {
  double sine, cosine;
};  // of x less a multiple of pi / 2
TG_INLINE tgm_light_angle tgm_light_angle_of(double r) {
  const double square = r * r;
  const double sine = fma(r * square,
      tgm_polynomial(square, -0x1.555555545d0dap-3, 0x1.11110decc73fdp-7, -0x1.a013a455bd213p-13,
          0x1.6dbcfb4dee452p-19),
      r);
  const double cosine = fma(square * square,
      tgm_polynomial(square, 0x1.55555555027adp-5, -0x1.6c16bf534c9ebp-10, 0x1.a015c25366932p-16,
          -0x1.25239a9550aefp-22),
      fma(-0.5, square, 1));
  return {sine, cosine};
}
TG_INLINE double tgm_light_sin(double r, tgm_u64 quadrant) {
  const tgm_light_angle y = tgm_light_angle_of(r);
  return tgm_double(tgm_bits(quadrant & 1 ? y.cosine : y.sine) ^ (quadrant & 2) << 62);
}
TG_INLINE double tgm_light_tan(double r, tgm_u64 quadrant) {
  const tgm_light_angle y = tgm_light_angle_of(r);
  return quadrant & 1 ? -y.cosine / y.sine : y.sine / y.cosine;
}
// The distance of a float of at most 2**30 from a multiple of pi / 2 is above 2**-60.
struct tgm_light_place {
  double r;
  tgm_u64 quadrant;
};
TG_INLINE tgm_light_place tgm_light_near(double x) {
  const double shifted = fma(x, 0x1.45f306dc9c883p-1, tgm_magic), k = shifted - tgm_magic;
  return {fma(-k, 0x1.1a62633145c07p-54, fma(-k, 0x1.921fb54442d18p+0, x)), tgm_bits(shifted)};
}
TG_INLINE tgm_light_place tgm_light_place_of(float x) {
  if (fabs(x) <= (float)tgm_near_angles) return tgm_light_near(x);
  const tgm_angle far = tgm_far_angle(x);
  return {far.r, far.quadrant};
}
namespace tgm_fast {
TG_INLINE float sin(float x) {
  const tgm_light_place at = tgm_light_near(x);
  return x == 0 ? x : (float)tgm_light_sin(at.r, at.quadrant);
}
TG_INLINE float cos(float x) {
  const tgm_light_place at = tgm_light_near(x);
  return (float)tgm_light_sin(at.r, at.quadrant + 1);
}
TG_INLINE float tan(float x) {
  const tgm_light_place at = tgm_light_near(x);
  return x == 0 ? x : (float)tgm_light_tan(at.r, at.quadrant);
}
}  // namespace tgm_fast
TG_INLINE float sin(float x) {
  const tgm_light_place at = tgm_light_place_of(x);
  return x == 0 ? x : (float)tgm_light_sin(at.r, at.quadrant);
}
TG_INLINE float cos(float x) {
  const tgm_light_place at = tgm_light_place_of(x);
  return (float)tgm_light_sin(at.r, at.quadrant + 1);
}
TG_INLINE float tan(float x) {
  const tgm_light_place at = tgm_light_place_of(x);
  return x == 0 ? x : (float)tgm_light_tan(at.r, at.quadrant);
}

// The arc tangent of up / down for 0 <= up <= down.
TG_INLINE double tgm_light_atan(double up, double down) {
  const bool turned = up > 0x1.a827999fcef32p-2 * down;
  const double t = (turned ? up - down : up) / (turned ? up + down : down), square = t * t;
  const double y = fma(t * square,
      tgm_polynomial(square, -0x1.5555555501012p-2, 0x1.9999982174cc2p-3, -0x1.2491bf4d43d38p-3,
          0x1.c6f6423772b89p-4, -0x1.71d068317959cp-4, 0x1.2430533e53a2cp-4, -0x1.4ae872e20e209p-5),
      t);
  return turned ? y + tgm_pi_high / 4 : y;
}
TG_INLINE float atan(float x) {
  const double size = fabs((double)x), z = size < 1e300 ? size : 1e300;
  const bool above = size > 1;
  const double y = tgm_light_atan(above ? 1 : z, above ? z : 1);
  return x != x ? x : copysign((float)(above ? tgm_pi_high / 2 - y : y), x);
}
TG_INLINE float atan2(float y, float x) {
  const double a = fabs((double)x), b = fabs((double)y), most = a > b ? a : b, least = a > b ? b : a;
  const bool both = least == tgm_inf, one = most == tgm_inf, none = most == 0;
  const double found = tgm_light_atan(both ? 1 : one || none ? 0 : least, one || none ? 1 : most);
  const double steep = b > a ? tgm_pi_high / 2 - found : found;
  const double angle = signbit(x) ? tgm_pi_high - steep : steep;
  return x != x || y != y ? (float)tgm_nan : copysign((float)angle, y);
}
// asin of |x| up to 1/2, or of sqrt((1 - |x|) / 2).
TG_INLINE double tgm_light_asin(double size) {
  const bool far = size > 0.5;
  const double square = far ? 0.5 * (1 - size) : size * size, s = far ? sqrt(square) : size;
  return fma(s * square,
      tgm_polynomial(square, 0x1.5555555c0171dp-3, 0x1.33331ecf8b70bp-4, 0x1.6dc0f007c13e8p-5,
          0x1.efedf83ab6506p-6, 0x1.82db23768c84fp-6, 0x1.5a80a068e3ee2p-7, 0x1.fb7ca379d49c6p-6),
      s);
}
TG_INLINE float asin(float x) {
  const double size = fabs((double)x), y = tgm_light_asin(size < 1 ? size : 1);
  const double found = size > 0.5 ? tgm_pi_high / 2 - 2 * y : y;
  return size > 1 ? (float)tgm_nan : x != x ? x : copysign((float)found, x);
}
TG_INLINE float acos(float x) {
  const double size = fabs((double)x), y = tgm_light_asin(size < 1 ? size : 1);
  const double far = x < 0 ? tgm_pi_high - 2 * y : 2 * y,
               near = tgm_pi_high / 2 - copysign(y, (double)x);
  return size > 1 ? (float)tgm_nan : x != x ? x : (float)(size > 0.5 ? far : near);
}

// ---- error functions ----------------------------------------------------------------------------------

TG_INLINE double tgm_light_near_erf(double x) {
  const double z = x * x;
  return x * tgm_polynomial(z, 0x1.20dd75040cec4p0, -0x1.81274661ca5c3p-2, 0x1.ce2efea77636p-4,
                 -0x1.b827051379f15p-6, 0x1.55e3343fd3eb7p-8, -0x1.b624c9b06ee75p-11,
                 0x1.8d384f1f8881ap-14);
}
TG_INLINE double tgm_light_erfcx(double x) {  // from 0
  const double t = 1 - 8 / (x + 4);
  return tgm_polynomial(t, 0x1.3ba5916eb6731p0, -0x1.1df1acb764938p-3, 0x1.f7f5db42c01d9p-7,
             0x1.16ecd3d36153p-4, -0x1.9ddb1c646637bp-4, 0x1.7fef370b77727p-4, -0x1.0fb08f86aeff4p-4,
             0x1.306df30a55111p-5, -0x1.09619cb4100fcp-6, 0x1.4abc4625b968ep-8, -0x1.8d177d07ecd97p-11,
             -0x1.cd13b0f970db9p-13, 0x1.3959cbf46887bp-13, -0x1.27b1accfae994p-17,
             -0x1.52a5a01f9b972p-17) /
         fma(2, x, 1);
}
TG_INLINE float erf(float x) {
  const double size = fabs((double)x), z = size < 6 ? size : 6;
  const double far = 1 - tgm_light_erfcx(z) * tgm_light_exp_of(-z * z);
  const double near = tgm_light_near_erf(size < 0.75 ? size : 0.75);
  return x != x ? x : copysign((float)(size < 0.75 ? near : far), x);
}
TG_INLINE float erfc(float x) {
  const double size = fabs((double)x), z = size < 16 ? size : 16;
  const double far = tgm_light_erfcx(z) * tgm_light_exp_of(-z * z);
  const double near = tgm_light_near_erf(size < 0.75 ? x : 0);
  return x != x ? x : (float)(size < 0.75 ? 1 - near : x < 0 ? 2 - far : far);
}
TG_INLINE float normcdf(float x) {
  const double size = fabs((double)x), s = size < 20 ? size : 20, z = s * 0x1.6a09e667f3bcdp-1;
  const double far = 0.5 * tgm_light_erfcx(z) * tgm_light_exp_of(-0.5 * s * s);
  const double near = fma(0.5, tgm_light_near_erf(z < 0.75 ? z : 0.75), 0.5);
  return x != x ? x : (float)(x < 0 ? z < 0.75 ? 1 - near : far : z < 0.75 ? near : 1 - far);
}

// The x with erf(x) = y and erfc(x) = z, by w = -log(1 - y**2) = -log(z (2 - z)).
TG_INLINE double tgm_light_erfinv(double y, double w) {
  const double t = (w < 6.25 ? w : 6.25) - 3.125;
  const double near =
      y * tgm_polynomial(t, 0x1.a755e7c99ae86p0, 0x1.ebd80d92401afp-3, -0x1.8b6c32f9f3419p-8,
              -0x1.8457477542b7bp-11, 0x1.879c1edf1c14bp-13, -0x1.d1db5f4ff426bp-17,
              -0x1.6e83f954c3c35p-20, 0x1.c74927780f1eep-22, -0x1.f43a7b62da4b5p-26,
              -0x1.240a35a24e77fp-28, 0x1.245ef6399d063p-30, -0x1.366cbde6d3391p-35,
              -0x1.04b81eb5653d2p-36, 0x1.69c30f6d8f5cep-40, 0x1.4128221be3ddbp-44);
  const double root = sqrt(w > 6.2 ? w : 6.2), v = 1 / root - 0x1.fea996b17e7f7p-3;
  const double far =
      root * tgm_polynomial(v, 0x1.eb8effbf14966p-1, -0x1.961e6ce806bdep-3, 0x1.442c0ede20823p-4,
                 0x1.1ca21350b9dd4p-1, -0x1.c1554a8b78606p-1, 0x1.cefbebf4ddaccp-1,
                 -0x1.9713e13c2d2eep1, -0x1.afcff07f41c55p1, -0x1.5d35141007a5fp4, 0x1.7451dc0ded563p7,
                 0x1.0044f2f6c2d97p9, -0x1.6f4dc98c64b61p9, -0x1.0e129223eb9a8p13);
  return w < 6.25 ? near : far;
}
TG_INLINE float erfinv(float y) {
  const double size = fabs((double)y), z = size < 1 ? size : 0;
  const double x = tgm_light_erfinv(z, -tgm_light_log((1 - z) * (1 + z)));
  const float found = size == 1 ? (float)tgm_inf : (float)x;
  return size > 1 ? (float)tgm_nan : y != y ? y : copysign(found, y);
}
// Of a double that a float was multiplied to.
TG_INLINE double tgm_light_erfcinv(double z) {
  const bool inside = z > 0 && z < 2;
  const double place = inside ? z : 1, small = place > 1 ? 2 - place : place;
  const double size = tgm_light_erfinv(1 - small, -tgm_light_log(small * (2 - small)));
  const double ends = z == 0 ? tgm_inf : z == 2 ? -tgm_inf : tgm_nan;
  return inside ? (z > 1 ? -size : size) : ends;
}
TG_INLINE float erfcinv(float z) { return (float)tgm_light_erfcinv(z); }
TG_INLINE float normcdfinv(float p) {
  const double x = -0x1.6a09e667f3bcdp+0 * tgm_light_erfcinv(2 * (double)p);
  return p == 0.5f ? 0 : (float)x;
}

// ---- in float -------------------------------------------------------------------------------------------

// (exp(r) - 1 - r) / r**2
TG_INLINE float tgm_exp_tail(float r) {
  return tgm_polynomial(r, 0x1p-1, 0x1.5554dep-3, 0x1.55551ap-5, 0x1.120b62p-7, 0x1.6d10fcp-10);
}
TG_INLINE float exp(float x) {
  const float z = x < -105 ? -105 : x > 90 ? 90 : x;
  const float shifted = fma(z, 0x1.715476p+0f, tgm_magic_f), k = shifted - tgm_magic_f;
  const float near = fma(-k, 0x1.62e4p-1f, z), small = -k * 0x1.7f7d1cp-20f;  // log(2) in two parts
  const float r = near + small, error = (near - r) + small;
  const float sum = 1 + r, low = ((1 - sum) + r) + fma(r * r, tgm_exp_tail(r), error);
  return tgm_scaled(sum + low, (int)(tgm_bits(shifted) - tgm_bits(tgm_magic_f)));
}
TG_INLINE float exp2(float x) {
  const float z = x < -160 ? -160 : x > 140 ? 140 : x, shifted = z + tgm_magic_f;
  const float place = z - (shifted - tgm_magic_f), r = place * 0x1.62e43p-1f;  // log(2)
  const float error = fma(place, 0x1.62e43p-1f, -r) + place * -0x1.05c61p-29f;
  const float sum = 1 + r, low = ((1 - sum) + r) + fma(r * r, tgm_exp_tail(r), error);
  return tgm_scaled(sum + low, (int)(tgm_bits(shifted) - tgm_bits(tgm_magic_f)));
}
TG_INLINE float exp2f(float x) { return exp2(x); }
TG_INLINE float log(float x) {
  const bool tiny = x < 0x1p-126f;
  const tgm_u32 bits = tgm_bits(tiny ? x * 0x1p23f : x), above = bits - 0x3f3504f3;  // sqrt(1/2)
  const float k = (float)((int)above >> 23) - (tiny ? 23 : 0);
  const float f = tgm_float(bits - (above & 0xff800000)) - 1, square = f * f;
  const float tail = tgm_polynomial(f, 0x1.555554p-2, -0x1.fffffcp-3, 0x1.999d5ap-3, -0x1.555b4ap-3,
      0x1.23d21ap-3, -0x1.fcf4c6p-4, 0x1.dea282p-4, -0x1.d635bcp-4, 0x1.1d8ea6p-4);
  const float low = fma(k, 0x1.7f7d1cp-20f, fma(f * square, tail, -0.5f * square));
  const float high = k * 0x1.62e4p-1f, sum = high + f, rest = (high - sum) + f;
  const float y = sum + (rest + low);
  const float special = x == 0 ? -(float)tgm_inf : x < 0 ? (float)tgm_nan : x;
  return x > 0 && x < (float)tgm_inf ? y : special;
}
