// The first part of every unit: types, vector accesses, casts, and scalar functions with NumPy's rules.
// Self-contained C++17, since NVRTC has no headers. The other .cuh files follow it.
//
// float16 and bfloat16 are kept as tg_half and tg_bfloat16, and computed in float except where half.cuh
// has a native operation.

typedef signed char tg_i8;
typedef short tg_i16;
typedef int tg_i32;
typedef long long tg_i64;
typedef unsigned char tg_u8;
typedef unsigned short tg_u16;
typedef unsigned int tg_u32;
typedef unsigned long long tg_u64;

struct tg_half { tg_u16 bits; };
struct tg_bfloat16 { tg_u16 bits; };

template <class R> struct alignas(2 * sizeof(R)) tg_complex {
  R re, im;
  tg_complex() = default;
  __device__ tg_complex(R re, R im) : re(re), im(im) {}
};
typedef tg_complex<float> tg_c64;
typedef tg_complex<double> tg_c128;

// A vector: elements that are loaded or stored in one access.
template <class T, int N> struct alignas(N * sizeof(T)) tg_pack { T items[N]; };

// A block is W words. This is the one that begins `bits` after word FROM of two consecutive blocks.
template <int W> using tg_block = tg_pack<tg_u32, W>;
template <class T, int FROM, int W>
__device__ tg_block<W> tg_shifted_by(tg_block<W> low, tg_block<W> high, tg_u32 bits) {
  tg_u32 words[2 * W];
  for (int i = 0; i < W; ++i) {
    words[i] = low.items[i];
    words[i + W] = high.items[i];
  }
  tg_block<W> found;
  for (int i = 0; i < W; ++i) {
    found.items[i] = words[i + FROM];
    if constexpr (sizeof(T) < 4) {
      found.items[i] = __funnelshift_r(words[i + FROM], words[i + FROM + 1], bits);
    }
  }
  return found;
}

// The block that begins at byte `skip` of the first, a multiple of the size of T. All threads of a warp
// take the same branch; selecting each word took three times as long.
template <class T, int W>
__device__ tg_block<W> tg_shifted(tg_block<W> low, tg_block<W> high, tg_u32 skip) {
  const tg_u32 bits = 8 * (skip & 3);
  if constexpr (W == 4) {
    if (skip >= 12 && sizeof(T) < 8) return tg_shifted_by<T, 3>(low, high, bits);
    if (skip >= 8) return tg_shifted_by<T, 2>(low, high, bits);
  }
  if constexpr (W > 1 && sizeof(T) < 8) {
    if (skip >= 4) return tg_shifted_by<T, 1>(low, high, bits);
  }
  return tg_shifted_by<T, 0>(low, high, bits);
}

// The two aligned blocks that a misaligned block straddles. Its address is a multiple of the element
// size. Both blocks hold elements of it, so no memory beyond the array's own blocks is read.
template <int W> struct tg_straddle { tg_block<W> low, high; };
template <int W, class T> __device__ tg_straddle<W> tg_load_straddle(const T* place) {
  const tg_u32 skip = (tg_u32)(tg_u64)place & (sizeof(tg_block<W>) - 1);
  const tg_block<W>* const start = (const tg_block<W>*)((const char*)place - skip);
  return {start[0], start[skip ? 1 : 0]};
}

// The misaligned block, extracted from the aligned ones.
template <class T, int W> __device__ tg_block<W> tg_within(tg_straddle<W> both, const T* place) {
  return tg_shifted<T>(both.low, both.high, (tg_u32)(tg_u64)place & (sizeof both.low - 1));
}

// The elements in words. The asm keeps the compiler from unpacking narrow elements on both sides of the
// branch that selects the words.
template <int N, class T, int W> __device__ tg_pack<T, N> tg_elements(tg_block<W> words) {
  tg_pack<T, N> result;
  if constexpr (sizeof(T) < 4) for (tg_u32& word : words.items) asm("" : "+r"(word));
  memcpy(&result, &words, sizeof result);
  return result;
}

// The same items, with those of less than a word packed in registers: the compiler would use a register
// for each.
template <class T, int N> __device__ tg_pack<T, N> tg_packed(tg_pack<T, N> items) {
  if constexpr (sizeof(T) >= 4 || sizeof items < 4) {
    return items;
  } else {
    tg_block<sizeof items / 4> words;
    memcpy(&words, &items, sizeof items);
    return tg_elements<N, T>(words);
  }
}

