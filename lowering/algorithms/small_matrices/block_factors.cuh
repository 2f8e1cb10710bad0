// Triangular and orthogonal factors, and triangular systems: a group of lanes has a column. Behind
// block_columns.cuh.

// L of a = L Lᴴ from the lower triangle; NaN if a is not positive definite.
__device__ inline void cholesky(const T* a, T* lower, unsigned char* memory) {
  T* const columns = (T*)memory;  // the last two
  const int me = threadIdx.x / GROUP;
  const long long matrix = blockIdx.x;
  a += matrix * ROWS * COLUMNS;
  T x[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) x[e] = row_of(e) >= me ? element_at(a, row_of(e), me) : number(0);
#pragma unroll 1
  for (int k = 0; k < COLUMNS; ++k) {
    T* const column = columns + k % 2 * HEIGHT;
    if (threadIdx.x / 32 == k * GROUP / 32) {
      const R square = part(element_of_row(x, k));
      const R pivot = square > 0 ? sqrt(square) : not_a_number();  // which spreads to the last one
      if (me == k) {
        const R inverse = 1 / pivot;
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
          x[e] = row_of(e) == k ? number(pivot) : times(x[e], inverse);
        }
        put(column, x);
      }
    }
    wait_for_block();
    if (me > k && me < COLUMNS) {
      subtract(x, column, conj_of(column[me]));
    }
  }
  R* const last = (R*)memory;
  wait_for_block();
  if (threadIdx.x == 0) *last = 0;
  wait_for_block();
  const R end = part(element_of_row(x, COLUMNS - 1));
  if (me == COLUMNS - 1 && end != end && threadIdx.x % GROUP == 0) *last = 1;
  wait_for_block();
  const bool failed = *last > 0;
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int row = row_of(e);
    if (row >= ROWS || me >= COLUMNS) continue;
    const T mine = row >= me ? x[e] : number(0);
    lower[(matrix * ROWS + row) * COLUMNS + me] = failed ? number(not_a_number()) : mine;
  }
}

// The packed factors of the rows in the order of LAPACK's partial pivoting. Rows stay in their lanes;
// `places` is where they have been swapped to.
__device__ inline void lu(
    const T* a, T* packed, int* pivots, int* order, unsigned char* memory) {
  T* const columns = (T*)memory;  // the last two
  int* const places = (int*)(columns + 2 * HEIGHT);
  int* const rows = places + HEIGHT;  // the row at each place
  int* const chosen = rows + HEIGHT;  // the last two
  const int me = threadIdx.x / GROUP;
  const long long matrix = blockIdx.x;
  a += matrix * ROWS * COLUMNS;
  T x[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) x[e] = element_at(a, row_of(e), me);
  for (int i = threadIdx.x; i < HEIGHT; i += THREADS) places[i] = rows[i] = i;
  wait_for_block();
#pragma unroll 1
  for (int k = 0; k < COLUMNS; ++k) {
    T* const column = columns + k % 2 * HEIGHT;
    if (threadIdx.x / 32 == k * GROUP / 32) {
      R size = -1;
      int best = 0, where = HEIGHT;
#pragma unroll
      for (int e = 0; e < EACH; ++e) {
        const int row = row_of(e), place = places[row];
        R mine = row < ROWS && place >= k ? size_of_pivot(x[e]) : -1;
        if (mine != mine) mine = infinity();  // so that all lanes find the same
        if (mine > size || (mine == size && place < where)) {
          size = mine;
          best = row;
          where = place;
        }
      }
#pragma unroll
      for (int apart = 1; apart < GROUP; apart *= 2) {
        const int lane = threadIdx.x % 32 ^ apart;
        const R size_there = of_lane(size, lane);
        const int best_there = of_lane(best, lane), where_there = of_lane(where, lane);
        if (size_there > size || (size_there == size && where_there < where)) {
          size = size_there;
          best = best_there;
          where = where_there;
        }
      }
      const T pivot = element_of_row(x, best);
      __syncwarp(~0u);
      if (me == k) {
        const T divisor = is_zero(pivot) ? number(1) : pivot;
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
          const int row = row_of(e);
          const bool below = places[row] >= k && row != best && row < ROWS;
          if (below) x[e] = over(x[e], divisor);
          column[row] = below ? x[e] : number(0);
        }
      }
      __syncwarp(~0u);
      if (me == k && threadIdx.x % GROUP == 0) {
        const int moved = rows[k];
        rows[where] = moved;
        places[moved] = where;
        rows[k] = best;
        places[best] = k;
        chosen[k % 2] = best;
        pivots[matrix * COLUMNS + k] = where;
      }
    }
    wait_for_block();
    const T top = element_of_row(x, chosen[k % 2]);
    if (me > k && me < COLUMNS) {
      subtract(x, column, top);
    }
  }
  if (me >= COLUMNS) return;
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int row = row_of(e);
    if (row < ROWS) packed[(matrix * ROWS + places[row]) * COLUMNS + me] = x[e];
  }
  for (int i = threadIdx.x; i < ROWS; i += COLUMNS * GROUP) order[matrix * ROWS + i] = rows[i];
}

