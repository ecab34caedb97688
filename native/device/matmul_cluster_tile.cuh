// The share of a matmul that one block of a cluster computes, its stages in shared memory and the copies that fill them.
// matmul_cluster.cuh multiplies them.
#ifndef HEDDLE_MATMUL_CLUSTER_TILE_CUH
#define HEDDLE_MATMUL_CLUSTER_TILE_CUH

#include "matmul_pipeline.cuh"
#include "tensor_map.cuh"
#include "wgmma_narrow.cuh"
#include "wgmma_right.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

/// Rows x Columns of the output, whose k is divided among the `Split` blocks of a cluster. A warpgroup multiplies 64 rows; one more warp
/// starts the copies.
template <int Rows, int Columns, int Split>
struct ClusterTile {
  static constexpr int rows = Rows, columns = Columns, split = Split;
  static constexpr int warps = Rows / 16;  // warps that multiply
  static constexpr int threads = 32 * (warps + 1);
  static constexpr uint32_t a_bytes = Rows * step_row_bytes, b_bytes = Columns * step_row_bytes, stage_bytes = a_bytes + b_bytes;
  static constexpr int unit_rows = 8, unit_columns = 32;
  static constexpr int units = 2 * Columns / unit_columns;  // per warp
  static constexpr int owned = units / Split;
  static constexpr uint32_t unit_bytes = unit_rows * unit_columns * 4;
  static constexpr uint32_t sums_bytes = (Split - 1) * owned * warps * unit_bytes;
  static constexpr uint32_t barrier_bytes = 16;  // per stage: one for full, one for empty
  static_assert(Rows % 64 == 0 && Columns % unit_columns == 0, "whole warpgroups and units");
  static_assert(Split > 1 && units % Split == 0, "blocks own as much");

  static constexpr uint32_t shared_bytes(int stages) {
    return stages * (stage_bytes + barrier_bytes) + sums_bytes + warps * barrier_bytes;
  }
};

/// Parameters of a launch.
struct ClusterWork {
  int m, n;
  int share, rest;  // steps per block; number of a cluster's first blocks that have one more
  int stages;       // stages in shared memory
  uint32_t bytes;   // bytes that arrive per step
  bool constant_b;
};

#if defined(HEDDLE_HOPPER_CODE)

/// The stages of a block, which hold the steps of its share in turn.
template <class Tile>
struct ClusterStages {
  Shared16 tiles;
  uint32_t barriers;

  __device__ __forceinline__ Shared16 a_of(int stage) const { return tiles + static_cast<uint32_t>(stage) * Tile::stage_bytes; }
  __device__ __forceinline__ Shared16 b_of(int stage) const { return a_of(stage) + Tile::a_bytes; }
  __device__ __forceinline__ PhaseBarrier full_of(int stage) const {
    return {barriers + static_cast<uint32_t>(stage) * Tile::barrier_bytes};
  }
  __device__ __forceinline__ PhaseBarrier empty_of(int stage) const { return {full_of(stage).address + Tile::barrier_bytes / 2}; }
};

/// Starts the copies of a block, from one thread: steps [begin, begin + count) of the rows from row0 and the columns from column0.
template <class T, class Tile>
__device__ __forceinline__ void fill_stages(const ClusterStages<Tile>& stages, const CUtensorMap& a_map, const CUtensorMap& b_map,
                                            const ClusterWork& work, int row0, int column0, int begin, int count) {
  const auto start_b = [&](int s, int stage) {
    stages.full_of(stage).arrive_expecting(work.bytes);
    copy_right<Tile::columns, true>(stages.b_of(stage), b_map, stages.full_of(stage), (begin + s) * box_columns<T>, column0, work.n);
  };
  const auto start_a = [&](int s, int stage) {
    copy_box(stages.a_of(stage), a_map, stages.full_of(stage), (begin + s) * box_columns<T>, row0);
  };
  const int first = count < work.stages ? count : work.stages;
  if (!work.constant_b) wait_for_producers();
  HEDDLE_ROLLED
  for (int s = 0; s < first; ++s) start_b(s, s);
  wait_for_producers();
  HEDDLE_ROLLED
  for (int s = 0; s < first; ++s) start_a(s, s);
  uint32_t parity = 0;
  HEDDLE_ROLLED
  for (int s = first, stage = 0; s < count; ++s) {
    stages.empty_of(stage).wait(parity);
    start_b(s, stage);
    start_a(s, stage);
    if (++stage == work.stages) stage = 0, parity ^= 1;
  }
}

#endif

}  // namespace heddle

#endif

#endif
