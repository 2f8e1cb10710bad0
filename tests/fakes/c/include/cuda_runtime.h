/* What the example of docs/c.md takes of the CUDA runtime, in memory of the host. */

#include <stdlib.h>
#include <string.h>

enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };

static int cudaMalloc(void **pointer, size_t nbytes) {
  static char *memory; /* one piece, which belongs to the process */
  if (!memory) memory = aligned_alloc(256, 1 << 20);
  *pointer = memset(memory, 0, nbytes);
  memory += (nbytes + 255) / 256 * 256;
  return 0;
}

static int cudaMemcpy(void *target, const void *source, size_t nbytes, int kind) {
  (void)kind;
  memcpy(target, source, nbytes);
  return 0;
}
