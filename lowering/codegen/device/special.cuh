// Special functions that CUDA's library lacks or defines otherwise. Those in float have fewer terms
// where that is enough.

template <class R> constexpr R tg_pi = (R)3.14159265358979323846;

// A polynomial by Horner's rule, the constant coefficient first.
template <class R, int N> __device__ R tg_horner(const double (&coefficients)[N], R x) {
  R found = (R)coefficients[N - 1];
  for (int i = N - 2; i >= 0; --i) found = found * x + (R)coefficients[i];
  return found;
}

// ---- logistic functions, products with logarithms, entropies ------------------------------------

template <class R> __device__ R tg_expit(R x) { return 1 / (1 + exp(-x)); }
template <class R> __device__ R tg_logit(R p) {
  if (p > (R)0.3 && p < (R)0.65) {
    const R difference = 2 * (p - (R)0.5);
    return log1p(difference) - log1p(-difference);
  }
  return log(p / (1 - p));
}
template <class R> __device__ R tg_log_expit(R x) {
  return (x < 0 ? x : x == x ? (R)0 : x) - log1p(exp(-fabs(x)));
}
template <class R> __device__ R tg_xlogy(R x, R y) { return x == 0 && y == y ? (R)0 : x * log(y); }
template <class R> __device__ R tg_xlog1py(R x, R y) {
  return x == 0 && y == y ? (R)0 : x * log1p(y);
}
template <class R> __device__ R tg_entr(R x) {
  return x < 0 ? -(R)tg_inf_f64() : x == 0 ? (R)0 : -x * log(x);
}
template <class R> __device__ R tg_log_of_quotient(R x, R y) {
  const R quotient = x / y, tiny = sizeof(R) == 4 ? (R)0x1p-126 : (R)0x1p-1022;
  return quotient > tiny && isfinite(quotient) ? log(quotient) : log(x) - log(y);
}
template <class R> __device__ R tg_rel_entr(R x, R y) {
  if (x != x || y != y) return x + y;
  if (x < 0 || y < 0 || (x > 0 && y == 0)) return (R)tg_inf_f64();
  return x == 0 ? (R)0 : x * tg_log_of_quotient(x, y);
}
template <class R> __device__ R tg_kl_div(R x, R y) {
  if (x != x || y != y) return x + y;
  if (x < 0 || y < 0 || (x > 0 && y == 0)) return (R)tg_inf_f64();
  return x == 0 ? y : x * tg_log_of_quotient(x, y) - x + y;
}

// ---- the normal distribution ----------------------------------------------------------------------

template <class R> __device__ R tg_log_ndtr(R x) {
  const R root = (R)0.70710678118654752440;
  if (x < -1) return log((R)0.5 * erfcx(-x * root)) - (R)0.5 * x * x;
  return x < 0 ? log(normcdf(x)) : log1p(-normcdf(-x));
}

// ---- the gamma function ---------------------------------------------------------------------------

template <class R> __device__ R tg_gammaln(R x) { return isinf(x) ? x : lgamma(x); }

// gammaln(1 + x) for x from 0 to 1.5, precise near 0.
__device__ inline double tg_log_of_next(double x) {
  const double terms[] = {
      0, 0.42278433509846713, 0.3224670334241132, -0.067352301053198102, 0.020580808427784546,
      -0.0073855510286739857, 0.0028905103307415234, -0.001192753911703261,
      0.00050966952474304245, -0.00022315475845357936, 9.9457512781808531e-05,
      -4.4926236738133142e-05, 2.0507212775670694e-05, -9.439488275268395e-06,
      4.3748667899074873e-06, -2.0392157538013662e-06, 9.5514121304074194e-07,
      -4.4924691987645662e-07, 2.1207184805554667e-07, -1.00432248239681e-07,
      4.7698101693639811e-08, -2.2711094608943164e-08, 1.0838659214896955e-08,
      -5.1834750419700466e-09, 2.4836745438024785e-09, -1.1921401405860912e-09,
      5.7313672416788612e-10, -2.7595228851242334e-10, 1.3304764374244491e-10,
      -6.4229645638381009e-11};
  return tg_horner(terms, x < 0.5 ? x : x - 1) - (x < 0.5 ? log1p(x) : 0);
}

