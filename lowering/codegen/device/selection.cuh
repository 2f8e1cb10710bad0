// Selecting the largest keys of a row, the largest first, and of equal ones the first.
//
// A block passes over its part of a row once, tile after tile. Keys that are above the threshold, than
// which enough keys before are not less, go to a buffer in shared memory; when the buffer may overflow,
// it is sorted and cut. Later keys that equal the threshold are behind the best by their position.

// Whether key x at position i comes before key y at j.
template <class U> __device__ bool tg_largest_first(U x, tg_u32 i, U y, tg_u32 j) {
  if (tg_is_before(y, x)) return true;
  return !tg_is_before(x, y) && i < j;
}

// Sorts `count` keys, a power of two, by their order and their positions (Batcher, "Sorting networks
// and their applications", 1968). A warp compares pairs of 64 keys, so that it works alone while they
// are at most 32 apart.
template <int THREADS, class U>
__device__ void tg_largest_sort(U* keys, tg_u32* positions, int count) {
  __syncthreads();
  for (int size = 2; size <= count; size *= 2) {
    for (int apart = size / 2; apart > 0; apart /= 2) {
      for (int pair = (int)threadIdx.x; pair < count / 2; pair += THREADS) {
        const int i = 2 * pair - (pair & (apart - 1)), j = i + apart;
        const U x = keys[i], y = keys[j];
        const tg_u32 p = positions[i], q = positions[j];
        if (tg_largest_first(y, q, x, p) == !(i & size)) {
          keys[i] = y, keys[j] = x;
          positions[i] = q, positions[j] = p;
        }
      }
      const int next = apart > 1 ? apart / 2 : size;
      if (apart > 32 || next > 32 || size == count) __syncthreads();
      else __syncwarp();
    }
  }
  __syncthreads();
}

// The best keys of a part of a row, in shared memory.
template <int THREADS, int ITEMS, class U> struct tg_largest_buffer {
  static const int TILE = THREADS * ITEMS, CAPACITY = 2 * TILE;

  U* keys;
  tg_u32 *positions, *filled;
  int count;          // how many are wanted, at most a tile
  int bound = 0;      // at least as many as there are
  bool full = false;  // whether there is a threshold
  U threshold = {};

  // Leaves the best in order at the front.
  __device__ void cut() {
    const int thread = (int)threadIdx.x;
    __syncthreads();
    const int held = (int)*filled;
    int padded = 2;
    while (padded < held) padded *= 2;
    for (int i = held + thread; i < padded; i += THREADS) keys[i] = {}, positions[i] = ~0u;
    tg_largest_sort<THREADS>(keys, positions, padded);
    bound = held < count ? held : count;
    if (held >= count) full = true, threshold = keys[count - 1];
    if (thread == 0) *filled = (tg_u32)bound;
    __syncthreads();
  }

  // The last of the first `count` among the keys that are the largest of each thread: at least `count`
  // keys of the tile do not come behind it. `threads` of all have any. The end of the buffer is free.
  __device__ void least(U& key, tg_u32& position, int threads) {
    U* const at = keys + CAPACITY - THREADS;
    tg_u32* const number = positions + CAPACITY - THREADS;
    const int thread = (int)threadIdx.x;
    at[thread] = thread < threads ? key : U{};
    number[thread] = thread < threads ? position : ~0u;
    tg_largest_sort<THREADS>(at, number, THREADS);
    key = at[count - 1];
    position = number[count - 1];
    __syncthreads();
  }
};

