// Threefry with two words of 32 bits and 20 rounds: the counter's words and the result's have the upper
// one first.

template <int BITS> __device__ void tg_threefry_round(tg_u32& x, tg_u32& y) {
  x += y;
  y = (y << BITS | y >> (32 - BITS)) ^ x;
}
__device__ inline tg_u64 tg_threefry(tg_u32 first, tg_u32 second, tg_u64 counter) {
  const tg_u32 keys[] = {first, second, first ^ second ^ 0x1bd11bdau};
  tg_u32 x = (tg_u32)(counter >> 32) + first, y = (tg_u32)counter + second;
#pragma unroll
  for (int part = 0; part < 5; ++part) {
    if (part % 2 == 0) {
      tg_threefry_round<13>(x, y);
      tg_threefry_round<15>(x, y);
      tg_threefry_round<26>(x, y);
      tg_threefry_round<6>(x, y);
    } else {
      tg_threefry_round<17>(x, y);
      tg_threefry_round<29>(x, y);
      tg_threefry_round<16>(x, y);
      tg_threefry_round<24>(x, y);
    }
    x += keys[(part + 1) % 3];
    y += keys[(part + 2) % 3] + part + 1;
  }
  return (tg_u64)x << 32 | y;
}