// gammaln(x) - ((x - 0.5) log x - x + log(2 pi) / 2), for x from 8.
template <class R> __device__ R tg_stirling(R x) {
  const double terms[] = {1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360,
                          1. / 156, -3617. / 122400, 43867. / 244188, -174611. / 125400};
  const R inverse = 1 / x;
  return tg_horner(terms, inverse * inverse) * inverse;
}

// cot(pi x), precise near its zeros.
template <class R> __device__ R tg_cotangent_of_pi(R x) {
  const R rest = x - rint(x), size = fabs(rest);
  return size > (R)0.25 ? copysign(tan(tg_pi<R> * ((R)0.5 - size)), rest) : 1 / tan(tg_pi<R> * rest);
}

template <class R> __device__ R tg_digamma(R x) {
  if (x == 0) return -1 / x;
  if (x < 0 && x == floor(x)) return (R)tg_nan_f64();
  const R y = x < 0 ? 1 - x : x;
  const R e = (y - (R)1.4616321449683622) -
              (sizeof(R) == 4 ? (R)(1.4616321449683622 - (float)1.4616321449683622)
                              : (R)9.5499954299656977e-17);
  R found = 0;
  if (fabs(e) < (R)0.25) {
    const double terms[] = {
        0.96767224544762117, -0.44276316898359211, 0.25849976095565101, -0.16394270544240653,
        0.10782405069126237, -0.072199561256454711, 0.048804288164143107, -0.033161126474847359,
        0.022597648232218105, -0.015424765904948959, 0.010538791616612175, -0.0072045343863568682,
        0.0049267813957298534, -0.0033698016554393281, 0.0023051263267349278,
        -0.0015769367714301973, 0.0010788252019162966, -7.3807093899600513e-4,
        5.0495326583460204e-4, -3.454680251063077e-4, 2.3635601564027053e-4};
    found = e * tg_horner(terms, e);
  } else {
    R far = y;
    while (far < 8) {
      found -= 1 / far;
      far += 1;
    }
    const double terms[] = {1. / 12, -1. / 120, 1. / 252, -1. / 240, 1. / 132, -691. / 32760,
                            1. / 12, -3617. / 8160, 43867. / 14364, -174611. / 6600};
    const R inverse = 1 / far, square = inverse * inverse;
    found += log(far) - (R)0.5 * inverse - square * tg_horner(terms, square);
  }
  return x < 0 ? found - tg_pi<R> * tg_cotangent_of_pi(x) : found;
}

// The derivative of order n of pi cot(pi x) over pi**(n + 1), as a polynomial of cot(pi x).
template <int N> struct tg_cot_polynomial {
  double terms[N + 2] = {0, 1};
  __device__ constexpr tg_cot_polynomial() {
    for (int n = 1; n <= N; ++n) {
      double slope[N + 2] = {};
      for (int k = 0; k <= n; ++k) slope[k] = k < n + 1 ? (k + 1) * terms[k + 1] : 0;
      for (int k = 0; k < n + 2; ++k) {
        terms[k] = -(k < n ? slope[k] : 0) - (k >= 2 ? slope[k - 2] : 0);
      }
    }
  }
};

// The sum of (q + k)**-s over k from 0, for q from 0: Euler and Maclaurin's formula from 10.
template <class R> __device__ R tg_hurwitz(R s, R q) {
  R sum = 0;
  for (int k = 0; k < 10; ++k) sum += pow(q + k, -s);
  const R far = q + 10, area = pow(far, 1 - s), power = area / far, inverse = 1 / (far * far);
  sum += area / (s - 1) + (R)0.5 * power;
  const double terms[] = {1. / 12, -1. / 720, 1. / 30240, -1. / 1209600, 1. / 47900160,
                          -691. / 1307674368000., 1. / 74724249600., -3617. / 10670622842880000.,
                          43867. / 5109094217170944000., -174611. / 802857662698291200000.};
  R factor = power * s / far;
  for (int k = 0; k < 10; ++k) {
    sum += factor * (R)terms[k];
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2) * inverse;
  }
  return sum;
}

