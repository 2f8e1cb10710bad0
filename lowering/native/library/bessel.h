// Bessel functions of orders 0 and 1. Comes after trigonometry.h and logarithms.h.
//
// Up to 5, polynomials of x**2 times the first two zeros' factors. From there,
// sqrt(2 / (pi x)) (P cos(c) - Q sin(c)) with c = x - pi / 4 or x - 3 pi / 4, P and x Q being polynomials
// of 50 / x**2 - 1 (Hankel's expansion).

constexpr tgm_pair tgm_zeros[] = {{0x1.33d152e971b40p+1, -0x1.0f539d7da258ep-53},
    {0x1.6148f5b2c2e45p+2, 0x1.75054cd60a517p-54}, {0x1.ea75575af6f09p+1, -0x1.60155a9d1b256p-53},
    {0x1.c0ff5f3b47250p+2, -0x1.b226d9d243827p-54}};

// (x**2 - r**2) of a zero r, precise near it.
TG_INLINE double tgm_zero_factor(double x, tgm_pair zero) {
  return ((x - zero.high) - zero.low) * (x + zero.high);
}
TG_INLINE double tgm_near_j0(double x, double t) {
  return tgm_zero_factor(x, tgm_zeros[0]) * tgm_zero_factor(x, tgm_zeros[1]) *
         tgm_polynomial(t, 0x1.a1c5e862f307cp-9, -0x1.f799f81a24df2p-10, 0x1.ff5f552d941d5p-12,
             -0x1.2ab4ba4dd3ff3p-14, 0x1.cc073a3fdff36p-18, -0x1.f9558f6abe2ap-22, 0x1.a13bed409f14p-26,
             -0x1.0cdec1eb1267bp-30, 0x1.1648c63a4a995p-35, -0x1.d91d10eef5f1p-41,
             0x1.505b3954b6a9fp-46, -0x1.96589dffe5553p-52, 0x1.a5b09bd608c0bp-58);
}
TG_INLINE double tgm_near_j1(double x, double t) {
  return x * tgm_zero_factor(x, tgm_zeros[2]) * tgm_zero_factor(x, tgm_zeros[3]) *
         tgm_polynomial(t, 0x1.c55f67750a6b9p-12, -0x1.b6fd6da03642bp-13, 0x1.72eee8d97b79bp-15,
             -0x1.7223792a41c1fp-18, 0x1.f0b5f2cbdb8d4p-22, -0x1.e2f3904d6b97dp-26,
             0x1.656be7f8e203cp-30, -0x1.a1301d05b0b6bp-35, 0x1.8a6deac026f06p-40,
             -0x1.348108f60815fp-45, 0x1.96219ab47be76p-51, -0x1.c8a99c0f50a57p-57,
             0x1.bb355f5502dc4p-63);
}
TG_INLINE double tgm_p0(double t) {
  return tgm_polynomial(t, 0x1.ff4d0e58750e7p-1, -0x1.5bfe8e4499177p-10, 0x1.24e857dff6934p-15,
      -0x1.4a2bb23b27aadp-19, 0x1.3f88f18a3c35cp-22, -0x1.b4ebbe5d3f37cp-25, 0x1.7bf612ee692d9p-27,
      -0x1.8a8f05c3b9374p-29, 0x1.d6a95e101f7e4p-31, -0x1.38a2b6c8aac82p-32, 0x1.acab820a0be99p-34,
      -0x1.455e2cbcaacf6p-35, 0x1.b020c47c66866p-36, -0x1.a2813179a6cb8p-37, -0x1.f823831a239b1p-39,
      0x1.5361597b38fb9p-39, 0x1.f6f3ee17140dbp-39, -0x1.191f94ec7a106p-39);
}
TG_INLINE double tgm_q0(double t) {
  return tgm_polynomial(t, -0x1.fa53af1a412dcp-4, 0x1.5883682266f5fp-10, -0x1.09dd70550eb68p-14,
      0x1.a2b325e1655d1p-18, -0x1.f930624d94b99p-21, 0x1.953ca6b5b8b67p-23, -0x1.8e8730a24e57fp-25,
      0x1.c8cf78f3fcb99p-27, -0x1.2831a70d980b9p-28, 0x1.a63647940f929p-30, -0x1.2ac0549a835cbp-31,
      0x1.d8f2cbbe74e3ep-33, -0x1.7c2714d45b3fep-33, 0x1.84da88f03c29cp-34, 0x1.395e0b7758c5fp-35,
      -0x1.9c11da6ce834cp-36, -0x1.ff274a3ac71d6p-36, 0x1.2621c22351185p-36);
}
TG_INLINE double tgm_p1(double t) {
  return tgm_polynomial(t, 0x1.00961eaac1aa9p0, 0x1.25cb0665de3bep-9, -0x1.800dd410d36e6p-15,
      0x1.8fc8a4581c581p-19, -0x1.743c73143e7ccp-22, 0x1.f180083e9c182p-25, -0x1.aa278e04a0674p-27,
      0x1.b5c5f9e7c6202p-29, -0x1.02f6fd547cd27p-30, 0x1.55d31ff1624fep-32, -0x1.d2fc86839f9p-34,
      0x1.611e4c68a422cp-35, -0x1.cf85d490f098p-36, 0x1.bf3fa1e950b98p-37, 0x1.07d26298dad29p-38,
      -0x1.642c411ee6224p-39, -0x1.0b05ced4cb3acp-38, 0x1.29fdd8202e299p-39);
}
TG_INLINE double tgm_q1(double t) {
  return tgm_polynomial(t, 0x1.7e0025755b91p-2, -0x1.e8dbf08d12ad3p-10, 0x1.4b4523f61bd3dp-14,
      -0x1.ee9665de5f48p-18, 0x1.21e12e7b3dab9p-20, -0x1.c8b33ddd16686p-23, 0x1.bb91a757c7096p-25,
      -0x1.f7ccb0935b941p-27, 0x1.44523020f6dbap-28, -0x1.cbaf55c3cf2b8p-30, 0x1.447b8aaa5fa1p-31,
      -0x1.00099278f7a2bp-32, 0x1.96465411b5f72p-33, -0x1.9e31dec958c3fp-34, -0x1.48c676f53601cp-35,
      0x1.b0ca36a6402f6p-36, 0x1.0ed93aa0a815bp-35, -0x1.3737b1bbdd352p-36);
}

