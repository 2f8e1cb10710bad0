// Sorting rows of keys: stable, by bits that are in the order of the keys.
//
// Rows of a few elements are sorted by counting what comes before each, rows that fit in shared memory
// by a radix sort in one block, longer ones by a radix sort whose passes take one kernel each.
//
// Arrays that only some threads set begin as zeros: `SourceWriter.variable` says why.

// The bits of a floating-point number, as an unsigned number in its order. All NaNs are equal and last;
// -0.0 equals 0.0.
template <class U> __device__ U tg_float_order(U bits, U infinity) {
  const U sign = (U)(1ull << (8 * sizeof(U) - 1));
  if ((U)(bits & ~sign) > infinity) return (U)~0ull;
  if (bits == sign) bits = 0;
  return bits & sign ? (U)~bits : (U)(bits | sign);
}
__device__ inline tg_u8 tg_order_bits(bool x) { return x; }
__device__ inline tg_u8 tg_order_bits(tg_u8 x) { return x; }
__device__ inline tg_u16 tg_order_bits(tg_u16 x) { return x; }
__device__ inline tg_u32 tg_order_bits(tg_u32 x) { return x; }
__device__ inline tg_u64 tg_order_bits(tg_u64 x) { return x; }
__device__ inline tg_u8 tg_order_bits(tg_i8 x) { return (tg_u8)(x ^ 0x80); }
__device__ inline tg_u16 tg_order_bits(tg_i16 x) { return (tg_u16)(x ^ 0x8000); }
__device__ inline tg_u32 tg_order_bits(tg_i32 x) { return (tg_u32)x ^ 0x80000000u; }
__device__ inline tg_u64 tg_order_bits(tg_i64 x) { return (tg_u64)x ^ 0x8000000000000000ull; }
__device__ inline tg_u16 tg_order_bits(tg_half x) { return tg_float_order<tg_u16>(x.bits, 0x7c00); }
__device__ inline tg_u16 tg_order_bits(tg_bfloat16 x) {
  return tg_float_order<tg_u16>(x.bits, 0x7f80);
}
__device__ inline tg_u32 tg_order_bits(float x) {
  tg_u32 bits;
  memcpy(&bits, &x, sizeof x);
  return tg_float_order<tg_u32>(bits, 0x7f800000u);
}
__device__ inline tg_u64 tg_order_bits(double x) {
  tg_u64 bits;
  memcpy(&bits, &x, sizeof x);
  return tg_float_order<tg_u64>(bits, 0x7ff0000000000000ull);
}

// Complex numbers as two words. No number has the bits before those of NaN, which stand in the first
// word for "the imaginary part is NaN, the real part is not".
template <class U> struct tg_two_words { U high, low; };
template <class R> __device__ auto tg_order_bits(tg_complex<R> x) {
  const auto re = tg_order_bits(x.re), im = tg_order_bits(x.im);
  typedef decltype(tg_order_bits(x.re)) U;
  const U nan = (U)~0ull;
  tg_two_words<U> found{re, im};
  if (re != nan && im == nan) found = {(U)(nan - 1), re};
  return found;
}

// The digit of base 256 at a place, the least significant first.
template <class U> __device__ tg_u32 tg_digit(U bits, int place) {
  return (tg_u32)(bits >> (8 * place)) & 255;
}
template <class U> __device__ tg_u32 tg_digit(tg_two_words<U> bits, int place) {
  const int half = sizeof(U);
  return place < half ? tg_digit(bits.low, place) : tg_digit(bits.high, place - half);
}
template <class U> __device__ bool tg_is_before(U x, U y) { return x < y; }
template <class U> __device__ bool tg_is_before(tg_two_words<U> x, tg_two_words<U> y) {
  return x.high < y.high || (x.high == y.high && x.low < y.low);
}

// -- by counting -----------------------------------------------------------------------------------

