// Complex numbers. Comes after preamble.cuh. Arithmetic and ordering are templates over the component
// type; transcendental functions are written for double, and complex64 uses them. Special values follow
// annex G of the C standard, as NumPy's do.

// ---- arithmetic and order -------------------------------------------------------------------------

template <class R> __device__ tg_complex<R> operator+(tg_complex<R> x, tg_complex<R> y) {
  return {x.re + y.re, x.im + y.im};
}
template <class R> __device__ tg_complex<R> operator-(tg_complex<R> x, tg_complex<R> y) {
  return {x.re - y.re, x.im - y.im};
}
template <class R> __device__ tg_complex<R> operator-(tg_complex<R> x) { return {-x.re, -x.im}; }
template <class R> __device__ tg_complex<R> operator*(tg_complex<R> x, tg_complex<R> y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
template <class R> __device__ tg_complex<R> operator*(tg_complex<R> x, R factor) {
  return {x.re * factor, x.im * factor};
}
// Smith's algorithm: scales by the larger component, so that no square overflows.
template <class R> __device__ tg_complex<R> operator/(tg_complex<R> x, tg_complex<R> y) {
  R re = fabs(y.re), im = fabs(y.im);
  if (re >= im) {
    if (re == 0 && im == 0) return {x.re / re, x.im / re};
    R ratio = y.im / y.re, scale = 1 / (y.re + y.im * ratio);
    return {(x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale};
  }
  R ratio = y.re / y.im, scale = 1 / (y.im + y.re * ratio);
  return {(x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale};
}
template <class R> __device__ tg_complex<R> tg_reciprocal(tg_complex<R> x) {
  if (fabs(x.im) <= fabs(x.re)) {
    R ratio = x.im / x.re, scale = x.re + x.im * ratio;
    return {1 / scale, -ratio / scale};
  }
  R ratio = x.re / x.im, scale = x.re * ratio + x.im;
  return {ratio / scale, -1 / scale};
}

// NumPy's order is lexicographic. With a NaN in an imaginary part, all comparisons but != are false.
template <class R> __device__ bool operator==(tg_complex<R> x, tg_complex<R> y) {
  return x.re == y.re && x.im == y.im;
}
template <class R> __device__ bool operator!=(tg_complex<R> x, tg_complex<R> y) { return !(x == y); }
template <class R> __device__ bool operator<(tg_complex<R> x, tg_complex<R> y) {
  return (x.re < y.re && !isnan(x.im) && !isnan(y.im)) || (x.re == y.re && x.im < y.im);
}
template <class R> __device__ bool operator<=(tg_complex<R> x, tg_complex<R> y) {
  return (x.re < y.re && !isnan(x.im) && !isnan(y.im)) || (x.re == y.re && x.im <= y.im);
}
template <class R> __device__ bool operator>(tg_complex<R> x, tg_complex<R> y) { return y < x; }
template <class R> __device__ bool operator>=(tg_complex<R> x, tg_complex<R> y) { return y <= x; }

// NumPy's clip orders by the imaginary part only where real parts are equal, whatever is NaN. NaN in
// what is clipped is kept.
template <class R> __device__ bool tg_below(tg_complex<R> x, tg_complex<R> y) {
  return x.re == y.re ? x.im < y.im : x.re < y.re;
}
template <class R>
__device__ tg_complex<R> tg_clip(tg_complex<R> x, tg_complex<R> low, tg_complex<R> high) {
  x = x != x || tg_below(low, x) ? x : low;
  return x != x || tg_below(x, high) ? x : high;
}

template <class R> __device__ R tg_absolute(tg_complex<R> x) { return tg_hypot(x.re, x.im); }

template <class R> __device__ tg_complex<R> tg_sign(tg_complex<R> x) {
  R size = tg_absolute(x);
  if (isnan(size) || (isinf(x.re) && isinf(x.im))) {
    return {(R)tg_nan_f64(), (R)tg_nan_f64()};
  }
  // the other part may be NaN beside an infinity; of finite parts, NumPy takes the imaginary one
  if (isinf(size)) return isinf(x.re) ? tg_complex<R>(tg_sign(x.re), 0) : tg_complex<R>(0, tg_sign(x.im));
  return size == 0 ? tg_complex<R>(0, 0) : tg_complex<R>(x.re / size, x.im / size);
}

// ---- functions ------------------------------------------------------------------------------------

// i·z and -i·z, by swapping components, which keeps the signs of zeros.
__device__ inline tg_c128 tg_times_i(tg_c128 z) { return {-z.im, z.re}; }
__device__ inline tg_c128 tg_times_minus_i(tg_c128 z) { return {z.im, -z.re}; }

__device__ inline tg_c128 tg_exp(tg_c128 z) {
  if (z.im == 0) return {exp(z.re), z.im};
  if (!isfinite(z.im) && isinf(z.re)) {
    return z.re < 0 ? tg_c128(0, 0) : tg_c128(z.re, z.im - z.im);
  }
  double half = z.re > 709 ? 0.5 * z.re : z.re;  // exp may overflow where the components do not
  double size = exp(half), rest = z.re > 709 ? size : 1;
  return {size * cos(z.im) * rest, size * sin(z.im) * rest};
}

__device__ inline tg_c128 tg_expm1(tg_c128 z) {
  double s = sin(0.5 * z.im);
  return {expm1(z.re) * cos(z.im) - 2 * s * s, exp(z.re) * sin(z.im)};
}

// Near the unit circle log|z| is computed from |z|² - 1, to avoid cancellation; near the ends of the
// range it is scaled, since |z| may overflow or be subnormal.
__device__ inline tg_c128 tg_log(tg_c128 z) {
  double size = hypot(z.re, z.im), angle = atan2(z.im, z.re);
  if (isfinite(z.re) && isfinite(z.im) && size != 0 && !(size > 0x1p-1000 && size < 0x1p1000)) {
    double scale = size < 1 ? 0x1p100 : 0x1p-100, change = size < 1 ? -100 : 100;
    return {log(hypot(z.re * scale, z.im * scale)) + change * 0.693147180559945309417, angle};
  }
  if (size > 0.7 && size < 1.4) {
    double a = fmax(fabs(z.re), fabs(z.im)), b = fmin(fabs(z.re), fabs(z.im));
    return {0.5 * log1p((a - 1) * (a + 1) + b * b), angle};
  }
  return {log(size), angle};
}
__device__ inline tg_c128 tg_log1p(tg_c128 z) {
  if (hypot(z.re, z.im) > 0.5) return tg_log(tg_c128(z.re + 1, z.im));
  return {0.5 * log1p(z.re * (z.re + 2) + z.im * z.im), atan2(z.im, z.re + 1)};
}
__device__ inline tg_c128 tg_log2(tg_c128 z) { return tg_log(z) * 1.44269504088896340736; }
__device__ inline tg_c128 tg_log10(tg_c128 z) { return tg_log(z) * 0.434294481903251827651; }
__device__ inline tg_c128 tg_exp2(tg_c128 z) { return tg_exp(z * 0.693147180559945309417); }

__device__ inline tg_c128 tg_sqrt(tg_c128 z) {
  if (z.re == 0 && z.im == 0) return {0, z.im};
  if (isinf(z.im)) return {fabs(z.im), z.im};
  if (isnan(z.re)) return {z.re, z.re};
  if (isinf(z.re)) {
    double other = z.im - z.im;  // 0, or NaN where the imaginary part is
    return z.re < 0 ? tg_c128(fabs(other), copysign(z.re, z.im)) : tg_c128(z.re, copysign(other, z.im));
  }
  double size = fmax(fabs(z.re), fabs(z.im)), scale = size > 0x1p1000 ? 0x1p-2 : size < 0x1p-900 ? 0x1p120 : 1;
  z = z * scale;
  double root = sqrt(0.5 * (fabs(z.re) + hypot(z.re, z.im))), other = z.im / (2 * root);
  tg_c128 result = z.re >= 0 ? tg_c128(root, other) : tg_c128(fabs(other), copysign(root, z.im));
  return scale == 1 ? result : result * (scale < 1 ? 2.0 : 0x1p-60);
}

__device__ inline tg_c128 tg_sinh(tg_c128 z) {
  double x = z.re, y = z.im, nan = y - y;
  if (y == 0) return {sinh(x), y};
  if (isfinite(y)) return {sinh(x) * cos(y), cosh(x) * sin(y)};
  if (x == 0) return {x, nan};
  return {isinf(x) ? fabs(x) : nan, nan};  // annex G leaves the sign open; glibc's is +
}
__device__ inline tg_c128 tg_cosh(tg_c128 z) {
  double x = z.re, y = z.im, nan = y - y;
  if (y == 0) return {cosh(x), isfinite(x) ? x * y : copysign(0.0, x) * y};
  if (x == 0 && isfinite(y)) return {cos(y), x * sin(y)};
  if (isfinite(y)) return {cosh(x) * cos(y), sinh(x) * sin(y)};
  if (x == 0) return {nan, 0.0};
  return {isinf(x) ? fabs(x) : nan, nan};
}
// Kahan, "Branch cuts for complex elementary functions" (1987).
__device__ inline tg_c128 tg_tanh(tg_c128 z) {
  double x = z.re, y = z.im, nan = y - y;
  if (y == 0) return {tanh(x), y};
  if (isnan(x)) return {x, x};
  if (isinf(x)) return {copysign(1.0, x), copysign(0.0, isfinite(y) ? sin(y) * cos(y) : y)};
  if (!isfinite(y)) return {x == 0 ? x : nan, nan};
  if (fabs(x) >= 22) {
    double e = exp(-fabs(x));
    return {copysign(1.0, x), 4 * sin(y) * cos(y) * e * e};
  }
  double t = tan(y), slope = 1 + t * t, s = sinh(x), c = sqrt(1 + s * s), scale = 1 + slope * s * s;
  return {slope * c * s / scale, t / scale};
}
__device__ inline tg_c128 tg_sin(tg_c128 z) {
  tg_c128 found = tg_times_minus_i(tg_sinh(tg_times_i(z)));
  return isnan(found.re) ? tg_c128(found.re, fabs(found.im)) : found;
}
__device__ inline tg_c128 tg_cos(tg_c128 z) { return tg_cosh(tg_times_i(z)); }
__device__ inline tg_c128 tg_tan(tg_c128 z) { return tg_times_minus_i(tg_tanh(tg_times_i(z))); }

// The inverse functions are Kahan's, from the same paper. His formulas hold for finite numbers only.
__device__ inline bool tg_finite(tg_c128 z) { return isfinite(z.re) && isfinite(z.im); }
__device__ inline tg_c128 tg_arcsin_at_infinity(tg_c128 z) {
  const double nan = tg_nan_f64(), half_pi = 1.57079632679489661923;
  if (isinf(z.re)) {
    double angle = isnan(z.im) ? nan : isinf(z.im) ? half_pi / 2 : half_pi;
    return {copysign(angle, z.re), copysign(fabs(z.re), z.im)};
  }
  if (isfinite(z.im)) return {nan, nan};
  bool zero = isinf(z.im) ? isfinite(z.re) : z.re == 0;
  return {zero ? copysign(0.0, z.re) : nan, z.im};
}
__device__ inline tg_c128 tg_arccos_at_infinity(tg_c128 z) {
  tg_c128 other = tg_arcsin_at_infinity(z);
  return {1.57079632679489661923 - other.re, -other.im};
}
__device__ inline tg_c128 tg_arcsin(tg_c128 z) {
  if (!tg_finite(z)) return tg_arcsin_at_infinity(z);
  tg_c128 a = tg_sqrt(tg_c128(1 - z.re, -z.im)), b = tg_sqrt(tg_c128(1 + z.re, z.im));
  return {atan2(z.re, a.re * b.re - a.im * b.im), asinh(a.re * b.im - a.im * b.re)};
}
__device__ inline tg_c128 tg_arccos(tg_c128 z) {
  if (!tg_finite(z)) return tg_arccos_at_infinity(z);
  tg_c128 a = tg_sqrt(tg_c128(1 - z.re, -z.im)), b = tg_sqrt(tg_c128(1 + z.re, z.im));
  return {2 * atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re)};
}
__device__ inline tg_c128 tg_arccosh(tg_c128 z) {
  if (!tg_finite(z)) {
    tg_c128 angle = tg_arccos_at_infinity(z);
    return {fabs(angle.im), isnan(z.im) ? angle.re : copysign(angle.re, z.im)};
  }
  tg_c128 a = tg_sqrt(tg_c128(z.re - 1, z.im)), b = tg_sqrt(tg_c128(z.re + 1, z.im));
  return {asinh(a.re * b.re + a.im * b.im), 2 * atan2(a.im, b.re)};
}
__device__ inline tg_c128 tg_arctanh(tg_c128 z) {
  double x = fabs(z.re), y = z.im;  // the logarithm cancels left of zero, and the real part is odd
  const double half_pi = 1.57079632679489661923;
  if (isinf(y)) return {copysign(0.0, z.re), copysign(half_pi, y)};
  if (isnan(y)) return {isinf(x) || x == 0 ? copysign(0.0, z.re) : y, y};
  if (isnan(x)) return {x, x};
  if (x > 0x1p60 || fabs(y) > 0x1p60) {  // 1 / z, whose squares must not overflow
    double size = fmax(x, fabs(y)), a = x / size, b = y / size;
    double re = isinf(x) ? 0.0 : a / size / (a * a + b * b);
    return {copysign(re, z.re), copysign(half_pi, y)};
  }
  double re = x == 1 && fabs(y) < 0x1p-100  // whose square may be subnormal
      ? 0.5 * (0.693147180559945309417 - log(fabs(y)))
      : 0.25 * log1p(4 * x / ((1 - x) * (1 - x) + y * y));
  return {copysign(re, z.re), 0.5 * atan2(2 * y, (1 - x) * (1 + x) - y * y)};
}
__device__ inline tg_c128 tg_arcsinh(tg_c128 z) { return tg_times_minus_i(tg_arcsin(tg_times_i(z))); }
__device__ inline tg_c128 tg_arctan(tg_c128 z) { return tg_times_minus_i(tg_arctanh(tg_times_i(z))); }

// The product of annex G, which is infinite where a factor, or a product of parts, is infinite.
__device__ inline double tg_unit_of(double part) { return copysign(isinf(part) ? 1.0 : 0.0, part); }
__device__ inline double tg_number(double part) { return isnan(part) ? copysign(0.0, part) : part; }
__device__ inline tg_c128 tg_infinite_product(tg_c128 x, tg_c128 y) {
  tg_c128 product = x * y;
  if (!isnan(product.re) || !isnan(product.im)) return product;
  bool infinite = isinf(x.re * y.re) || isinf(x.im * y.im) || isinf(x.re * y.im) || isinf(x.im * y.re);
  bool first = isinf(x.re) || isinf(x.im), second = isinf(y.re) || isinf(y.im);
  if (!first && !second && !infinite) return product;
  if (first) x = {tg_unit_of(x.re), tg_unit_of(x.im)};
  if (second) y = {tg_unit_of(y.re), tg_unit_of(y.im)};
  x = {tg_number(x.re), tg_number(x.im)};
  y = {tg_number(y.re), tg_number(y.im)};
  return (x * y) * tg_inf_f64();
}

// Small whole exponents use repeated squaring, which keeps exact results exact.
__device__ inline tg_c128 tg_power(tg_c128 base, tg_c128 exponent) {
  if (exponent.re == 0 && exponent.im == 0) return {1, 0};
  if (base.re == 0 && base.im == 0) {
    return exponent.re > 0 ? tg_c128(0, 0) : tg_c128(tg_nan_f64(), tg_nan_f64());
  }
  if (exponent.im == 0 && fabs(exponent.re) < 100 && floor(exponent.re) == exponent.re) {
    // not multiplied by 1, which would make a NaN of an infinity
    if (exponent.re == 1) return base;
    if (exponent.re == 2) return base * base;
    if (exponent.re == 3) return base * (base * base);
    tg_c128 result(1, 0);
    for (int left = (int)fabs(exponent.re); left != 0; left >>= 1) {
      if (left & 1) result = result * base;
      base = base * base;
    }
    return exponent.re < 0 ? tg_c128(1, 0) / result : result;
  }
  return tg_exp(tg_infinite_product(exponent, tg_log(base)));
}

#define TG_BY_DOUBLE(name) \
  __device__ inline tg_c64 name(tg_c64 z) { return tg_cast<tg_c64>(name(tg_cast<tg_c128>(z))); }
TG_BY_DOUBLE(tg_exp) TG_BY_DOUBLE(tg_exp2) TG_BY_DOUBLE(tg_expm1)
TG_BY_DOUBLE(tg_log) TG_BY_DOUBLE(tg_log2) TG_BY_DOUBLE(tg_log10) TG_BY_DOUBLE(tg_log1p)
TG_BY_DOUBLE(tg_sqrt)
TG_BY_DOUBLE(tg_sin) TG_BY_DOUBLE(tg_cos) TG_BY_DOUBLE(tg_tan)
TG_BY_DOUBLE(tg_sinh) TG_BY_DOUBLE(tg_cosh) TG_BY_DOUBLE(tg_tanh)
TG_BY_DOUBLE(tg_arcsin) TG_BY_DOUBLE(tg_arccos) TG_BY_DOUBLE(tg_arctan)
TG_BY_DOUBLE(tg_arcsinh) TG_BY_DOUBLE(tg_arccosh) TG_BY_DOUBLE(tg_arctanh)
#undef TG_BY_DOUBLE
__device__ inline tg_c64 tg_power(tg_c64 base, tg_c64 exponent) {
  return tg_cast<tg_c64>(tg_power(tg_cast<tg_c128>(base), tg_cast<tg_c128>(exponent)));
}