// sqrt(2 / (pi x)) (p cos(x - turn) - q sin(x - turn)) with turn = pi / 4, or sine and cosine exchanged.
// The angle is reduced with all digits: it may be as large as any number.
struct tgm_waves {
  double cosine, sine;
};  // times sqrt(2)
TG_INLINE tgm_waves tgm_waves_of(double x) {
  const tgm_angle angle = tgm_angle_of(x);
  const tgm_pair s = tgm_sin_pair(angle), c = tgm_cos_pair(angle);
  const bool odd = angle.quadrant & 1, turned = angle.quadrant & 2;
  tgm_pair sine = odd ? c : s, cosine = odd ? tgm_negative(s) : c;
  sine = turned ? tgm_negative(sine) : sine;
  cosine = turned ? tgm_negative(cosine) : cosine;
  const tgm_pair sum = tgm_two_sum(cosine.high, sine.high),
                 difference = tgm_two_sum(sine.high, -cosine.high);
  return {sum.high + (sum.low + (cosine.low + sine.low)),
      difference.high + (difference.low + (sine.low - cosine.low))};
}
TG_INLINE double tgm_amplitude(double x) { return 0x1.20dd750429b6dp-1 / sqrt(x); }  // sqrt(1 / (pi x))
TG_INLINE double tgm_far_place(double x) { return x < 0x1p500 ? 50 / (x * x) - 1 : -1; }

