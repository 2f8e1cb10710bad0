// Persistent kernels: one launch that runs many stages, with barriers between them.

#ifdef __CUDACC__
// All threads of all blocks wait for all; what they wrote before is visible to all after. `arrived`
// counts the arrivals of all barriers of all launches, each a multiple of the blocks.
__device__ inline void tg_grid_barrier(tg_u64* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const tg_u64 blocks = gridDim.x, end = (atomicAdd(arrived, 1ull) / blocks + 1) * blocks;
    tg_u64 now;
    do {
      asm volatile("ld.acquire.gpu.b64 %0, [%1];" : "=l"(now) : "l"(arrived) : "memory");
    } while (now < end);
    __threadfence();
  }
  __syncthreads();
}
__device__ inline tg_u32 tg_clock() { return (tg_u32)clock(); }
#endif

// The same for blocks that are one cluster, where the device has clusters.
#ifdef TG_CLUSTERS
#define TG_CLUSTER_BARRIER(arrived) tg_cluster_arrive(), tg_cluster_wait()
#else
#define TG_CLUSTER_BARRIER(arrived) tg_grid_barrier(arrived)
#endif

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
