// Tridiagonal systems by partitions. Before this text come: ROWS, those of a lane, at least 2; COLUMNS
// of right-hand sides; LANES, a power of two, that share a system or a span of one; THREADS, those of
// a block, a multiple of 32, which are LANES if that is more than 32; and numbers.cuh.
//
// A lane eliminates its inner unknowns from its rows. Two equations are left, between the unknowns at
// the ends of its part: those before and at its first row, and those at and behind its last one. Two
// neighbours have two unknowns between them in four equations: eliminating these leaves two again. So
// lanes are merged in pairs, pairs of pairs, …, up to the whole, whose ends are computed; then, in the
// reverse order, what was eliminated. This is Gaussian elimination in the order of a nested
// dissection. Each unknown is eliminated from all equations that have it, by the one with the largest
// coefficient: only in a singular matrix can that be 0.
//
// A lane merges once: at the level of the lowest bit in its number. So it keeps its part of the
// factors in registers. In memory, an `equations` are 2 (4 + COLUMNS) elements, and `ends` are
// 4 COLUMNS.

// left[0] x[before] + left[1] x[first] + right[0] x[last] + right[1] x[behind] = f
struct equation { T left[2], right[2], f[COLUMNS]; };
struct equations { equation pair[2]; };
struct ends { T left[2][COLUMNS], right[2][COLUMNS]; };

// Of an unknown: x = f - left · x[before, first] - right · x[two others].
struct solved { T left[2], right[2], f[COLUMNS]; };

__device__ inline T less(T x, T factor, T y) { return minus(x, times(factor, y)); }

template <class V> __device__ void exchange(bool flag, V& x, V& y) {
  const V old = x;
  x = flag ? y : x;
  y = flag ? old : y;
}

template <class V, int N> __device__ void exchange(bool flag, V (&x)[N], V (&y)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) exchange(flag, x[i], y[i]);
}

template <int N> __device__ void copy(T (&to)[N], const T (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = x[i];
}

template <int N> __device__ void subtract(T (&x)[N], T factor, const T (&y)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = less(x[i], factor, y[i]);
}

template <int N> __device__ void scale(T (&to)[N], T factor, const T (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = times(factor, x[i]);
}

// ---- the rows of a lane ---------------------------------------------------------------------------

// A row while the unknown `own` is eliminated: coefficients of it, and of the two behind it.
struct row { T left[2], own, next, after, f[COLUMNS]; };

__device__ inline void lead(row& pivot, row& other) {
  const bool flag = size_of_pivot(other.own) > size_of_pivot(pivot.own);
  exchange(flag, pivot.left, other.left);
  exchange(flag, pivot.own, other.own);
  exchange(flag, pivot.next, other.next);
  exchange(flag, pivot.after, other.after);
  exchange(flag, pivot.f, other.f);
}

__device__ inline void eliminate(row& other, const row& pivot, T inverse) {
  const T factor = times(other.own, inverse);
  subtract(other.left, factor, pivot.left);
  other.own = less(other.next, factor, pivot.next);
  other.next = less(other.after, factor, pivot.after);
  other.after = number(0);
  subtract(other.f, factor, pivot.f);
}

// The equations of a lane, and its inner unknowns: `right` are factors of the next two.
__device__ inline equations eliminated(
    const T (&lower)[ROWS], const T (&middle)[ROWS], const T (&upper)[ROWS],
    const T (&b)[COLUMNS][ROWS], solved (&inner)[ROWS]) {
  const T zero = number(0);
  row x = {{lower[0], middle[0]}, upper[0], zero, zero};
  row y = {{zero, lower[1]}, middle[1], upper[1], zero};
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) x.f[j] = b[j][0], y.f[j] = b[j][1];
#pragma unroll
  for (int k = 1; k < ROWS - 1; ++k) {
    row z = {{zero, zero}, lower[k + 1], middle[k + 1], upper[k + 1]};
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) z.f[j] = b[j][k + 1];
    lead(x, y);
    lead(x, z);
    const T inverse = over(number(1), x.own);
    eliminate(y, x, inverse);
    eliminate(z, x, inverse);
    scale(inner[k].left, inverse, x.left);
    inner[k].right[0] = times(inverse, x.next);
    inner[k].right[1] = times(inverse, x.after);
    scale(inner[k].f, inverse, x.f);
    x = y;
    y = z;
  }
  equations left;
  const row* const rest[2] = {&x, &y};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    copy(left.pair[i].left, rest[i]->left);
    left.pair[i].right[0] = rest[i]->own;
    left.pair[i].right[1] = rest[i]->next;
    copy(left.pair[i].f, rest[i]->f);
  }
  return left;
}

