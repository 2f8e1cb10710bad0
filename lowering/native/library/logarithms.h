// Logarithms, inverse hyperbolic functions and powers. Comes after exponentials.h.
//
// x is 2**k m, m from sqrt(1/2) to sqrt(2), and log(m) = 2 s + s**3 (2/3 + ...) with s = (m - 1) / (m + 1).

struct tgm_split {
  double exponent, fraction;
};  // x = 2**exponent (1 + fraction)

// Of a positive number that is finite; of others, something.
TG_INLINE tgm_split tgm_split_of(double x) {
  const bool tiny = x < tgm_least_normal;
  const tgm_u64 bits = tgm_bits(tiny ? x * 0x1p54 : x);
  const tgm_u64 above = bits - 0x3fe6a09e667f3bcd;  // sqrt(1/2)
  // the exponent is in the upper bits of an integer, which the bits of 2**52 make a float
  const tgm_u64 biased = (above + 0x4000000000000000) >> 52;
  const double k = tgm_double(biased | 0x4330000000000000) - (0x1p52 + 1024 + (tiny ? 54 : 0));
  return {k, tgm_double(bits - (above & 0xfff0000000000000)) - 1};
}

// s**2 (2/3 + ...) / s**2 ...: (log((1 + s) / (1 - s)) - 2 s) / s**3, of the square of s.
TG_INLINE double tgm_log_tail(double square) {
  return tgm_polynomial(square, 0x1.5555555555558p-1, 0x1.9999999995273p-2, 0x1.2492492dfd86cp-2,
      0x1.c71c62d5e53ep-3, 0x1.7462b91b8df65p-3, 0x1.39fdcceb4bb45p-3, 0x1.2b5f68a50d903p-3);
}

// log(1 + f), `rest` being the error of f: at most an ulp of 1 + f.
TG_INLINE tgm_pair tgm_log_of_fraction(double f, double rest) {
  const double s = f / (2 + f), square = s * s;
  const double half = 0.5 * f * f, half_rest = fma(0.5 * f, f, -half);
  const double low = fma(s, fma(square, tgm_log_tail(square), half), -half_rest) + rest * (1 - f);
  const tgm_pair sum = tgm_fast_two_sum(f, -half);
  return tgm_fast_two_sum(sum.high, sum.low + low);
}
TG_INLINE double tgm_log_special(double x, double y) {
  y = x == 0 ? -tgm_inf : y;
  y = x < 0 ? tgm_nan : y;
  return x != x || x == tgm_inf ? x : y;
}

// log(x 2**more)
TG_INLINE double tgm_log_of_scaled(double x, double more) {
  const tgm_split m = tgm_split_of(x);
  const double f = m.fraction, k = m.exponent + more, s = f / (2 + f), square = s * s,
               half = 0.5 * f * f;
  const double tail = fma(s, fma(square, tgm_log_tail(square), half), k * tgm_log2_low);
  const tgm_pair sum = tgm_fast_two_sum(k * tgm_log2_high, f);
  return tgm_log_special(x, sum.high + (sum.low + (tail - half)));
}
TG_SHARED double log(double x) { return tgm_log_of_scaled(x, 0); }

// The sum of k and the logarithm times a constant.
TG_SHARED double log2(double x) {
  const tgm_split m = tgm_split_of(x);
  const tgm_pair y =
      tgm_multiply(tgm_log_of_fraction(m.fraction, 0), {0x1.71547652b82fep0, 0x1.777d0ffda0d24p-56});
  const tgm_pair sum = tgm_fast_two_sum(m.exponent, y.high);
  return tgm_log_special(x, sum.high + (sum.low + y.low));
}
TG_SHARED double log10(double x) {
  const tgm_split m = tgm_split_of(x);
  const tgm_pair y =
      tgm_multiply(tgm_log_of_fraction(m.fraction, 0), {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57});
  // log10(2): products of the first part with exponents are exact
  const tgm_pair sum = tgm_fast_two_sum(m.exponent * 0x1.34413509f78p-2, y.high);
  return tgm_log_special(x, sum.high + (sum.low + fma(m.exponent, 0x1.fef311f12b358p-46, y.low)));
}

