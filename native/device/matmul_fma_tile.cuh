// The share of a float32 matmul that one block computes, as a type. A stage of the pipeline holds 128 bytes of k per row, as in
// matmul_pipeline.cuh: 32 elements in eight words of 16 bytes, permuted so that copies and reads have no bank conflicts.
#ifndef HEDDLE_MATMUL_FMA_TILE_CUH
#define HEDDLE_MATMUL_FMA_TILE_CUH

#include "cluster.cuh"
#include "matmul_pipeline.cuh"

namespace heddle {

/// Rows x Columns of the output per block; a thread computes ThreadRows rows of eight columns. `Groups` groups of threads compute all of
/// them, each for its words of every step: a small tile has few threads otherwise. `Unroll`: words that are multiplied without a branch, so
/// that the loads of one overlap the multiply-adds of another where there are registers for both.
template <int Rows, int Columns, int ThreadRows, int Groups, int Unroll, int Stages, int Blocks>
struct FmaTile {
  static constexpr int rows = Rows, columns = Columns, groups = Groups, unroll = Unroll;
  static constexpr int stages = Stages, ahead = Stages - 1;
  static constexpr int blocks = Blocks;  // per multiprocessor
  static constexpr int thread_rows = ThreadRows;
  static constexpr int threads_m = Rows / ThreadRows, threads_n = Columns / 8;
  static constexpr int group_threads = threads_m * threads_n, threads = group_threads * Groups;
  /// Rows of a thread whose words are loaded together, as far as registers suffice.
  static constexpr uint32_t held_rows = ThreadRows == 16 ? 16 : 1;
  /// Rows of a thread that are multiplied in a tile whose other rows do not exist. A branch per row would take registers.
  static constexpr int few_rows = ThreadRows * 5 / 8;
  static constexpr int words = step_row_bytes / 16 / Groups;  // per row, step and group
  static constexpr uint32_t right_at = Rows * step_row_bytes, stage_bytes = (Rows + Columns) * step_row_bytes;
  static constexpr uint32_t sums_row_bytes = 4 * Columns, sums_group_bytes = 8 * sums_row_bytes;
  static_assert(threads_n % 8 == 0 && (threads_m == 2 || threads_m % 4 == 0), "eight threads of a warp along columns");

  /// Permutation of the words of a row: an exclusive-or. The threads of a warp read adjacent rows of the left factor, but every eighth of a right
  /// one, since each has eight adjacent columns.
  template <bool Right>
  static constexpr __device__ __forceinline__ uint32_t permutation(uint32_t row) {
    return (Right ? row / 8 : row) % 8;
  }
  /// Place of a word of a row in a factor's part of a stage.
  template <bool Right>
  static __device__ __forceinline__ uint32_t word_at(uint32_t row, uint32_t word) {
    return row * step_row_bytes + (word ^ permutation<Right>(row)) * 16;
  }

  /// Columns of each of several matmuls, in whole chunks; some of the tile's are unused if it does not divide.
  template <int Products>
  static constexpr int columns_each = Columns / 8 / Products * 8;
  /// Number of groups of eight rows per block of a cluster.
  static constexpr __host__ __device__ int owned_groups(int live, int split) { return ((live + 7) / 8 + split - 1) / split; }
  /// Offset of the sums that other blocks send, after the pipeline: they arrive while this block still multiplies.
  static constexpr __host__ __device__ uint32_t received_at(int live, int steps, int split) {
    const int share = (steps + split - 1) / split;
    const uint32_t pipeline = stage_bytes * static_cast<uint32_t>(share < Stages ? share : Stages);
    const uint32_t sums = sums_group_bytes * static_cast<uint32_t>((live + 7) / 8 * Groups);
    return pipeline > sums ? pipeline : sums;
  }
  static constexpr __host__ __device__ uint32_t barrier_at(int live, int steps, int split) {
    const uint32_t received = split == 1 ? 0 : sums_group_bytes * static_cast<uint32_t>(split * owned_groups(live, split));
    return received_at(live, steps, split) + received;
  }
  /// Offset of the upper or lower half of eight columns in rows of sums. Columns and rows next to each other are in different banks.
  static __device__ __forceinline__ uint32_t half_at(int row, int chunk, int half) {
    return static_cast<uint32_t>(row) * sums_row_bytes + static_cast<uint32_t>(2 * chunk + (half ^ ((row + chunk / 4) & 1))) * 16;
  }
  /// Adds the sums of eight columns of a row in `parts` parts, `stride` bytes apart, in the order of k.
  static __device__ __forceinline__ void add_parts(float (&total)[8], Shared16 from, int row, int chunk, int parts, uint32_t stride) {
    for (int part = 0; part < parts; ++part) {
      HEDDLE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const auto four = load_shared_16<float>(from + (static_cast<uint32_t>(part) * stride + half_at(row, chunk, half)));
        HEDDLE_UNROLL
        for (int c = 0; c < 4; ++c) total[4 * half + c] += four.v[c];
      }
    }
  }
};

}  // namespace heddle

#endif
