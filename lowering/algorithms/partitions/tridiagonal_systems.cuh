// Tridiagonal systems by partitions. Before this text come: ROWS, those of a lane, at least 2; COLUMNS
// of right-hand sides; LANES, a power of two, that share a system or a span of one; THREADS, those of
// a block, a multiple of 32 and of LANES; and numbers.cuh.
//
// A lane eliminates its inner unknowns from its rows. Two equations are left, between the unknowns at
// the ends of its part: those before and at its first row, and those at and behind its last one. Two
// neighbours have two unknowns between them in four equations: eliminating these leaves two again. So
// lanes are merged in pairs, pairs of pairs, …, up to the whole, whose ends are computed; then, in the
// reverse order, what was eliminated. This is Gaussian elimination in the order of a nested
// dissection. Each unknown is eliminated from all equations that have it, by the one with the largest
// coefficient: only in a singular matrix can that be 0.
//
// A lane merges once, at the level of the lowest bit in its number, and computes the two unknowns
// before its part: so it keeps its share of the factors in registers. In memory, an `equations` are
// 2 (4 + COLUMNS) elements, and `ends` are 4 COLUMNS.
//
// Rows are first in an order that needs no swaps where the diagonal dominates, and branches skip
// them: a swap takes as long as an elimination.

// left[0] x[before] + left[1] x[first] + right[0] x[last] + right[1] x[behind] = f
struct equation { T left[2], right[2], f[COLUMNS]; };
struct equations { equation pair[2]; };
struct ends { T left[2][COLUMNS], right[2][COLUMNS]; };

// Of an unknown: x = f - left · x[before, first] - right · x[two others].
struct solved { T left[2], right[2], f[COLUMNS]; };

template <class V> __device__ void exchange(V& x, V& y) {
  const V old = x;
  x = y;
  y = old;
}

template <int N> __device__ void copy(T (&to)[N], const T (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = x[i];
}

template <int N> __device__ void subtract(T (&x)[N], T factor, const T (&y)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = less_product(x[i], factor, y[i]);
}

template <int N> __device__ void scale(T (&to)[N], T factor, const T (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = times(factor, x[i]);
}

// ---- the rows of a lane ---------------------------------------------------------------------------

// A row while the unknown `own` is eliminated: coefficients of it, and of the two behind it.
struct row { T left[2], own, next, after, f[COLUMNS]; };

__device__ inline void lead(row& pivot, row& other) {
  if (size_of_pivot(other.own) > size_of_pivot(pivot.own)) exchange(pivot, other);
}

__device__ inline void eliminate(row& other, const row& pivot, T inverse) {
  const T factor = times(other.own, inverse);
  subtract(other.left, factor, pivot.left);
  other.own = less_product(other.next, factor, pivot.next);
  other.next = less_product(other.after, factor, pivot.after);
  other.after = number(0);
  subtract(other.f, factor, pivot.f);
}

// The equations of a lane, and its inner unknowns: `right` are factors of the next two.
__device__ inline equations eliminated(
    const T (&lower)[ROWS], const T (&middle)[ROWS], const T (&upper)[ROWS],
    const T (&b)[COLUMNS][ROWS], solved (&inner)[ROWS]) {
  const T zero = number(0);
  row x = {{zero, lower[1]}, middle[1], upper[1], zero};  // the last row so far
  row y = {{lower[0], middle[0]}, upper[0], zero, zero};  // what has become of the first one
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) x.f[j] = b[j][1], y.f[j] = b[j][0];
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
    x = z;
  }
  equations left;
  const row* const rest[2] = {&y, &x};
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
  if (size_of_pivot(other.between[unknown]) > size_of_pivot(pivot.between[unknown])) {
    exchange(pivot, other);
  }
}

__device__ inline void eliminate(joint& other, const joint& pivot, T factor) {
  other.between[1] = less_product(other.between[1], factor, pivot.between[1]);
  subtract(other.left, factor, pivot.left);
  subtract(other.right, factor, pivot.right);
  subtract(other.f, factor, pivot.f);
}

