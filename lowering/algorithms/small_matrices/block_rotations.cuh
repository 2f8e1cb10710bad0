// Eigenvalues and singular values by rotations of columns (Hestenes, 1958): a group of lanes has two
// columns. Behind block_columns.cuh.

// ---- roots and inverses ---------------------------------------------------------------------------

// To some 20 bits, for normal numbers whose inverses are normal. Where it runs on a CPU, in tests, it is
// as inexact.
__device__ inline float near_inverse(float x) {
#ifdef __CUDA_ARCH__
  asm("rcp.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
#else
  return 1 / x * (1 - 1.2e-7f);
#endif
}
__device__ inline double near_inverse(double x) {
#ifdef __CUDA_ARCH__
  asm("rcp.approx.ftz.f64 %0, %0;" : "+d"(x));
  return x;
#else
  return 1 / x * (1 - 1e-6);
#endif
}
__device__ inline float near_inverse_root(float x) {
#ifdef __CUDA_ARCH__
  asm("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
#else
  return 1 / sqrt(x) * (1 - 1.2e-7f);
#endif
}
__device__ inline double near_inverse_root(double x) {
#ifdef __CUDA_ARCH__
  asm("rsqrt.approx.ftz.f64 %0, %0;" : "+d"(x));
  return x;
#else
  return 1 / sqrt(x) * (1 - 1e-6);
#endif
}
__device__ inline R near_root(R x) { return x > (R)TINY ? x * near_inverse_root(x) : 0; }
// To the last bits, of numbers between 1/2 and some thousands: a step of third order.
__device__ inline R inverse_root(R x) {
  const R y = near_inverse_root(x), off = fma(-x * y, y, (R)1);
  return fma(y * off, fma((R)0.375, off, (R)0.5), y);
}

// ---- rotations ------------------------------------------------------------------------------------

// The size of a number, to some 20 bits, and its direction, to the last ones.
__device__ inline void polar(float x, float& size, float& direction) {
  size = fabsf(x);
  direction = x < 0 ? -1 : 1;
}
__device__ inline void polar(double x, double& size, double& direction) {
  size = fabs(x);
  direction = x < 0 ? -1 : 1;
}
template <class P>
__device__ void polar(complex_of<P> x, P& size, complex_of<P>& direction) {
  const P most = largest_part(x);
  direction = times(x, near_inverse(most > (P)TINY ? most : (P)1));
  // its larger part is 1, but for the last bits of the inverse
  const P square = squared(direction), root = inverse_root(square > (P)0.5 ? square : (P)1);
  direction = times(direction, root);
  size = most * square * root;
}

// The tangent of the angle that makes two columns orthogonal, to some 20 bits, by the difference of the
// squares of their lengths and the size of their product.
__device__ inline float tangent_of(float difference, float size) {
  const float ratio = difference * near_inverse(size) / 2, steep = fabsf(ratio);
  const float most = steep < 1 / 1.2e-7f ? steep : 1 / 1.2e-7f;  // its square does not overflow
  const float square = fmaf(most, most, 1), root = square * near_inverse_root(square);
  return (ratio < 0 ? -1 : 1) * near_inverse(steep + (steep > root ? steep : root));
}
__device__ inline double tangent_of(double difference, double size) {
  const double ratio = difference * near_inverse(size) / 2, steep = fabs(ratio);
  const double most = steep < 1 / 2.2e-16 ? steep : 1 / 2.2e-16;
  const double square = fma(most, most, 1), root = square * near_inverse_root(square);
  return (ratio < 0 ? -1 : 1) * near_inverse(steep + (steep > root ? steep : root));
}

// Rotates two columns until they are orthogonal, and swaps them if the left one is shorter, which saves
// a sweep or two; whether columns as near to it may not be orthogonal yet after a sweep. As in svd.py, orthogonal is within √n units of rounding. `first` and `last` are
// the squares of their lengths: those of columns of SIMILAR lengths are kept, others are summed anew.
//
// The angle needs few digits: what it leaves is smaller by 2⁻²⁰, and gone after the next sweep. The
// cosine and the sine fit each other to the last bits. After a sweep, a product is at most its part that
// its rotation left, and what later rotations mixed in: their sines, by the lengths of the columns,
// times other products.
template <bool SIMILAR>
__device__ bool make_orthogonal(T (&left)[EACH], T (&right)[EACH], R& first, R& last) {
  T between = number(0);
  if (!SIMILAR) first = last = 0;
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    if (!SIMILAR) {
      first += squared(left[e]);
      last += squared(right[e]);
    }
    between = plus(between, times(conj_of(left[e]), right[e]));
  }
  if (!SIMILAR) {
    first = sum_of_group(first);
    last = sum_of_group(last);
  }
  between = sum_of_group(between);
  R size, tangent, mixed;
  T direction;
  polar(between, size, direction);
  constexpr R SPARE = (R)1 / (1 << 16);
  if (SIMILAR) {  // float has the range, and is faster
    const float product = (float)first * (float)last;
    const float scale = near_inverse_root(product), cosine = (float)size * scale;
    const float limit = (float)EPS * sqrtf((float)COLUMNS);
    if (!(cosine > limit && product > 0)) return false;
    const float slope = tangent_of((float)(last - first), (float)size);
    mixed = fabsf(slope) + cosine;
    mixed = cosine * fmaf(mixed, (float)COLUMNS, (float)SPARE) > limit ? 1 : 0;
    tangent = slope;
  } else {
    const R lengths = near_root(first) * near_root(last);
    R limit = (R)EPS * sqrt((R)COLUMNS) * lengths;
    if (limit < (R)TINY) limit = (R)TINY;
    if (!(size > limit && first > (R)TINY && last > (R)TINY)) return false;
    tangent = tangent_of(last - first, size);
    mixed = fabs(tangent) + size * near_inverse(lengths);
    mixed = size * fma(mixed, (R)COLUMNS, SPARE) > limit ? 1 : 0;
  }
  const R cosine = inverse_root(fma(tangent, tangent, (R)1));
  const T sine = times(direction, tangent * cosine);
  const R square = first - tangent * size, square_there = last + tangent * size;
  const bool swaps = square < square_there;
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    T x = left[e], y = right[e];
    rotate(x, y, cosine, sine);
    left[e] = swaps ? y : x;
    right[e] = swaps ? x : y;
  }
  first = swaps ? square_there : square;
  last = swaps ? square : square_there;
  return mixed > 0;
}