// For q from 0; in double: near 1, the distance from there counts.
__device__ inline double tg_zeta_from_0(double s, double q) {
  return s > 1e5 ? pow(q, -s) : tg_hurwitz(s, q);
}
// Below 0, for integers s alone, the numbers on both sides of 0 are two such sums. It is called, so
// that others keep their registers.
__attribute__((noinline)) __device__ double tg_zeta_below(double s, double z) {
  if (s != floor(s)) return tg_nan_f64();
  const double above = z - floor(z), left = floor(z) + 1 - z;
  const double first = tg_zeta_from_0(s, above), second = tg_zeta_from_0(s, left);
  const double third = tg_zeta_from_0(s, 1 - z);
  if (!(s - 2 * floor(s / 2) == 1)) return first + second - third;
  if (above == left) return third;
  if (isinf(first) && isinf(second)) return above < left ? first : -first;
  return first - second + third;
}
template <class R> __device__ R tg_zeta(R x, R q) {
  if (x == 1) return (R)tg_inf_f64();
  if (x < 1) return (R)tg_nan_f64();
  if (q <= 0 && q == floor(q)) return (R)tg_inf_f64();
  if (x != x || q != q) return (R)tg_nan_f64();
  return (R)(q > 0 ? tg_zeta_from_0((double)x, (double)q) : tg_zeta_below((double)x, (double)q));
}

// Of a negative number in double: the two parts of the result may nearly cancel.
template <int N, class R> __device__ R tg_polygamma(R x) {
  if (sizeof(R) == 4 && x < 0) return (R)tg_polygamma<N>((double)x);
  const R sign = N % 2 ? (R)1 : (R)-1;
  if (x <= 0 && x == floor(x)) return sign * (R)tg_inf_f64();
  R scale = 1;
  for (int k = 2; k <= N; ++k) scale *= k;
  const R y = x < 0 ? 1 - x : x;
  const R found = isinf(y) ? (R)0 : scale * tg_hurwitz((R)(N + 1), y);
  if (!(x < 0)) return sign * found;
  constexpr tg_cot_polynomial<N> polynomial;
  R power = tg_pi<R>;
  for (int k = 0; k < N; ++k) power *= tg_pi<R>;
  return -power * tg_horner(polynomial.terms, tg_cotangent_of_pi(x)) - found;
}

// The logarithm of |sin(pi x)|; the product of a subnormal number with pi would be rounded.
__device__ inline double tg_log_of_sine(double x) {
  if (fabs(x) < 1e-9) return 1.14472988584940017414 + log(fabs(x));
  const double rest = x - 2 * rint(x / 2);
  return log(fabs(sin(tg_pi<double> * (fabs(rest) > 0.5 ? 1 - fabs(rest) : rest))));
}

template <class R> __device__ R tg_betaln_from_0(R x, R y) {
  const R a = tg_minimum(x, y), b = tg_maximum(x, y), ratio = a / (a + b);
  if (isinf(b)) return isinf(a) ? (R)tg_nan_f64() : -b;
  if (a >= 10) {
    return tg_stirling(a) + (tg_stirling(b) - tg_stirling(a + b)) - (R)0.5 * log(b) +
           (R)0.91893853320467274178 + (a - (R)0.5) * log(ratio) + b * log1p(-ratio);
  }
  if (b >= 10) {
    return tg_gammaln(a) + (tg_stirling(b) - tg_stirling(a + b)) + a - a * log(a + b) +
           (b - (R)0.5) * log1p(-ratio);
  }
  return tg_gammaln(a) + tg_gammaln(b) - tg_gammaln(a + b);
}

