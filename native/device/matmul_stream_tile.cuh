// The share of matmuls of few rows that one block of matmul_stream.cuh computes, its ring in shared memory and the copies that fill it.
#ifndef HEDDLE_MATMUL_STREAM_TILE_CUH
#define HEDDLE_MATMUL_STREAM_TILE_CUH

#include "cluster.cuh"
#include "wgmma_narrow.cuh"
#include "wgmma_tile.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

/// All rows x 32 columns of each of several matmuls of one left factor. One warpgroup multiplies; one more warp starts the copies. Every
/// block of a cluster multicasts its part of the left factor to all of them.
template <int Products>
struct StreamTile {
  static constexpr int products = Products;
  static constexpr int rows = 64, own_columns = permuted_rows, pieces = own_columns / 8;
  static constexpr int cluster = 4;
  static constexpr int warps = 4, threads = 32 * (warps + 1);
  static constexpr int most_sharing = 4;  // blocks per multiprocessor, for which there are registers
  static constexpr int chunks = 2;        // of eight columns of a row that a thread finishes, eight rows apart
  static constexpr uint32_t part_bytes = own_columns * box_row_bytes, b_bytes = Products * part_bytes;
  static constexpr uint32_t barrier_bytes = 16;  // per stage: one for full, one for empty
  // All of `rows` are multiplied, however few exist: the others are the bytes that follow the existing rows.
  static constexpr int least_rows = 8 * cluster;
  static_assert(Products > 1 && least_rows * box_row_bytes + b_bytes >= rows * box_row_bytes, "what lies there is the stage's own");
};

/// Parameters of a launch.
struct StreamWork {
  int m, n, steps;       // steps of 128 bytes along k
  int a_rows, stages;    // rows copied; stages in shared memory
  bool constant_b;
};

#if defined(HEDDLE_HOPPER_CODE)

/// A block's ring of stages, which hold the steps in turn: rows of the left factor, then columns of each matmul.
template <class Tile>
struct StreamStages {
  Shared16 tiles;
  uint32_t a_bytes, stage_bytes, barriers;

  __device__ __forceinline__ StreamStages(Shared16 shared, const StreamWork& work)
      : tiles(shared),
        a_bytes(static_cast<uint32_t>(work.a_rows) * box_row_bytes),
        stage_bytes(a_bytes + Tile::b_bytes),
        barriers(shared.address + static_cast<uint32_t>(work.stages) * stage_bytes) {}
  __device__ __forceinline__ Shared16 a_of(int stage) const { return tiles + static_cast<uint32_t>(stage) * stage_bytes; }
  __device__ __forceinline__ Shared16 b_of(int stage) const { return a_of(stage) + a_bytes; }
  __device__ __forceinline__ PhaseBarrier full_of(int stage) const {
    return {barriers + static_cast<uint32_t>(stage) * Tile::barrier_bytes};
  }
  __device__ __forceinline__ PhaseBarrier empty_of(int stage) const { return {full_of(stage).address + Tile::barrier_bytes / 2}; }

  /// Called by the lanes of one warp, before the cluster synchronises. A stage is empty when all blocks have multiplied it: each loads a
  /// part of it.
  __device__ __forceinline__ void initialise(int lane, int count) const {
    for (int stage = lane; stage < count; stage += 32) {
      full_of(stage).initialise(1);
      empty_of(stage).initialise(Tile::cluster);
    }
    publish_barriers();
    // Each lane arrives at the barrier that it initialised itself, but racecheck reports a race unless the warp synchronises in between.
    __syncwarp();
  }
};

/// Starts one step's copies, from one thread: the columns from `column` on of every matmul for this block, and its part of the rows for all
/// blocks.
template <class T, class Tile>
__device__ __forceinline__ void start_columns(const StreamStages<Tile>& stages, const RightMaps<Tile::products>& maps, int column, int step,
                                              int stage, int n) {
  stages.full_of(stage).arrive_expecting(stages.stage_bytes);
  HEDDLE_UNROLL
  for (int product = 0; product < Tile::products; ++product) {
    copy_right<Tile::own_columns, true>(stages.b_of(stage) + static_cast<uint32_t>(product) * Tile::part_bytes, maps.of[product],
                                        stages.full_of(stage), step * box_columns<T>, column, n);
  }
}
template <class T, class Tile>
__device__ __forceinline__ void start_rows(const StreamStages<Tile>& stages, const CUtensorMap& map, int row, int step, int stage) {
  copy_box_to_all<Tile::cluster>(stages.a_of(stage) + static_cast<uint32_t>(row) * box_row_bytes, map, stages.full_of(stage),
                                 step * box_columns<T>, row);
}

/// Starts all copies of a block, from one warp. Columns load while the previous launch still runs, where nothing writes them.
template <class T, class Tile>
__device__ __forceinline__ void fill_stream(const StreamStages<Tile>& stages, const CUtensorMap& a_map,
                                            const RightMaps<Tile::products>& b_maps, const StreamWork& work, int column, int lane) {
  const int row = static_cast<int>(cluster_rank()) * (work.a_rows / Tile::cluster), first = min(work.steps, work.stages);
  if (!work.constant_b) wait_for_producers();
  if (lane == 0) {
    HEDDLE_ROLLED
    for (int s = 0; s < first; ++s) start_columns<T>(stages, b_maps, column, s, s, work.n);
  }
  __syncwarp();
  // Other blocks' barriers are initialised only now.
  wait_for_cluster();
  wait_for_producers();
  if (lane == 0) {
    HEDDLE_ROLLED
    for (int s = 0; s < first; ++s) start_rows<T>(stages, a_map, row, s, s);
    uint32_t parity = 0;
    HEDDLE_ROLLED
    for (int s = first, stage = 0; s < work.steps; ++s) {
      stages.empty_of(stage).wait(parity);
      start_columns<T>(stages, b_maps, column, s, stage, work.n);
      start_rows<T>(stages, a_map, row, s, stage);
      if (++stage == work.stages) stage = 0, parity ^= 1;
    }
  }
  __syncwarp();
}

#endif

}  // namespace heddle

#endif

#endif
