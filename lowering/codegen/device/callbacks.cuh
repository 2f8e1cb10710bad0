// Calls of the host: frames in the callback ring, and answers. The layouts are those of
// lowering/codegen/effects/call_records.py.

struct tg_frame { tg_u64 site, bytes, marks, number; };
struct tg_answer { tg_u64 asked, answered, failed, unused; };

// Frames begin at multiples of the size of their head.
__device__ inline tg_u64 tg_frame_bytes(tg_u64 content) {
  return sizeof(tg_frame) + (content + sizeof(tg_frame) - 1) / sizeof(tg_frame) * sizeof(tg_frame);
}

// Waits for room for a frame. All threads of the block call it; place[0] is where the frame begins.
// False if the launch is being stopped.
__device__ inline bool tg_reserve(volatile tg_ring* ring, tg_u64 content, const volatile tg_u32* stop,
                                  tg_u64* place, int thread) {
  if (thread == 0) {
    const tg_u64 start = ring->head, end = start + tg_frame_bytes(content);
    bool fits = end - ring->tail <= ring->capacity;
    while (!fits && !*stop) {
      __nanosleep(500);
      fits = end - ring->tail <= ring->capacity;
    }
    place[0] = start;
    place[1] = fits;
  }
  __syncthreads();
  return place[1];
}

// Lets the host see a frame that all threads of the block have written.
__device__ inline void tg_send_frame(volatile tg_ring* ring, tg_u64 start, tg_u64 content, int thread) {
  __threadfence_system();
  __syncthreads();
  if (thread == 0) ring->head = start + tg_frame_bytes(content);
}

// Waits for the answer to the call of this number; false if there is none.
__device__ inline bool tg_await(volatile tg_answer* answer, tg_u64 number, const volatile tg_u32* stop,
                                tg_u64* place, int thread) {
  if (thread == 0) {
    while (answer->answered != number && !*stop) __nanosleep(100);
    place[0] = answer->answered == number && !answer->failed;
  }
  __syncthreads();
  __threadfence_system();
  return place[0];
}

// A result at an address, or zero. Volatile loads do not use the first-level cache, which may hold the
// answer to an earlier call.
template <class T> __device__ inline T tg_answered(const unsigned char* place, bool answered) {
  if constexpr (sizeof(T) < 4) {
    T x;
    unsigned char bytes[sizeof(T)];
    for (int i = 0; i < int(sizeof(T)); ++i)
      bytes[i] = answered ? ((const volatile unsigned char*)place)[i] : (unsigned char)0;
    memcpy(&x, bytes, sizeof x);
    return x;
  } else {
    T x;
    tg_u32 words[sizeof(T) / 4];
    for (int i = 0; i < int(sizeof(T) / 4); ++i) words[i] = answered ? ((const volatile tg_u32*)place)[i] : 0u;
    memcpy(&x, words, sizeof x);
    return x;
  }
}
