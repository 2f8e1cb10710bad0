// Factorizations of many small matrices, by one kernel. Before this text come: N, the rows; LANES, a
// power of two of at least N and at most 32; THREADS, those of a block; EPS, the unit of rounding,
// TINY, what counts as zero beside 1, and SWEEPS, a limit, as the algorithm that is not a kernel has
// them; and numbers.cuh.
//
// A matrix has a group of LANES threads of a warp, and a thread has a row in registers, so that loops
// over its elements are unrolled. Loops around them are not: that would take seconds to compile. Where
// a warp has more groups than there are matrices left, they compute the last one again, and store
// nothing.

// ---- groups of lanes ------------------------------------------------------------------------------

// The lane's row, the first lane of its group, and the matrix of the group.
struct group {
  int row, first;
  long long matrix;
  bool stores;
  __device__ group(long long warp, long long count) {
    row = threadIdx.x % LANES;
    first = threadIdx.x % 32 - row;
    matrix = (warp * 32 + threadIdx.x % 32) / LANES;
    stores = matrix < count && row < N;
    if (matrix >= count) matrix = count - 1;
  }
  template <class V> __device__ V of_row(V x, int other) const { return of_lane(x, first + other); }
};

// The element at a place that the compiler does not know.
__device__ inline T element(const T (&row)[N], int place) {
  T found = row[0];
#pragma unroll
  for (int j = 1; j < N; ++j) found = j == place ? row[j] : found;
  return found;
}

// ---- factorizations -------------------------------------------------------------------------------

// L of a = L Lᴴ from the lower triangle; NaN if a is not positive definite.
__device__ inline void cholesky(const T* a, T* lower, long long warp, long long count) {
  const group g(warp, count);
  const long long at = (g.matrix * N + g.row) * N;
  T row[N];
#pragma unroll
  for (int j = 0; j < N; ++j) row[j] = g.row < N && j <= g.row ? a[at + j] : number(0);
  bool failed = false;
#pragma unroll 1
  for (int k = 0; k < N; ++k) {
    T mine = element(row, k);
    const R square = g.of_row(part(mine), k);
    failed |= !(square > 0);
    const R pivot = sqrt(square);
    mine = g.row == k ? number(pivot) : over(mine, pivot);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if (j == k) row[j] = mine;
      if (j <= k) continue;
      const T other = g.of_row(mine, j);
      if (j <= g.row) row[j] = minus(row[j], times(mine, conj_of(other)));
    }
  }
  if (!g.stores) return;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    lower[at + j] = failed ? number(not_a_number()) : j <= g.row ? row[j] : number(0);
  }
}

// The packed factors of the rows in the order of LAPACK's partial pivoting. Rows stay in their lanes;
// `place` is where a row has been swapped to.
__device__ inline void lu(
    const T* a, T* packed, int* pivots, int* order, long long warp, long long count) {
  const group g(warp, count);
  T row[N];
#pragma unroll
  for (int j = 0; j < N; ++j) row[j] = g.row < N ? a[(g.matrix * N + g.row) * N + j] : number(0);
  int place = g.row;
#pragma unroll 1
  for (int k = 0; k < N; ++k) {
    const T mine = element(row, k);
    R size = place >= k && g.row < N ? size_of_pivot(mine) : -1;
    if (size != size) size = infinity();  // so that all lanes find the same
    int best = g.row, where = place;
#pragma unroll
    for (int apart = 1; apart < LANES; apart *= 2) {
      const R size_there = g.of_row(size, g.row ^ apart);
      const int best_there = g.of_row(best, g.row ^ apart);
      const int where_there = g.of_row(where, g.row ^ apart);
      if (size_there > size || (size_there == size && where_there < where)) {
        size = size_there;
        best = best_there;
        where = where_there;
      }
    }
    if (g.row == best) place = k;
    else if (place == k) place = where;
    if (g.stores && g.row == 0) pivots[g.matrix * N + k] = where;
    const T pivot = g.of_row(mine, best);
    const bool below = place > k;
    const T factor = over(mine, is_zero(pivot) ? number(1) : pivot);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if (j == k && below) row[j] = factor;
      if (j <= k) continue;
      const T top = g.of_row(row[j], best);
      if (below) row[j] = minus(row[j], times(factor, top));
    }
  }
  if (!g.stores) return;
