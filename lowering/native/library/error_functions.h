// The error function and its relatives. Comes after logarithms.h.
//
// For x from 0, (1 + 2 x) exp(x**2) erfc(x) is a polynomial of (x - 4) / (x + 4): this function varies
// between 1 and 1.25. Squares in exponents have no error.

// erf(x) for |x| <= 1, most precise up to 0.75.
TG_INLINE double tgm_near_erf(double x) {
  const double z = x * x;
  const double tail = tgm_polynomial(z, -0x1.812746b0379e7p-2, 0x1.ce2f21a042bdep-4,
      -0x1.b82ce312889bap-6, 0x1.565bcd0e6502dp-8, -0x1.c02db3feeb579p-11, 0x1.f9a326c233146p-14,
      -0x1.f4d2561aeafd4p-17, 0x1.b9e6509b9867dp-20, -0x1.5f6d925a0bc7ap-23, 0x1.fc4356498c2d9p-27,
      -0x1.4e607b41a6416p-30, 0x1.7f072188e194dp-34, -0x1.29b9f1b3df556p-38);
  return fma(x, 0x1.20dd750429b6dp+0, x * fma(z, tail, 0x1.1ae3a914fed80p-56));
}
// exp(x**2) erfc(x) for x from 0.
TG_INLINE tgm_pair tgm_erfcx_pair(double x) {
  const double z = x < 0x1p60 ? x : 0x1p60, t = 1 - 8 / (z + 4);
  const double tail = tgm_polynomial(t, -0x1.1df1ad154a286p-3, 0x1.f7f5df66fd797p-7,
      0x1.16ecefcfa4d1p-4, -0x1.9ddb23c3e8f13p-4, 0x1.7fee004e1eefep-4, -0x1.0fb06dfe4c6cp-4,
      0x1.3079edf5181dfp-5, -0x1.09623884747dbp-6, 0x1.49c672e199469p-8, -0x1.8d4a9a6465372p-11,
      -0x1.a1df5e81f57b4p-13, 0x1.3be0432bfa86p-13, -0x1.99537515467bep-16, -0x1.7884d2487d5efp-17,
      0x1.7ef644c7815aap-18, 0x1.393f4d359a7fdp-22, -0x1.b8ce493292da5p-21, 0x1.4dcd6b6d85452p-24,
      0x1.c8a212189b424p-24, -0x1.64110b1736fb3p-26, -0x1.a7f4a11380e73p-27, 0x1.bc41def3d5cc5p-29,
      0x1.ff247156a53a2p-31, -0x1.2feb115e10ff8p-32);
  const tgm_pair numerator = tgm_fast_two_sum(0x1.3ba5916e9fd7fp+0, t * tail);
  const tgm_pair divisor = tgm_two_sum(1, 2 * z);
  return tgm_divide(numerator, divisor);
}
// 2**power erfc(x) for x from 0, of which the square is given.
TG_INLINE double tgm_far_erfc(double x, tgm_pair square, tgm_i64 power) {
  const double high = square.high < 760 ? square.high : 760, low = square.high < 760 ? square.low : 0;
  const tgm_exponential e = tgm_exp_parts(-high, -low);
  const tgm_pair sum = tgm_fast_two_sum(1, e.mantissa.high);
  const tgm_pair mantissa = tgm_fast_two_sum(sum.high, sum.low + e.mantissa.low);
  const tgm_pair product = tgm_multiply(tgm_erfcx_pair(x), mantissa);
  return tgm_scaled(product.high + product.low, e.exponent + power);
}

TG_SHARED double erf(double x) {
  const double size = fabs(x);
  const double far = 1 - tgm_far_erfc(size, tgm_two_product(size, size), 0);
  const double y = size < 0.75 ? tgm_near_erf(x) : copysign(far, x);
  return x != x || x == 0 ? x : size > 6 ? copysign(1.0, x) : y;
}
TG_SHARED double erfc(double x) {
  const double size = fabs(x), near = tgm_near_erf(x);
  const double far = tgm_far_erfc(size, tgm_two_product(size, size), 0);
  const double y = fabs(x) < 0.5 ? 1 - near : x < 0 ? 2 - far : far;
  return x != x ? x : y;
}
TG_SHARED double erfcx(double x) {
  const tgm_pair scaled = tgm_erfcx_pair(fabs(x)), square = tgm_two_product(x, x);
  const double up = 0.5641895835477563 / (fabs(x) < 0x1p55 ? 1 : fabs(x));
  const double found = fabs(x) < 0x1p55 ? scaled.high + scaled.low : up;
  const double power = tgm_exp_of_sum(square.high, square.high < 800 ? square.low : 0);
  const double y = fabs(x) < 0.5 ? power * (1 - tgm_near_erf(x)) : x < 0 ? 2 * power - found : found;
  return x != x ? x : x < -27 ? tgm_inf : y;
}
// The distribution function of the normal distribution, erfc(-x / sqrt(2)) / 2.
TG_SHARED double normcdf(double x) {
  const double size = fabs(x), z = size * 0x1.6a09e667f3bcdp-1;
  const tgm_pair square = tgm_two_product(size, size);
  const double far = tgm_far_erfc(z, {0.5 * square.high, 0.5 * square.low}, -1);
  const double near = fma(0.5, tgm_near_erf(x * 0x1.6a09e667f3bcdp-1), 0.5);
  const double y = size < 0.7 ? near : x < 0 ? far : 1 - far;
  return x != x ? x : y;
}