constexpr int PAIRS = THREADS / GROUP;  // a power of two

// Gives each group two columns that were on the left, or on the right, of two groups.
template <bool SIMILAR>
__device__ void deal(
    T (&left)[EACH], T (&right)[EACH], R& first, R& last, T* memory, R* squares, bool from_right,
    int source, int apart) {
  const int me = threadIdx.x / GROUP;
  T kept[EACH];
  R kept_square = 0;
  wait_for_block();
  put(memory + me * HEIGHT, left);
  if (SIMILAR && threadIdx.x % GROUP == 0) squares[me] = first;
  wait_for_block();
  if (!from_right) {
    take(memory + source * HEIGHT, left);
    take(memory + (source + apart) * HEIGHT, kept);
    if (SIMILAR) first = squares[source];
    if (SIMILAR) kept_square = squares[source + apart];
  }
  wait_for_block();
  put(memory + me * HEIGHT, right);
  if (SIMILAR && threadIdx.x % GROUP == 0) squares[me] = last;
  wait_for_block();
  if (from_right) {
    take(memory + source * HEIGHT, left);
    take(memory + (source + apart) * HEIGHT, right);
    if (SIMILAR) first = squares[source];
    if (SIMILAR) last = squares[source + apart];
  } else {
#pragma unroll
    for (int e = 0; e < EACH; ++e) right[e] = kept[e];
    last = kept_square;
  }
  wait_for_block();
}