#pragma unroll
  for (int j = 0; j < N; ++j) packed[(g.matrix * N + place) * N + j] = row[j];
  order[g.matrix * N + place] = g.row;
}

// The x of a x = b, from one triangle of a. A group solves for `each` columns, one after the other.
template <bool LOWER, bool UNIT>
__device__ void triangular_solve(
    const T* a, const T* b, T* x, long long columns, long long each, long long warp,
    long long count) {
  const long long tiles = (columns + each - 1) / each;
  const group g(warp, count * tiles);
  const long long matrix = g.matrix / tiles, start = g.matrix % tiles * each;
  T row[N];
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const bool is_read = g.row < N && (LOWER ? j <= g.row : j >= g.row);
    row[j] = is_read ? a[(matrix * N + g.row) * N + j] : number(0);
  }
  const long long at = (matrix * N + g.row) * columns;
  for (long long step = 0; step < each; ++step) {  // as many for all groups of a warp
    const long long column = start + step < columns ? start + step : columns - 1;
    T mine = g.row < N ? b[at + column] : number(0);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int k = LOWER ? i : N - 1 - i;
      if (!UNIT && g.row == k) mine = over(mine, row[k]);
      const T known = g.of_row(mine, k);
      if (LOWER ? g.row > k : g.row < k) mine = minus(mine, times(row[k], known));
    }
    if (g.stores && start + step < columns) x[at + column] = mine;
  }
}

// The same for many columns: a thread has one, and a block reads the triangle once.
template <bool LOWER, bool UNIT>
__device__ void triangular_solve_by_columns(
    const T* a, const T* b, T* x, long long columns, unsigned char* memory) {
  T* const triangle = (T*)memory;
  const long long blocks = (columns + THREADS - 1) / THREADS;
  const long long matrix = blockIdx.x / blocks;
  const long long column = blockIdx.x % blocks * THREADS + threadIdx.x;
  for (int e = threadIdx.x; e < N * N; e += THREADS) {
    triangle[e % N * N + e / N] = a[matrix * N * N + e];  // columns are contiguous
  }
  __syncthreads();
  if (column >= columns) return;
  const long long at = matrix * N * columns + column;
  T mine[N];
#pragma unroll
  for (int i = 0; i < N; ++i) mine[i] = b[at + i * columns];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int k = LOWER ? i : N - 1 - i;
    if (!UNIT) mine[k] = over(mine[k], triangle[k * N + k]);
    x[at + k * columns] = mine[k];
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if (LOWER ? j > k : j < k) mine[j] = minus(mine[j], times(triangle[k * N + j], mine[k]));
    }
  }
}

// ---- rotations ------------------------------------------------------------------------------------

// The two columns that pair number `t` of a round rotates: one stays, the others go around a circle.
__device__ inline void columns_of_pair(int t, int round, int& first, int& last) {
  constexpr int OTHERS = (N + 1) / 2 * 2 - 1;
  const int p = t ? (round + t) % OTHERS : OTHERS;
  const int q = t ? (round + OTHERS - t) % OTHERS : round;
  first = p < q ? p : q;
  last = p < q ? q : p;
}

// The cosine and sine that diagonalize [[first, between], [conj(between), last]], as in jacobi.py.
__device__ inline void rotation(R first, R last, T between, R& cosine, T& sine) {
  const R size = absolute(between);
  cosine = 1;
  sine = number(0);
  if (!(size > (R)TINY)) return;
  const R ratio = (last - first) / (2 * size);
  const R steep = fabs(ratio), most = steep < 1 / (R)EPS ? steep : 1 / (R)EPS;
  const R root = sqrt(1 + most * most);
  const R tangent = (ratio < 0 ? -1 : 1) / (steep + (steep > root ? steep : root));
  cosine = 1 / sqrt(1 + tangent * tangent);
  sine = times(between, tangent * cosine / size);
}

// ---- eigenvalues ----------------------------------------------------------------------------------