// The equations of two neighbours together, and the unknowns between them.
__device__ inline equations merged(
    const equations& before, const equations& after, solved (&between)[2]) {
  joint rows[4];  // those of the last row before, and of the first row after, then the others
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const equation &p = before.pair[1 - i], &q = after.pair[i];
    joint &top = rows[2 * i], &bottom = rows[1 + 2 * i];
    copy(top.left, p.left);
    copy(top.between, p.right);
    copy(bottom.between, q.left);
    copy(bottom.right, q.right);
    top.right[0] = top.right[1] = bottom.left[0] = bottom.left[1] = number(0);
    copy(top.f, p.f);
    copy(bottom.f, q.f);
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
    const T last = less_product(unknown.f[j], unknown.right[0], next[j]);
    const T first = less_product(last, unknown.right[1], after[j]);
    x[j] = less_product(less_product(first, unknown.left[0], left[0][j]), unknown.left[1], left[1][j]);
  }
}

// The ends of a whole system: there is nothing before and behind it.
__device__ inline ends closed(const equations& whole) {
  T first[2], last[2], f[2][COLUMNS];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    first[i] = whole.pair[i].left[1];
    last[i] = whole.pair[i].right[0];
    copy(f[i], whole.pair[i].f);
  }
  if (size_of_pivot(first[1]) > size_of_pivot(first[0])) {
    exchange(first[0], first[1]);
    exchange(last[0], last[1]);
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) exchange(f[0][j], f[1][j]);
  }
  const T inverse = over(number(1), first[0]);
  const T factor = times(first[1], inverse);
  const T other = over(number(1), less_product(last[1], factor, last[0]));
  ends found;
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) {
    found.left[0][j] = found.right[1][j] = number(0);
    found.right[0][j] = times(other, less_product(f[1][j], factor, f[0][j]));
    found.left[1][j] = times(inverse, less_product(f[0][j], last[0], found.right[0][j]));
  }
  return found;
}

// ---- blocks ---------------------------------------------------------------------------------------

// What a block does with the equations of the whole: it solves the system, stores the equations of a
// span of one, or takes the values at the ends of a span.
enum work { SOLVES, REDUCES, FINISHES };

// What the lanes of a thread have of which system; a system with COLUMNS of its right-hand sides counts
// as one. Where no system is left, `is_there` is false.
struct part_of_system {
  unsigned system, span;
  int lane;  // in the span
  bool is_there;
  __device__ part_of_system(unsigned systems, unsigned spans, int thread) {
    const bool is_alone = THREADS == LANES;
    const unsigned group = blockIdx.x * (THREADS / LANES) + (is_alone ? 0 : thread / LANES);
    system = spans == 1 ? group : group / spans;
    span = spans == 1 ? 0 : group - system * spans;
    lane = is_alone ? thread : thread % LANES;
    is_there = system < systems;
  }
};

// A lane has a slot in shared memory: for equations first, and then for the two unknowns before its
// part. Behind the slots of a whole is that of the unknowns at its end.
constexpr int SLOT = 2 * (4 + COLUMNS) | 1;  // odd, so that lanes use different banks

__device__ inline void put(T* slot, const equations& from) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    T* const to = slot + i * (4 + COLUMNS);
#pragma unroll
    for (int j = 0; j < 2; ++j) to[j] = from.pair[i].left[j], to[2 + j] = from.pair[i].right[j];
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) to[4 + j] = from.pair[i].f[j];
  }
}

__device__ inline equations equations_in(const T* slot) {
  equations found;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const T* const from = slot + i * (4 + COLUMNS);
#pragma unroll
    for (int j = 0; j < 2; ++j) found.pair[i].left[j] = from[j], found.pair[i].right[j] = from[2 + j];
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) found.pair[i].f[j] = from[4 + j];
  }
  return found;
}

__device__ inline void put(T* slot, const T (&unknowns)[2][COLUMNS]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) slot[i * COLUMNS + j] = unknowns[i][j];
  }
}

