// Copies of contiguous bytes from global to shared memory by the copy engine of sm_90a, all of them started by one thread, and a counter of
// their arrival. Elsewhere, and on the CPU device unless it runs Hopper's main loops, a copy is complete when it returns, and a waiting thread must have synchronised with the thread that started it.
#ifndef HEDDLE_BULK_COPY_CUH
#define HEDDLE_BULK_COPY_CUH

#include "hopper.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// True if copies run asynchronously; also true on the CPU device, so that their callers are tested there.
#if defined(HEDDLE_SIMT) || defined(HEDDLE_HOPPER_CODE)
constexpr bool has_bulk_copies = true;
#else
constexpr bool has_bulk_copies = false;
#endif

/// Counts the bytes of copies into shared memory, phase by phase. It takes 16 bytes there.
class CopyCounter {
 public:
  static constexpr uint32_t bytes = 16;

#if defined(HEDDLE_HOPPER_CODE)
  __device__ __forceinline__ explicit CopyCounter(Shared16 at) : barrier_{at.address} {}

  /// Called by one thread, before any other; publish() follows.
  __device__ __forceinline__ void initialise() const { barrier_.initialise(1); }

  /// Makes counters visible to the copy engine.
  static __device__ __forceinline__ void publish() { publish_barriers(); }

  /// Begins a phase, which ends when `count` bytes have arrived.
  __device__ __forceinline__ void expect(uint32_t count) const { barrier_.arrive_expecting(count); }

  /// Starts the copy of `count` elements from `offset` on. Their size and address must be multiples of 16 bytes.
  template <class T>
  __device__ __forceinline__ void copy(Shared16 to, const In<T>& from, int64_t offset, int count) const {
    copy_contiguous(to, from, offset, count, barrier_);
  }

  /// Waits for the end of the phase with this parity, which alternates from 0.
  __device__ __forceinline__ void wait(uint32_t parity) const { barrier_.wait(parity); }

 private:
  PhaseBarrier barrier_;
#else
  __device__ __forceinline__ explicit CopyCounter(Shared16) {}
  __device__ __forceinline__ void initialise() const {}
  static __device__ __forceinline__ void publish() {}
  __device__ __forceinline__ void expect(uint32_t) const {}
  template <class T>
  __device__ __forceinline__ void copy(Shared16 to, const In<T>& from, int64_t offset, int count) const {
    constexpr int pack = 16 / static_cast<int>(sizeof(T));
    for (int i = 0; i < count; i += pack) {
      store_shared_16(to + static_cast<uint32_t>(i) * static_cast<uint32_t>(sizeof(T)), from.template get_pack<pack>(offset + i));
    }
  }
  __device__ __forceinline__ void wait(uint32_t) const {}
#endif
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
