// Memory that is asked for ahead of time: it comes into the L2 cache. Devices before sm_90 do not ask.

// `bytes` from `begin`, a multiple of 16, or as many from the multiple of 16 before it.
__device__ inline void tg_prefetch_l2(const void* begin, tg_u32 bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const tg_u64 aligned = __cvta_generic_to_global(begin) & ~tg_u64(15);
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(aligned), "r"(bytes));
#endif
}
