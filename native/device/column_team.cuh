// The threads that reduce a tile of columns, and the columns that each reads and writes. column_totals.cuh says how they divide the rows.
#ifndef HEDDLE_COLUMN_TEAM_CUH
#define HEDDLE_COLUMN_TEAM_CUH

#include "apart.cuh"
#include "launcher.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Blocks that divide the rows of a tile: one has all, those of a cluster a part each, or the grid has sections, as many as its height.
enum class RowsOf { block, cluster, grid };

/// The threads that reduce a tile of Lanes chunks, Slots to a chunk. A cluster has Parts blocks. A thread asks for the chunks of Parts * Each
/// rows before it needs the first.
template <int Lanes, int Parts, RowsOf Rows, int Slots = 32, int Each = 1>
struct ColumnTeam {
  static_assert(warp_lanes % Lanes == 0 || Slots == 1, "a warp has whole rows of chunks");
  /// A thread has all rows of its chunk, and nobody to wait for.
  static constexpr bool is_divided = Rows == RowsOf::cluster;
  static constexpr bool is_sectioned = Rows == RowsOf::grid;
  static constexpr bool is_alone = Slots == 1 && !is_divided;
  static constexpr int lanes = Lanes;
  static constexpr int threads = Lanes * Slots;
  static constexpr int slots = Slots;
  static constexpr int warps = threads / warp_lanes;
  static constexpr int blocks = is_divided ? Parts : 1;
  /// Rows of a thread in one round.
  static constexpr int loads = Parts * Each;

  __device__ __forceinline__ int64_t tile() const { return blockIdx.x / blocks; }
  __device__ __forceinline__ int rank() const { return static_cast<int>(blockIdx.x % blocks); }
  __device__ __forceinline__ int lane() const { return static_cast<int>(threadIdx.x) % Lanes; }
  __device__ __forceinline__ int slot() const { return static_cast<int>(threadIdx.x) / Lanes; }
  __device__ __forceinline__ int section() const { return is_sectioned ? static_cast<int>(blockIdx.y) : 0; }
  __device__ __forceinline__ int sections() const { return is_sectioned ? static_cast<int>(gridDim.y) : 1; }
  __device__ __forceinline__ int first_row() const { return (section() + rank()) * Slots + slot(); }
  /// Number of rows from the first load of a round to load j, and from one round to the next.
  __device__ __forceinline__ int rows_before(int j) const { return j * Slots * blocks * sections(); }
  __device__ __forceinline__ int round() const { return rows_before(loads); }
  /// True for the one thread per chunk that stores the results of its columns.
  __device__ __forceinline__ bool stores() const { return slot() == 0 && rank() == 0; }

  /// Returns the next of two buffers: a thread that is one combination ahead writes the one that no thread reads.
  __device__ __forceinline__ int next_buffer() { return buffer_ ^= 1; }

 private:
  int buffer_ = 0;
};

/// Tiles that columns make.
template <class Team, int Vec>
__host__ __device__ __forceinline__ int column_tiles(int columns) {
  return chunks_of<Team::lanes * Vec>(columns);
}

/// The first column of a thread, at most `columns`. Its chunk has each `Step`-th column from there on: neighbours, or where rows are not
/// aligned, columns as far apart as the tile has lanes, so that neighbouring threads have neighbouring ones. Those of an even number of
/// columns may lie in pairs (apart.cuh).
template <class Team, int Vec, int Step = 1>
__device__ __forceinline__ int first_column(const Team& team, int tile, int columns, bool paired = false) {
  const int64_t first = int64_t{tile} * Team::lanes * Vec + team.lane() * (Step == 1 ? Vec : paired ? 2 : 1);
  return first < columns ? static_cast<int>(first) : columns;
}

/// Columns from a thread's first on; none where that is beyond the last.
template <int Step = 1>
__device__ __forceinline__ int columns_left(int first, int columns, bool paired = false) {
  return left_apart<Step>(columns - first, paired);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