TG_SHARED double j0(double x) {
  const double size = fabs(x), near = size < 5 ? size : 5, far = size < 5 ? 5 : size;
  const double t = tgm_far_place(far), inverse = 1 / far;
  const tgm_waves w = tgm_waves_of(far);
  const double beyond = tgm_amplitude(far) * (tgm_p0(t) * w.cosine - inverse * tgm_q0(t) * w.sine);
  const double y = size < 5 ? tgm_near_j0(near, near * near * 0.08 - 1) : beyond;
  return x != x ? x : size == tgm_inf ? 0 : y;
}
TG_SHARED double j1(double x) {
  const double size = fabs(x), near = size < 5 ? size : 5, far = size < 5 ? 5 : size;
  const double t = tgm_far_place(far), inverse = 1 / far;
  const tgm_waves w = tgm_waves_of(far);
  // x - 3 pi / 4: the cosine is the sine of x - pi / 4, and the sine less its cosine
  const double beyond = tgm_amplitude(far) * (tgm_p1(t) * w.sine + inverse * tgm_q1(t) * w.cosine);
  const double y = size < 5 ? tgm_near_j1(near, near * near * 0.08 - 1) : beyond;
  return x != x ? x : size == tgm_inf ? copysign(0.0, x) : signbit(x) ? -y : y;
}
TG_SHARED double y0(double x) {
  const double near = x < 5 ? x : 5, far = x < 5 ? 5 : x, z = near * near * 0.08 - 1;
  const double t = tgm_far_place(far), inverse = 1 / far;
  const tgm_waves w = tgm_waves_of(far);
  const double beyond = tgm_amplitude(far) * (tgm_p0(t) * w.sine + inverse * tgm_q0(t) * w.cosine);
  const double regular = tgm_polynomial(z, 0x1.ef5591b23addcp-2, -0x1.bb0a20bc8fa17p-2,
      -0x1.e1dec550e2063p-2, 0x1.8dd73e3860a7fp-2, -0x1.c8c5dcec55175p-4, 0x1.20efffecdb2p-6,
      -0x1.d898823c280f9p-10, 0x1.1084623b52889p-13, -0x1.d4ca0d2405a34p-18, 0x1.38e97d030cbc8p-22,
      -0x1.4e026d20601c1p-27, 0x1.23cf653ed486ap-32, -0x1.a9b9f9880c2ffp-38, 0x1.06ae24e5e72fcp-43);
  const double within = fma(0x1.45f306dc9c883p-1 * log(near), tgm_near_j0(near, z), regular);
  const double y = x < 5 ? within : beyond;
  return x != x ? x : x < 0 ? tgm_nan : x == 0 ? -tgm_inf : x == tgm_inf ? 0 : y;
}
TG_SHARED double y1(double x) {
  const double near = x < 5 ? x : 5, far = x < 5 ? 5 : x, z = near * near * 0.08 - 1;
  const double t = tgm_far_place(far), inverse = 1 / far;
  const tgm_waves w = tgm_waves_of(far);
  const double beyond = tgm_amplitude(far) * (inverse * tgm_q1(t) * w.sine - tgm_p1(t) * w.cosine);
  const double regular =
      near * tgm_polynomial(z, 0x1.1e34eda905916p-3, 0x1.75172069e41bbp-4, -0x1.4e11f71d95a0fp-3,
                 0x1.0fc1d2bad4f78p-4, -0x1.b82fcf4b7e778p-7, 0x1.b5777b8435ccbp-10,
                 -0x1.2893671e1f7a1p-13, 0x1.2508be43f04c1p-17, -0x1.b9b6abba6cb87p-22,
                 0x1.06a94d23eb79dp-26, -0x1.f9eb1c7cdcc71p-32, 0x1.92d2ecc4f2b6fp-37,
                 -0x1.0df75ed5109efp-42, 0x1.343d6300a8432p-48);
  const double within =
      fma(0x1.45f306dc9c883p-1, fma(log(near), tgm_near_j1(near, z), -1 / near), regular);
  const double y = x < 5 ? within : beyond;
  return x != x ? x : x < 0 ? tgm_nan : x == 0 ? -tgm_inf : x == tgm_inf ? 0 : y;
}

// ---- modified functions -----------------------------------------------------------------------------------