// Loads a vector; its address is a multiple of the vector's size if it is `aligned`.
template <int N, class T> __device__ tg_pack<T, N> tg_load(const T* place, bool aligned) {
  tg_pack<T, N> result;
  constexpr int W = N * sizeof(T) / 4;
  if constexpr (N > 2 && W > 0 || W == 4) {
    tg_block<W> found;
    if (aligned) found = *(const tg_block<W>*)place;
    else found = tg_within(tg_load_straddle<W>(place), place);
    result = tg_elements<N, T>(found);
  } else if (aligned) {
    result = *(const tg_pack<T, N>*)place;
  } else {
    for (int i = 0; i < N; ++i) result.items[i] = place[i];
  }
  return result;
}

// Stores a vector. Misaligned elements of two bytes are stored as words, from an even address on.
template <class T, int N> __device__ void tg_store(T* place, tg_pack<T, N> items, bool aligned) {
  if (aligned) {
    *(tg_pack<T, N>*)place = items;
  } else if constexpr (sizeof(T) == 2 && N > 2) {
    typedef tg_pack<T, 2> word;
    if ((tg_u64)place & 2) {
      place[0] = items.items[0];
      for (int i = 1; i < N - 1; i += 2) {
        *(word*)(place + i) = word{{items.items[i], items.items[i + 1]}};
      }
      place[N - 1] = items.items[N - 1];
    } else {
      for (int i = 0; i < N; i += 2) {
        *(word*)(place + i) = word{{items.items[i], items.items[i + 1]}};
      }
    }
  } else {
    for (int i = 0; i < N; ++i) place[i] = items.items[i];
  }
}

// Stores contiguous vectors of neighbouring lanes cooperatively. Up to LANES threads, a power of two,
// take part: those before this one, and those that hold the `left` vectors from this one on. A lane
// stores the aligned vector that ends in its own and begins in that of the lane before. The first lane
// stores the rest at both ends element by element.
template <int LANES, class T, int N, class I>
__device__ void tg_store_together(T* place, tg_pack<T, N> items, bool aligned, int thread, I left) {
  if constexpr (N * sizeof(T) < 4) {
    tg_store(place, items, aligned);
  } else {
    typedef tg_block<N * sizeof(T) / 4> block;
    const tg_u32 skip = (tg_u32)(tg_u64)place & (sizeof(block) - 1);
    if (aligned || skip == 0) {
      *(tg_pack<T, N>*)place = items;
      return;
    }
    const int lane = thread & (LANES - 1), first = (thread & 31) - lane;
    const int count = left < LANES - lane ? lane + (int)left : LANES;
    const tg_u32 all = count < 32 ? ((1u << count) - 1) << first : ~0u;
    block mine, before;
    memcpy(&mine, &items, sizeof mine);
    for (tg_u32 i = 0; i < sizeof(block) / 4; ++i) {
      before.items[i] = __shfl_sync(all, mine.items[i], first + (lane ? lane : count) - 1);
    }
    __syncwarp(all);  // all have read what may be overwritten now
    const block found = tg_shifted<T>(before, mine, sizeof(block) - skip);
    T* const start = (T*)((char*)place - skip);
    if (lane) {
      *(block*)start = found;
    } else {
      tg_pack<T, N> ends;
      memcpy(&ends, &found, sizeof ends);
      T* const end = start + count * N;
      for (int i = 0; i < N - 1; ++i) if (i * sizeof(T) < skip) end[i] = ends.items[i];
      for (int i = 1; i < N; ++i) if (i * sizeof(T) >= skip) start[i] = ends.items[i];
    }
  }
}

// Butterfly shuffle: x of the lane whose number differs in the bits of `apart`. All lanes take part. For
// two words the lane is given by its number: with the xor form, ptxas spills registers in softmax.
template <class T> __device__ T tg_shuffle_xor(T x, int thread, int apart) {
  tg_u32 words[(sizeof(T) + 3) / 4] = {};
  memcpy(words, &x, sizeof x);
  for (auto& word : words) {
    if constexpr (sizeof(T) <= 4) word = __shfl_xor_sync(~0u, word, apart);
    else word = __shfl_sync(~0u, word, thread ^ apart);
  }
  memcpy(&x, words, sizeof x);
  return x;
}