// log(1 + x + rest), `rest` being at most an ulp of x.
TG_INLINE tgm_pair tgm_log1p_pair(double x, double rest) {
  const tgm_pair sum = tgm_two_sum(1, x);
  const tgm_split m = tgm_split_of(sum.high);
  const double low = sum.low + rest;
  const bool near = m.exponent == 0;  // x itself is the fraction
  const tgm_u64 exponent = tgm_bits(m.exponent + tgm_magic) - tgm_bits(tgm_magic);
  const double scale = m.exponent < 1000 ? tgm_double((1023 - exponent) << 52) : 0;
  const double error = near ? rest : low * scale;
  const double f = near ? x : m.fraction;
  const double q = 1 / (2 + f), s = f * q, square = s * s, half = 0.5 * f * f;
  const double tail = fma(s, fma(square, tgm_log_tail(square), half), m.exponent * tgm_log2_low);
  const double correction = error / (1 + f);
  const tgm_pair first = tgm_fast_two_sum(m.exponent * tgm_log2_high, f);
  const tgm_pair second = tgm_fast_two_sum(first.high, -half);
  return tgm_fast_two_sum(
      second.high, second.low + (first.low + (tail - fma(0.5 * f, f, -half) + correction)));
}
TG_SHARED double log1p(double x) {
  const tgm_pair y = tgm_log1p_pair(x, 0);
  double found = fabs(x) < 0x1p-54 ? x : y.high + y.low;
  found = x == -1 ? -tgm_inf : found;
  found = x < -1 ? tgm_nan : found;
  return x != x || x == tgm_inf ? x : found;
}

// ---- inverse hyperbolic functions -------------------------------------------------------------------

// log1p(x + x**2 / (1 + sqrt(x**2 + 1))), and log(2 x) from 2**28 on.
TG_SHARED double asinh(double x) {
  const double size = fabs(x), z = size < 0x1p28 ? size : 1;
  const tgm_pair square = tgm_two_product(z, z);
  const tgm_pair sum = tgm_two_sum(1, square.high);
  const tgm_pair root = tgm_root(tgm_fast_two_sum(sum.high, sum.low + square.low));
  const tgm_pair below = tgm_two_sum(1, root.high);
  const tgm_pair quotient = tgm_divide(square, {below.high, below.low + root.low});
  const tgm_pair argument = tgm_add({z, 0}, quotient);
  const tgm_pair near = tgm_log1p_pair(argument.high, argument.low);
  const double far = tgm_log_of_scaled(size, 1);
  const double y = size < 0x1p-28 ? size : size < 0x1p28 ? near.high + near.low : far;
  return x != x ? x : copysign(y, x);
}
// log1p(t + sqrt(2 t + t**2)) with t = x - 1.
TG_SHARED double acosh(double x) {
  const double t = x < 0x1p28 ? x - 1 : 1;
  const tgm_pair square = tgm_two_product(t, t);
  const tgm_pair root = tgm_root(tgm_add(tgm_two_sum(2 * t, square.high), tgm_pair{square.low, 0}));
  const tgm_pair sum = tgm_add(t < 2 ? root : tgm_pair{t, 0}, t < 2 ? tgm_pair{t, 0} : root);
  const tgm_pair near = tgm_log1p_pair(sum.high, sum.low);
  const double y = x < 0x1p28 ? near.high + near.low : tgm_log_of_scaled(x, 1);
  return x < 1 ? tgm_nan : x == 1 ? 0 : x != x ? x : y;
}
// log1p(2 x / (1 - x)) / 2
TG_SHARED double atanh(double x) {
  const double size = fabs(x);
  const tgm_pair quotient = tgm_divide({2 * size, 0}, tgm_fast_two_sum(1, -size));
  const tgm_pair found = tgm_log1p_pair(quotient.high, quotient.low);
  double y = size < 0x1p-28 ? size : 0.5 * (found.high + found.low);
  y = size == 1 ? tgm_inf : y;
  return size > 1 ? tgm_nan : x != x ? x : copysign(y, x);
}

// ---- powers -------------------------------------------------------------------------------------------