// ---- merging --------------------------------------------------------------------------------------

// An equation while the two unknowns between neighbours are eliminated.
struct joint { T between[2], left[2], right[2], f[COLUMNS]; };

__device__ inline void lead(joint& pivot, joint& other, int unknown) {
  const bool flag =
      size_of_pivot(other.between[unknown]) > size_of_pivot(pivot.between[unknown]);
  exchange(flag, pivot.between, other.between);
  exchange(flag, pivot.left, other.left);
  exchange(flag, pivot.right, other.right);
  exchange(flag, pivot.f, other.f);
}

__device__ inline void eliminate(joint& other, const joint& pivot, T factor) {
  other.between[1] = less(other.between[1], factor, pivot.between[1]);
  subtract(other.left, factor, pivot.left);
  subtract(other.right, factor, pivot.right);
  subtract(other.f, factor, pivot.f);
}

// The equations of two neighbours together, and the unknowns between them.
__device__ inline equations merged(
    const equations& before, const equations& after, solved (&between)[2]) {
  joint rows[4];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const equation &p = before.pair[i], &q = after.pair[i];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      rows[i].left[j] = p.left[j], rows[i].between[j] = p.right[j];
      rows[2 + i].between[j] = q.left[j], rows[2 + i].right[j] = q.right[j];
      rows[i].right[j] = rows[2 + i].left[j] = number(0);
    }
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) rows[i].f[j] = p.f[j], rows[2 + i].f[j] = q.f[j];
  }
  T inverse[2];
#pragma unroll
  for (int unknown = 0; unknown < 2; ++unknown) {
#pragma unroll
    for (int i = unknown + 1; i < 4; ++i) lead(rows[unknown], rows[i], unknown);
    inverse[unknown] = over(number(1), rows[unknown].between[unknown]);
#pragma unroll
    for (int i = unknown + 1; i < 4; ++i) {
      const T factor = times(rows[i].between[unknown], inverse[unknown]);
      eliminate(rows[i], rows[unknown], factor);
    }
  }
  equations left;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const joint& last = rows[2 + i];
    copy(left.pair[i].left, last.left);
    copy(left.pair[i].right, last.right);
    copy(left.pair[i].f, last.f);
  }
#pragma unroll
  for (int unknown = 1; unknown >= 0; --unknown) {
    if (unknown == 0) {  // without the second one, which is solved
      const T factor = rows[0].between[1];
      subtract(rows[0].left, factor, between[1].left);
      subtract(rows[0].right, factor, between[1].right);
      subtract(rows[0].f, factor, between[1].f);
    }
    scale(between[unknown].left, inverse[unknown], rows[unknown].left);
    scale(between[unknown].right, inverse[unknown], rows[unknown].right);
    scale(between[unknown].f, inverse[unknown], rows[unknown].f);
  }
  return left;
}

__device__ inline void substitute(
    const solved& unknown, const T (&left)[2][COLUMNS], const T (&next)[COLUMNS],
    const T (&after)[COLUMNS], T (&x)[COLUMNS]) {
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) {
    const T last = less(unknown.f[j], unknown.right[0], next[j]);
    const T first = less(last, unknown.right[1], after[j]);
    x[j] = less(less(first, unknown.left[0], left[0][j]), unknown.left[1], left[1][j]);
  }
}

// Merge WIDTH lanes of a warp. The equations of all are in lane WIDTH / 2.
template <int WIDTH> __device__ void merge_lanes(equations& mine, solved (&between)[2]) {
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int half = 1; half < WIDTH; half *= 2) {
    const equations before = of_lane(mine, lane - (half == 1 ? 1 : half / 2));
    const equations after = of_lane(mine, lane + half / 2);
    if ((lane & (2 * half - 1)) == half) mine = merged(before, after, between);
  }
}

// From the ends of all WIDTH lanes to those of each.
template <int WIDTH> __device__ void part_lanes(ends& mine, const solved (&between)[2]) {
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int half = WIDTH / 2; half > 0; half /= 2) {
    ends split;
    substitute(between[0], mine.left, mine.right[0], mine.right[1], split.left[0]);
    substitute(between[1], mine.left, mine.right[0], mine.right[1], split.left[1]);
    split = of_lane(split, (lane & ~(2 * half - 1)) + half);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) {
        if (lane & half) mine.left[i][j] = split.left[i][j];
        else mine.right[i][j] = split.left[i][j];
      }
    }
  }
}