__device__ inline void unknowns_in(const T* slot, T (&unknowns)[2][COLUMNS]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) unknowns[i][j] = slot[i * COLUMNS + j];
  }
}

// A barrier of at least `lanes` consecutive threads.
__device__ inline void wait_for(int lanes) {
  if (lanes > 32) __syncthreads();
  else __syncwarp();
}

// From the equations of lanes to the `mine` ends of each. `memory` has those of spans.
template <work WORK> __device__ void meet(
    const equations& own, ends& mine, T* memory, unsigned spans, const part_of_system& at,
    T* slots) {
  T* const first = slots + threadIdx.x / LANES * (LANES + 1) * SLOT;
  T* const slot = first + at.lane * SLOT;
  solved between[2] = {};
  put(slot, own);
#pragma unroll 1
  for (int half = 1; half < LANES; half *= 2) {
    wait_for(2 * half);
    if ((at.lane & (2 * half - 1)) == half) {
      const equations before = equations_in(slot - (half == 1 ? 1 : half / 2) * SLOT);
      const equations after = equations_in(slot + half / 2 * SLOT);
      put(slot, merged(before, after, between));
    }
  }
  if (at.lane == LANES / 2) {
    const long long place = (long long)at.system * spans + at.span;
    const equations whole = equations_in(slot);
    if (WORK == REDUCES && at.is_there) ((equations*)memory)[place] = whole;
    if (WORK == SOLVES) mine = closed(whole);
    if (WORK == FINISHES) mine = ((const ends*)memory)[at.is_there ? place : 0];
    if (WORK != REDUCES) {
      put(first, mine.left);
      put(first + LANES * SLOT, mine.right);
    }
  }
  if (WORK == REDUCES) return;
#pragma unroll 1
  for (int half = LANES / 2; half > 0; half /= 2) {
    if ((at.lane & (2 * half - 1)) == half) {
      ends around;
      T found[2][COLUMNS];
      unknowns_in(slot - half * SLOT, around.left);
      unknowns_in(slot + half * SLOT, around.right);
      substitute(between[0], around.left, around.right[0], around.right[1], found[0]);
      substitute(between[1], around.left, around.right[0], around.right[1], found[1]);
      put(slot, found);
    }
    wait_for(2 * half);
  }
  unknowns_in(slot, mine.left);
  unknowns_in(slot + SLOT, mine.right);
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

// The i-th element that a thread moves: its row of a system that begins at `start`.
struct moved {
  int place;
  unsigned row;
  long long start, column;
  bool is_there;
  __device__ moved(const sizes& all, int i) {
    const int element = i * THREADS + threadIdx.x;
    place = element / ROWS * APART + element % ROWS;
    const part_of_system at(all.systems, all.spans, element / ROWS);
    const unsigned matrix = all.groups == 1 ? at.system : at.system / all.groups;
    row = (at.span * LANES + at.lane) * ROWS + element % ROWS;
    start = matrix * all.n;
    column = (long long)(at.system - matrix * all.groups) * COLUMNS;
    is_there = at.is_there && row < all.n;
  }
  __device__ const T* in(const T* diagonal) const { return diagonal + start + row; }
  __device__ long long in_columns(long long columns, int j) const {
    return start * columns + column + j + row * columns;
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
    lower[i] = from.is_there ? *from.in(dl) : number(0);
    middle[i] = from.is_there ? *from.in(d) : number(1);  // so that x = 0 behind the last row
    upper[i] = from.is_there ? *from.in(du) : number(0);
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      const bool is_there = from.is_there && from.column + j < columns;
      right[j][i] = is_there ? b[from.in_columns(columns, j)] : number(0);
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
  meet<WORK>(eliminated(lower, middle, upper, right, inner), mine, memory, all.spans, at, tile);
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
      if (is_there) x[to.in_columns(columns, j)] = tile[to.place];
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
  meet<WORK>(own, mine, memory, spans, at, (T*)shared);
  if (WORK != REDUCES && is_there) ((ends*)found)[place] = mine;
}