// The head of the print ring: bytes written and read since the start, records that were dropped, and the
// size of the data that follows, a power of two. The device advances head and lost, the host tail.
struct tg_ring { tg_u64 head, tail, lost, capacity; };

#ifdef __CUDACC__
#ifdef TRACEGRAPH_STORED_CONDITIONS
// The host reads conditions: a handle is an address.
__device__ inline void cudaGraphSetConditional(unsigned long long handle, unsigned int value) {
  *(volatile unsigned int*)handle = value;
}
#else
extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(unsigned long long handle, unsigned int value);
#endif

// For a host compiler, the including text provides the conversions.
__device__ inline float tg_half_to_float(tg_u16 half) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
  return x;
}
__device__ inline tg_u16 tg_float_to_half(float x) {
  tg_u16 half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
  return half;
}
__device__ inline tg_u16 tg_double_to_half(double x) {
  tg_u16 half;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(half) : "d"(x));
  return half;
}
#endif

// ---- casts ------------------------------------------------------------------------------------

enum tg_kind { TG_BOOL, TG_INTEGER, TG_FLOAT, TG_HALF, TG_BFLOAT16, TG_COMPLEX };
template <class T> constexpr tg_kind tg_kind_of = TG_INTEGER;
template <> constexpr tg_kind tg_kind_of<bool> = TG_BOOL;
template <> constexpr tg_kind tg_kind_of<float> = TG_FLOAT;
template <> constexpr tg_kind tg_kind_of<double> = TG_FLOAT;
template <> constexpr tg_kind tg_kind_of<tg_half> = TG_HALF;
template <> constexpr tg_kind tg_kind_of<tg_bfloat16> = TG_BFLOAT16;
template <class R> constexpr tg_kind tg_kind_of<tg_complex<R>> = TG_COMPLEX;

template <class A, class B> constexpr bool tg_same = false;
template <class A> constexpr bool tg_same<A, A> = true;

template <class T> constexpr bool tg_signed = T(-1) < T(0);

template <class To, class From> __device__ To tg_bits(From x) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To result;
  memcpy(&result, &x, sizeof(To));
  return result;
}

// Rounds to nearest even; a NaN becomes quiet. This is the instruction for two floats: that for one is a
// general conversion (F2F) of low throughput on sm_90.
__device__ inline tg_u16 tg_float_to_bfloat16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  tg_u32 rounded;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(rounded) : "f"(0.0f), "f"(x));
  return (tg_u16)rounded;
#else
  tg_u32 bits = tg_bits<tg_u32>(x);
  if (isnan(x)) return (tg_u16)((bits >> 16 & 0x8000u) | 0x7fc0u);
  return (tg_u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
}

__device__ inline float tg_bfloat16_to_float(tg_u16 bits) {
#ifdef __CUDA_ARCH__
  float x;
  asm("mov.b32 %0, {%1, %2};" : "=f"(x) : "h"((tg_u16)0), "h"(bits));
  return x;
#else
  return tg_bits<float>((tg_u32)bits << 16);
#endif
}

// Beyond the range of T the result is undefined in C, and NumPy's is the processor's. Here values within
// 32 bits wrap in types of 8 and 16 bits, as on x86; larger types saturate.
template <class T, class R> __device__ T tg_float_to_integer(R x) {
  if constexpr (sizeof(T) < 4) return (T)(tg_i32)x;
  else if constexpr (sizeof(T) == 4 && !tg_signed<T>) return (T)(tg_i64)x;
  else if constexpr (!tg_signed<T>) return x < 0 ? (T)(tg_i64)x : (T)x;
  else return (T)x;
}