// Power series of (x / 2)**2 up to 8; then exp(x) / sqrt(x) times polynomials of 16 / x - 1. The
// exponential may overflow where the result does not: it is scaled last.
TG_INLINE double tgm_modified(double x, double within, double scaled) {
  const tgm_exponential e = tgm_exp_parts(x, 0);
  const tgm_pair sum = tgm_fast_two_sum(1, e.mantissa.high);
  const double factor = scaled / sqrt(x), low = factor * (sum.low + e.mantissa.low);
  return x < 8 ? within : tgm_scaled(fma(factor, sum.high, low), e.exponent);
}
TG_SHARED double cyl_bessel_i0(double x) {
  const double size = fabs(x), near = size < 8 ? size : 8, far = size < 8 ? 8 : size < 800 ? size : 800;
  const tgm_pair z = tgm_two_product(0.5 * near, 0.5 * near);
  // the derivative of the logarithm, roughly, for what the square has lost
  const double lost = z.low * (2 / (1 + sqrt(1 + near * near)));
  const double series = tgm_polynomial(z.high, 0x1p0, 0x1p0, 0x1.0000000000002p-2, 0x1.c71c71c71c6dfp-6,
      0x1.c71c71c71cbe1p-10, 0x1.23456789a8318p-14, 0x1.02e85c08d260ap-19, 0x1.522a43f155552p-25,
      0x1.522a444603fe2p-31, 0x1.0b312ee43b7c5p-37, 0x1.5601c7e411b36p-44, 0x1.69c76363ac35fp-51,
      0x1.41b6c17a09391p-58, 0x1.e56f7ffb05c87p-66, 0x1.46a4446d3e276p-73, 0x1.31d00bad6ba1ap-81,
      0x1.20d247d00eeebp-88);
  const double within = fma(series, lost, series);
  const double t = 16 / far - 1,
               scaled = tgm_polynomial(t, 0x1.9bd428ad249a5p-2, 0x1.b87969bb93b75p-9,
                   0x1.1daa72b5e650cp-13, 0x1.75e5ee71edd14p-17, 0x1.8e513a1d5e52bp-20,
                   0x1.3f49a6bcfc2d9p-22, 0x1.7d0f75812d9bcp-24, 0x1.51ced7b713adcp-25,
                   0x1.7224b1828e507p-26, 0x1.03896efb09a41p-27, -0x1.ce768f00b5374p-28,
                   -0x1.cc90f59ec1228p-27, -0x1.77cc956faaa2fp-28, 0x1.0317d4c7b215ap-27,
                   0x1.047454ffcb608p-27, -0x1.df1549cddfaf8p-29, -0x1.a9411c5b0ad08p-28,
                   0x1.9bbbfe31d81e9p-30, 0x1.0ab5ef575d285p-28, -0x1.31c908a5dd531p-31,
                   -0x1.e8fd992032bedp-30, 0x1.42a55974d41b8p-33, 0x1.1ce14787c5bdep-31,
                   -0x1.52109c25bd9ecp-36, -0x1.36e52c10032d7p-34);
  return x != x ? x : tgm_modified(size < 8 ? near : far, within, scaled);
}
TG_SHARED double cyl_bessel_i1(double x) {
  const double size = fabs(x), near = size < 8 ? size : 8, far = size < 8 ? 8 : size < 800 ? size : 800;
  const tgm_pair z = tgm_two_product(0.5 * near, 0.5 * near);
  // the derivative of the logarithm, roughly, for what the square has lost
  const double lost = z.low * (2 / (2 + sqrt(4 + near * near)));
  const double series = tgm_polynomial(z.high, 0x1p-1, 0x1p-2, 0x1.5555555555556p-5,
      0x1.c71c71c71c70fp-9, 0x1.6c16c16c16d2p-13, 0x1.845c8a0ce3807p-18, 0x1.27e4fb77a30bbp-23,
      0x1.522a43f427f3bp-29, 0x1.2c9758fda3036p-35, 0x1.ab81e74959342p-42, 0x1.f176cf1f1237fp-49,
      0x1.e260acd0c17e6p-56, 0x1.8be972f0e252ep-63, 0x1.159f90570389ap-70, 0x1.5ac53da80dc82p-78,
      0x1.38dbeef3ff4f1p-86, 0x1.08fbc76dd1dfp-93);
  const double within = near * fma(series, lost, series);
  const double t = 16 / far - 1,
               scaled = tgm_polynomial(t, 0x1.8ebe783a8403p-2, -0x1.3f796198ee628p-7,
                   -0x1.cbc54df1ece76p-13, -0x1.f89c23066d278p-17, -0x1.ec8e101744487p-20,
                   -0x1.76137e6905189p-22, -0x1.ad8db6e1fecbbp-24, -0x1.727a73a8063a8p-25,
                   -0x1.9180f82a1d429p-26, -0x1.21895bb7ba33fp-27, 0x1.cd81846fb3ff1p-28,
                   0x1.e20e7d69649cap-27, 0x1.9f203cf2783b7p-28, -0x1.0630cddd4e099p-27,
                   -0x1.1465ce7d29637p-27, 0x1.d4345a69bfc3p-29, 0x1.bdc8daed57db9p-28,
                   -0x1.858c7591014bdp-30, -0x1.162964d5f91dbp-28, 0x1.1aee882806184p-31,
                   0x1.fce6b32270b52p-30, -0x1.272ae05110368p-33, -0x1.2839623e2341cp-31,
                   0x1.33e83e12ca3b4p-36, 0x1.432b0a4121172p-34);
  const double y = tgm_modified(size < 8 ? near : far, within, scaled);
  return x != x ? x : signbit(x) ? -y : y;
}
TG_BY_DOUBLE_OF_1(j0)
TG_BY_DOUBLE_OF_1(j1)
TG_BY_DOUBLE_OF_1(y0)
TG_BY_DOUBLE_OF_1(y1)
TG_BY_DOUBLE_OF_1(cyl_bessel_i0)
TG_BY_DOUBLE_OF_1(cyl_bessel_i1)
