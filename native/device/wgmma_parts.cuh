// Exchange of sums where two blocks of a cluster divide k of a Hopper tile. Each sends half of its sums, those of one of a thread's two
// rows, to the same thread of the other block, and adds the half that it receives. A sum of two is the same in either order, so timing
// changes no bit.
#ifndef HEDDLE_WGMMA_PARTS_CUH
#define HEDDLE_WGMMA_PARTS_CUH

#include "cluster.cuh"
#include "wgmma_tile.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

#if defined(HEDDLE_HOPPER_CODE)

/// Counter of the bytes that a warp receives; barriers come after the data that they count. `tiles`: the block's shared memory.
template <class Tile>
__device__ __forceinline__ PhaseBarrier received_by_warp(Shared16 tiles, int warp) {
  return {tiles.address + Tile::ring_bytes + Tile::warps * Tile::sent_bytes + static_cast<uint32_t>(warp) * Tile::barrier_bytes};
}

/// Called by one thread, before the cluster synchronises.
template <class Tile>
__device__ __forceinline__ void expect_parts_of_k(Shared16 tiles) {
  for (int warp = 0; warp < Tile::warps; ++warp) {
    received_by_warp<Tile>(tiles, warp).initialise(1);
    received_by_warp<Tile>(tiles, warp).arrive_expecting(Tile::sent_bytes);
  }
}

/// Offset of the first of a thread's rows that its block keeps, from the first that the thread computes.
template <class Tile>
__device__ __forceinline__ int own_row() {
  return Tile::split == 1 ? 0 : 8 * part_of_k<Tile>();
}

/// own[8 c + i] = column i of chunk c's eight, in the row that the block keeps, summed over all of k.
template <class T, class Tile>
__device__ __forceinline__ void add_parts_of_k(SumOf<T> (&own)[Tile::columns / 4], const SumOf<T> (&sums)[Tile::columns / 2], Shared16 tiles) {
  const int warp = static_cast<int>(threadIdx.x) / 32 - warpgroup_threads / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const bool is_second = part_of_k<Tile>() != 0;
  const Shared16 received = tiles + (Tile::ring_bytes + static_cast<uint32_t>(warp) * Tile::sent_bytes + static_cast<uint32_t>(lane) * 16);
  const PhaseBarrier arrived = received_by_warp<Tile>(tiles, warp);
  const int other = static_cast<int>(cluster_rank()) ^ 1;
  const uint32_t to = address_in_block(received.address, other), counter = address_in_block(arrived.address, other);
  constexpr int fours = Tile::columns / 16;
  constexpr uint32_t four_bytes = 32 * 16;
  HEDDLE_UNROLL
  for (int four = 0; four < fours; ++four) {
    Pack<SumOf<T>, 4> sent;
    HEDDLE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int at = 8 * four + i / 2 * 4 + i % 2;
      sent.v[i] = is_second ? sums[at] : sums[at + 2];
      own[4 * four + i] = is_second ? sums[at + 2] : sums[at];
    }
    send_16(to + static_cast<uint32_t>(four) * four_bytes, counter, sent);
  }
  arrived.wait_across_blocks(0);
  HEDDLE_UNROLL
  for (int four = 0; four < fours; ++four) {
    const auto added = load_shared_16<SumOf<T>>(received + static_cast<uint32_t>(four) * four_bytes);
    HEDDLE_UNROLL
    for (int i = 0; i < 4; ++i) own[4 * four + i] += added.v[i];
  }
}

#endif

}  // namespace heddle

#endif

#endif
