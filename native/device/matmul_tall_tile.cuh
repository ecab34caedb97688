// The tile of matmul_tall.cuh: the size of its parts, the division of a matmul among blocks, and the places in shared memory.
#ifndef HEDDLE_MATMUL_TALL_TILE_CUH
#define HEDDLE_MATMUL_TALL_TILE_CUH

#include <algorithm>

#include "matmul_choice.cuh"
#include "matmul_pipeline.cuh"
#include "tensor_map.cuh"
#include "wgmma_tall.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

/// Up to 256 rows and 128 columns: two warpgroups multiply 64 columns each, one more warp starts the copies.
struct TallTile {
  static constexpr int columns = 128, block_columns = 64;  // block: of one wgmma
  static constexpr int fewest_rows = 64, most_rows = 256, granule = 16;
  static constexpr int multiplying = 2 * warpgroup_threads, threads = multiplying + 32;
  static constexpr uint32_t row_bytes = box_row_bytes, barrier_bytes = 16;
  static constexpr uint32_t sums_stride = columns * 4 + 16;  // of a row of sums; the padding spreads rows over the banks
  static constexpr uint32_t received_stride = columns * 4;
  static constexpr uint32_t shared_limit = 227 * 1024;
};

/// Parameters of a launch.
struct TallWork {
  int m, n;
  int rows, tiles;  // rows of a tile, tiles of rows
  int split;        // number of blocks that divide k
  int share, rest;  // steps per block; number of a cluster's first parts that have one more
  int stages;
  bool constant_b;

  __host__ __device__ __forceinline__ uint32_t stage_bytes() const { return static_cast<uint32_t>(TallTile::columns + rows) * TallTile::row_bytes; }
  __host__ __device__ __forceinline__ uint32_t received_bytes() const {
    return static_cast<uint32_t>((split - 1) * (rows / split)) * TallTile::received_stride;
  }
  /// Shared memory of the stages, and later of the sums.
  __host__ __device__ __forceinline__ uint32_t reused_bytes() const {
    const uint32_t ring = static_cast<uint32_t>(stages) * stage_bytes(), sums = static_cast<uint32_t>(rows) * TallTile::sums_stride;
    return ring > sums ? ring : sums;
  }
  __host__ __device__ __forceinline__ uint32_t shared_bytes() const {
    return reused_bytes() + received_bytes() + static_cast<uint32_t>(stages + 1) * TallTile::barrier_bytes;
  }
};

namespace tall {

/// The division of a matmul for a tile, which names the most rows, and a split. The rows of each part of k are whole groups of eight.
template <class T>
TallWork work_of(const MatmulChoice& choice, int64_t m, int64_t n, int64_t k, bool constant_b = false) {
  const auto divide_up = [](int64_t count, int64_t by) { return (count + by - 1) / by; };
  const int64_t most = choice.tile == MatmulTile::tall_128x128 ? TallTile::most_rows / 2 : TallTile::most_rows;
  const int64_t tiles = divide_up(m, most), granule = std::max(TallTile::granule, 8 * choice.split), steps = steps_of<T>(k);
  const int64_t rows = std::max<int64_t>(TallTile::fewest_rows, divide_up(divide_up(m, tiles), granule) * granule);
  TallWork work{static_cast<int>(m), static_cast<int>(n),  static_cast<int>(rows), static_cast<int>(tiles), choice.split,
                static_cast<int>(steps / choice.split), static_cast<int>(steps % choice.split), 0, constant_b};
  const uint32_t spare = TallTile::shared_limit - work.received_bytes() - TallTile::barrier_bytes;
  const int fitting = static_cast<int>(spare / (work.stage_bytes() + TallTile::barrier_bytes));
  work.stages = std::min(fitting, work.share + (work.rest > 0 ? 1 : 0));
  return work;
}

/// Number of blocks. Columns of tiles are counted in pairs.
inline int64_t blocks(const TallWork& work) {
  constexpr int64_t of_pair = 2 * TallTile::columns;
  return 2 * work.split * ((int64_t{work.n} + of_pair - 1) / of_pair) * work.tiles;
}

}  // namespace tall

#if defined(HEDDLE_HOPPER_CODE)

/// Sums of a thread as wgmma leaves them: for each group of eight rows those of two neighbouring rows in a column, then in the eighth after it.
using TallSums = float[TallTile::most_rows / 2];

/// The share of a block: its part of k, its side of the pair, the steps of k, and the first row and column of its tile.
struct TallPlace {
  int part, side, begin, count, row, column;

  __device__ __forceinline__ explicit TallPlace(const TallWork& work) {
    const int rank = static_cast<int>(cluster_rank()), cluster = static_cast<int>(blockIdx.x) / (2 * work.split);
    part = rank / 2;
    side = rank % 2;
    begin = part * work.share + min(part, work.rest);
    count = work.share + (part < work.rest ? 1 : 0);
    // Tiles of the same columns are neighbours, so that they read weights at the same time.
    row = cluster % work.tiles * work.rows;
    column = (cluster / work.tiles * 2 + side) * TallTile::columns;
  }
  /// Rank of the pair's first block.
  __device__ __forceinline__ uint32_t first_rank() const { return 2 * static_cast<uint32_t>(part); }
};

/// Places in the block's shared memory.
struct TallStages {
  Shared16 shared;
  const TallWork& work;

  __device__ __forceinline__ Shared16 columns_of(int stage) const { return shared + static_cast<uint32_t>(stage) * work.stage_bytes(); }
  __device__ __forceinline__ Shared16 rows_of(int stage) const { return columns_of(stage) + TallTile::columns * TallTile::row_bytes; }
  /// The sums of a row, once no stage is in use.
  __device__ __forceinline__ Shared16 sums_of(int row) const { return shared + static_cast<uint32_t>(row) * TallTile::sums_stride; }
  /// A row of the sums that arrive.
  __device__ __forceinline__ Shared16 received(int row) const {
    return shared + (work.reused_bytes() + static_cast<uint32_t>(row) * TallTile::received_stride);
  }
  __device__ __forceinline__ PhaseBarrier full_of(int stage) const {
    return {shared.address + work.reused_bytes() + work.received_bytes() + static_cast<uint32_t>(stage) * TallTile::barrier_bytes};
  }
  __device__ __forceinline__ PhaseBarrier empty_of(int stage) const { return {full_of(stage).address + TallTile::barrier_bytes / 2}; }
  /// Counts the sums that arrive.
  __device__ __forceinline__ PhaseBarrier arrived() const { return full_of(work.stages); }
};

#endif

}  // namespace heddle

#endif

#endif