// Leaves the `count` largest of `length` keys at the front of the buffer, with their positions: those in
// `from`, or as they follow each other from `begin` on. `length` is at least `count`.
//
// Where many keys of a tile are above the threshold, that rises first: to the last of the best threads.
template <int THREADS, int ITEMS, class T, class U>
__device__ void tg_largest_of_part(const T* first, const tg_u32* from, tg_u32 begin, tg_i64 length,
                                   tg_largest_buffer<THREADS, ITEMS, U>& best) {
  const int TILE = THREADS * ITEMS, thread = (int)threadIdx.x;
  if (thread == 0) *best.filled = 0;
  T next[ITEMS];
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int i = item * THREADS + thread;
    next[item] = first[i < length ? i : 0];
  }
  for (tg_i64 start = 0; start < length; start += TILE) {
    const tg_i64 rest = length - start;
    const int valid = rest < TILE ? (int)rest : TILE;
    const int following = rest - TILE < TILE ? (int)(rest - TILE) : TILE;
    const T* const after = first + start + TILE;
    U own[ITEMS], largest = {};
    tg_u32 place = 0;
    int wanted = 0;
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      const int i = item * THREADS + thread;
      own[item] = tg_order_bits(next[item]);
      if (i < following) next[item] = after[i];
      if (i >= valid) continue;
      if (item == 0 || tg_is_before(largest, own[item])) largest = own[item], place = (tg_u32)i;
      if (!best.full || tg_is_before(best.threshold, own[item])) wanted |= 1 << item;
    }
    int some = __syncthreads_count(wanted != 0);
    if (some == 0) continue;
    if (best.bound > TILE) best.cut();
    const int threads = valid < THREADS ? valid : THREADS;
    if (some > THREADS / 4 && best.count <= threads) {
      best.least(largest, place, threads);
      if (!best.full || tg_is_before(best.threshold, largest)) {
#pragma unroll
        for (int item = 0; item < ITEMS; ++item) {
          const tg_u32 i = item * THREADS + thread;
          if (tg_largest_first(largest, place, own[item], i)) wanted &= ~(1 << item);
        }
        best.full = true;
        best.threshold = largest;
        some = __syncthreads_count(wanted != 0);
      }
    }
    if (wanted) {
      tg_u32 to = atomicAdd(best.filled, (tg_u32)__popc(wanted));
#pragma unroll
      for (int item = 0; item < ITEMS; ++item) {
        if (!(wanted >> item & 1)) continue;
        const tg_i64 i = start + item * THREADS + thread;
        best.keys[to] = own[item];
        best.positions[to++] = from ? from[i] : begin + (tg_u32)i;
      }
    }
    best.bound += some * ITEMS < TILE ? some * ITEMS : TILE;
  }
  best.cut();
}

// The `count` largest keys of each of `parts` parts of a row: their positions in `order`, or, of parts
// of which the best are still to be found, keys and positions in `best` and `positions`. The keys are
// at the positions `from` of rows of `whole` keys at `origin`, if it is not null.
template <int THREADS, int ITEMS, class T>
__device__ void tg_largest(const T* keys, const tg_u32* from, const T* origin, T* best,
                           tg_u32* positions, tg_i64* order, tg_i64 length, tg_i64 whole,
                           tg_i64 parts, tg_i64 count, unsigned char* shared) {
  typedef decltype(tg_order_bits(T())) U;
  typedef tg_largest_buffer<THREADS, ITEMS, U> buffer;
  const tg_i64 row = blockIdx.x / parts, part = blockIdx.x % parts;
  const T* const first = keys + row * length;
  buffer held;
  held.keys = (U*)shared;
  held.positions = (tg_u32*)(shared + buffer::CAPACITY * sizeof(U));
  held.filled = held.positions + buffer::CAPACITY;
  held.count = (int)count;
  const tg_i64 begin = length * part / parts, end = length * (part + 1) / parts;
  const tg_u32* const places = from ? from + row * length + begin : nullptr;
  tg_largest_of_part(first + begin, places, (tg_u32)begin, end - begin, held);
  for (int i = (int)threadIdx.x; i < (int)count; i += THREADS) {
    const tg_i64 to = (tg_i64)blockIdx.x * count + i;
    const tg_u32 p = held.positions[i];
    if (order) order[to] = p;
    else best[to] = origin[row * whole + p], positions[to] = p;
  }
}

// -- elements at places of the order ----------------------------------------------------------------

// Whether all digits above a place are the same.
template <class U> __device__ bool tg_ranked_above(U x, U y, int place) {
  const int shift = 8 * (place + 1);
  return shift >= 8 * (int)sizeof(U) || (U)(x >> shift) == (U)(y >> shift);
}
template <class U>
__device__ bool tg_ranked_above(tg_two_words<U> x, tg_two_words<U> y, int place) {
  const int half = sizeof(U);
  if (place >= half) return tg_ranked_above(x.high, y.high, place - half);
  return x.high == y.high && tg_ranked_above(x.low, y.low, place);
}
template <class U> __device__ U tg_ranked_with(U x, int place, tg_u32 digit) {
  return (U)(x | (U)((U)digit << (8 * place)));
}
template <class U>
__device__ tg_two_words<U> tg_ranked_with(tg_two_words<U> x, int place, tg_u32 digit) {
  const int half = sizeof(U);
  if (place < half) x.low = tg_ranked_with(x.low, place, digit);
  else x.high = tg_ranked_with(x.high, place - half, digit);
  return x;
}
// The keys in reverse order.
template <class U> __device__ U tg_ranked_reversed(U x) { return (U)~x; }
template <class U> __device__ tg_two_words<U> tg_ranked_reversed(tg_two_words<U> x) {
  return {(U)~x.high, (U)~x.low};
}

