// Loops as one writes them by hand for the GPU: the limits of the rows that have a loop.
//
// Most are one kernel each, which makes all steps of its row. Its blocks are all resident, launched
// cooperatively, and meet after each step; a block that is alone synchronises its threads, and no
// more. `arrived`, `alive` are zero when such a kernel begins. The last ones are nodes of graphs
// with a WHILE node, of one block each.

extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(unsigned long long handle, unsigned int value);

typedef unsigned long long Handle;

#define EACH(i, n) \
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
#define KERNEL template <class T> __global__ void __launch_bounds__(1024)

__device__ bool first_thread() { return blockIdx.x == 0 && threadIdx.x == 0; }

// All blocks wait for all; what they wrote before is then seen by all. `meetings` counts them.
__device__ void meet(unsigned* arrived, unsigned& meetings) {
  ++meetings;
  __syncthreads();
  if (gridDim.x == 1) return;
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (*(volatile unsigned*)arrived < meetings * gridDim.x) {}
    __threadfence();
  }
  __syncthreads();
}

// The sum over a block, in all its threads.
template <class T> __device__ T block_sum(T x) {
  __shared__ T parts[32];
  const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (int apart = 16; apart; apart /= 2) x += __shfl_xor_sync(~0u, x, apart);
  if (lane == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = lane < warps ? parts[lane] : T(0);
  for (int apart = 16; apart; apart /= 2) x += __shfl_xor_sync(~0u, x, apart);
  __syncthreads();
  return x;
}

// The same over the grid. `parts` has two places for each block, which take turns: one is read by
// the slowest block while the fastest writes the other.
template <class T>
__device__ T grid_sum(T x, T* parts, unsigned* arrived, unsigned& meetings) {
  x = block_sum(x);
  if (gridDim.x == 1) return x;
  volatile T* turn = parts + meetings % 2 * gridDim.x;
  if (threadIdx.x == 0) turn[blockIdx.x] = x;
  meet(arrived, meetings);
  x = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) x += turn[i];
  return block_sum(x);
}

KERNEL relax(T* x, const T* start, unsigned n, unsigned steps, T factor, T summand,
             unsigned* arrived) {
  unsigned meetings = 0;
  EACH(i, n) x[i] = start[i];
  for (unsigned step = 0; step < steps; ++step) {
    EACH(i, n) x[i] = x[i] * factor + summand;
    meet(arrived, meetings);
  }
}

KERNEL scale_and_stack(T* x, T* sums, const T* start, unsigned n, unsigned steps, T factor,
                       T* parts, unsigned* arrived) {
  unsigned meetings = 0;
  EACH(i, n) x[i] = start[i];
  for (unsigned step = 0; step < steps; ++step) {
    T part = 0;
    EACH(i, n) {
      part += x[i];
      x[i] *= factor;
    }
    const T sum = grid_sum(part, parts, arrived, meetings);
    if (first_thread()) sums[step] = sum;
  }
}

KERNEL scale_while(T* x, long long* steps, const T* start, unsigned n, T factor, T threshold,
                   T* parts, unsigned* arrived) {
  unsigned meetings = 0;
  long long taken = 0;
  T part = 0;
  EACH(i, n) part += x[i] = start[i];
  while (grid_sum(part, parts, arrived, meetings) > threshold) {
    part = 0;
    EACH(i, n) part += x[i] *= factor;
    ++taken;
  }
  if (first_thread()) *steps = taken;
}

KERNEL heat(T* u, T* other, const T* start, unsigned rows, unsigned columns, unsigned steps, T rate,
            unsigned* arrived) {
  unsigned meetings = 0;
  EACH(i, rows * columns) u[i] = start[i];
  meet(arrived, meetings);
  for (unsigned step = 0; step < steps; ++step) {
    EACH(i, rows * columns) {
      const unsigned row = i / columns, column = i % columns;
      const unsigned up = row ? row - 1 : rows - 1, down = row + 1 < rows ? row + 1 : 0;
      const unsigned left = column ? column - 1 : columns - 1;
      const unsigned right = column + 1 < columns ? column + 1 : 0;
      const T around = u[up * columns + column] + u[down * columns + column]
                     + u[row * columns + left] + u[row * columns + right];
      other[i] = u[i] + rate * (around - 4 * u[i]);
    }
    meet(arrived, meetings);
    T* const written = other;
    other = u;
    u = written;
  }
}

KERNEL mandelbrot(T* re, T* im, int* counts, long long* steps, const T* x, const T* y, unsigned n,
                  unsigned most, unsigned* alive, unsigned* arrived) {
  unsigned meetings = 0, step = 0;
  EACH(i, n) {
    re[i] = im[i] = 0;
    counts[i] = 0;
  }
  bool any = true;
  for (; any && step < most; ++step) {
    bool inside = false;
    EACH(i, n) {
      const T a = re[i], b = im[i];
      if (a * a + b * b <= 4) {
        const T c = a * a - b * b + x[i], d = 2 * a * b + y[i];
        re[i] = c;
        im[i] = d;
        ++counts[i];
        inside |= c * c + d * d <= 4;
      }
    }
    if (__syncthreads_or(inside) && threadIdx.x == 0) alive[step] = 1;
    meet(arrived, meetings);
    any = ((volatile unsigned*)alive)[step];
  }
  if (first_thread()) *steps = step;
}

// Nodes of a graph with a WHILE node: `while_begin` before it, `while_step` in its body.

KERNEL while_begin(T* x, long long* steps, const T* start, unsigned n, T threshold, Handle unfinished) {
  T part = 0;
  EACH(i, n) part += x[i] = start[i];
  const T sum = block_sum(part);
  if (threadIdx.x == 0) {
    *steps = 0;
    cudaGraphSetConditional(unfinished, sum > threshold);
  }
}

KERNEL while_step(T* x, long long* steps, unsigned n, T factor, T threshold, Handle unfinished) {
  T part = 0;
  EACH(i, n) part += x[i] *= factor;
  const T sum = block_sum(part);
  if (threadIdx.x == 0) {
    ++*steps;
    cudaGraphSetConditional(unfinished, sum > threshold);
  }
}

// One WHILE node in another: `nested_begin`, then in the outer body `nested_round`, in the inner
// `nested_step`.

KERNEL nested_begin(T* x, const T* start, unsigned n, unsigned* counters, unsigned outer,
                    Handle rounds) {
  EACH(i, n) x[i] = start[i];
  if (threadIdx.x == 0) {
    counters[0] = 0;
    cudaGraphSetConditional(rounds, outer > 0);
  }
}

extern "C" __global__ void nested_round(unsigned* counters, unsigned outer, unsigned inner,
                                        Handle rounds, Handle steps) {
  counters[1] = 0;
  cudaGraphSetConditional(steps, inner > 0);
  cudaGraphSetConditional(rounds, ++counters[0] < outer);
}

KERNEL nested_step(T* x, unsigned n, T factor, T summand, unsigned* counters, unsigned inner,
                   Handle steps) {
  EACH(i, n) x[i] = x[i] * factor + summand;
  if (threadIdx.x == 0) cudaGraphSetConditional(steps, ++counters[1] < inner);
}
