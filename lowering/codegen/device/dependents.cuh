// Programmatic edges: a kernel may be put on the device before the kernels that it waits for have ended.
// So each waits itself, before it touches memory. Devices before sm_90 have no such edges.

// Until the kernels before this one have ended, and what they wrote can be seen.
__device__ inline void tg_wait_for_primaries() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the kernels behind this one be put on the device when all its blocks have said so, or ended.
__device__ inline void tg_launch_dependents() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
