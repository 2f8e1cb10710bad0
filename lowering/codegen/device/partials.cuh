// Partial results of blocks (decoupled look-back): each is stored in one transaction with its epoch, so
// that a reader that sees the epoch has the value.

// A value of at most 4 bytes with its epoch in one word, one of 8 bytes in two, one of 16 as two of 8.
template <int WORDS> struct alignas(WORDS > 1 ? 16 : 8) tg_partial { tg_u64 words[WORDS]; };

#ifdef __CUDACC__
// Loads and stores of one or two words in one transaction, which bypass the L1 cache.
__device__ inline void tg_store_word(tg_u64* place, tg_u64 word) {
  asm volatile("st.relaxed.gpu.b64 [%0], %1;" ::"l"(place), "l"(word) : "memory");
}
__device__ inline void tg_store_word(tg_u64* place, tg_u64 low, tg_u64 high) {
  asm volatile(
      "{ .reg .b128 both; mov.b128 both, {%1, %2}; st.relaxed.gpu.b128 [%0], both; }" ::"l"(place),
      "l"(low), "l"(high)
      : "memory");
}
__device__ inline void tg_load_word(const tg_u64* place, tg_u64& word) {
  asm volatile("ld.relaxed.gpu.b64 %0, [%1];" : "=l"(word) : "l"(place) : "memory");
}
__device__ inline void tg_load_word(const tg_u64* place, tg_u64& low, tg_u64& high) {
  asm volatile("{ .reg .b128 both; ld.relaxed.gpu.b128 both, [%2]; mov.b128 {%0, %1}, both; }"
               : "=l"(low), "=l"(high)
               : "l"(place)
               : "memory");
}
#endif

template <int WORDS, class T> __device__ void tg_publish(tg_partial<WORDS>* place, T x, tg_u32 epoch) {
  if constexpr (WORDS == 1) {
    tg_u32 word = 0;
    memcpy(&word, &x, sizeof x);
    tg_store_word(place->words, (tg_u64)epoch << 32 | word);
  } else {
    tg_u64 parts[WORDS / 2];
    memcpy(parts, &x, sizeof x);
    for (int i = 0; i < WORDS; i += 2) tg_store_word(place->words + i, parts[i / 2], epoch);
  }
}

// Whether the value of this epoch is published; if so, `x` becomes it.
template <int WORDS, class T>
__device__ bool tg_poll(const tg_partial<WORDS>* place, tg_u32 epoch, T& x) {
  bool all = true;
  if constexpr (WORDS == 1) {
    tg_u64 both;
    tg_load_word(place->words, both);
    const tg_u32 word = (tg_u32)both;
    memcpy(&x, &word, sizeof x);
    all = both >> 32 == epoch;
  } else {
    tg_u64 parts[WORDS / 2];
    for (int i = 0; i < WORDS; i += 2) {
      tg_u64 when;
      tg_load_word(place->words + i, parts[i / 2], when);
      all &= when == epoch;
    }
    memcpy(&x, parts, sizeof x);
  }
  return all;
}