// The eigenvalues in ascending order, and the eigenvectors as columns, by cyclic Jacobi rotations, from
// the lower triangle; NaN of a matrix that is not finite. A warp for each matrix, in shared memory. An
// odd number of columns gets one of zeros, which no rotation moves.
template <bool VECTORS>
__device__ void eigh(
    const T* a, R* values, T* vectors, long long warp, long long count, unsigned char* memory) {
  constexpr int WARPS = THREADS / 32, PAIRS = (N + 1) / 2, SIZE = 2 * PAIRS, STRIDE = SIZE + 1;
  constexpr int WORDS = (VECTORS ? 2 : 1) * SIZE * STRIDE + PAIRS;
  const int lane = threadIdx.x % 32;
  long long matrix = warp;
  const bool stores = matrix < count;
  if (!stores) matrix = count - 1;
  T* const m = (T*)memory + (threadIdx.x / 32) * WORDS;
  T* const sines = m + SIZE * STRIDE;
  T* const basis = sines + PAIRS;
  R* const cosines = (R*)((T*)memory + WARPS * WORDS) + (threadIdx.x / 32) * PAIRS;
  a += matrix * N * N;

  R scale = 0;
  bool is_bad = false;
  for (int e = lane; e < N * N; e += 32) {
    const int i = e / N, j = e % N;
    if (j > i) continue;
    const R size = largest_part(i == j ? number(part(a[e])) : a[e]);
    is_bad |= !(size < infinity());
    scale = size > scale ? size : scale;
  }
  is_bad = sum_of_lanes(is_bad ? 1 : 0) > 0;
  scale = largest_of_lanes(scale);
  if (scale == 0 || is_bad) scale = 1;
  for (int e = lane; e < SIZE * SIZE; e += 32) {
    const int i = e / SIZE, j = e % SIZE;
    T element = number(0);
    if (i < N && j < N && !is_bad) {
      element = j <= i ? a[i * N + j] : conj_of(a[j * N + i]);
      element = over(i == j ? number(part(element)) : element, scale);
    }
    m[i * STRIDE + j] = element;
    if (VECTORS) basis[i * STRIDE + j] = number(i == j ? 1 : 0);
  }
  __syncwarp(~0u);

  for (int sweep = 0; sweep < SWEEPS; ++sweep) {
    R off = 0, total = 0;
    for (int e = lane; e < SIZE * SIZE; e += 32) {
      const R square = squared(m[e / SIZE * STRIDE + e % SIZE]);
      total += square;
      if (e / SIZE != e % SIZE) off += square;
    }
    // as in eigh.py: more off the diagonal than √N units of rounding of the norm
    if (!(sum_of_lanes(off) > N * (R)EPS * (R)EPS * sum_of_lanes(total))) break;
    for (int round = 0; round < SIZE - 1; ++round) {
      if (lane < PAIRS) {
        int p, q;
        columns_of_pair(lane, round, p, q);
        const R first = part(m[p * STRIDE + p]), last = part(m[q * STRIDE + q]);
        rotation(first, last, m[p * STRIDE + q], cosines[lane], sines[lane]);
      }
      __syncwarp(~0u);
      // Each lane has blocks of two rows and two columns, which are rotated from both sides.
      for (int e = lane; e < PAIRS * PAIRS; e += 32) {
        const int t = e / PAIRS, u = e % PAIRS;
        int p, q, k, l;
        columns_of_pair(t, round, p, q);
        columns_of_pair(u, round, k, l);
        T pk = m[p * STRIDE + k], pl = m[p * STRIDE + l];
        T qk = m[q * STRIDE + k], ql = m[q * STRIDE + l];
        rotate(pk, pl, cosines[u], sines[u]);
        rotate(qk, ql, cosines[u], sines[u]);
        rotate(pk, qk, cosines[t], conj_of(sines[t]));
        rotate(pl, ql, cosines[t], conj_of(sines[t]));
        const bool is_diagonal = t == u;
        m[p * STRIDE + k] = is_diagonal ? number(part(pk)) : pk;
        m[p * STRIDE + l] = is_diagonal ? number(0) : pl;
        m[q * STRIDE + k] = is_diagonal ? number(0) : qk;
        m[q * STRIDE + l] = is_diagonal ? number(part(ql)) : ql;
      }
      for (int e = lane; VECTORS && e < PAIRS * N; e += 32) {
        const int t = e / N, row = e % N * STRIDE;
        int p, q;
        columns_of_pair(t, round, p, q);
        rotate(basis[row + p], basis[row + q], cosines[t], sines[t]);
      }
      __syncwarp(~0u);
    }
  }

  for (int i = lane; i < N; i += 32) {
    const R mine = part(m[i * STRIDE + i]);
    int rank = 0;
    for (int j = 0; j < N; ++j) {
      const R other = part(m[j * STRIDE + j]);
      rank += other < mine || (other == mine && j < i);
    }
    if (!stores) continue;
    values[matrix * N + rank] = is_bad ? not_a_number() : mine * scale;
    for (int k = 0; VECTORS && k < N; ++k) {
      vectors[(matrix * N + k) * N + rank] = is_bad ? number(not_a_number()) : basis[k * STRIDE + i];
    }
  }
}