// The ends of a whole system: there is nothing before and behind it.
__device__ inline ends closed(const equations& whole) {
  T first[2], last[2], f[2][COLUMNS];
  const bool flag =
      size_of_pivot(whole.pair[1].left[1]) > size_of_pivot(whole.pair[0].left[1]);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    first[i] = whole.pair[i].left[1];
    last[i] = whole.pair[i].right[0];
    copy(f[i], whole.pair[i].f);
  }
  exchange(flag, first[0], first[1]);
  exchange(flag, last[0], last[1]);
  exchange(flag, f[0], f[1]);
  const T inverse = over(number(1), first[0]);
  const T factor = times(first[1], inverse);
  const T other = over(number(1), less(last[1], factor, last[0]));
  ends found;
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) {
    found.left[0][j] = found.right[1][j] = number(0);
    found.right[0][j] = times(other, less(f[1][j], factor, f[0][j]));
    found.left[1][j] = times(inverse, less(f[0][j], last[0], found.right[0][j]));
  }
  return found;
}

// ---- blocks ---------------------------------------------------------------------------------------

// What a block does with the equations of the whole: it solves the system, stores the equations of a
// span of one, or is told the ends of a span.
enum work { SOLVES, REDUCES, FINISHES };

// What the lanes of a thread have of which system; a system with COLUMNS of its right-hand sides counts
// as one. Where no system is left, `is_there` is false.
struct part_of_system {
  unsigned system, span;
  int lane;  // in the span
  bool is_there;
  __device__ part_of_system(unsigned systems, unsigned spans, int thread) {
    const unsigned group = blockIdx.x * (THREADS / LANES) + thread / LANES;
    system = spans == 1 ? group : group / spans;
    span = spans == 1 ? 0 : group - system * spans;
    lane = thread % LANES;
    is_there = system < systems;
  }
};

// From the equations of lanes to the `mine` ends of each. `memory` has those of spans. Shared memory
// is for 32 equations and 32 ends.
template <work WORK> __device__ void meet(
    equations own, ends& mine, T* memory, unsigned spans, const part_of_system& at,
    unsigned char* shared) {
  constexpr int WIDTH = LANES < 32 ? LANES : 32, WARPS = LANES / WIDTH;
  constexpr int GROUP = WARPS > 1 ? WARPS : WIDTH;  // lanes of a warp that merge what is left
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  equations* const of_warps = (equations*)shared;
  ends* const ends_of_warps = (ends*)(of_warps + 32);
  solved between[2] = {}, outer[2] = {};
  merge_lanes<WIDTH>(own, between);
  if (WARPS > 1) {
    if (lane == WIDTH / 2) of_warps[warp] = own;
    __syncthreads();
  }
  if (WARPS == 1 || warp == 0) {
    if (WARPS > 1) {
      own = of_warps[lane % WARPS];
      merge_lanes<WARPS>(own, outer);
    }
    const int holder = (lane & ~(GROUP - 1)) + GROUP / 2;
    const long long place = (long long)at.system * spans + at.span;
    if (WORK == SOLVES) mine = of_lane(closed(own), holder);
    if (WORK == REDUCES && lane == holder && at.is_there) ((equations*)memory)[place] = own;
    if (WORK == FINISHES) mine = ((const ends*)memory)[at.is_there ? place : 0];
    if (WORK != REDUCES && WARPS > 1) {
      part_lanes<WARPS>(mine, outer);
      if (lane < WARPS) ends_of_warps[lane] = mine;
    }
  }
  if (WORK == REDUCES) return;
  if (WARPS > 1) {
    __syncthreads();
    mine = ends_of_warps[warp];
  }
  part_lanes<WIDTH>(mine, between);
}

// The sizes of all systems.
struct sizes {
  long long n, columns;
  unsigned groups, systems, spans;
  __device__ sizes(long long count, long long n, long long columns, bool in_spans)
      : n(n), columns(columns) {
    groups = (unsigned)((columns + COLUMNS - 1) / COLUMNS);
    systems = (unsigned)(count * groups);
    spans = in_spans ? (unsigned)((n + LANES * ROWS - 1) / (LANES * ROWS)) : 1;
  }
};

