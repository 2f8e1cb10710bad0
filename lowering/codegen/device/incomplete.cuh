// The incomplete gamma and beta functions, and complete elliptic integrals, computed in double: their
// series and fractions would leave too few digits of float.

__device__ inline double tg_log1p_less(double u) {  // log1p(u) - u
  if (fabs(u) > 0.5) return log1p(u) - u;
  const double r = u / (2 + u), square = r * r;
  double odd = 0;
  for (int k = 17; k >= 0; --k) odd = odd * square + 1. / (2 * k + 3);
  return 2 * r * square * odd - u * r;
}

// ---- the incomplete gamma functions -----------------------------------------------------------------

// x**a exp(-x) / gamma(a + 1).
__device__ inline double tg_gamma_term(double a, double x) {
  if (a < 10) return pow(x < 1e3 ? x : 1e3, a) * exp(-x) / tgamma(1 + a);
  const double ratio = x / a < 1e300 ? x / a : 1e300, u = (x - a) / a;
  const double exponent = fabs(u) < 0.5 ? tg_log1p_less(u) : log(ratio) + (1 - ratio);
  return exp(a * exponent - tg_stirling(a)) / (2.50662827463100050242 * sqrt(a));
}

// The lower function, for x up to a or 1.
__device__ inline double tg_gamma_series(double a, double x) {
  double sum = 1, term = 1;
  for (int n = 1; n < 10000 && term > 0x1p-54 * sum; ++n) {
    term *= x / (a + n);
    sum += term;
  }
  return tg_gamma_term(a, x) * sum;
}

// The upper function, for x above 1 and a: Lentz's method.
__device__ inline double tg_gamma_fraction(double a, double x) {
  double b = x + 1 - a, d = 1 / b, c = tg_inf_f64(), found = d;
  for (int n = 1; n < 10000; ++n) {
    const double numerator = n * (a - n);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    found *= c * d;
    if (!(fabs(c * d - 1) > 0x1p-50)) break;
  }
  return a * tg_gamma_term(a, x) * found;
}

// The upper function for x up to 1 and a up to 1.5, where the lower one may nearly be 1.
__device__ inline double tg_upper_of_small(double a, double x) {
  double sum = 0, factor = 1;
  for (int n = 1; n < 24; ++n) {
    factor *= -x / n;
    sum += factor / (a + n);
  }
  const double exponent = a * log(x) - tg_log_of_next(a);
  return -expm1(exponent) - exp(exponent) * a * sum;
}

// The upper (1) or lower (-1) function, for a from 200 and x within 0.3 a of it: Temme's expansion.
__device__ inline double tg_gamma_middle(double a, double x, double sign) {
  static constexpr double terms[5][15] = {
    {-0.33333333333333331, 0.083333333333333329, -0.014814814814814815, 0.0011574074074074073,
    0.00035273368606701942, -0.0001787551440329218, 3.9192631785224377e-05,
    -2.185448510679992e-06, -1.85406221071516e-06, 8.2967113409530865e-07,
    -1.7665952736826078e-07, 6.7078535434014984e-09, 1.0261809784240309e-08,
    -4.3820360184533529e-09, 9.1476995822367902e-10},
    {-0.0018518518518518519, -0.003472222222222222, 0.0026455026455026454,
    -0.00099022633744855963, 0.00020576131687242798, -4.018775720164609e-07,
    -1.8098550334489977e-05, 7.6491609160811098e-06, -1.6120900894563446e-06,
    4.647127802807434e-09, 1.3786334469157209e-07, -5.7525456035177047e-08,
    1.1951628599778148e-08, -1.7543241719747647e-11, -1.0091543710600413e-09},
    {0.0041335978835978834, -0.0026813271604938273, 0.0007716049382716049,
    2.0093878600823047e-06, -0.0001073665322636516, 5.2923448829120125e-05,
    -1.2760635188618728e-05, 3.4235787340961378e-08, 1.3721957309062934e-06,
    -6.2989921383800548e-07, 1.4280614206064242e-07, -2.0477098421990866e-10,
    -1.409252991086752e-08, 6.2289740849220218e-09, -1.3670488396617114e-09},
    {0.00064943415637860077, 0.00022947209362139917, -0.0004691894943952557,
    0.00026772063206283885, -7.5618016718839766e-05, -2.3965051138672968e-07,
    1.1082654115347302e-05, -5.6749528269915965e-06, 1.4230900732435883e-06,
    -2.7861080291528143e-11, -1.6958404091930278e-07, 8.0994649053880827e-08,
    -1.9111168485973655e-08, 2.3928620439808118e-12, 2.0620131815488797e-09},
    {-0.00086188829091671173, 0.00078403922172006662, -0.00029907248030319018,
    -1.4638452578843418e-06, 6.6414982154651219e-05, -3.9683650471794347e-05,
    1.1375726970678419e-05, 2.5074972262375329e-10, -1.6954149536558305e-06,
    8.9075075322053094e-07, -2.2929348340008049e-07, 2.9567941375440492e-11,
    2.8865829742708783e-08, -1.4189739437803219e-08, 3.4463580499464896e-09}};
  const double mu = (x - a) / a, half = -tg_log1p_less(mu), eta = copysign(sqrt(2 * half), mu);
  double series = 0;
  for (int k = 4; k >= 0; --k) series = series / a + tg_horner(terms[k], eta);
  const double rest = exp(-a * half) / (2.50662827463100050242 * sqrt(a)) * series;
  return 0.5 * erfc(sign * eta * sqrt(a / 2)) + sign * rest;
}

