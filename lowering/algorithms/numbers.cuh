// Arithmetic of real and complex numbers, for kernels that are written once for all dtypes. Before
// this text come: T, the type of the elements, and R, that of their parts.

// Waits until the kernels before this one have ended, where it may start while they run.
__device__ inline void wait_for_primaries() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <class P> struct complex_of { P re, im; };

__device__ inline float part(float x) { return x; }
__device__ inline double part(double x) { return x; }
__device__ inline float conj_of(float x) { return x; }
__device__ inline double conj_of(double x) { return x; }
__device__ inline float times(float x, float y) { return x * y; }
__device__ inline double times(double x, double y) { return x * y; }
__device__ inline float minus(float x, float y) { return x - y; }
__device__ inline double minus(double x, double y) { return x - y; }
__device__ inline float less_product(float x, float y, float z) { return fmaf(-y, z, x); }
__device__ inline double less_product(double x, double y, double z) { return fma(-y, z, x); }
__device__ inline float plus(float x, float y) { return x + y; }
__device__ inline double plus(double x, double y) { return x + y; }
__device__ inline float over(float x, float y) { return x / y; }
__device__ inline double over(double x, double y) { return x / y; }
__device__ inline float size_of_pivot(float x) { return fabsf(x); }
__device__ inline double size_of_pivot(double x) { return fabs(x); }
__device__ inline float largest_part(float x) { return fabsf(x); }
__device__ inline double largest_part(double x) { return fabs(x); }
__device__ inline float absolute(float x) { return fabsf(x); }
__device__ inline double absolute(double x) { return fabs(x); }
__device__ inline float squared(float x) { return x * x; }
__device__ inline double squared(double x) { return x * x; }
__device__ inline bool is_zero(float x) { return x == 0; }
__device__ inline bool is_zero(double x) { return x == 0; }

template <class P> __device__ P part(complex_of<P> x) { return x.re; }
template <class P> __device__ complex_of<P> conj_of(complex_of<P> x) { return {x.re, -x.im}; }
template <class P> __device__ complex_of<P> times(complex_of<P> x, complex_of<P> y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
template <class P> __device__ complex_of<P> times(complex_of<P> x, P y) {
  return {x.re * y, x.im * y};
}
template <class P>
__device__ complex_of<P> less_product(complex_of<P> x, complex_of<P> y, complex_of<P> z) {
  return {
      less_product(less_product(x.re, y.re, z.re), -y.im, z.im),
      less_product(less_product(x.im, y.re, z.im), y.im, z.re)};
}
template <class P> __device__ complex_of<P> minus(complex_of<P> x, complex_of<P> y) {
  return {x.re - y.re, x.im - y.im};
}
template <class P> __device__ complex_of<P> plus(complex_of<P> x, complex_of<P> y) {
  return {x.re + y.re, x.im + y.im};
}
template <class P> __device__ complex_of<P> over(complex_of<P> x, P y) {
  return {x.re / y, x.im / y};
}
// Smith's algorithm: scales by the larger part, so that no square overflows.
template <class P>
__device__ __attribute__((noinline)) complex_of<P> over(complex_of<P> x, complex_of<P> y) {
  if (fabs(y.re) >= fabs(y.im)) {
    P ratio = y.im / y.re, below = y.re + y.im * ratio;
    if (y.re == 0) return {x.re / y.re, x.im / y.re};
    return {(x.re + x.im * ratio) / below, (x.im - x.re * ratio) / below};
  }
  P ratio = y.re / y.im, below = y.im + y.re * ratio;
  return {(x.re * ratio + x.im) / below, (x.im * ratio - x.re) / below};
}
template <class P> __device__ P size_of_pivot(complex_of<P> x) { return fabs(x.re) + fabs(x.im); }
template <class P> __device__ P largest_part(complex_of<P> x) {
  return fabs(x.re) >= fabs(x.im) || fabs(x.re) != fabs(x.re) ? fabs(x.re) : fabs(x.im);
}
template <class P> __device__ P absolute(complex_of<P> x) { return hypot(x.re, x.im); }
template <class P> __device__ P squared(complex_of<P> x) { return x.re * x.re + x.im * x.im; }
template <class P> __device__ bool is_zero(complex_of<P> x) { return x.re == 0 && x.im == 0; }

template <class E> struct number_of {
  static __device__ E from(R x) { return x; }
};
template <class P> struct number_of<complex_of<P>> {
  static __device__ complex_of<P> from(R x) { return {x, 0}; }
};
__device__ inline T number(R x) { return number_of<T>::from(x); }
__device__ inline R not_a_number() { return (R)nan(""); }
__device__ inline R infinity() {
  R zero = 0;
  return 1 / zero;
}

// The value that a lane of the warp has; all lanes take part.
template <class V> __device__ V of_lane(V x, int lane) {
  static_assert(sizeof(V) % 4 == 0, "values are made of words");
  union {
    V value;
    unsigned words[sizeof(V) / 4];
  } moved = {x};
#pragma unroll
  for (int i = 0; i < (int)(sizeof(V) / 4); ++i) {
    moved.words[i] = __shfl_sync(~0u, moved.words[i], lane);
  }
  return moved.value;
}
// The sum, and the largest, of what the lanes of a warp have.
__device__ inline R sum_of_lanes(R x) {
#pragma unroll
  for (int apart = 16; apart; apart /= 2) x += of_lane(x, (threadIdx.x % 32) ^ apart);
  return x;
}
__device__ inline R largest_of_lanes(R x) {
#pragma unroll
  for (int apart = 16; apart; apart /= 2) {
    const R other = of_lane(x, (threadIdx.x % 32) ^ apart);
    x = other > x ? other : x;
  }
  return x;
}

// x, y become c x - conj(s) y and s x + c y.
__device__ inline void rotate(T& x, T& y, R c, T s) {
  const T old = x;
  x = minus(times(old, c), times(conj_of(s), y));
  y = plus(times(y, c), times(s, old));
}
