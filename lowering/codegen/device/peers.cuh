// Exchanges between devices, inside of kernels that run on all of them together.
//
// Each device has room in memory of its own, at the same place on all, into which the others write: what
// it polls is never across a link. `devices` has the number of this device, and then the addresses of the
// memory of all. The turn of an exchange counts how often it was made, so that nothing is ever reset.
// There is room for two turns: who begins the next one has everything of the last one, and the others
// have read the one before.

#ifdef __CUDACC__
__device__ inline void tg_post_word(tg_u64* place, tg_u64 word) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(place), "l"(word) : "memory");
}
__device__ inline tg_u64 tg_posted_word(const tg_u64* place) {
  tg_u64 word;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(place) : "memory");
  return word;
}
__device__ inline void tg_post_words(tg_u64* place, tg_u64 word, tg_u64 next) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(place), "l"(word), "l"(next) : "memory");
}
__device__ inline void tg_posted_words(const tg_u64* place, tg_u64& word, tg_u64& next) {
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(word), "=l"(next) : "l"(place) : "memory");
}
// What all threads have written before a barrier in front of it is visible to who sees the turn.
__device__ inline void tg_post_turn(tg_u32* place, tg_u32 turn) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(place), "r"(turn) : "memory");
}
__device__ inline tg_u32 tg_posted_turn(const tg_u32* place) {
  tg_u32 turn;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(turn) : "l"(place) : "memory");
  return turn;
}
__device__ inline void tg_between_polls() {}
// As `tg_arrivals_before` and `tg_grid_barrier`, of the first `blocks` of a launch that has others as well.
// These wait for none: so they end, and the first blocks run at the same time.
__device__ inline tg_u64 tg_arrivals_of(const tg_u64* arrived, tg_u32 blocks) {
  const tg_u64 now = *(const volatile tg_u64*)arrived;
  return now - now % blocks;
}
__device__ inline void tg_await_blocks(tg_u64* arrived, tg_u64& arrivals, tg_u32 blocks) {
  arrivals += blocks;
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("red.release.gpu.add.u64 [%0], 1;" ::"l"(arrived) : "memory");
    tg_u64 now;
    do {
      asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(now) : "l"(arrived) : "memory");
    } while (now < arrivals);
  }
  __syncthreads();
}
#endif

template <class T> __device__ T* tg_room(tg_u64 workspace, tg_i64 offset) {
  return reinterpret_cast<T*>(workspace + offset);
}

// Now and then a wait looks at the stop flag: above 1, the others will not come any more.
__device__ inline bool tg_waits_on(tg_u32& polls, const volatile tg_u32* stop) {
  tg_between_polls();
  return (++polls & 255u) != 0 || *stop <= 1u;
}

__device__ inline void tg_await_turn(const tg_u32* place, tg_u32 turn, const volatile tg_u32* stop) {
  tg_u32 polls = 0;
  // another block may still wait when a device posts its next turn
  while ((int)(tg_posted_turn(place) - turn) < 0 && tg_waits_on(polls, stop)) {}
}

// Small arrays travel as words of 32 bits with their turn beside them: who sees the turn has the bits.
template <class T> __device__ tg_u32 tg_word_of(const T* array, int size, int number) {
  if constexpr (sizeof(T) >= 4) {
    const int count = sizeof(T) / 4;
    const T value = array[number / count];
    tg_u32 words[count];
    memcpy(words, &value, sizeof(T));
    tg_u32 word = words[0];
#pragma unroll
    for (int i = 1; i < count; ++i) if (number % count == i) word = words[i];
    return word;
  } else {
    const int each = 4 / sizeof(T);
    tg_u32 word = 0;
    for (int i = 0; i < each && number * each + i < size; ++i) {
      tg_u32 bits = 0;
      memcpy(&bits, array + number * each + i, sizeof(T));
      word |= bits << 8 * sizeof(T) * i;
    }
    return word;
  }
}

__device__ inline tg_u32 tg_await_word(const tg_u64* place, tg_u32 turn, const volatile tg_u32* stop) {
  tg_u64 word;
  tg_u32 polls = 0;
  while ((tg_u32)(word = tg_posted_word(place)) != turn && tg_waits_on(polls, stop)) {}
  return (tg_u32)(word >> 32);
}