// Puts element i of all rows where it belongs: behind those of its row that are less, or equal and
// before it. `order` gets its position in the row, `sorted` the element; one of both is null.
template <class T>
__device__ void tg_sort_by_counting(const T* keys, T* sorted, tg_i64* order, tg_i64 i, int length) {
  const tg_i64 row = i / length;
  const int own = (int)(i - row * length);
  const T* const first = keys + row * length;
  const T key = first[own];
  const auto bits = tg_order_bits(key);
  int before = 0;
  for (int j = 0; j < length; ++j) {
    const auto other = tg_order_bits(first[j]);
    before += j < own ? !tg_is_before(bits, other) : tg_is_before(other, bits);
  }
  if (sorted) sorted[row * length + before] = key;
  if (order) order[row * length + before] = own;
}

// -- ranks in a tile -------------------------------------------------------------------------------

#ifdef __CUDACC__
// The lanes of the warp that have the same digit.
__device__ inline tg_u32 tg_peers(tg_u32 digit) {
  tg_u32 peers = ~0u;
#pragma unroll
  for (int bit = 0; bit < 8; ++bit) {
    const bool own = digit >> bit & 1;
    const tg_u32 set = __ballot_sync(~0u, own);
    peers &= own ? set : ~set;
  }
  return peers;
}
#endif

// Replaces 256 counts in shared memory by the sums of those before each. All threads of the block take
// part; the first warp scans eight digits in each lane.
__device__ inline void tg_scan_digits(tg_u32* counts) {
  __syncthreads();
  if (threadIdx.x < 32) {
    const int lane = (int)threadIdx.x;
    tg_u32 own[8], sum = 0;
    for (int i = 0; i < 8; ++i) {
      own[i] = counts[8 * lane + i];
      sum += own[i];
    }
    tg_u32 running = sum;
    for (int apart = 1; apart < 32; apart *= 2) {
      const tg_u32 other = __shfl_sync(~0u, running, lane >= apart ? lane - apart : lane);
      if (lane >= apart) running += other;
    }
    running -= sum;
    for (int i = 0; i < 8; ++i) {
      counts[8 * lane + i] = running;
      running += own[i];
    }
  }
  __syncthreads();
}

// A tile of THREADS * ITEMS keys in registers: item i of a lane is 32 after item i - 1, and the items of
// a warp follow those of the warp before it. So loads are coalesced, and ranks can follow positions.
template <int THREADS, int ITEMS> struct tg_tile {
  static const int WARPS = THREADS / 32, SIZE = THREADS * ITEMS;

  static __device__ int position(int item) {
    const int thread = (int)threadIdx.x;
    return thread / 32 * (32 * ITEMS) + item * 32 + thread % 32;
  }

  // Sets `places` to where each item is once the tile is sorted stably by its digits. `counts` has 256
  // words for each warp, `starts` 256. Then `starts` is where each digit starts, and what threads find
  // in `totals`, for digits thread, thread + THREADS, …, is how many there are.
  template <class Digit>
  static __device__ void rank(
      Digit digit, tg_u32* counts, tg_u32* starts, tg_u32* totals, tg_u32 (&places)[ITEMS]) {
    const int thread = (int)threadIdx.x;
    tg_u32* const own = counts + thread / 32 * 256;
    for (int i = thread; i < WARPS * 256; i += THREADS) counts[i] = 0;
    __syncthreads();
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      const tg_u32 d = digit(item), peers = tg_peers(d);
      const tg_u32 before = own[d], below = peers & ((1u << (thread & 31)) - 1);
      __syncwarp();
      if (below == 0) own[d] = before + __popc(peers);
      __syncwarp();
      places[item] = before + __popc(below);
    }
    __syncthreads();
    for (int d = thread, k = 0; d < 256; d += THREADS, ++k) {
      tg_u32 sum = 0;
#pragma unroll
      for (int warp = 0; warp < WARPS; ++warp) {
        const tg_u32 count = counts[warp * 256 + d];
        counts[warp * 256 + d] = sum;
        sum += count;
      }
      starts[d] = totals[k] = sum;
    }
    tg_scan_digits(starts);
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      const tg_u32 d = digit(item);
      places[item] += starts[d] + own[d];
    }
    __syncthreads();  // the memory of the counts may be used for something else
  }
};

