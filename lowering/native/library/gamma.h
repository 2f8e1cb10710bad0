// The gamma function and its logarithm. Comes after trigonometry.h and logarithms.h.
//
// Stirling's formula from 8 on, in double-doubles; below, a product of eight factors takes one there.

struct tgm_product {
  tgm_pair mantissa;
  tgm_i64 exponent;
};

// log(gamma(x)) for x from 8.
TG_INLINE tgm_pair tgm_stirling(tgm_pair x) {
  const double inverse = 1 / x.high, square = inverse * inverse;
  const double series =
      inverse * tgm_polynomial(square, 1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188,
                    -691. / 360360, 1. / 156, -3617. / 122400, 43867. / 244188, -174611. / 125400);
  const tgm_pair logarithm = tgm_log_pair(x.high);
  const tgm_pair more = {logarithm.high, fma(x.low, inverse, logarithm.low)};
  const tgm_pair product = tgm_multiply(more, tgm_add(x, -0.5));
  const tgm_pair difference = tgm_add(product, tgm_negative(x));
  return tgm_add(difference, tgm_add(tgm_pair{0x1.d67f1c864beb5p-1, -0x1.65b5a1b7ff5dfp-55}, series));
}
// x (x + 1) ... (x + 7)
TG_INLINE tgm_pair tgm_eight_factors(double x) {
  tgm_pair product = {x, 0};
#define TG_FACTOR(k) product = tgm_multiply(product, tgm_two_sum(k, x));
  TG_FACTOR(1)
  TG_FACTOR(2)
  TG_FACTOR(3)
  TG_FACTOR(4) TG_FACTOR(5) TG_FACTOR(6) TG_FACTOR(7)
#undef TG_FACTOR
      return product;
}
// gamma(x) for x > 0; of a number that is too large, something larger than any double.
TG_INLINE tgm_product tgm_gamma_of(double x) {
  const bool near = x < 8;
  const double z = x < 200 ? x : 200;
  const tgm_pair argument = near ? tgm_two_sum(8, z) : tgm_pair{z, 0};
  const tgm_pair logarithm = tgm_stirling(argument);
  const tgm_exponential e = tgm_exp_parts(logarithm.high, logarithm.low);
  const tgm_pair sum = tgm_fast_two_sum(1, e.mantissa.high);
  const tgm_pair mantissa = tgm_fast_two_sum(sum.high, sum.low + e.mantissa.low);
  const tgm_pair divisor = tgm_eight_factors(near ? z : 1);
  return {near ? tgm_divide(mantissa, divisor) : mantissa, e.exponent};
}
// |sin(pi x)|
TG_INLINE tgm_pair tgm_sine_of_pi(double x) {
  const double doubled = 2 * x, whole = rint(doubled), rest = 0.5 * (doubled - whole);
  const tgm_pair angle = tgm_multiply(tgm_pair{tgm_pi_high, tgm_pi_low}, rest);
  const tgm_angle reduced = {angle.high, angle.low, 0};
  const bool odd = 0.5 * whole != rint(0.5 * whole);
  const tgm_pair s = tgm_sin_pair(reduced), c = tgm_cos_pair(reduced), found = odd ? c : s;
  const tgm_pair y = tgm_fast_two_sum(found.high, found.low);
  return y.high < 0 ? tgm_negative(y) : y;
}

// Of negative numbers by gamma(-a) = -pi / (a sin(pi a) gamma(a)).
TG_SHARED double tgamma(double x) {
  const double size = fabs(x);
  const bool tiny = size < 0x1p-60;
  const tgm_product g = tgm_gamma_of(tiny ? 1 : size);
  const double up = tgm_scaled(g.mantissa.high + g.mantissa.low, g.exponent);
  const double place = size < 200 ? size : 199.5;
  const tgm_pair below = tgm_multiply(tgm_multiply(tgm_sine_of_pi(place), place), g.mantissa);
  const tgm_pair quotient = tgm_divide({tgm_pi_high, tgm_pi_low}, below);
  const double down = tgm_scaled(quotient.high + quotient.low, -g.exponent);
  const bool even = 0.5 * floor(size) == floor(0.5 * floor(size));
  double y = x > 0 ? up : even ? -down : down;
  y = x < 0 && floor(x) == x ? tgm_nan : y;
  y = x < -190 && floor(x) != x ? copysign(0.0, even ? -1.0 : 1.0) : y;
  y = tiny ? 1 / x : y;
  y = x > 172 ? tgm_inf : y;
  return x != x ? x : y;
}

