// Features of Hopper (sm_90a) only, one named wrapper per instruction: barriers that count bytes, tiles that the copy engine (TMA) loads to
// shared memory, thread-block clusters, registers moved between warpgroups. Included by bodies written for that GPU; in passes
// for other architectures, and on the CPU device unless HEDDLE_SIMT_HOPPER is defined, the names do not exist. Their CPU twins are in simt/hopper.hpp.
#ifndef HEDDLE_HOPPER_CUH
#define HEDDLE_HOPPER_CUH

#include "mma.cuh"

#if defined(HEDDLE_HOPPER)
#if !defined(HEDDLE_SIMT)
#include <cuda.h>
#endif

namespace heddle {

/// A group of four warps, whose first is a multiple of four: the threads that issue a wgmma together.
constexpr int warpgroup_threads = 128;

#if defined(HEDDLE_SIMT)
// The wrappers below are in simt/hopper.hpp.
#define HEDDLE_HOPPER_CODE 1
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HEDDLE_HOPPER_CODE 1

/// An 8-byte barrier in shared memory. A phase ends when all expected arrivals have come and all expected bytes have landed; phases
/// alternate in parity, starting with 0.
struct PhaseBarrier {
  uint32_t address;

  __device__ __forceinline__ void initialise(uint32_t arrivals) const {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(arrivals) : "memory");
  }

  __device__ __forceinline__ void arrive() const { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address) : "memory"); }

  /// Arrives, and makes the phase wait for `bytes` from the copy engine.
  __device__ __forceinline__ void arrive_expecting(uint32_t bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes) : "memory");
  }

  /// Arrives at the barrier at this offset in the cluster's block `rank`. Orders no writes of the thread: a release at cluster scope would
  /// wait for all of them, and the reads that end here are those of wgmma, known to be complete.
  __device__ __forceinline__ void arrive_at(uint32_t rank) const {
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
        "}\n" ::"r"(address),
        "r"(rank)
        : "memory");
  }

  /// True if the phase with this parity has ended; does not wait.
  __device__ __forceinline__ bool has_ended(uint32_t parity) const {
    uint32_t ended;
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}\n"
        : "=r"(ended)
        : "r"(address), "r"(parity)
        : "memory");
    return ended != 0;
  }

  /// Waits for the end of the phase with this parity. Returns at once if that phase was the previous one. For data from this block's own
  /// threads and copies.
  __device__ __forceinline__ void wait(uint32_t parity) const {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(address),
        "r"(parity)
        : "memory");
  }

  /// Waits likewise for data from other blocks of the cluster, whose writes are acquired at cluster scope. It invalidates the L1 cache, so
  /// it is unsuitable for loops. Tiles from another block's copy engine are read by wgmma and need only the count of bytes, that is wait().
  __device__ __forceinline__ void wait_across_blocks(uint32_t parity) const {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(address),
        "r"(parity)
        : "memory");
  }
};

/// Makes initialised barriers visible to the cluster and to the copy engine; a cluster barrier must follow.
__device__ __forceinline__ void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Synchronises all threads of the cluster. Orders no ordinary writes, since that would wait for them.
__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
}

/// Prefetches a tensor map, so that the first copy does not wait for it.
__device__ __forceinline__ void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Starts the copy of the map's box at (column, row) to `to`; `done` counts its bytes. Elements outside of the tensor are zeros.
__device__ __forceinline__ void copy_box(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          to.address),
      "l"(&map), "r"(done.address), "r"(column), "r"(row)
      : "memory");
}

/// Starts the same copy to the same offset in each of the cluster's `Blocks` blocks; the barrier at the offset of `done` counts the bytes
/// in each.
template <int Blocks>
__device__ __forceinline__ void copy_box_to_all(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to.address),
      "l"(&map), "r"(done.address), "r"(column), "r"(row), "h"(static_cast<uint16_t>((1 << Blocks) - 1))
      : "memory");
}

/// Starts the copy of a five-dimensional map's box at (column, 0, eight, 0, group).
__device__ __forceinline__ void copy_permuted(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column, int eight, int group) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %4, %6}], [%2];" ::"r"(to.address),
      "l"(&map), "r"(done.address), "r"(column), "r"(0), "r"(eight), "r"(group)
      : "memory");
}

/// Starts the same copy to the same offset in both blocks of a cluster of two; the barrier at the offset of `done` counts the bytes in
/// each.
__device__ __forceinline__ void copy_permuted_to_both(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column,
                                                      int eight, int group) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4, %5, %4, %6}], [%2], %7;" ::"r"(to.address),
      "l"(&map), "r"(done.address), "r"(column), "r"(0), "r"(eight), "r"(group), "h"(static_cast<uint16_t>(3))
      : "memory");
}

/// Makes this thread's writes and asynchronous copies to shared memory visible to wgmma; a barrier must follow.
__device__ __forceinline__ void publish_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// Sets the number of registers of each thread of the calling warpgroup: fewer for threads that only start copies.
template <int Registers>
__device__ __forceinline__ void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ __forceinline__ void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Synchronises two warpgroups at named barrier `id`: one signals and goes on, the other waits for the signal.
__device__ __forceinline__ void signal_warpgroup(int id) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(2 * warpgroup_threads) : "memory");
}
__device__ __forceinline__ void await_warpgroup(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(2 * warpgroup_threads) : "memory");
}

#endif

}  // namespace heddle

#endif

#endif