// If one is not positive, in double: negative numbers are reflected, and at poles it is infinite
// unless the quotient of two is finite. It is called, so that others keep their registers.
__attribute__((noinline)) __device__ double tg_betaln_below(double x, double y) {
  const bool x_is_pole = x <= 0 && x == floor(x), y_is_pole = y <= 0 && y == floor(y);
  const bool swapped = x_is_pole ? false : y_is_pole || y < x;
  const double low = swapped ? y : x, high = swapped ? x : y, total = low + high, most = 2147483648.;
  if (x_is_pole || y_is_pole) {
    const bool is_finite =
        high == floor(high) && high > 0 && 1 - total > 0 && low > -most && high < most;
    return is_finite ? tg_betaln_from_0(1 - total, high) : tg_inf_f64();
  }
  if (x != x || y != y) return tg_nan_f64();
  const double log_pi = 1.14472988584940017414, of_low = tg_log_of_sine(low);
  if (isinf(high)) return high;
  if (high > 0 && total > 0) {
    return log_pi - of_low - log(high) - tg_betaln_from_0(1 - low, total);
  }
  const double of_total = tg_log_of_sine(fmod(low, 2.) + fmod(high, 2.));
  if (high > 0) return of_total - of_low + tg_betaln_from_0(high, 1 - total);
  return log_pi + of_total - of_low - tg_log_of_sine(high) - log(1 - total) -
         tg_betaln_from_0(1 - low, 1 - high);
}
template <class R> __device__ R tg_betaln(R x, R y) {
  return x > 0 && y > 0 ? tg_betaln_from_0(x, y) : (R)tg_betaln_below(x, y);
}

// ---- modified Bessel functions ----------------------------------------------------------------------

// exp(-x) I(x) for x from 0: the power series up to 20, then the asymptotic expansion.
template <int ORDER, class R> __device__ R tg_scaled_bessel(R x) {
  constexpr int series = sizeof(R) == 4 ? 36 : 46, expansion = sizeof(R) == 4 ? 8 : 34;
  R found = 1;
  if (x < 20) {
    const R square = x * x / 4;
    for (int k = series; k > 0; --k) found = 1 + square * (R)(1. / (k * (k + ORDER))) * found;
    return exp(-x) * found * (ORDER ? x / 2 : (R)1);
  }
  const R inverse = 1 / x;
  for (int k = expansion; k > 0; --k) {
    const int odd = (2 * k - 1) * (2 * k - 1) - 4 * ORDER;
    found = 1 + (R)(odd / (8. * k)) * inverse * found;
  }
  return found / sqrt(x) * (R)0.39894228040143267794;
}
template <class R> __device__ R tg_i0e(R x) { return tg_scaled_bessel<0>(fabs(x)); }
template <class R> __device__ R tg_i1e(R x) { return copysign(tg_scaled_bessel<1>(fabs(x)), x); }

// ---- exponential integrals ----------------------------------------------------------------------------

template <class R> __device__ R tg_exp1(R x) {
  if (x < 0) return (R)tg_nan_f64();
  if (x < 1) {
    R sum = 0, term = 1;
    for (int k = 1; k < 22; ++k) {
      term *= -x / k;
      sum += term / k;
    }
    return (R)-0.57721566490153286061 - log(x) - sum;
  }
  if (isinf(x)) return 0;
  R fraction = x;
  for (int k = sizeof(R) == 4 ? 25 : 90; k > 0; --k) fraction = x + k / (1 + k / fraction);
  return exp(-x) / fraction;
}
template <class R> __device__ R tg_expi(R x) {
  if (x < 0) return -tg_exp1(-x);
  if (x < 40) {
    R sum = 0, term = 1;
    for (int k = 1; k <= 120; ++k) {
      term *= x / k;
      const R before = sum;
      sum += term / k;
      if (sum == before) break;
    }
    return (R)0.57721566490153286061 + log(x) + sum;
  }
  if (x > 1000) return (R)tg_inf_f64();
  R expansion = 1;
  for (int k = sizeof(R) == 4 ? 15 : 40; k > 0; --k) expansion = 1 + k / x * expansion;
  const R half = exp(x / 2);
  return half * (expansion / x) * half;
}