// log(gamma(2 + u)) for |u| <= 1/2: its leading term has no error.
TG_INLINE tgm_pair tgm_lgamma_of_2_and(double u) {
  const tgm_pair product = tgm_two_product(u, 0x1.b0ee6072093cep-2);
  const double tail =
      tgm_polynomial(u, 0x1.4a34cc4a60fa6p-2, -0x1.13e001a55760ap-4, 0x1.51322ac7d848ap-6,
          -0x1.e404fc218dbaep-8, 0x1.7add6eadb5317p-9, -0x1.38ac5c2d48207p-10, 0x1.0b36af8779cap-11,
          -0x1.d3fd4b679c1c4p-13, 0x1.a127afee53e7dp-14, -0x1.78de9ab752b81p-15, 0x1.580e0afa5585p-16,
          -0x1.3cb3be36ad88bp-17, 0x1.258f3057730fap-18, -0x1.1276ebd557fbp-19, 0x1.012012be3900ap-20,
          -0x1.ce17528bcf46p-22, 0x1.b40adb09a1e12p-23, -0x1.2009c1a550d0dp-23, 0x1.11fa5e7c86f7bp-24);
  return tgm_fast_two_sum(product.high, fma(u * u, tail, fma(u, 0x1.6cb90701fbfabp-58, product.low)));
}
// log(gamma(x)) for x > 0. Near its zeros, of 2 + u less the logarithms of the factors between.
TG_INLINE tgm_pair tgm_lgamma_of(double x) {
  const double u = x < 0.5 ? x : x < 1.5 ? x - 1 : x < 2.5 ? x - 2 : 0;
  const tgm_pair factor = tgm_log1p_pair(u, 0), own = tgm_log_pair(x < 0.5 ? x : 1);
  const tgm_pair first = x < 1.5 ? tgm_negative(factor) : tgm_pair{0, 0};
  const tgm_pair both = tgm_add(tgm_negative(own), first);
  const tgm_pair near = tgm_add(both, tgm_lgamma_of_2_and(u));
  const bool middle = x < 8;
  const tgm_pair far = tgm_stirling(middle ? tgm_two_sum(8, x) : tgm_pair{x < 0x1p1000 ? x : 1e300, 0});
  const tgm_pair product = tgm_eight_factors(middle ? x : 1), logarithm = tgm_log_pair(product.high);
  const tgm_pair lowered =
      tgm_add(far, {-logarithm.high, -(logarithm.low + product.low / product.high)});
  return x < 2.5 ? near : middle ? lowered : far;
}
TG_SHARED double lgamma(double x) {
  const double size = fabs(x);
  const bool tiny = size < 0x1p-60;
  const tgm_pair above = tgm_lgamma_of(tiny ? 1 : size);
  const double place = size < 0x1p52 ? size : 0.5;
  const tgm_pair factor = tgm_multiply(tgm_sine_of_pi(place), place);
  const tgm_pair logarithm = tgm_log_pair(factor.high);
  // log(pi) less that of the factor
  const tgm_pair difference = tgm_two_sum(0x1.250d048e7a1bdp+0, -logarithm.high);
  const double low = 0x1.7abf2ad8d5088p-57 - logarithm.low - factor.low / factor.high;
  const tgm_pair inverse = tgm_fast_two_sum(difference.high, difference.low + low);
  const tgm_pair below = tgm_add(inverse, tgm_negative(above));
  double y = x > 0 ? above.high + above.low : below.high + below.low;
  y = tiny ? -log(size) : y;
  y = x > 0x1p1000 ? x * (log(x) - 1) : y;
  y = x == 0 || (x < 0 && floor(x) == x) || size == tgm_inf ? tgm_inf : y;
  return x != x ? x : y;
}
TG_BY_DOUBLE_OF_1(tgamma)
TG_BY_DOUBLE_OF_1(lgamma)
