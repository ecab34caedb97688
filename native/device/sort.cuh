// Sorted rows. The threads of a block write a key for each element of their row into shared memory, followed by its place, and sort them by
// a bitonic network: about log2(n)^2 / 2 steps, of which those within 64 adjacent keys need no barrier of the block. Keys differ at least
// in their places, so equal elements keep their order and no schedule changes the result. Files whose kernels sort nothing do not include
// this one.
#ifndef HEDDLE_SORT_CUH
#define HEDDLE_SORT_CUH

#include "team.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// A rank in the upper half, and a place in the lower.
using SortKey = unsigned long long;

/// Rank with the order of floats: zeros of either sign are equal, NaN is above all.
__device__ __forceinline__ unsigned int sort_rank(float value) {
  constexpr unsigned int sign = 0x80000000u;
  if (value != value) return 0xffffffffu;
  const float plain = value == 0.0f ? 0.0f : value;
  unsigned int bits;
  memcpy(&bits, &plain, sizeof bits);
  return (bits & sign) != 0 ? ~bits : bits | sign;
}
__device__ __forceinline__ unsigned int sort_rank(int value) { return static_cast<unsigned int>(value) ^ 0x80000000u; }

template <class T>
__device__ __forceinline__ SortKey sort_key(T value, int place) {
  return static_cast<SortKey>(sort_rank(value)) << 32 | static_cast<unsigned int>(place);
}

/// The places of a row's elements in ascending order, read by any of its lanes.
template <class Keys>
struct Sorted {
  Keys& keys;

  __device__ __forceinline__ int place(int i) const {
    const SortKey key = keys[i];
    return static_cast<int>(key & 0xffffffffu);
  }
};

/// Sorts `length` keys; `keys` has memory up to the next power of two.
template <int Lanes, class Keys>
__device__ __forceinline__ Sorted<Keys> sort_keys(const BlockTeam<Lanes>& team, Keys& keys, int length) {
  int size = 1;
  while (size < length) size *= 2;
  for (int i = length + team.lane(); i < size; i += Lanes) keys[i] = ~SortKey{0};
  team.meet();
  for (int run = 2; run <= size; run *= 2) {
    for (int distance = run / 2; distance > 0; distance /= 2) {
      for (int pair = team.lane(); pair < size / 2; pair += Lanes) {
        const int low = 2 * pair - (pair & (distance - 1));
        const SortKey a = keys[low];
        const SortKey b = keys[low + distance];
        if ((a > b) != ((low & run) == 0)) continue;
        keys[low] = b;
        keys[low + distance] = a;
      }
      // 32 adjacent pairs at a distance of at most 32 are 64 adjacent keys, which belong to one warp in this step and in the next.
      const int next = distance > 1 ? distance / 2 : run;
      if (distance > warp_lanes || next > warp_lanes || (distance == 1 && run == size)) {
        team.meet();
      } else {
        __syncwarp();
      }
    }
  }
  return {keys};
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
