// Keys and values on their way to a warp of decode attention: every lane copies its own chunks of 16 bytes to shared memory (cp.async), some
// pieces ahead, and reads them back itself. No lane waits for another, and pieces on their way take no registers.
#ifndef HEDDLE_ATTENTION_DECODE_RING_CUH
#define HEDDLE_ATTENTION_DECODE_RING_CUH

#include "mma.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// A ring of `Slots` slots of `Chunks` chunks for each lane of a warp.
template <class T, int Chunks, int Slots>
class LaneRing {
 public:
  static constexpr uint32_t bytes = static_cast<uint32_t>(Slots) * Chunks * warp_lanes * 16;

  __device__ __forceinline__ LaneRing(Shared16 ring, int lane) : at_(ring + static_cast<uint32_t>(lane) * 16) {}

  /// Starts copying the chunk at `offset`, which exists. Chunks that are not attended become zero: memory that nobody wrote may hold NaN.
  __device__ __forceinline__ void copy(int slot, int chunk, const In<T>& from, int64_t offset, bool attended) const {
    copy_async<16>(place(slot, chunk), from, offset, attended);
  }
  __device__ __forceinline__ Pack<T, 16 / sizeof(T)> read(int slot, int chunk) const { return load_shared_16<T>(place(slot, chunk)); }

 private:
  __device__ __forceinline__ Shared16 place(int slot, int chunk) const {
    return at_ + static_cast<uint32_t>(slot * Chunks + chunk) * (warp_lanes * 16);
  }

  Shared16 at_;
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
