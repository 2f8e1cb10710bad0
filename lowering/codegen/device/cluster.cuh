// Thread block clusters: barriers, and distributed shared memory. TG_CLUSTERS is not defined where the
// device has none (before sm_90).

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TG_CLUSTERS
#define TG_CLUSTER(blocks) __cluster_dims__(blocks, 1, 1)

// A split barrier: all threads of the cluster arrive, and then wait until the others have arrived. Then
// each sees what the others wrote before they arrived.
__device__ inline void tg_cluster_arrive() {
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}
__device__ inline void tg_cluster_wait() {
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

// The value at the same place in the shared memory of the block with this rank in the cluster.
template <class T> __device__ T tg_of_peer(const T* place, int rank) {
  const T* theirs;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(place), "r"(rank));
  return *theirs;
}
#endif

#ifndef TG_CLUSTERS
#define TG_CLUSTER(blocks)
#endif