// An element that each device has posted; `words` are those of the first, `stride` words before those of
// the next. All are loaded before any is waited for.
template <int DEVICES, class T>
__device__ void tg_receive_all(
    const tg_u64* words, int stride, int element, tg_u32 turn, const volatile tg_u32* stop, T* elements) {
  constexpr int WORDS = sizeof(T) < 4 ? 1 : sizeof(T) / 4;
  constexpr int EACH = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  words += element / EACH * WORDS;
  tg_u64 posted[DEVICES * WORDS];
  tg_u32 polls = 0;
  bool all;
  do {
    all = true;
#pragma unroll
    for (int i = 0; i < DEVICES * WORDS; ++i) {
      posted[i] = tg_posted_word(words + i / WORDS * stride + i % WORDS);
    }
#pragma unroll
    for (int i = 0; i < DEVICES * WORDS; ++i) all &= (tg_u32)posted[i] == turn;
  } while (!all && tg_waits_on(polls, stop));
#pragma unroll
  for (int device = 0; device < DEVICES; ++device) {
    tg_u32 parts[WORDS];
    for (int i = 0; i < WORDS; ++i) parts[i] = (tg_u32)(posted[device * WORDS + i] >> 32);
    if constexpr (EACH > 1) parts[0] >>= 8 * sizeof(T) * (element % EACH);
    memcpy(elements + device, parts, sizeof(T));
  }
}

template <class T>
__device__ T tg_received(const tg_u64* words, int element, tg_u32 turn, const volatile tg_u32* stop) {
  T value;
  tg_receive_all<1>(words, 0, element, turn, stop, &value);
  return value;
}

// The elements of an array that a block has, of `size` in shares of the blocks. Its threads access them as
// vectors, where all arrays are aligned.
template <class T> __device__ void tg_copy_part(
    T* target, const T* source, int size, int share, int part, int thread, int threads) {
  constexpr int WIDTH = 16 / sizeof(T);
  const int begin = part * share, end = begin + share < size ? begin + share : size;
  int first = begin;
  if (((tg_u64(target) | tg_u64(source)) & 15) == 0) {
    const int vectors = (end - begin) / WIDTH;
    const auto from = reinterpret_cast<const tg_pack<T, WIDTH>*>(source + begin);
    const auto to = reinterpret_cast<tg_pack<T, WIDTH>*>(target + begin);
    for (int i = thread; i < vectors; i += 4 * threads) {
      tg_pack<T, WIDTH> loaded[4];
#pragma unroll
      for (int each = 0; each < 4; ++each) {
        if (i + each * threads < vectors) loaded[each] = from[i + each * threads];
      }
#pragma unroll
      for (int each = 0; each < 4; ++each) {
        if (i + each * threads < vectors) to[i + each * threads] = loaded[each];
      }
    }
    if (vectors > 0) first += vectors * WIDTH;
  }
  for (int i = first + thread; i < end; i += threads) target[i] = source[i];
}

// The same elements of all devices, folded in their order; those of one are `stride` before the next.
template <int DEVICES, class T, class Fold> __device__ void tg_fold_part(
    T* target, const T* rooms, int stride, int size, int share, int part, int thread, int threads, Fold fold) {
  constexpr int WIDTH = 16 / sizeof(T);
  const int begin = part * share, end = begin + share < size ? begin + share : size;
  int first = begin;
  if ((tg_u64(target) & 15) == 0) {
    const int vectors = (end - begin) / WIDTH;
#pragma unroll 2
    for (int i = thread; i < vectors; i += threads) {
      tg_pack<T, WIDTH> each[DEVICES];
#pragma unroll
      for (int device = 0; device < DEVICES; ++device) {
        each[device] = *reinterpret_cast<const tg_pack<T, WIDTH>*>(rooms + device * stride + begin + i * WIDTH);
      }
#pragma unroll
      for (int item = 0; item < WIDTH; ++item) {
#pragma unroll
        for (int device = 1; device < DEVICES; ++device) {
          each[0].items[item] = fold(each[0].items[item], each[device].items[item]);
        }
      }
      *reinterpret_cast<tg_pack<T, WIDTH>*>(target + begin + i * WIDTH) = each[0];
    }
    if (vectors > 0) first += vectors * WIDTH;
  }
  for (int i = first + thread; i < end; i += threads) {
    T folded = rooms[i];
#pragma unroll
    for (int device = 1; device < DEVICES; ++device) folded = fold(folded, rooms[device * stride + i]);
    target[i] = folded;
  }
}