// Rotates the columns of the groups, two of each, until all are orthogonal. `memory` has room for PAIRS
// columns, `flags` for as many numbers, and `squares` for twice as many.
//
// The columns are two halves. The right ones move around a circle, so that each meets all of the left.
// Then each half is treated as the whole was, both side by side: n - 1 steps in all pair all columns,
// and only half of the columns move in a step.
template <bool SIMILAR>
__device__ void rotate_until_orthogonal(
    T (&left)[EACH], T (&right)[EACH], T* memory, R* squares, volatile int* flags) {
  const int me = threadIdx.x / GROUP;
  R first = 0, last = 0;
#pragma unroll 1
  for (int sweep = 0; sweep < SWEEPS; ++sweep) {
    bool again = false;
    if (SIMILAR) {
      first = square_of_length(left);
      last = square_of_length(right);
    }
#pragma unroll 1
    for (int half = PAIRS;; half /= 2) {
      const int start = me / half * half, mine = me % half;
#pragma unroll 1
      for (int step = 0; step < half; ++step) {
        again |= make_orthogonal<SIMILAR>(left, right, first, last);
        if (half == 1) break;
        // A thread writes the elements that it was the one to read. So one barrier is enough. All
        // lanes of a group read a square that one of them wrote: two steps in a row have places of
        // their own.
        R* const passed = squares + step % 2 * PAIRS;
        int place = start + (mine + step) % half;
        put(memory + place * HEIGHT, right);
        if (SIMILAR && threadIdx.x % GROUP == 0) passed[place] = last;
        wait_for_block();
        place = start + (mine + step + 1) % half;
        take(memory + place * HEIGHT, right);
        if (SIMILAR) last = passed[place];
      }
      if (half == 1) break;
      // Even groups of half the size get columns that were on the left, odd ones those on the right.
      const int quarter = half / 2, set = me / quarter, source = set / 2 * half + me % quarter;
      deal<SIMILAR>(left, right, first, last, memory, squares, set % 2, source, quarter);
    }
    if (threadIdx.x % GROUP == 0) flags[me] = again;
    wait_for_block();
    R coupled = 0;
    for (int i = threadIdx.x % 32; i < PAIRS; i += 32) coupled += flags[i];
    coupled = sum_of_lanes(coupled);
    wait_for_block();
    if (!(coupled > 0)) break;
    // Longer columns are on the left, and in lower groups: all go back to where they were.
    if (PAIRS > 1) {
      const int half = PAIRS / 2;
      deal<SIMILAR>(left, right, first, last, memory, squares, me % 2, me / 2, half);
    }
  }
}

// How many columns come before one of the group's: of a lesser value, or of an equal one and a lesser
// number.
__device__ inline int rank_of(R mine, int number_of_mine, const R* values) {
  R before = 0;
  for (int j = threadIdx.x % GROUP; j < 2 * PAIRS; j += GROUP) {
    before += values[j] < mine || (values[j] == mine && j < number_of_mine) ? 1 : 0;
  }
  return (int)sum_of_group(before);
}

// ---- eigenvalues ----------------------------------------------------------------------------------

// vᴴ a v for the column v of the group, which is in registers and in memory, from the lower triangle.
__device__ inline R quotient(const T* a, const T (&v)[EACH], const T* column, R scale) {
  R sum = 0;
#pragma unroll 1
  for (int k = 0; k < COLUMNS; ++k) {
    T inner = number(0);
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      const int row = row_of(e);
      if (row < k) inner = plus(inner, times(times(a[(long long)k * COLUMNS + row], scale), v[e]));
    }
    sum += 2 * part(times(conj_of(column[k]), inner));
  }
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int row = row_of(e);
    if (row < ROWS) sum += part(a[(long long)row * COLUMNS + row]) * scale * squared(v[e]);
  }
  return sum_of_group(sum);
}

__device__ inline T element_of_hermitian(const T* a, int k, int j) {
  if (k == j) return number(part(element_at(a, k, j)));
  return k > j ? element_at(a, k, j) : conj_of(element_at(a, j, k));
}

