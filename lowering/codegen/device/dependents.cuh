// Programmatic dependent launch: a kernel may start before the kernels that it depends on have ended. So
// each kernel waits before it accesses memory. Devices before sm_90 have no such edges.

// Waits until the kernels before this one have ended and their writes are visible.
__device__ inline void tg_wait_for_primaries() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Allows dependent kernels to start once all blocks of this one have called it, or exited.
__device__ inline void tg_launch_dependents() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