__device__ inline double tg_incomplete_gamma(double a, double x, bool upper) {
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (isinf(a) && isinf(x))) return tg_nan_f64();
  if (a == 0 || isinf(x)) return upper ? 0 : 1;
  if (x == 0 || isinf(a)) return upper ? 1 : 0;
  if (a >= 200 && fabs(x - a) < 0.3 * a) return tg_gamma_middle(a, x, upper ? 1 : -1);
  if (x > 1 && x > a) {
    const double tail = tg_gamma_fraction(a, x < 1e300 ? x : 1e300);
    return upper ? tail : 1 - tail;
  }
  if (upper && x <= 1 && a <= 1.5 && a <= (x <= 0.5 ? -0.4 / log(x) : 1.1 * x)) {
    return tg_upper_of_small(a, x);
  }
  const double lower = tg_gamma_series(a, x);
  return upper ? 1 - lower : lower;
}
template <class R> __device__ R tg_gammainc(R a, R x) {
  return (R)tg_incomplete_gamma(a, x, false);
}
template <class R> __device__ R tg_gammaincc(R a, R x) {
  return (R)tg_incomplete_gamma(a, x, true);
}

// ---- the incomplete beta function -------------------------------------------------------------------

__device__ inline double tg_beta_part(double a, double distance, double moved) {
  const double u = distance / a;
  return a * (fabs(u) < 0.5 ? tg_log1p_less(u) : log(moved / a) - u);
}

// x**a y**b / beta(a, b), where y is 1 - x.
__device__ inline double tg_beta_term(double a, double b, double x, double y) {
  if (a < 10 || b < 10) {
    return exp(a * log(x) + b * (x < 0.5 ? log1p(-x) : log(y)) - tg_betaln(a, b));
  }
  const double both = a + b, distance = x * b - y * a;
  const double rest = tg_stirling(both) - tg_stirling(a) - tg_stirling(b);
  const double exponent =
      tg_beta_part(a, distance, x * both) + tg_beta_part(b, -distance, y * both) + rest;
  return exp(exponent) * sqrt(a / both) * sqrt(b) / 2.50662827463100050242;
}

// For b up to 1 and x up to 0.95, in powers of x.
__device__ inline double tg_beta_series(double a, double b, double x) {
  double sum = 1 / a, power = 1;
  for (int n = 1; n < 800; ++n) {
    power *= (n - b) / n * x;
    const double before = sum;
    sum += power / (a + n);
    if (sum == before) break;
  }
  return exp(a * log(x) - tg_betaln(a, b)) * sum;
}

__device__ inline double tg_not_zero(double x) { return fabs(x) < 1e-300 ? 1e-300 : x; }

// DLMF 8.17.22 by Lentz's method, for x up to (a + 1) / (a + b + 2).
__device__ inline double tg_beta_fraction(double a, double b, double x) {
  double c = 1, d = 1 / tg_not_zero(1 - (a + b) * x / (a + 1)), found = d;
  for (int m = 1; m < 10000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    c = tg_not_zero(1 + even / c);
    d = 1 / tg_not_zero(1 + even * d);
    found *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    c = tg_not_zero(1 + odd / c);
    d = 1 / tg_not_zero(1 + odd * d);
    found *= c * d;
    if (!(fabs(c * d - 1) > 0x1p-50)) break;
  }
  return found;
}

// If a is far above b, where y is 1 - x: DiDonato and Morris, "Algorithm 708", 1992, equation 9.
__attribute__((noinline)) __device__ double tg_beta_by_gamma(double a, double b, double x, double y) {
  const double mean = a + (b - 1) / 2, log_x = y < 0.35 ? log1p(-y) : log(x), u = -mean * log_x;
  const double above = (b + 1) / (2 * mean), below = (b - 1) / (2 * mean);
  const double scale = exp(b / (2 * mean) + (mean + b / 2) * tg_log1p_less(above) -
                           (mean - b / 2) * tg_log1p_less(-below) +
                           (tg_stirling(a + b) - tg_stirling(a)));
  const double density = b * tg_gamma_term(b, u), quarter = log_x * log_x / 4;
  double p[13] = {1}, inverse[13] = {1};  // 1 / (2 m + 1)!
  double term = tg_incomplete_gamma(b, u, true), sum = term, power = 1;
  for (int n = 1; n < 13; ++n) {
    const double even = b + 2 * n - 2;
    term = (even * (even + 1) * term + density * (u + even + 1) * power) / (4 * mean * mean);
    power *= quarter;
    inverse[n] = inverse[n - 1] / (2 * n * (2 * n + 1));
    p[n] = (b - 1) * inverse[n];
    for (int m = 1; m < n; ++m) p[n] += (m * b - n) / n * p[n - m] * inverse[m];
    sum += p[n] * term;
    if (fabs(p[n] * term) < 0x1p-55 * sum) break;
  }
  return scale * sum;
}

