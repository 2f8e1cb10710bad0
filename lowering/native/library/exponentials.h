// exp, exp2, expm1 and hyperbolic functions. Comes after numbers.h.
//
// exp(x) is 2**k exp(r) with |r| <= log(2) / 2, and exp(r) = 1 + r + r**2 q(r). Adding 1 and r without
// error leaves half an ulp and little more.

// log(2) in two parts: products of the first with integers up to 2**11 are exact.
constexpr double tgm_log2_high = 0x1.62e42fefa38p-1, tgm_log2_low = 0x1.ef35793c7673p-45;

// (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2.
TG_INLINE double tgm_exp_tail(double r) {
  return tgm_polynomial(r, 0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100dfp-7,
      0x1.6c16c16c162d6p-10, 0x1.a01a01abe63b3p-13, 0x1.a01a01a6d7883p-16, 0x1.71de02372bdd3p-19,
      0x1.27e4db679bec4p-22, 0x1.af4ddddcf06d6p-26, 0x1.1f72fca58cc92p-29);
}

struct tgm_exponential {
  tgm_pair mantissa;  // exp(r) - 1
  tgm_i64 exponent;
};

// Of the sum x + rest, `rest` being at most an ulp of x, and |x| < 1100.
TG_INLINE tgm_exponential tgm_exp_parts(double x, double rest) {
  const double shifted = fma(x, 0x1.71547652b82fep0, tgm_magic), k = shifted - tgm_magic;
  const double near = fma(-k, tgm_log2_high, x), small = fma(-k, tgm_log2_low, rest);
  const double r = near + small, error = (near - r) + small;
  return {{r, fma(r * r, tgm_exp_tail(r), fma(r, error, error))},
      (tgm_i64)(tgm_bits(shifted) - tgm_bits(tgm_magic))};
}
TG_INLINE double tgm_exp_clamped(double x) { return x < -746 ? -746 : x > 710 ? 710 : x; }

// exp(x + rest)
TG_INLINE double tgm_exp_of_sum(double x, double rest) {
  const tgm_exponential e = tgm_exp_parts(tgm_exp_clamped(x), rest);
  const tgm_pair sum = tgm_fast_two_sum(1, e.mantissa.high);
  return tgm_scaled(sum.high + (sum.low + e.mantissa.low), e.exponent);
}

TG_SHARED double exp(double x) { return tgm_exp_of_sum(x, 0); }

TG_SHARED double exp2(double x) {
  const double z = x < -1100 ? -1100 : x > 1100 ? 1100 : x;
  const double shifted = z + tgm_magic, r = z - (shifted - tgm_magic);
  const double high = r * 0x1.62e42fefa39efp-1;
  const double low = fma(r, 0x1.62e42fefa39efp-1, -high) + r * 0x1.abc9e3b39803fp-56;
  const tgm_pair sum = tgm_fast_two_sum(1, high);
  const double mantissa =
      sum.high + (sum.low + fma(high * high, tgm_exp_tail(high), fma(high, low, low)));
  return tgm_scaled(mantissa, (tgm_i64)(tgm_bits(shifted) - tgm_bits(tgm_magic)));
}

// exp(x + rest) - 1 for |x| up to 709: 2**k - 1 and 2**k r are added without error.
TG_INLINE tgm_pair tgm_expm1_pair(double x, double rest) {
  const tgm_exponential e = tgm_exp_parts(x, rest);
  const double scale = tgm_double((tgm_u64)(e.exponent + 1023) << 52);
  const tgm_pair sum = tgm_two_sum(scale - 1, scale * e.mantissa.high);
  const double below = e.exponent > 53 ? -1 : 0;  // what scale - 1 has lost, beyond that
  return tgm_fast_two_sum(sum.high, sum.low + fma(scale, e.mantissa.low, below));
}
TG_SHARED double expm1(double x) {
  // exp(709) is finite, and so is twice as much
  const double z = x < -50 ? -50 : x > 709 ? 709 : x;
  const tgm_pair found = tgm_expm1_pair(z, 0);
  const double far = exp(x), near = found.high + found.low;
  const double y = fabs(x) < 0x1p-54 ? x : x > 700 ? far : near;
  return x != x ? x : y;
}

// ---- hyperbolic functions -------------------------------------------------------------------------

// exp(|x|) / 2 and exp(-|x|) / 2 as pairs; the second is 0 where it does not count.
struct tgm_halves {
  tgm_pair up, down;
};
TG_INLINE tgm_halves tgm_half_exponentials(double x) {
  const double size = fabs(x) > 711 ? 711 : fabs(x);
  const tgm_exponential e = tgm_exp_parts(size, 0);
  tgm_pair sum = tgm_fast_two_sum(1, e.mantissa.high);
  sum = tgm_fast_two_sum(sum.high, sum.low + e.mantissa.low);
  const tgm_i64 n = e.exponent - 1;
  const tgm_pair up = {tgm_scaled(sum.high, n), tgm_scaled(sum.low, n)};
  const tgm_pair inverse = tgm_divide({0.25, 0}, size < 40 ? up : tgm_pair{0x1p60, 0});
  return {up, inverse};
}

TG_SHARED double sinh(double x) {
  const tgm_halves e = tgm_half_exponentials(x);
  const double difference = e.up.high - e.down.high;
  const double rest = ((e.up.high - difference) - e.down.high) + (e.up.low - e.down.low);
  const double far = fabs(x) > 711 ? tgm_inf : difference + rest;
  const double z = x * x;
  const double near = fma(x * z,
      tgm_polynomial(z, 0x1.5555555555555p-3, 0x1.1111111111111p-7, 0x1.a01a01a01a001p-13,
          0x1.71de3a556f96cp-19, 0x1.ae6456792a77fp-26, 0x1.612467ccb226p-33, 0x1.ae777c36fd5b6p-41,
          0x1.99f0806c2628dp-49),
      x);
  return x != x ? x : fabs(x) < 1 ? near : copysign(far, x);
}
TG_SHARED double cosh(double x) {
  const tgm_halves e = tgm_half_exponentials(x);
  const tgm_pair sum = tgm_fast_two_sum(e.up.high, e.down.high);
  const double y = fabs(x) > 711 ? tgm_inf : sum.high + (sum.low + (e.up.low + e.down.low));
  return x != x ? x : y;
}
// expm1(2 x) / (expm1(2 x) + 2)
TG_SHARED double tanh(double x) {
  const double size = fabs(x) > 20 ? 20 : fabs(x);
  const tgm_pair e = tgm_expm1_pair(2 * size, 0), sum = tgm_two_sum(2, e.high);
  const tgm_pair y = tgm_divide(e, {sum.high, sum.low + e.low});
  const double found = fabs(x) < 0x1p-28 ? x : copysign(y.high + y.low, x);
  return x != x ? x : fabs(x) > 20 ? copysign(1.0, x) : found;
}