// The eigenvalues in ascending order, and the eigenvectors as columns, from the lower triangle; NaN of
// a matrix that is not finite.
//
// A multiple of the identity is added that makes the matrix well conditioned and positive definite. If
// its columns are rotated until they are orthogonal, they are its eigenvectors times its eigenvalues
// (Hestenes, 1958). So vectors need no memory of their own. Values are the quotients vᴴ a v, whose errors
// are squares of those of the vectors.
template <bool VECTORS>
__device__ void eigh(const T* a, R* values, T* vectors, unsigned char* memory) {
  T* const columns = (T*)memory;
  R* const found = (R*)(columns + PAIRS * HEIGHT);  // of 2 PAIRS columns
  volatile int* const flags = (int*)(found + 2 * PAIRS);
  const int me = threadIdx.x / GROUP, other = me + PAIRS;
  const long long matrix = blockIdx.x;
  a += matrix * ROWS * COLUMNS;
  T left[EACH], right[EACH];
  R most = 0;
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    left[e] = element_of_hermitian(a, row_of(e), me);
    right[e] = element_of_hermitian(a, row_of(e), other);
    const R size = largest_part(left[e]), size_there = largest_part(right[e]);
    most = size <= most ? most : size < infinity() ? size : infinity();
    most = size_there <= most ? most : size_there < infinity() ? size_there : infinity();
  }
  most = largest_of_block(most, found);
  const bool is_bad = !(most < infinity());
  int exponent = 0;
  frexp(is_bad ? (R)1 : most, &exponent);
  constexpr int FARTHEST = sizeof(R) == 4 ? 120 : 1000;
  const int whole = exponent;
  exponent = exponent < -FARTHEST ? -FARTHEST : exponent > FARTHEST ? FARTHEST : exponent;
  const R scale = ldexp((R)1, -exponent), rest = ldexp((R)1, exponent - whole);
  R sum = 0, sum_there = 0;
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    left[e] = is_bad ? number(0) : times(times(left[e], scale), rest);
    right[e] = is_bad ? number(0) : times(times(right[e], scale), rest);
    sum += size_of_pivot(left[e]);
    sum_there += size_of_pivot(right[e]);
  }
  sum = sum_of_group(sum);
  sum_there = sum_of_group(sum_there);
  const R bound = largest_of_block(sum > sum_there ? sum : sum_there, found);  // of all eigenvalues
  const R shift = bound > 0 ? (R)1.5 * bound : 1;
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    if (row_of(e) == me && me < COLUMNS) left[e] = plus(left[e], number(shift));
    if (row_of(e) == other && other < COLUMNS) right[e] = plus(right[e], number(shift));
  }
  rotate_until_orthogonal<true>(left, right, columns, found, flags);

  const R square = square_of_length(left), square_there = square_of_length(right);
  const bool is_column = square > 0, is_column_there = square_there > 0;  // others fill the halves
  const R length = is_column ? sqrt(square) : 1;
  const R length_there = is_column_there ? sqrt(square_there) : 1;
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    left[e] = over(left[e], length);
    right[e] = over(right[e], length_there);
  }
  put(columns + me * HEIGHT, left);
  __syncwarp(~0u);
  const R value = quotient(a, left, columns + me * HEIGHT, scale);
  __syncwarp(~0u);
  put(columns + me * HEIGHT, right);
  __syncwarp(~0u);
  const R value_there = quotient(a, right, columns + me * HEIGHT, scale);
  const R mine = is_bad ? 0 : value, there = is_bad ? 0 : value_there;
  if (threadIdx.x % GROUP == 0) {
    found[me] = is_column ? mine : infinity();
    found[other] = is_column_there ? there : infinity();
  }
  wait_for_block();
  const int rank = rank_of(mine, me, found), rank_there = rank_of(there, other, found);
  const R unscaled = ldexp((R)1, exponent);
  if (threadIdx.x % GROUP == 0) {
    R* const at = values + matrix * COLUMNS;
    if (is_column) at[rank] = is_bad ? not_a_number() : mine * unscaled;
    if (is_column_there) at[rank_there] = is_bad ? not_a_number() : there * unscaled;
  }
#pragma unroll
  for (int e = 0; e < EACH && VECTORS; ++e) {
    const int row = row_of(e);
    if (row >= ROWS) continue;
    T* const at = vectors + (matrix * ROWS + row) * COLUMNS;
    if (is_column) at[rank] = is_bad ? number(not_a_number()) : left[e];
    if (is_column_there) at[rank_there] = is_bad ? number(not_a_number()) : right[e];
  }
}

// ---- singular values ------------------------------------------------------------------------------

// The columns of a, rotated until they are orthogonal, in descending order of length, and the lengths.
__device__ inline void orthogonal_columns(
    const T* a, T* rotated, R* lengths, unsigned char* memory) {
  T* const columns = (T*)memory;
  R* const found = (R*)(columns + PAIRS * HEIGHT);
  volatile int* const flags = (int*)(found + 2 * PAIRS);
  const int me = threadIdx.x / GROUP, other = me + PAIRS;
  const long long matrix = blockIdx.x;
  a += matrix * ROWS * COLUMNS;
  T left[EACH], right[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    left[e] = element_at(a, row_of(e), me);
    right[e] = element_at(a, row_of(e), other);
  }
  rotate_until_orthogonal<false>(left, right, columns, found, flags);
  const R length = sqrt(square_of_length(left)), there = sqrt(square_of_length(right));
  if (threadIdx.x % GROUP == 0) {
    found[me] = -length;
    found[other] = -there;
  }
  wait_for_block();
  // Columns that fill the halves are zero, as others may be: all of them are last.
  const int rank = rank_of(-length, me, found), rank_there = rank_of(-there, other, found);
  if (threadIdx.x % GROUP == 0) {
    if (rank < COLUMNS) lengths[matrix * COLUMNS + rank] = length;
    if (rank_there < COLUMNS) lengths[matrix * COLUMNS + rank_there] = there;
  }
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int row = row_of(e);
    if (row >= ROWS) continue;
    T* const at = rotated + (matrix * ROWS + row) * COLUMNS;
    if (rank < COLUMNS) at[rank] = left[e];
    if (rank_there < COLUMNS) at[rank_there] = right[e];
  }
}