// If both are large, near the middle: DLMF 8.18.9, with its first coefficient.
__attribute__((noinline)) __device__ double tg_beta_middle(double a, double b, double x, double y) {
  const double both = a + b, p = a / both, q = b / both, apart = (x * b - y * a) / both;
  const double half = -(p * tg_log1p_less(apart / p) + q * tg_log1p_less(-apart / q));
  const double eta = copysign(sqrt(2 * (half > 0 ? half : 0)), apart), root = sqrt(p * q);
  const double first = fabs(eta) < 1e-8 ? (q - p) / (3 * root) : 1 / eta - root / apart;
  return 0.5 * erfc(-eta * sqrt(both / 2)) +
         exp(-both * half) / (2.50662827463100050242 * sqrt(both)) * first;
}

__device__ inline double tg_incomplete_beta(double a, double b, double x) {
  if (!(a >= 0 && b >= 0 && x >= 0 && x <= 1)) return tg_nan_f64();
  if ((a == 0 && b == 0) || (isinf(a) && isinf(b))) return tg_nan_f64();
  if (x == 0 || x == 1) return x;
  if (a == 0 || isinf(b)) return 1;
  if (b == 0 || isinf(a)) return 0;
  const double y = 1 - x, both = a + b, most = a > b ? a : b, least = a > b ? b : a;
  if (most >= 1e6) {  // series and fractions may converge too slowly
    if (least * least > 4 * most * (most / least)) {
      const double deviation = sqrt(a / both * (b / both) / both);
      const bool is_near = fabs(x * b - y * a) / both < 4 * deviation;
      if (most >= 3e7 && is_near) return tg_beta_middle(a, b, x, y);
    } else if (a > b) {
      if (y < 0.1) return tg_beta_by_gamma(a, b, x, y);
    } else if (x < 0.1) {
      const double lower = 1 - tg_beta_by_gamma(b, a, y, x);
      if (lower > 1e-3) return lower;
    }
  }
  if (b <= 1 && x <= 0.95) return tg_beta_series(a, b, x);
  if (x * (a + b + 2) > a + 1) {
    return 1 - tg_beta_term(b, a, y, x) * tg_beta_fraction(b, a, y) / b;
  }
  return tg_beta_term(a, b, x, y) * tg_beta_fraction(a, b, x) / a;
}
template <class R> __device__ R tg_betainc(R a, R b, R x) {
  return (R)tg_incomplete_beta(a, b, x);
}

// ---- complete elliptic integrals --------------------------------------------------------------------

template <class R> __device__ R tg_ellipk(R m) {
  if (m == 1 || isinf(m)) return m == 1 ? (R)tg_inf_f64() : m > 0 ? (R)tg_nan_f64() : (R)0;
  double a = 1, b = sqrt(1 - (double)m);
  for (int k = 0; k < 16; ++k) {
    const double mean = (a + b) / 2;
    b = sqrt(a * b);
    a = mean;
  }
  return (R)(tg_pi<double> / (a + b));
}
template <class R> __device__ R tg_ellipe(R argument) {
  const double m = argument;
  if (m > 1) return (R)tg_nan_f64();
  if (m < 0 && isinf(m)) return (R)tg_inf_f64();
  const double rest = m < 0 ? 1 / (1 - m) : 1 - m, square = m < 0 ? -m / (1 - m) : m;
  double found = 1;
  if (rest < 1e-6) {
    const double logarithm = rest > 0 ? log(4 / sqrt(rest)) : 0;
    found += rest * ((logarithm - 0.5) / 2 + 0.1875 * rest * (logarithm - 13. / 12));
  } else {
    double a = 1, b = sqrt(rest), sum = square / 2, weight = 0.5, half = square / (2 * (1 + b));
    for (int k = 0; k < 16; ++k) {
      const double mean = (a + b) / 2;
      b = sqrt(a * b);
      a = mean;
      weight *= 2;
      sum += weight * half * half;
      half = half * half / (2 * (a + b));
    }
    found = tg_pi<double> / (a + b) * (1 - sum);
  }
  return (R)(m < 0 ? sqrt(1 - m) * found : found);
}
