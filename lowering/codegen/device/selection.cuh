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

  // The last of the first `count` among the keys that are the largest of each thread: at least so many
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
// `from`, or as they follow each other from `begin` on. There are at least so many.
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
// at the positions `from` of a row, if it is not null.
template <int THREADS, int ITEMS, class T>
__device__ void tg_largest(const T* keys, const tg_u32* from, T* best, tg_u32* positions,
                           tg_i64* order, tg_i64 length, tg_i64 parts, tg_i64 count,
                           unsigned char* shared) {
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
    else best[to] = first[p], positions[to] = p;
  }
}