// log(x) with an error of 2**-65 of itself. Products keep the lower halves of both operands.
TG_INLINE tgm_pair tgm_log_pair(double x) {
  const tgm_split m = tgm_split_of(x);
  const double f = m.fraction, divisor = 2 + f, inverse = 1 / divisor, s = f * inverse;
  const double s_low = inverse * fma(-s, f - (divisor - 2), fma(-s, divisor, f));
  const double square = s * s, square_low = fma(s, s, -square) + 2 * s * s_low;
  const double tail = square * tgm_polynomial(square, 0x1.999999999999ap-2, 0x1.2492492492522p-2,
                                   0x1.c71c71c6ea5acp-3, 0x1.745d177ad436ap-3, 0x1.3b1395b82701ep-3,
                                   0x1.1118cd67251c5p-3, 0x1.df7ba1f4809c3p-4, 0x1.e03a7acf07f85p-4);
  const tgm_pair factor = tgm_fast_two_sum(0x1.5555555555555p-1, tail);
  const double factor_low = factor.low + 0x1.5555555555555p-55;
  const double cube = square * s, cube_low = fma(square, s, -cube) + fma(square, s_low, square_low * s);
  const double term = cube * factor.high;
  const double term_low = fma(cube, factor.high, -term) + fma(cube, factor_low, cube_low * factor.high);
  const tgm_pair first = tgm_fast_two_sum(m.exponent * tgm_log2_high, 2 * s);
  const tgm_pair second = tgm_fast_two_sum(first.high, term);
  const double low = fma(m.exponent, tgm_log2_low, fma(2, s_low, term_low));
  return tgm_fast_two_sum(second.high, second.low + (first.low + low));
}

TG_SHARED double pow(double x, double y) {
  const double size = fabs(x);
  const tgm_pair logarithm = tgm_log_pair(size);
  // the logarithms of 0, infinity and NaN
  double l = size == 0 ? -tgm_inf : logarithm.high;
  l = size < tgm_inf ? l : size;
  const double high = y * l, low = fma(y, l, -high) + y * logarithm.low;
  const bool large = fabs(high) > 800;
  double found = tgm_exp_of_sum(high, large ? 0 : low);
  const double half = 0.5 * y;
  const bool whole = trunc(y) == y, odd = whole && trunc(half) != half;
  found = size == 1 && y == y ? 1 : found;
  found = signbit(x) && odd ? -found : found;
  found = x < 0 && !whole && size != tgm_inf ? tgm_nan : found;
  return y == 0 || x == 1 ? 1 : found;
}

// The root of 2**(3 k) m is 2**k times that of m. From a polynomial, Halley's method twice, and a last
// step with the error of the cube.
TG_INLINE double tgm_cbrt_step(double y, double m) {
  const double cube = y * y * y;
  return y * (cube + 2 * m) / (2 * cube + m);
}
TG_SHARED double cbrt(double x) {
  const double size = fabs(x);
  const bool tiny = size < tgm_least_normal;
  const double z = tiny ? size * 0x1p54 : size;
  const tgm_u64 bits = tgm_bits(z);
  // exponents are divided by 3 as products with 2**32 / 3
  const tgm_u64 exponent = bits >> 52, third = (exponent * 0x55555556) >> 32;
  const double m = tgm_double((bits & 0x000fffffffffffff) | ((exponent - 3 * third + 1023) << 52));
  const double first = tgm_polynomial(
      m, 0x1.6ef7d7cd66d8cp-1, 0x1.50ba80e69b747p-2, -0x1.16bdce74d65dbp-5, 0x1.aaa35d014643bp-10);
  double y = tgm_cbrt_step(tgm_cbrt_step(first, m), m);
  const tgm_pair square = tgm_two_product(y, y);
  const tgm_pair cube = tgm_multiply(square, y);
  const double rest = (cube.high - m) + cube.low;
  y = y - rest / (3 * square.high);
  const double scaled = y * tgm_double((third + 682) << 52) * (tiny ? 0x1p-18 : 1);
  return x != x || x == 0 || size == tgm_inf ? x : copysign(scaled, x);
}

TG_SHARED double hypot(double x, double y) {
  const double a = fabs(x), b = fabs(y), most = a > b ? a : b, least = a > b ? b : a;
  const double scale = most > 0x1p500 ? 0x1p-600 : most < 0x1p-400 ? 0x1p600 : 1;
  const double unscale = most > 0x1p500 ? 0x1p600 : most < 0x1p-400 ? 0x1p-600 : 1;
  const double p = most * scale, q = least * scale;
  const tgm_pair first = tgm_two_product(p, p), second = tgm_two_product(q, q);
  const tgm_pair sum = tgm_fast_two_sum(first.high, second.high);
  const double low = sum.low + (first.low + second.low), root = sqrt(sum.high);
  const double rest = fma(-root, root, sum.high) + low;
  double found = (root + rest / (2 * root)) * unscale;
  found = most == 0 ? 0 : found;
  found = x != x || y != y ? tgm_nan : found;
  return a == tgm_inf || b == tgm_inf ? tgm_inf : found;
}
