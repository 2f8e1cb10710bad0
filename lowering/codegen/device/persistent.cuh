// Persistent kernels: one launch that runs many stages, with barriers between them.

#ifdef __CUDACC__
// The arrivals at all barriers of the launches before: a multiple of the blocks. Some blocks of this
// launch may have arrived at their first barrier already, but not all, for this one has not.
__device__ inline tg_u64 tg_arrivals_before(const tg_u64* arrived) {
  const tg_u64 now = *(const volatile tg_u64*)arrived;
  return now - now % gridDim.x;
}

// All threads of all blocks wait for all; what they wrote before is visible to all after. `arrived`
// counts arrivals and is never reset; `arrivals` are those of the barriers before.
__device__ inline void tg_grid_barrier(tg_u64* arrived, tg_u64& arrivals) {
  arrivals += gridDim.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("red.release.gpu.add.u64 [%0], 1;" ::"l"(arrived) : "memory");
    tg_u64 now;
    do {
      asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(now) : "l"(arrived) : "memory");
    } while (now < arrivals);
  }
  __syncthreads();
}
__device__ inline tg_u32 tg_clock() { return (tg_u32)clock(); }
#endif

// The same for blocks that are one cluster, where the device has clusters.
#ifdef TG_CLUSTERS
#define TG_CLUSTER_BARRIER(arrived, arrivals) tg_cluster_arrive(), tg_cluster_wait()
#else
#define TG_CLUSTER_BARRIER(arrived, arrivals) tg_grid_barrier(arrived, arrivals)
#endif

template <class T> __device__ inline void tg_exchange(T*& one, T*& other) {
  T* const first = one;
  one = other;
  other = first;
}

// The first virtual block of a block, where those of a nest follow `before` others.
__device__ inline int tg_first_block(int block, int blocks, int before) {
  const int own = block - before % blocks;
  return own < 0 ? own + blocks : own;
}

// The stop flag as one thread sees it. A load takes as long as a short step of a loop, so that it looks
// at it once in 16384 cycles, about 10 us, and remembers that it was set.
struct tg_stop_watch {
  tg_u32 looked, stopped;
  __device__ tg_u32 look(const volatile tg_u32* flag, tg_u32 now) {
    if (now - looked > 16384u) {
      looked = now;
      stopped = *flag;
    }
    return stopped;
  }
};