// The same as words, which need no turn behind them: each of 4 bytes has it beside them. A share is of
// words, four of which are one vector of the array.
template <class T> __device__ void tg_post_part(
    tg_u64* room, const T* source, int size, int share, int part, int thread, int threads, tg_u32 turn) {
  const int whole = int(size * sizeof(T) / 4), words = int((size * sizeof(T) + 3) / 4);
  const int begin = part * share, end = begin + share < words ? begin + share : words;
  int first = begin;
  if ((tg_u64(source) & 15) == 0) {
    const int quads = ((end < whole ? end : whole) - begin) / 4;
    const auto vectors = reinterpret_cast<const tg_pack<tg_u32, 4>*>(source) + begin / 4;
    for (int i = thread; i < quads; i += threads) {
      const tg_pack<tg_u32, 4> four = vectors[i];
      tg_u64 posted[4];
#pragma unroll
      for (int item = 0; item < 4; ++item) posted[item] = tg_u64(four.items[item]) << 32 | turn;
      tg_post_words(room + begin + 4 * i, posted[0], posted[1]);
      tg_post_words(room + begin + 4 * i + 2, posted[2], posted[3]);
    }
    if (quads > 0) first += 4 * quads;
  }
  for (int i = first + thread; i < end; i += threads) {
    tg_post_word(room + i, tg_u64(tg_word_of(source, size, i)) << 32 | turn);
  }
}

// Folds what devices have posted, `stride` words apart; with one device, that is a copy.
template <int DEVICES, class T, class Fold> __device__ void tg_receive_part(
    T* target, const tg_u64* room, int stride, int size, int share, int part, int thread, int threads,
    tg_u32 turn, const volatile tg_u32* stop, Fold fold) {
  constexpr int WIDTH = 16 / sizeof(T);
  const int words = int((size * sizeof(T) + 3) / 4);
  const int begin = part * share, end = begin + share < words ? begin + share : words;
  int first = int(begin * 4 / sizeof(T));
  const int last = end == words ? size : int(end * 4 / sizeof(T));
  if ((tg_u64(target) & 15) == 0) {
    const int vectors = (last - first) / WIDTH;
    for (int i = thread; i < vectors; i += threads) {
      tg_u64 posted[DEVICES][4];
      tg_u32 polls = 0;
      bool all;
      do {
        all = true;
#pragma unroll
        for (int device = 0; device < DEVICES; ++device) {
          const tg_u64* const place = room + device * stride + begin + 4 * i;
          tg_posted_words(place, posted[device][0], posted[device][1]);
          tg_posted_words(place + 2, posted[device][2], posted[device][3]);
        }
#pragma unroll
        for (int device = 0; device < DEVICES; ++device) {
#pragma unroll
          for (int item = 0; item < 4; ++item) all &= tg_u32(posted[device][item]) == turn;
        }
      } while (!all && tg_waits_on(polls, stop));
      tg_pack<T, WIDTH> folded;
#pragma unroll
      for (int device = 0; device < DEVICES; ++device) {
        tg_pack<tg_u32, 4> bits;
        tg_pack<T, WIDTH> other;
#pragma unroll
        for (int item = 0; item < 4; ++item) bits.items[item] = tg_u32(posted[device][item] >> 32);
        memcpy(&other, &bits, 16);
#pragma unroll
        for (int item = 0; item < WIDTH; ++item) {
          folded.items[item] = device == 0 ? other.items[item] : fold(folded.items[item], other.items[item]);
        }
      }
      *reinterpret_cast<tg_pack<T, WIDTH>*>(target + first + i * WIDTH) = folded;
    }
    if (vectors > 0) first += vectors * WIDTH;
  }
  for (int i = first + thread; i < last; i += threads) {
    T each[DEVICES];
    tg_receive_all<DEVICES>(room, stride, i, turn, stop, each);
#pragma unroll
    for (int device = 1; device < DEVICES; ++device) each[0] = fold(each[0], each[device]);
    target[i] = each[0];
  }
}