// NumPy's astype: a complex number loses its imaginary part, a number is true unless it is zero, and a
// double is rounded to float before bfloat16.
template <class To, class From> __device__ To tg_cast(From x) {
  constexpr tg_kind to = tg_kind_of<To>, from = tg_kind_of<From>;
  if constexpr (tg_same<To, From>) {
    return x;
  } else if constexpr (from == TG_HALF) {
    return tg_cast<To>(tg_half_to_float(x.bits));
  } else if constexpr (from == TG_BFLOAT16) {
    return tg_cast<To>(tg_bfloat16_to_float(x.bits));
  } else if constexpr (from == TG_COMPLEX && to == TG_COMPLEX) {
    To result;
    result.re = x.re;
    result.im = x.im;
    return result;
  } else if constexpr (from == TG_COMPLEX && to == TG_BOOL) {
    return x.re != 0 || x.im != 0;
  } else if constexpr (from == TG_COMPLEX) {
    return tg_cast<To>(x.re);
  } else if constexpr (to == TG_COMPLEX) {
    To result;
    result.re = x;
    result.im = 0;
    return result;
  } else if constexpr (to == TG_HALF && tg_same<From, double>) {
    return tg_half{tg_double_to_half(x)};
  } else if constexpr (to == TG_HALF) {
    return tg_half{tg_float_to_half((float)x)};
  } else if constexpr (to == TG_BFLOAT16) {
    return tg_bfloat16{tg_float_to_bfloat16((float)x)};
  } else if constexpr (from == TG_FLOAT && to == TG_INTEGER) {
    return tg_float_to_integer<To>(x);
  } else {
    return (To)x;
  }
}

// ---- infinities and NaN, which have no literals ---------------------------------------------------

__device__ inline float tg_inf_f32() { return tg_bits<float>(0x7f800000u); }
__device__ inline float tg_nan_f32() { return tg_bits<float>(0x7fc00000u); }
__device__ inline double tg_inf_f64() { return tg_bits<double>(0x7ff0000000000000ull); }
__device__ inline double tg_nan_f64() { return tg_bits<double>(0x7ff8000000000000ull); }

// ---- integers: arithmetic wraps, division by zero gives zero -------------------------------------

template <int size> struct tg_wide { typedef tg_u32 type; };
template <> struct tg_wide<8> { typedef tg_u64 type; };
// Unsigned, and not narrower than int: narrower types would be promoted to signed int.
template <class T> using tg_word = typename tg_wide<sizeof(T)>::type;

template <class T> __device__ T tg_add(T x, T y) { return (T)((tg_word<T>)x + (tg_word<T>)y); }
template <class T> __device__ T tg_subtract(T x, T y) { return (T)((tg_word<T>)x - (tg_word<T>)y); }
// A narrow product is computed at the upper end of a word and shifted down, which sign-extends it. Else
// the compiler emulates a multiplication in 16 bits.
template <class T> __device__ T tg_multiply(T x, T y) {
  if constexpr (sizeof(T) < 4) {
    constexpr int up = 32 - 8 * sizeof(T);
    const tg_u32 product = ((tg_u32)x << up) * (tg_u32)y;
    return (T)(tg_signed<T> ? (int)product >> up : product >> up);
  } else {
    return (T)((tg_word<T>)x * (tg_word<T>)y);
  }
}
template <class T> __device__ T tg_negative(T x) { return (T)(0 - (tg_word<T>)x); }
template <class T> __device__ T tg_absolute(T x) { return x < 0 ? tg_negative(x) : x; }
template <class T> __device__ T tg_reciprocal(T x) { return x == 0 ? (T)0 : (T)(1 / x); }

