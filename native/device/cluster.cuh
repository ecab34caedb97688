// Thread-block clusters: blocks that run at the same time and write to one another's shared memory. Requires sm_90; on older devices,
// and on the CPU device unless it runs Hopper's main loops, clusters have one block, which exchanges with itself.
#ifndef HEDDLE_CLUSTER_CUH
#define HEDDLE_CLUSTER_CUH

#include "mma.cuh"

#if defined(HEDDLE_SIMT_HOPPER) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900)
#define HEDDLE_CLUSTERS 1
#else
#define HEDDLE_CLUSTERS 0
#endif

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

#if HEDDLE_CLUSTERS && !defined(HEDDLE_SIMT)

/// Arrives at the cluster's barrier without waiting for other threads. Orders barrier objects that a fence has published, but not ordinary
/// writes, since that would wait for them.
__device__ __forceinline__ void announce_to_cluster() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }

/// Waits until all threads of the cluster have arrived.
__device__ __forceinline__ void wait_for_cluster() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

/// Address of `here` in the shared memory of the cluster's block `rank`.
__device__ __forceinline__ uint32_t address_in_block(uint32_t here, int rank) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
  return there;
}

/// Writes 16 bytes to another block; the barrier object `counter` of that block counts them.
__device__ __forceinline__ void send_16(uint32_t to, uint32_t counter, const Pack<float, 4>& pack) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
               "f"(pack.v[0]), "f"(pack.v[1]), "f"(pack.v[2]), "f"(pack.v[3]), "r"(counter)
               : "memory");
}
__device__ __forceinline__ void send_16(uint32_t to, uint32_t counter, const Pack<int, 4>& pack) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.s32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
               "r"(pack.v[0]), "r"(pack.v[1]), "r"(pack.v[2]), "r"(pack.v[3]), "r"(counter)
               : "memory");
}

/// Initialises a barrier object that counts `bytes` from other blocks, by one thread, and makes it visible to them; a cluster barrier follows.
__device__ __forceinline__ void expect_from_cluster(uint32_t counter, uint32_t bytes) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(counter) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(counter), "r"(bytes) : "memory");
}

/// Waits until these bytes have arrived. They come from other blocks, so their writes are acquired at cluster scope.
__device__ __forceinline__ void await_from_cluster(uint32_t counter) {
  asm volatile(
      "{\n"
      ".reg .pred arrived;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 arrived, [%0], 0;\n"
      "@!arrived bra again;\n"
      "}" ::"r"(counter)
      : "memory");
}

#endif

/// An exchange of data among the blocks of a cluster, each of which knows how much it will receive. The receiver counts arriving bytes in a
/// barrier object, so neither side waits for a fence: ordering memory by the cluster's hardware barrier waits for all of a thread's writes
/// to reach the whole GPU.
///
/// All threads call, in this order: announce(), ready() before the first send(), receive() before reading received data.
class ClusterExchange {
 public:
  static constexpr uint32_t barrier_bytes = 16;

  /// The barrier object is at `barrier`, at the same offset in every block.
  __device__ __forceinline__ ClusterExchange(Shared16 barrier, int blocks) : barrier_(barrier), blocks_(blocks) {}

  /// Prepares to receive `bytes` and informs the other blocks, without waiting for them.
  __device__ __forceinline__ void announce([[maybe_unused]] uint32_t bytes) const {
#if HEDDLE_CLUSTERS
    if (blocks_ == 1) return;
    if (threadIdx.x == 0) expect_from_cluster(barrier_.address, bytes);
    __syncwarp();
    announce_to_cluster();
#endif
  }

  /// Waits until all blocks have announced.
  __device__ __forceinline__ void ready() const {
#if HEDDLE_CLUSTERS
    if (blocks_ > 1) wait_for_cluster();
#endif
  }

  /// A place in some block of the cluster, and the counter of the bytes that are sent there.
  struct Destination {
    Shared16 place;
    uint32_t barrier;
  };

  /// The place `to` of the block `rank`.
  __device__ __forceinline__ Destination destination(Shared16 to, [[maybe_unused]] int rank) const {
#if HEDDLE_CLUSTERS
    if (blocks_ > 1) {
      return {{address_in_block(to.address, rank)}, address_in_block(barrier_.address, rank)};
    }
#endif
    return {to, 0};
  }

  /// Writes 16 bytes, at offset `bytes` from the destination. `Clustered`: the cluster has more than one block.
  template <bool Clustered, class T>
  __device__ __forceinline__ void send(const Destination& to, uint32_t bytes, const Pack<T, 4>& pack) const {
#if HEDDLE_CLUSTERS
    if constexpr (Clustered) {
      send_16(to.place.address + bytes, to.barrier, pack);
      return;
    }
#endif
    store_shared_16(to.place + bytes, pack);
  }

  /// Waits until all announced bytes have arrived.
  __device__ __forceinline__ void receive() const {
#if HEDDLE_CLUSTERS
    if (blocks_ > 1) {
      await_from_cluster(barrier_.address);
      return;
    }
#endif
    __syncthreads();
  }

 private:
  Shared16 barrier_;
  int blocks_;
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