// -- in one block ----------------------------------------------------------------------------------

// Sorts row `row`, of at most a tile. `shared` has room for the tile's keys or the counts of its warps,
// and for 256 words after them at `starts`.
template <int THREADS, int ITEMS, bool ORDER, class T>
__device__ void tg_sort_in_block(const T* keys, T* sorted, tg_i64* order, tg_i64 row, int length,
                                 int digits, unsigned char* shared, tg_u32* starts) {
  typedef tg_tile<THREADS, ITEMS> tile;
  T key[ITEMS];
  tg_u32 from[ITEMS], places[ITEMS], totals[(255 + THREADS) / THREADS] = {};
  const T* const first = keys + row * length;
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int p = tile::position(item);
    key[item] = first[p < length ? p : 0];
    from[item] = p;
  }
  for (int place = 0; place < digits; ++place) {
    // what is past the end has the greatest digit, and so stays there
    const auto digit = [&](int item) {
      return tile::position(item) < length ? tg_digit(tg_order_bits(key[item]), place) : 255u;
    };
    tile::rank(digit, (tg_u32*)shared, starts, totals, places);
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) ((T*)shared)[places[item]] = key[item];
    __syncthreads();
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) key[item] = ((const T*)shared)[tile::position(item)];
    __syncthreads();
    if constexpr (ORDER) {
#pragma unroll
      for (int item = 0; item < ITEMS; ++item) ((tg_u32*)shared)[places[item]] = from[item];
      __syncthreads();
#pragma unroll
      for (int item = 0; item < ITEMS; ++item) {
        from[item] = ((const tg_u32*)shared)[tile::position(item)];
      }
      __syncthreads();
    }
  }
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int p = tile::position(item);
    if (p >= length) continue;
    if constexpr (ORDER) order[row * length + p] = from[item];
    else sorted[row * length + p] = key[item];
  }
}

// -- in passes -------------------------------------------------------------------------------------

// Adds the digits of part of a row to the counts of the row, 256 for each place.
template <int THREADS, int DIGITS, class T>
__device__ void tg_count_digits(
    const T* first, tg_i64 begin, tg_i64 end, tg_u32* counts, tg_u32* shared) {
  for (int i = (int)threadIdx.x; i < DIGITS * 256; i += THREADS) shared[i] = 0;
  __syncthreads();
  for (tg_i64 i = begin + threadIdx.x; i < end; i += THREADS) {
    const auto bits = tg_order_bits(first[i]);
#pragma unroll
    for (int place = 0; place < DIGITS; ++place) {
      atomicAdd(&shared[place * 256 + tg_digit(bits, place)], 1u);
    }
  }
  __syncthreads();
  for (int i = (int)threadIdx.x; i < DIGITS * 256; i += THREADS) {
    if (shared[i]) atomicAdd(&counts[i], shared[i]);
  }
}

// What a tile says of its digits: a count, and in the upper two bits what it is: nothing yet, the
// tile's own, or that of all tiles of the row up to it.
template <class W> struct tg_status {
  static const int SHIFT = 8 * sizeof(W) - 2;
  static const W OWN = (W)1 << SHIFT, ALL = (W)2 << SHIFT, COUNT = OWN - 1;
};

// A kernel's parameters beside pointers.
struct tg_rows {
  tg_i64 length;
  tg_u32 tiles;  // of a row
  int place, digits;
};