// Places of the order, which rise.
template <int COUNT> struct tg_places { tg_i64 of[COUNT]; };

// The elements of a row that are at some places of its order.
//
// A block counts the digits of the row, the most significant first, among the keys that begin like the
// one at the place, until those that go on like it fit in shared memory. There they are sorted. If they
// are too many to the last digit, they are all equal, and in the order of their positions.
template <int THREADS, int CAPACITY, int COUNT, class T>
__device__ void tg_ranked(const T* keys, T* found, tg_i64 length, tg_places<COUNT> places,
                          int digits, unsigned char* shared) {
  typedef decltype(tg_order_bits(T())) U;
  static_assert(THREADS >= 256, "a thread for each digit");
  const int thread = (int)threadIdx.x;
  const T* const first = keys + blockIdx.x * length;
  U* const held = (U*)shared;
  tg_u32* const positions = (tg_u32*)(shared + CAPACITY * sizeof(U));
  tg_u32 *const counts = positions + CAPACITY, *const chosen = counts + 256;
  int next = 0;
  while (next < COUNT) {
    const tg_i64 wanted = places.of[next];
    U prefix = {};
    tg_i64 before = 0, rest = length;
    int place = digits;  // the digits from here on are those of the prefix
    while (rest > CAPACITY && place > 0) {
      --place;
      if (thread < 256) counts[thread] = 0;
      __syncthreads();
      for (tg_i64 i = thread; i < length; i += THREADS) {
        const U bits = tg_order_bits(first[i]);
        if (tg_ranked_above(bits, prefix, place)) atomicAdd(&counts[tg_digit(bits, place)], 1u);
      }
      tg_scan_digits(counts);
      if (thread < 256) {
        const tg_i64 start = counts[thread], end = thread < 255 ? (tg_i64)counts[thread + 1] : rest;
        const tg_i64 rank = wanted - before;
        if (start <= rank && rank < end) {
          chosen[0] = (tg_u32)thread, chosen[1] = (tg_u32)start, chosen[2] = (tg_u32)(end - start);
        }
      }
      __syncthreads();
      prefix = tg_ranked_with(prefix, place, chosen[0]);
      before += chosen[1];
      rest = chosen[2];
      __syncthreads();
    }
    if (rest <= CAPACITY) {
      if (thread == 0) chosen[0] = 0;
      __syncthreads();
      for (tg_i64 i = thread; i < length; i += THREADS) {
        const U bits = tg_order_bits(first[i]);
        if (!tg_ranked_above(bits, prefix, place - 1)) continue;
        const tg_u32 to = atomicAdd(&chosen[0], 1u);
        held[to] = tg_ranked_reversed(bits);
        positions[to] = (tg_u32)i;
      }
      __syncthreads();
      int padded = 2;
      while (padded < rest) padded *= 2;
      for (int i = (int)rest + thread; i < padded; i += THREADS) held[i] = {}, positions[i] = ~0u;
      tg_largest_sort<THREADS>(held, positions, padded);
      for (; next < COUNT && places.of[next] < before + rest; ++next) {
        if (thread == 0) found[blockIdx.x * COUNT + next] = first[positions[places.of[next] - before]];
      }
    } else {
      tg_i64 rank = wanted - before;
      for (tg_i64 start = 0;; start += THREADS) {
        const tg_i64 i = start + thread;
        const bool equal =
            i < length && tg_ranked_above(tg_order_bits(first[i < length ? i : 0]), prefix, -1);
        positions[thread] = equal;
        const int some = __syncthreads_count(equal);
        if (rank < some) {
          if (thread == 0) {
            int at = 0;
            for (;; ++at) if (positions[at] && rank-- == 0) break;
            found[blockIdx.x * COUNT + next] = first[start + at];
          }
          break;
        }
        rank -= some;
        __syncthreads();
      }
      ++next;
    }
    __syncthreads();
  }
}
