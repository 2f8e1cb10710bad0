// L2 prefetch. It does nothing on devices before sm_90.

// Prefetches `bytes`, a multiple of 16, from `begin`, rounded down to a multiple of 16.
__device__ inline void tg_prefetch_l2(const void* begin, tg_u32 bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const tg_u64 aligned = __cvta_generic_to_global(begin) & ~tg_u64(15);
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(aligned), "r"(bytes));
#endif
}