// One pass of a stable radix sort, with decoupled look-back (Adinets and Merrill, "Onesweep", 2022).
//
// Each block takes the next tile. So it waits for tiles only that are in other blocks already. It
// publishes how often each digit is in its tile, and adds what the tiles before it publish.
//
// `statuses` has 256 words for each tile, zero before; `next` are those of the next pass, which are
// cleared here. With ORDER, positions move with their keys, in 32 bits until the last pass, which needs
// no keys any more; the first one makes them.
template <int THREADS, int ITEMS, bool ORDER, class T, class W>
__device__ void tg_sort_pass(const T* keys, T* sorted, const tg_u32* from, void* order,
                             const tg_u32* counts, tg_u32* tickets, W* statuses, tg_rows rows,
                             unsigned char* shared, W* bases) {
  typedef tg_tile<THREADS, ITEMS> tile;
  const tg_i64 length = rows.length;
  const tg_u32 tiles = rows.tiles;
  const int place = rows.place, digits = rows.digits;
  const bool is_last = place == digits - 1;
  tg_u32 *const starts = (tg_u32*)(bases + 256), *const taken = starts + 256;
  static_assert(THREADS >= 256, "a thread for each digit");
  const int thread = (int)threadIdx.x;
  if (thread == 0) *taken = atomicAdd(tickets + place, 1u);
  __syncthreads();
  const tg_u32 number = *taken, row = number / tiles, own = number % tiles;
  const tg_i64 before_row = row * length, begin = before_row + (tg_i64)own * tile::SIZE;
  const tg_i64 rest = length - (tg_i64)own * tile::SIZE;
  const int count = rest < tile::SIZE ? (int)rest : tile::SIZE;

  T key[ITEMS];
  tg_u32 places[ITEMS], totals[1] = {};
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int p = tile::position(item);
    key[item] = keys[begin + (p < count ? p : 0)];
  }
  // what is past the end has the greatest digit, and so stays there
  const auto digit = [&](int item) {
    return tile::position(item) < count ? tg_digit(tg_order_bits(key[item]), place) : 255u;
  };
  tile::rank(digit, (tg_u32*)shared, starts, totals, places);

  typedef tg_status<W> status;
  const tg_i64 words = (tg_i64)gridDim.x * 256;  // of each of the two that passes alternate between
  W* const mine = statuses + place % 2 * words + (tg_i64)number * 256 + thread;
  W* const next = statuses + (place + 1) % 2 * words + (tg_i64)number * 256 + thread;
  if (thread < 256) {
    if (own) *(volatile W*)mine = status::OWN | totals[0];
    if (!is_last) *next = 0;
  }
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) ((T*)shared)[places[item]] = key[item];

  if (own == 0) {  // the row's digits start behind those that are less
    tg_u32* const scanned = (tg_u32*)bases;
    if (thread < 256) scanned[thread] = counts[((tg_i64)row * digits + place) * 256 + thread];
    tg_scan_digits(scanned);
    const tg_u32 base = thread < 256 ? scanned[thread] : 0;
    __syncthreads();
    if (thread < 256) {
      *(volatile W*)mine = status::ALL | ((W)base + totals[0]);
      bases[thread] = (W)base - starts[thread];
    }
  } else if (thread < 256) {
    W before = 0;
    for (const W* other = mine - 256;; other -= 256) {
      W word;
      do word = *(const volatile W*)other; while (word == 0);
      before += word & status::COUNT;
      if (word & status::ALL) break;
    }
    *(volatile W*)mine = status::ALL | (before + totals[0]);
    bases[thread] = before - starts[thread];
  }
  __syncthreads();

  W to[ITEMS] = {};
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int p = thread + item * THREADS;
    if (p >= count) continue;
    const T moved = ((const T*)shared)[p];
    to[item] = bases[tg_digit(tg_order_bits(moved), place)] + (W)p;
    if (!ORDER || !is_last) sorted[before_row + to[item]] = moved;
  }
  if constexpr (!ORDER) return;
  __syncthreads();
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int p = tile::position(item);
    const tg_u32 index = (tg_u32)own * tile::SIZE + p;
    ((tg_u32*)shared)[places[item]] = place && p < count ? from[begin + p] : index;
  }
  __syncthreads();
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int p = thread + item * THREADS;
    if (p >= count) continue;
    const tg_u32 found = ((const tg_u32*)shared)[p];
    if (is_last) ((tg_i64*)order)[before_row + to[item]] = found;
    else ((tg_u32*)order)[before_row + to[item]] = found;
  }
}
