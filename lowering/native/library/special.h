extern "C" {
double erf(double); double erfc(double); double lgamma(double); double tgamma(double);
double j0(double); double j1(double); double y0(double); double y1(double);
}
inline double erfcx(double x) { return exp(x*x)*erfc(x); }
inline double normcdf(double x) { return 0.5*erfc(-x*0.70710678118654752440); }
inline double erfinv(double x) { return x; }
inline double erfcinv(double x) { return x; }
inline double normcdfinv(double x) { return x; }
inline double cyl_bessel_i0(double x) { return x; }
inline double cyl_bessel_i1(double x) { return x; }
TG_BY_DOUBLE_OF_1(erf) TG_BY_DOUBLE_OF_1(erfc) TG_BY_DOUBLE_OF_1(lgamma) TG_BY_DOUBLE_OF_1(tgamma)
TG_BY_DOUBLE_OF_1(j0) TG_BY_DOUBLE_OF_1(j1) TG_BY_DOUBLE_OF_1(y0) TG_BY_DOUBLE_OF_1(y1)
TG_BY_DOUBLE_OF_1(erfcx) TG_BY_DOUBLE_OF_1(normcdf) TG_BY_DOUBLE_OF_1(erfinv) TG_BY_DOUBLE_OF_1(erfcinv)
TG_BY_DOUBLE_OF_1(normcdfinv) TG_BY_DOUBLE_OF_1(cyl_bessel_i0) TG_BY_DOUBLE_OF_1(cyl_bessel_i1)
