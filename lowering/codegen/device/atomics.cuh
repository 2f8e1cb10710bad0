// Atomic updates of one element: sums, products and extremes, with the rules of the scalar functions.
// They return nothing: a later kernel reads the results.

#ifdef __CUDACC__
// The word in memory, not one that is kept in a register or in the L1 cache.
template <class W> __device__ W tg_current(const W* place) { return *(const volatile W*)place; }

// One instruction, which rounds once and keeps subnormal numbers, as a sum in float does.
#if __CUDA_ARCH__ >= 700
#define TG_ADDS_HALF
__device__ inline void tg_add_half(tg_half* place, tg_half x) {
  asm volatile("red.relaxed.gpu.add.noftz.f16 [%0], %1;" ::"l"(place), "h"(x.bits) : "memory");
}
#endif
#if __CUDA_ARCH__ >= 900
#define TG_ADDS_BFLOAT16
__device__ inline void tg_add_bfloat16(tg_bfloat16* place, tg_bfloat16 x) {
  asm volatile("red.relaxed.gpu.add.noftz.bf16 [%0], %1;" ::"l"(place), "h"(x.bits) : "memory");
}
#endif
#endif

// Compare-and-swap loop: replaces an element by `fold` of it, unless that has the same bits. One of less
// than a word is swapped with the aligned word around it, whose other bytes stay as they are.
template <class T, class F> __device__ void tg_swap(T* place, F fold) {
  typedef tg_word<T> W;
  constexpr bool narrow = sizeof(T) < sizeof(W);
  const tg_u32 skip = narrow ? (tg_u32)(tg_u64)place & (sizeof(W) - 1) : 0;
  const W mask = (~(W)0 >> 8 * (sizeof(W) - sizeof(T))) << 8 * skip;
  W* const word = (W*)((char*)place - skip);
  for (W old = tg_current(word);;) {
    W bits = old >> 8 * skip;  // those of the element come first
    T element;
    memcpy(&element, &bits, sizeof element);
    element = fold(element);
    bits = 0;
    memcpy(&bits, &element, sizeof element);
    const W changed = (old & ~mask) | bits << 8 * skip;
    if (changed == old) return;
    const W found = atomicCAS(word, old, changed);
    if (found == old) return;
    old = found;
  }
}

template <class T> __device__ void tg_atomic_add(T* place, T x) {
  if constexpr (tg_kind_of<T> == TG_COMPLEX) {
    atomicAdd(&place->re, x.re);
    atomicAdd(&place->im, x.im);
  } else if constexpr (tg_kind_of<T> == TG_FLOAT) {
    atomicAdd(place, x);
  } else if constexpr (tg_kind_of<T> == TG_INTEGER && sizeof(T) >= 4) {
    atomicAdd((tg_word<T>*)place, (tg_word<T>)x);
#ifdef TG_ADDS_HALF
  } else if constexpr (tg_kind_of<T> == TG_HALF) {
    tg_add_half(place, x);
#endif
#ifdef TG_ADDS_BFLOAT16
  } else if constexpr (tg_kind_of<T> == TG_BFLOAT16) {
    tg_add_bfloat16(place, x);
#endif
  } else if constexpr (tg_kind_of<T> == TG_BOOL) {
    tg_swap(place, [=](T old) { return old || x; });
  } else if constexpr (tg_kind_of<T> == TG_INTEGER) {
    tg_swap(place, [=](T old) { return tg_add<T>(old, x); });
  } else {
    tg_swap(place, [=](T old) { return tg_cast<T>(tg_cast<float>(old) + tg_cast<float>(x)); });
  }
}

// Sums of a block begin with -0, which changes no number that it is added to, not even the sign of a zero.
template <class T> __device__ T tg_empty_sum() {
  if constexpr (tg_kind_of<T> == TG_COMPLEX) return T(-0.0f, -0.0f);
  else if constexpr (tg_kind_of<T> == TG_FLOAT) return (T)-0.0f;
  else return 0;
}

template <class T> __device__ bool tg_same_bits(T x, T y) {
  unsigned char one[sizeof(T)], other[sizeof(T)];
  memcpy(one, &x, sizeof x);
  memcpy(other, &y, sizeof y);
  bool same = true;
  for (int i = 0; i < (int)sizeof(T); ++i) same &= one[i] == other[i];
  return same;
}

// Adds the sum of a block, if any update has changed it.
template <class T> __device__ void tg_add_sum(T* place, T sum) {
  if constexpr (tg_kind_of<T> == TG_COMPLEX) {
    tg_add_sum(&place->re, sum.re);
    tg_add_sum(&place->im, sum.im);
  } else if (!tg_same_bits(sum, tg_empty_sum<T>())) {
    tg_atomic_add(place, sum);
  }
}

template <class T> __device__ void tg_atomic_multiply(T* place, T x) {
  if constexpr (tg_kind_of<T> == TG_BOOL) {
    tg_swap(place, [=](T old) { return old && x; });
  } else if constexpr (tg_kind_of<T> == TG_INTEGER) {
    tg_swap(place, [=](T old) { return tg_multiply<T>(old, x); });
  } else if constexpr (tg_kind_of<T> == TG_FLOAT) {
    tg_swap(place, [=](T old) { return old * x; });
  } else {
    tg_swap(place, [=](T old) { return tg_cast<T>(tg_cast<float>(old) * tg_cast<float>(x)); });
  }
}

// The extreme of two floats in a total order, so that no result depends on the order of updates: -0 is
// below +0, and every NaN becomes the one of the format.
template <bool LEAST, class R> __device__ R tg_extreme(R x, R y) {
  if (x != x || y != y) return (R)tg_nan_f32();
  if (x == y) return (signbit(x) != 0) == LEAST ? x : y;
  return (x < y) == LEAST ? x : y;
}

template <bool LEAST, class T> __device__ void tg_atomic_extreme(T* place, T x) {
  if constexpr (tg_kind_of<T> == TG_INTEGER && sizeof(T) >= 4) {
    if constexpr (LEAST) atomicMin(place, x);
    else atomicMax(place, x);
  } else if constexpr (tg_kind_of<T> == TG_BOOL) {
    tg_swap(place, [=](T old) { return LEAST ? old && x : old || x; });
  } else if constexpr (tg_kind_of<T> == TG_INTEGER) {
    tg_swap(place, [=](T old) { return (old < x) == LEAST ? old : x; });
  } else if constexpr (tg_kind_of<T> == TG_FLOAT) {
    tg_swap(place, [=](T old) { return tg_extreme<LEAST>(old, x); });
  } else {
    tg_swap(place, [=](T old) {
      return tg_cast<T>(tg_extreme<LEAST>(tg_cast<float>(old), tg_cast<float>(x)));
    });
  }
}
template <class T> __device__ void tg_atomic_minimum(T* place, T x) { tg_atomic_extreme<true>(place, x); }
template <class T> __device__ void tg_atomic_maximum(T* place, T x) { tg_atomic_extreme<false>(place, x); }
