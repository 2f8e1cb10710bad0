// Factorizations by one block of threads for each matrix. Before this text come: ROWS and COLUMNS of the
// matrices; GROUP, a power of two; THREADS, those of a block, at least GROUP for each column, or, where
// columns are rotated, GROUP for each pair; SWEEPS, a limit; EPS, the unit of rounding, and TINY, what
// counts as zero beside 1; and numbers.cuh.
//
// A column has a group of GROUP neighbouring lanes of a warp, which keep its elements in registers. What
// other columns need of it, it writes to shared memory. So a step of a factorization has one barrier.

constexpr int WIDE = 16 / sizeof(T);  // elements of one access
constexpr int EACH = (ROWS + WIDE * GROUP - 1) / (WIDE * GROUP) * WIDE;  // elements of a lane
constexpr int HEIGHT = EACH * GROUP;  // elements of a column in shared memory, zeros behind the last

struct __align__(16) four_words { unsigned a, b, c, d; };
union some_elements {
  four_words words;
  T part[WIDE];
};

// The row of an element of the lane's.
__device__ inline int row_of(int e) {
  return (e / WIDE * GROUP + (int)threadIdx.x % GROUP) * WIDE + e % WIDE;
}
__device__ inline void put(T* column, const T (&x)[EACH]) {
#pragma unroll
  for (int e = 0; e < EACH; e += WIDE) {
    some_elements some;
#pragma unroll
    for (int i = 0; i < WIDE; ++i) some.part[i] = x[e + i];
    *(four_words*)(column + row_of(e)) = some.words;
  }
}
__device__ inline void take(const T* column, T (&x)[EACH]) {
#pragma unroll
  for (int e = 0; e < EACH; e += WIDE) {
    some_elements some;
    some.words = *(const four_words*)(column + row_of(e));
#pragma unroll
    for (int i = 0; i < WIDE; ++i) x[e + i] = some.part[i];
  }
}
__device__ inline void wait_for_block() {
  if (THREADS == 32) __syncwarp(~0u);
  else __syncthreads();
}
template <class V> __device__ V sum_of_group(V x) {
#pragma unroll
  for (int apart = 1; apart < GROUP; apart *= 2) x = plus(x, of_lane(x, threadIdx.x % 32 ^ apart));
  return x;
}
// x becomes x - column factor.
__device__ inline void subtract(T (&x)[EACH], const T* column, T factor) {
#pragma unroll
  for (int e = 0; e < EACH; e += WIDE) {
    some_elements some;
    some.words = *(const four_words*)(column + row_of(e));
#pragma unroll
    for (int i = 0; i < WIDE; ++i) x[e + i] = minus(x[e + i], times(factor, some.part[i]));
  }
}
__device__ inline R square_of_length(const T (&x)[EACH]) {
  R sum = 0;
#pragma unroll
  for (int e = 0; e < EACH; ++e) sum += squared(x[e]);
  return sum_of_group(sum);
}
// The product columnᴴ x, summed over the group.
__device__ inline T product_with(const T* column, const T (&x)[EACH]) {
  T sum = number(0);
#pragma unroll
  for (int e = 0; e < EACH; e += WIDE) {
    some_elements some;
    some.words = *(const four_words*)(column + row_of(e));
#pragma unroll
    for (int i = 0; i < WIDE; ++i) sum = plus(sum, times(conj_of(some.part[i]), x[e + i]));
  }
  return sum_of_group(sum);
}
__device__ inline R largest_of_group(R x) {
#pragma unroll
  for (int apart = 1; apart < GROUP; apart *= 2) {
    const R other = of_lane(x, threadIdx.x % 32 ^ apart);
    x = other > x ? other : x;
  }
  return x;
}
// The largest of what the threads have, none of it less than 0; `places` has room for 32.
__device__ inline R largest_of_block(R x, R* places) {
  x = largest_of_lanes(x);
  if (THREADS == 32) return x;
  if (threadIdx.x % 32 == 0) places[threadIdx.x / 32] = x;
  wait_for_block();
  const int lane = threadIdx.x % 32;
  x = largest_of_lanes(lane < THREADS / 32 ? places[lane] : 0);
  wait_for_block();
  return x;
}
// The element of a row of the group's column, for all of its lanes; all lanes of the warp take part.
__device__ inline T element_of_row(const T (&x)[EACH], int row) {
  const int place = row / (WIDE * GROUP) * WIDE + row % WIDE;
  T found = x[0];
#pragma unroll
  for (int e = 1; e < EACH; ++e) found = e == place ? x[e] : found;
  return of_lane(found, (threadIdx.x % 32) / GROUP * GROUP + row / WIDE % GROUP);
}
// Element (k, j) of a matrix, zero outside.
__device__ inline T element_at(const T* a, int k, int j) {
  return k < ROWS && j < COLUMNS ? a[(long long)k * COLUMNS + j] : number(0);
}
