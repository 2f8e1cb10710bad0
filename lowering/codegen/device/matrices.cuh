// Products of small matrices by a warp.

// A float32 as the nearest number of 11 bits, ties away from zero.
__device__ inline float tg_rounded_tf32(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  tg_u32 word;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(x));
  return *(const float*)&word;
#else
  tg_u32 word = *(const tg_u32*)&x;
  if ((word & 0x7f800000u) != 0x7f800000u) word = (word + 0x1000u) & 0xffffe000u;
  return *(const float*)&word;
#endif
}

// total += left * right, of 16 x 8 by 8 x 8 elements. A lane has the elements of the total in rows lane / 4 and
// lane / 4 + 8, columns lane % 4 * 2 and the next; those of `left` in these rows, columns lane % 4 and the fourth
// after it; those of `right` in these as rows, column lane / 4. All are numbers of 11 bits.
__device__ inline void tg_multiply_tf32(
    float& d0, float& d1, float& d2, float& d3, const tg_u32 (&left)[4], const tg_u32 (&right)[2], int lane) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
#else
  for (int k = 0; k < 8; ++k) {
    const int row = lane / 4 * 4 + k % 4, column = lane % 4 * 8 + k % 4;
    const tg_u32 words[] = {
        __shfl_sync(~0u, left[k / 4 * 2], row), __shfl_sync(~0u, left[k / 4 * 2 + 1], row),
        __shfl_sync(~0u, right[k / 4], column), __shfl_sync(~0u, right[k / 4], column + 4)};
    const float* const x = (const float*)words;
    d0 += x[0] * x[2], d1 += x[0] * x[3], d2 += x[1] * x[2], d3 += x[1] * x[3];
  }
#endif
}
