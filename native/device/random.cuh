// Counter-based random numbers: Philox 4x32 with 10 rounds. The same bits as src/ir/philox.ts, which names the sources.
#ifndef HEDDLE_RANDOM_CUH
#define HEDDLE_RANDOM_CUH

namespace heddle {

/// First word of the block of a counter (whose upper three words are 0) under a key.
__device__ __forceinline__ unsigned int philox(unsigned int counter, unsigned int key_low, unsigned int key_high) {
  constexpr unsigned int multiplier_a = 0xd2511f53u, multiplier_c = 0xcd9e8d57u;
  constexpr unsigned int step_low = 0x9e3779b9u, step_high = 0xbb67ae85u;
  constexpr int rounds = 10;
  unsigned int a = counter, b = 0, c = 0, d = 0;
  HEDDLE_UNROLL
  for (int round = 0; round < rounds; ++round) {
    const unsigned int next_a = __umulhi(multiplier_c, c) ^ b ^ key_low;
    const unsigned int next_c = __umulhi(multiplier_a, a) ^ d ^ key_high;
    b = multiplier_c * c;
    d = multiplier_a * a;
    a = next_a;
    c = next_c;
    key_low += step_low;
    key_high += step_high;
  }
  return a;
}

/// A number strictly between 0 and 1: the middle of one of 2^23 equal intervals, which float32 holds exactly.
__device__ __forceinline__ float uniform(int seed_low, int seed_high, int counter) {
  const unsigned int word =
      philox(static_cast<unsigned int>(counter), static_cast<unsigned int>(seed_low), static_cast<unsigned int>(seed_high));
  return (static_cast<float>(word >> 9) + 0.5f) * (1.0f / 8388608.0f);
}

}  // namespace heddle

#endif