// ---- inverses -------------------------------------------------------------------------------------------

// The x with erf(x) = y, by w = -log(1 - y**2): x / y is a polynomial of w up to 6.25.
TG_INLINE double tgm_near_erfinv(double y, double w) {
  const tgm_pair difference = tgm_two_sum(w < 6.25 ? w : 6.25, -3.125);
  const double t = difference.high, slope = 0.25;  // roughly, for what the difference has lost
  const double tail = tgm_polynomial(t, 0x1.ebd80d9b13dfap-3, -0x1.8b6c33114ea2fp-8,
      -0x1.84576948359ddp-11, 0x1.879c2a20aeb2ep-13, -0x1.d1d1f7c9ffa6dp-17, -0x1.6e8a53c7ac2ffp-20,
      0x1.c6b4f8868f532p-22, -0x1.f36ceed4416aep-26, -0x1.1a9eb00326b9bp-28, 0x1.20f544d62fff1p-30,
      -0x1.dc3f457145cd3p-35, -0x1.c8a6afa1550f4p-37, 0x1.7236b79e1d57ep-39, -0x1.6b86f85109f07p-44,
      -0x1.6877e8ae70f27p-45, 0x1.d5e95ecc5f898p-48, -0x1.6b6b0fc6a580fp-55, -0x1.19ac650194dcap-53,
      0x1.1e1f9ee618b29p-56, 0x1.669b9213d3cdfp-61, -0x1.9a137911c05cfp-62, 0x1.79a647e43b44ep-66,
      0x1.e2aa7ddd776b6p-69, -0x1.b2643e45e1856p-72);
  const tgm_pair product = tgm_two_product(t, tail),
                 sum = tgm_fast_two_sum(0x1.a755e7c99ae86p+0, product.high);
  return fma(y, sum.high, y * (sum.low + fma(slope, difference.low, product.low)));
}
// A step of Halley's method for log(erfc(x)) = goal: the large parts of the difference nearly cancel.
TG_INLINE double tgm_erfcinv_step(double x, double goal) {
  const tgm_pair scaled = tgm_erfcx_pair(x), square = tgm_two_product(x, x);
  const double value = scaled.high + scaled.low;
  const double rest = (-square.high - goal) - square.low + log(value);
  const double step = rest * value * 0.88622692545275801;
  return fma(step, fma(step, x - 0.56418958354775629 / value, 1), x);
}
// The x with erfc(x) = z, z < 0.01: an approximation by 1 / sqrt(w) to 2**-23, and a step.
TG_INLINE double tgm_far_erfcinv(double z, double w) {
  const double root = sqrt(w > 6 ? w : 6), v = 1 / root - 0x1.bfd10025997b8p-3;
  const double goal = log(z < 0.01 ? z : 0.01);
  const double x =
      root * tgm_polynomial(v, 0x1.eeb4261bfb9e4p-1, -0x1.9ca11ceb19596p-3, 0x1.73ddd0f12064fp-6,
                 0x1.587c9aeaa2314p-1, -0x1.0e223d03d0de5p0, 0x1.a78124e8d9d48p0, -0x1.072b60a508a3bp2,
                 -0x1.33ea1aeb02976p2, -0x1.99a7ee73d65a4p2, 0x1.5420919a854b3p8, -0x1.cd46c848841a4p9);
  return tgm_erfcinv_step(x, goal);
}
TG_SHARED double erfinv(double y) {
  const double size = fabs(y), below = 1 - size, w = -log(below * (1 + size));
  const double found = w < 6.25 ? tgm_near_erfinv(size, w) : tgm_far_erfcinv(below, w);
  const double x = size == 1 ? tgm_inf : found;
  return size > 1 ? tgm_nan : y != y ? y : copysign(x, y);
}
TG_SHARED double erfcinv(double z) {
  const bool above = z > 1;
  const double small = above ? 2 - z : z, w = -log(small * (2 - small));
  const double size = w < 6.25 ? tgm_near_erfinv(1 - small, w) : tgm_far_erfcinv(small, w);
  const double x = small == 0 ? tgm_inf : size;
  return !(z >= 0 && z <= 2) ? tgm_nan : above ? -x : x;
}
TG_SHARED double normcdfinv(double p) {
  const double x = erfcinv(p <= 0.5 ? 2 * p : 2 * (1 - p));
  const double y = isinf(x) ? x : fma(x, 0x1.6a09e667f3bcdp+0, x * -0x1.bdd3413b26456p-54);
  return !(p >= 0 && p <= 1) ? tgm_nan : p == 0.5 ? 0 : p < 0.5 ? -y : y;
}
TG_BY_DOUBLE_OF_1(erfcx)