// ---- singular values ------------------------------------------------------------------------------

// The columns of a, rotated until they are orthogonal, in descending order of length, and the lengths.
// A warp for each matrix, in shared memory, where columns are contiguous; some lanes for each pair of
// columns. As in svd.py, columns are orthogonal within √N units of rounding.
__device__ inline void orthogonal_columns(
    const T* a, T* columns, R* lengths, long long warp, long long count, unsigned char* memory) {
  constexpr int WARPS = THREADS / 32, PAIRS = (N + 1) / 2, SIZE = 2 * PAIRS, STRIDE = N + 1;
  constexpr int EACH = 64 / LANES, WORDS = SIZE * STRIDE;
  const int lane = threadIdx.x % 32, pair = lane / EACH, start = lane % EACH;
  long long matrix = warp;
  const bool stores = matrix < count;
  if (!stores) matrix = count - 1;
  T* const x = (T*)memory + (threadIdx.x / 32) * WORDS;
  for (int e = lane; e < SIZE * N; e += 32) {
    const int j = e / N, k = e % N;
    x[j * STRIDE + k] = j < N ? a[(matrix * N + k) * N + j] : number(0);
  }
  __syncwarp(~0u);

  for (int sweep = 0; sweep < SWEEPS; ++sweep) {
    bool coupled = false;
    for (int round = 0; round < SIZE - 1; ++round) {
      int p = 0, q = 0;
      if (pair < PAIRS) columns_of_pair(pair, round, p, q);
      R first = 0, last = 0;
      T between = number(0);
      for (int k = start; k < N && pair < PAIRS; k += EACH) {
        const T left = x[p * STRIDE + k], right = x[q * STRIDE + k];
        first += squared(left);
        last += squared(right);
        between = plus(between, times(conj_of(left), right));
      }
#pragma unroll
      for (int apart = 1; apart < EACH; apart *= 2) {
        first += of_lane(first, lane ^ apart);
        last += of_lane(last, lane ^ apart);
        between = plus(between, of_lane(between, lane ^ apart));
      }
      R limit = (R)EPS * sqrt((R)N) * sqrt(first) * sqrt(last);
      if (limit < (R)TINY) limit = (R)TINY;
      const R shorter = first < last ? first : last;
      const bool is_off = absolute(between) > limit && shorter > (R)TINY;
      coupled |= is_off;
      R c;
      T s;
      rotation(first, last, is_off ? between : number(0), c, s);
      for (int k = start; k < N && is_off; k += EACH) {
        rotate(x[p * STRIDE + k], x[q * STRIDE + k], c, s);
      }
      __syncwarp(~0u);
    }
    if (!(sum_of_lanes(coupled ? 1 : 0) > 0)) break;
  }

  R mine = 0;
  for (int k = 0; k < N && lane < N; ++k) mine += squared(x[lane * STRIDE + k]);
  mine = sqrt(mine);
  int rank = 0;
  for (int j = 0; j < N; ++j) {
    const R other = of_lane(mine, j);
    rank += other > mine || (other == mine && j < lane);
  }
  if (lane >= N || !stores) return;
  lengths[matrix * N + rank] = mine;
  for (int k = 0; k < N; ++k) columns[(matrix * N + k) * N + rank] = x[lane * STRIDE + k];
}
