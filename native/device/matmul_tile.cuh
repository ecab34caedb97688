// The share of a matmul that one block computes, as a type: its size, its division among warps, and its shared memory.
#ifndef HEDDLE_MATMUL_TILE_CUH
#define HEDDLE_MATMUL_TILE_CUH

#include "cluster.cuh"
#include "matmul_pipeline.cuh"

namespace heddle {

/// Rows x Columns of the output per block, by WarpsM x WarpsN warps, times WarpsK that divide each step's k.
template <int Rows, int Columns, int WarpsM, int WarpsN, int WarpsK, int Stages, int BlocksPerMultiprocessor>
struct MmaTile {
  static constexpr int rows = Rows;
  static constexpr int columns = Columns;
  static constexpr int stages = Stages;
  static constexpr int blocks = BlocksPerMultiprocessor;
  static constexpr int warps_m = WarpsM, warps_n = WarpsN, warps_k = WarpsK;
  static constexpr int threads = 32 * WarpsM * WarpsN * WarpsK;
  static constexpr int warp_rows = Rows / WarpsM, warp_columns = Columns / WarpsN;
  static constexpr int row_pieces = warp_rows / 16, column_pieces = warp_columns / 16;
  static constexpr bool warpgroup = WarpsM % 4 == 0 && warp_rows == 16 && WarpsN == 1 && WarpsK == 1 && Columns % 32 == 0;
  static constexpr int stage_bytes = (Rows + Columns) * step_row_bytes;
  static constexpr int group_bytes = 8 * 4 * Columns;  // partial sums of eight rows
  static_assert(warp_rows % 16 == 0 && warp_columns % 16 == 0, "a warp multiplies 16 x 16 pieces");
  static_assert(WarpsK <= 2, "a warp has two slices of a step: one is multiplied while the other is loaded");

  /// Number of groups of eight rows per block of a cluster.
  static constexpr __host__ __device__ int owned_groups(int rows, int split) { return ((rows + 7) / 8 + split - 1) / split; }

  /// Offset of the partial sums in a block's dynamic shared memory. In a cluster they come after the pipeline, since other blocks send
  /// theirs while this one still multiplies. A single block reuses the pipeline, which it has finished.
  static constexpr uint32_t sums_at(int64_t steps, int split) {
    const int64_t share = (steps + split - 1) / split;
    return split == 1 ? 0 : static_cast<uint32_t>(stage_bytes * (share < Stages ? share : Stages));
  }
  /// Dynamic shared memory of a block that multiplies m rows: the pipeline, the partial sums, and last the exchange's barrier.
  static constexpr uint32_t shared_bytes(int64_t m, int64_t steps, int split) {
    const int64_t pipeline = stage_bytes * (steps < Stages ? steps : Stages);
    const int groups = owned_groups(m < Rows ? static_cast<int>(m) : Rows, split);
    const int64_t sums = sums_at(steps, split) + group_bytes * split * WarpsK * groups;
    return static_cast<uint32_t>((split > 1 || sums > pipeline ? sums : pipeline) + ClusterExchange::barrier_bytes);
  }
};

}  // namespace heddle

#endif
