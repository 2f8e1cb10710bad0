// Clusters: blocks that run at the same time, wait for each other, and read each other's shared memory.
// Where the device has none (before sm_90), TG_CLUSTERS is not defined.

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TG_CLUSTERS
#define TG_CLUSTER(blocks) __cluster_dims__(blocks, 1, 1)

// All threads of the cluster arrive, and wait until the others have. After that, each sees what they
// wrote before they arrived; what it does in between need not be done before others go on.
__device__ inline void tg_cluster_arrive() {
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}
__device__ inline void tg_cluster_wait() {
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

// What the block of this rank in the cluster has at the same place of its shared memory.
template <class T> __device__ T tg_of_peer(const T* place, int rank) {
  const T* theirs;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(place), "r"(rank));
  return *theirs;
}
#endif

#ifndef TG_CLUSTERS
#define TG_CLUSTER(blocks)
#endif
