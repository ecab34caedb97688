// What only Hopper (sm_90a) offers, one named wrapper an instruction: barriers that count bytes, tiles that the copy engine (TMA)
// brings to shared memory, thread-block clusters, registers moved between warpgroups. Included by bodies written for that GPU;
// elsewhere, and in passes for other architectures, the names do not exist.
#ifndef HEDDLE_HOPPER_CUH
#define HEDDLE_HOPPER_CUH

#include "mma.cuh"

#if !defined(HEDDLE_SIMT)
#include <cuda.h>

namespace heddle {

/// A group of four warps, whose first is a multiple of four: the threads that issue a wgmma together.
constexpr int warpgroup_threads = 128;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HEDDLE_HOPPER_CODE 1

/// An 8-byte barrier in shared memory. A phase ends when all expected arrivals came and all expected bytes landed; phases
/// alternate in parity, starting with 0.
struct PhaseBarrier {
  uint32_t address;

  __device__ __forceinline__ void initialise(uint32_t arrivals) const {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(arrivals) : "memory");
  }

  /// Arrives, and has the phase wait for `bytes` that the copy engine will bring.
  __device__ __forceinline__ void arrive_expecting(uint32_t bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes) : "memory");
  }

  /// Arrives at the barrier that lies in this place in the cluster's block `rank`. Orders no writes of the thread: a release at
  /// cluster scope would have it wait for all of them, and the reads that end here are those of wgmma, known to be complete.
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

  /// Waits for the end of the phase with this parity. Passes when that phase was the one before the present one. For what this block's
  /// own threads and copies brought.
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

  /// The same for what other blocks of the cluster wrote, whose writes are acquired at their scope. It drops the L1 cache, so it is
  /// nothing for a loop: tiles that another block's copy engine brings are read by wgmma, and need the count of bytes only.
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

/// Makes initialised barriers known to the cluster and to the copy engine; a cluster barrier follows.
__device__ __forceinline__ void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// A barrier of all threads of the cluster. It orders no ordinary writes, which would have to be waited for.
__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
}

/// Brings a tensor map's description near, so that the first copy does not wait for it.
__device__ __forceinline__ void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Starts the copy of the map's box at (column, row) to `to`; `done` receives its bytes. Outside of the tensor are zeros.
__device__ __forceinline__ void copy_box(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          to.address),
      "l"(&map), "r"(done.address), "r"(column), "r"(row)
      : "memory");
}

/// The same to the same place in each of the cluster's `Blocks` blocks; the barrier in the place of `done` receives the bytes in each.
template <int Blocks>
__device__ __forceinline__ void copy_box_to_all(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to.address),
      "l"(&map), "r"(done.address), "r"(column), "r"(row), "h"(static_cast<uint16_t>((1 << Blocks) - 1))
      : "memory");
}

/// Starts the copy of a five-dimensional map's box at (column, 0, 0, 0, group).
__device__ __forceinline__ void copy_permuted(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column, int group) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %4, %4, %5}], [%2];" ::"r"(to.address),
      "l"(&map), "r"(done.address), "r"(column), "r"(0), "r"(group)
      : "memory");
}

/// The same to the same place in both blocks of a cluster of two; the barrier in the place of `done` receives the bytes in each.
__device__ __forceinline__ void copy_permuted_to_both(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column,
                                                      int group) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4, %4, %4, %5}], [%2], %6;" ::"r"(to.address),
      "l"(&map), "r"(done.address), "r"(column), "r"(0), "r"(group), "h"(static_cast<uint16_t>(3))
      : "memory");
}

/// Sets how many registers each thread of the calling warpgroup has: fewer for those that only start copies.
template <int Registers>
__device__ __forceinline__ void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ __forceinline__ void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Two warpgroups meet at named barrier `id`: one signals and goes on, the other waits for the signal.
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