// -1 is a special case, since the quotient of the least integer overflows.
template <class T> __device__ T tg_floor_divide(T x, T y) {
  if (y == 0) return 0;
  if constexpr (tg_signed<T>) {
    if (y == (T)-1) return tg_negative(x);
    T quotient = x / y;
    return quotient * y != x && (x < 0) != (y < 0) ? quotient - 1 : quotient;
  } else {
    return x / y;
  }
}
template <class T> __device__ T tg_fmod(T x, T y) {
  if (y == 0 || (tg_signed<T> && y == (T)-1)) return 0;
  return x % y;
}
template <class T> __device__ T tg_remainder(T x, T y) {
  T rest = tg_fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

// Of magnitudes, in the unsigned type: that of the least integer is no number of the signed one.
template <class T> __device__ tg_word<T> tg_magnitude(T x) {
  return x < 0 ? 0 - (tg_word<T>)x : (tg_word<T>)x;
}
template <class T> __device__ T tg_gcd(T x, T y) {
  tg_word<T> a = tg_magnitude(x), b = tg_magnitude(y);
  while (b != 0) {
    tg_word<T> rest = a % b;
    a = b;
    b = rest;
  }
  return (T)a;
}
template <class T> __device__ T tg_lcm(T x, T y) {
  tg_word<T> divisor = tg_magnitude(tg_gcd(x, y));
  return divisor == 0 ? (T)0 : (T)(tg_magnitude(x) / divisor * tg_magnitude(y));
}

// Repeated squaring. NumPy refuses negative exponents; here they give the exact value, truncated.
template <class T> __device__ T tg_power(T base, T exponent) {
  if (exponent < 0) {
    if (base == (T)-1) return exponent & 1 ? (T)-1 : (T)1;
    return base == 1;
  }
  T result = 1;
  for (tg_u64 left = exponent; left != 0; left >>= 1) {
    if (left & 1) result = tg_multiply(result, base);
    base = tg_multiply(base, base);
  }
  return result;
}

// A shift by the width or more, or by a negative count, shifts all bits out.
template <class T> __device__ T tg_left_shift(T x, T count) {
  return (tg_u64)count < 8 * sizeof(T) ? (T)((tg_word<T>)x << count) : (T)0;
}
template <class T> __device__ T tg_right_shift(T x, T count) {
  if ((tg_u64)count < 8 * sizeof(T)) return (T)(x >> count);
  return x < 0 ? (T)-1 : (T)0;
}

// Comparisons between signed and unsigned types are exact, too.
template <class X, class Y> __device__ bool tg_less(X x, Y y) {
  if constexpr (tg_signed<X> && !tg_signed<Y>) return x < 0 || (tg_u64)x < (tg_u64)y;
  else if constexpr (!tg_signed<X> && tg_signed<Y>) return y > 0 && (tg_u64)x < (tg_u64)y;
  else return x < y;
}
template <class X, class Y> __device__ bool tg_equal(X x, Y y) {
  if constexpr (tg_signed<X> != tg_signed<Y>) {
    return (tg_signed<X> ? x >= 0 : y >= 0) && (tg_u64)x == (tg_u64)y;
  } else {
    return x == y;
  }
}

// ---- real numbers ---------------------------------------------------------------------------------

template <class T> __device__ T tg_sign(T x) {
  return x > 0 ? (T)1 : x < 0 ? (T)-1 : x == 0 ? (T)0 : x;
}

// The first two propagate NaN, the others ignore it; of equal operands the second is the result.
template <class T> __device__ T tg_maximum(T x, T y) { return x > y || x != x ? x : y; }
template <class T> __device__ T tg_minimum(T x, T y) { return x < y || x != x ? x : y; }
template <class T> __device__ T tg_fmax(T x, T y) { return x > y || y != y ? x : y; }
template <class T> __device__ T tg_fmin(T x, T y) { return x < y || y != y ? x : y; }

// For floats each is one instruction, instead of three dependent ones. It orders -0 below +0.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define TG_EXTREME(name, instruction) \
  template <> __device__ inline float name(float x, float y) { \
    float result; \
    asm(instruction ".f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y)); \
    return result; \
  }
TG_EXTREME(tg_maximum, "max.NaN")
TG_EXTREME(tg_minimum, "min.NaN")
TG_EXTREME(tg_fmax, "max")
TG_EXTREME(tg_fmin, "min")
#undef TG_EXTREME
#endif

// Equality in which NaN equals NaN.
template <class T> __device__ bool tg_equal_or_nan(T x, T y) { return x == y || (x != x && y != y); }

// Floor division and remainder, computed together so that their rounding agrees.
template <class R> __device__ R tg_divmod(R x, R y, R& rest) {
  rest = fmod(x, y);
  if (y == 0) return x / y;
  R quotient = (x - rest) / y;
  if (rest != 0) {
    if ((y < 0) != (rest < 0)) {
      rest += y;
      quotient -= 1;
    }
  } else {
    rest = copysign((R)0, y);
  }
  if (quotient == 0) return copysign((R)0, x / y);
  R floored = floor(quotient);
  return quotient - floored > (R)0.5 ? floored + 1 : floored;
}
template <class R> __device__ R tg_real_floor_divide(R x, R y) {
  R rest;
  return tg_divmod(x, y, rest);
}
template <class R> __device__ R tg_real_remainder(R x, R y) {
  R rest;
  tg_divmod(x, y, rest);
  return rest;
}

template <class R> __device__ R tg_heaviside(R x, R at_zero) {
  return x == 0 ? at_zero : x < 0 ? (R)0 : x > 0 ? (R)1 : x;
}

// The equal case covers infinities of one sign, whose difference is not a number.
template <class R> __device__ R tg_logaddexp(R x, R y) {
  if (x == y) return x + (R)0.693147180559945309417;
  R gap = x - y;
  return gap > 0 ? x + log1p(exp(-gap)) : gap <= 0 ? y + log1p(exp(gap)) : gap;
}
template <class R> __device__ R tg_logaddexp2(R x, R y) {
  if (x == y) return x + 1;
  const R log2_e = (R)1.44269504088896340736;
  R gap = x - y;
  return gap > 0 ? x + log2_e * log1p(exp2(-gap)) : gap <= 0 ? y + log2_e * log1p(exp2(gap)) : gap;
}

template <class R> __device__ R tg_deg2rad(R x) { return x * (R)(3.14159265358979323846 / 180); }
template <class R> __device__ R tg_rad2deg(R x) { return x * (R)(180 / 3.14159265358979323846); }

template <class R, class I> __device__ R tg_ldexp(R x, I power) {
  return ldexp(x, power > 10000 ? 10000 : power < -10000 ? -10000 : (int)power);
}
// Zeros, infinities and NaN are their own mantissas.
template <class R> __device__ int tg_exponent(R x) {
  return isfinite(x) && x != 0 ? ilogb(x) + 1 : 0;
}
template <class R> __device__ R tg_mantissa(R x) { return ldexp(x, -tg_exponent(x)); }

// The neighbour of x towards y among the values of T; 16-bit types step on their bits.
template <class T, class R> __device__ T tg_nextafter(R x, R y) {
  if constexpr (tg_kind_of<T> == TG_FLOAT) {
    return nextafter(x, y);
  } else {
    if (x != x || y != y) return tg_cast<T>(x + y);
    if (x == y) return tg_cast<T>(y);
    if (x == 0) return T{(tg_u16)(signbit(y) ? 0x8001 : 0x0001)};
    T here = tg_cast<T>(x);
    return T{(tg_u16)((x < y) == (x > 0) ? here.bits + 1 : here.bits - 1)};
  }
}

// CUDA's float versions of these functions have errors of up to 3 or 4 ulp. Rounding the double result
// is exact to half an ulp, and still keeps up with memory on data-centre GPUs. Where the including text
// has precise functions of float, it says so by this name.
#ifndef TG_FLOATS_BY
#define TG_FLOATS_BY double
#endif
// CUDA's hypot may be one ulp too large, which just below the largest double is infinity.
__device__ inline double tg_safe_hypot(double x, double y) {
  double big = fmax(fabs(x), fabs(y)), ratio = fmin(fabs(x), fabs(y)) / big;
  return big > 0x1p1000 && big <= 0x1.fffffffffffffp1023 && x == x && y == y
      ? big * sqrt(1 + ratio * ratio)
      : hypot(x, y);
}
#define TG_BY_DOUBLE_1(name, function) \
  __device__ inline double name(double x) { return function(x); } \
  __device__ inline float name(float x) { return (float)function((TG_FLOATS_BY)x); }
#define TG_BY_DOUBLE_2(name, function) \
  __device__ inline double name(double x, double y) { return function(x, y); } \
  __device__ inline float name(float x, float y) { \
    return (float)function((TG_FLOATS_BY)x, (TG_FLOATS_BY)y); \
  }
TG_BY_DOUBLE_1(tg_tan, tan)
TG_BY_DOUBLE_1(tg_sinh, sinh)
TG_BY_DOUBLE_1(tg_arcsinh, asinh)
TG_BY_DOUBLE_1(tg_arccosh, acosh)
TG_BY_DOUBLE_1(tg_arctanh, atanh)
TG_BY_DOUBLE_2(tg_power, pow)
TG_BY_DOUBLE_2(tg_hypot, tg_safe_hypot)
TG_BY_DOUBLE_2(tg_arctan2, atan2)
#undef TG_BY_DOUBLE_1
#undef TG_BY_DOUBLE_2