// Blocks read and write memory in order, and exchange elements in shared memory, where the rows of
// lanes are an odd number of elements apart.
constexpr int APART = ROWS | 1;

// The i-th element that a thread moves: of the block's rows in order, and of all rows in memory.
struct moved {
  int place;
  long long row, column;
  bool is_there;
  __device__ moved(const sizes& all, int i) {
    const int element = i * THREADS + threadIdx.x;
    place = element / ROWS * APART + element % ROWS;
    const part_of_system at(all.systems, all.spans, element / ROWS);
    const unsigned matrix = all.groups == 1 ? at.system : at.system / all.groups;
    const long long r = ((long long)at.span * LANES + at.lane) * ROWS + element % ROWS;
    row = matrix * all.n + r;
    column = (long long)(at.system - matrix * all.groups) * COLUMNS;
    is_there = at.is_there && r < all.n;
  }
};

// A thread's elements, of its own rows from those that it has moved.
__device__ inline void to_own_rows(T (&x)[ROWS], T* tile) {
  __syncthreads();
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const int element = i * THREADS + threadIdx.x;
    tile[element / ROWS * APART + element % ROWS] = x[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < ROWS; ++i) x[i] = tile[threadIdx.x * APART + i];
}

// Systems of n rows with `columns` right-hand sides, or spans of them. `memory` is for what is left of
// spans: equations that are written, or ends that are read.
template <work WORK> __device__ void tridiagonal(
    const T* dl, const T* d, const T* du, const T* b, T* memory, T* x, long long count, long long n,
    long long columns, unsigned char* shared) {
  const sizes all(count, n, columns, WORK != SOLVES);
  const part_of_system at(all.systems, all.spans, threadIdx.x);
  T* const tile = (T*)shared;
  T lower[ROWS], middle[ROWS], upper[ROWS], right[COLUMNS][ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const moved from(all, i);
    lower[i] = from.is_there ? dl[from.row] : number(0);
    middle[i] = from.is_there ? d[from.row] : number(1);  // so that x = 0 behind the last row
    upper[i] = from.is_there ? du[from.row] : number(0);
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      const bool is_there = from.is_there && from.column + j < columns;
      right[j][i] = is_there ? b[from.row * columns + from.column + j] : number(0);
    }
  }
  to_own_rows(lower, tile);
  to_own_rows(middle, tile);
  to_own_rows(upper, tile);
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) to_own_rows(right[j], tile);
  const long long first = ((long long)at.span * LANES + at.lane) * ROWS;
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    if (first + i == 0) lower[i] = number(0);
    if (first + i == n - 1) upper[i] = number(0);
  }
  __syncthreads();

  solved inner[ROWS];
  ends mine;
  meet<WORK>(eliminated(lower, middle, upper, right, inner), mine, memory, all.spans, at, shared);
  if (WORK == REDUCES) return;
  T next[COLUMNS], after[COLUMNS];
  copy(next, mine.right[0]);
  copy(after, mine.right[1]);
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) right[j][0] = mine.left[1][j], right[j][ROWS - 1] = next[j];
#pragma unroll
  for (int k = ROWS - 2; k > 0; --k) {
    T found[COLUMNS];
    substitute(inner[k], mine.left, next, after, found);
    copy(after, next);
    copy(next, found);
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) right[j][k] = found[j];
  }
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ROWS; ++i) tile[threadIdx.x * APART + i] = right[j][i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      const moved to(all, i);
      const bool is_there = to.is_there && to.column + j < columns;
      if (is_there) x[to.row * columns + to.column + j] = tile[to.place];
    }
  }
}

// The ends of spans from the equations that are left of them; or of spans of these spans.
template <work WORK> __device__ void of_spans(
    const T* given, T* memory, T* found, long long systems, long long n, unsigned char* shared) {
  const unsigned spans = WORK == SOLVES ? 1 : (unsigned)((n + LANES - 1) / LANES);
  const part_of_system at((unsigned)systems, spans, threadIdx.x);
  const long long number_of_span = (long long)at.span * LANES + at.lane;
  const bool is_there = at.is_there && number_of_span < n;
  const long long place = at.system * n + number_of_span;
  equations own = {};
  own.pair[0].left[1] = own.pair[1].right[0] = number(1);  // ends are 0 behind the last span
  if (is_there) own = ((const equations*)given)[place];
  ends mine;
  meet<WORK>(own, mine, memory, spans, at, shared);
  if (WORK != REDUCES && is_there) ((ends*)found)[place] = mine;
}