// Q with orthonormal columns and upper triangular R, by Householder reflections with the signs of
// LAPACK, as in qr.py. The vectors of the reflections are in shared memory, or where Q will be.
template <bool SHARED>
__device__ void qr(const T* a, T* q, T* r, unsigned char* memory) {
  constexpr int STEPS = ROWS < COLUMNS ? ROWS : COLUMNS;
  static_assert(SHARED || HEIGHT == ROWS, "columns of Q have no room for more");
  const int me = threadIdx.x / GROUP;
  const long long matrix = blockIdx.x;
  T* const vectors = SHARED ? (T*)memory : q + matrix * ROWS * STEPS;
  T* const factors = (T*)memory + (SHARED ? STEPS * HEIGHT : 0);
  a += matrix * ROWS * COLUMNS;
  T x[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) x[e] = element_at(a, row_of(e), me);
#pragma unroll 1
  for (int k = 0; k < STEPS; ++k) {
    T* const vector = vectors + k * HEIGHT;
    if (threadIdx.x / 32 == k * GROUP / 32) {
      R largest = 0;
#pragma unroll
      for (int e = 0; e < EACH; ++e) {
        const R size = row_of(e) >= k ? largest_part(x[e]) : 0;
        largest = size <= largest ? largest : size;  // NaN stays
      }
      largest = largest_of_group(largest);
      int exponent = 0;
      const bool is_scaled = largest > 0 && largest < infinity();
      frexp(is_scaled ? largest : (R)1, &exponent);
      constexpr int FARTHEST = sizeof(R) == 4 ? 120 : 1000;
      exponent = exponent < -FARTHEST ? -FARTHEST : exponent > FARTHEST ? FARTHEST : exponent;
      const R scale = ldexp((R)1, -exponent);
      R tail = 0;
#pragma unroll
      for (int e = 0; e < EACH; ++e) tail += row_of(e) > k ? squared(times(x[e], scale)) : 0;
      tail = sum_of_group(tail);
      const T first = times(element_of_row(x, k), scale);
      const R head = part(first);
      const R size = sqrt(tail + squared(first));
      const bool is_done = tail == 0 && size == fabs(head);
      const R diagonal = is_done ? head : head < 0 || (head == 0 && signbit(head)) ? size : -size;
      if (me == k) {
        const T below = minus(first, number(diagonal));
        const T inverse = is_done ? number(0) : over(number(1), below);
        const R unscaled = ldexp((R)1, exponent);
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
          const int row = row_of(e);
          vector[row] = row > k ? times(times(x[e], scale), inverse) : number(row == k ? 1 : 0);
          if (row == k) x[e] = number(diagonal * unscaled);
        }
        if (threadIdx.x % GROUP == 0) {
          factors[k] = is_done ? number(0) : over(minus(number(diagonal), first), diagonal);
        }
      }
    }
    wait_for_block();
    if ((threadIdx.x | 31) / GROUP > k) {
      const T product = times(conj_of(factors[k]), product_with(vector, x));
      if (me > k) subtract(x, vector, product);
    }
  }
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int row = row_of(e);
    if (me < COLUMNS && row < STEPS) {
      r[(matrix * STEPS + row) * COLUMNS + me] = row <= me ? x[e] : number(0);
    }
    x[e] = number(row == me ? 1 : 0);
  }
#pragma unroll 1
  for (int k = STEPS - 1; k >= 0; --k) {
    const T* const vector = vectors + k * HEIGHT;
    subtract(x, vector, times(factors[k], product_with(vector, x)));
  }
  if (!SHARED) wait_for_block();
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int row = row_of(e);
    if (me < STEPS && row < ROWS) q[(matrix * ROWS + row) * STEPS + me] = x[e];
  }
}

// The x of a x = b, from one triangle of a. A group of lanes has a right-hand side, and reads the
// columns of a one by one, the next one ahead.
template <bool LOWER, bool UNIT>
__device__ void triangular_solve(
    const T* a, const T* b, T* x, long long columns, long long warp, long long count) {
  constexpr int TOGETHER = 32 / GROUP;
  const long long tiles = (columns + TOGETHER - 1) / TOGETHER, matrix = warp / tiles;
  if (matrix >= count) return;
  const long long mine = warp % tiles * TOGETHER + threadIdx.x % 32 / GROUP;
  const long long column = mine < columns ? mine : columns - 1;
  a += matrix * ROWS * COLUMNS;
  const long long at = matrix * ROWS * columns + column;
  T value[EACH], inverse[EACH], ahead[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int row = row_of(e);
    value[e] = row < ROWS ? b[at + row * columns] : number(0);
    inverse[e] = number(1);
    if (!UNIT && row < ROWS) inverse[e] = over(number(1), a[(long long)row * COLUMNS + row]);
    ahead[e] = element_at(a, row, LOWER ? 0 : COLUMNS - 1);
  }
#pragma unroll 1
  for (int i = 0; i < COLUMNS; ++i) {
    const int k = LOWER ? i : COLUMNS - 1 - i, next = LOWER ? k + 1 : k - 1;
    T below[EACH];
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      below[e] = ahead[e];
      ahead[e] = next < 0 ? number(0) : element_at(a, row_of(e), next);
      if (!UNIT && row_of(e) == k) value[e] = times(value[e], inverse[e]);
    }
    const T known = element_of_row(value, k);
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      const int row = row_of(e);
      if (LOWER ? row > k : row < k) value[e] = minus(value[e], times(below[e], known));
    }
  }
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int row = row_of(e);
    if (row < ROWS && mine < columns) x[at + row * columns] = value[e];
  }
}
