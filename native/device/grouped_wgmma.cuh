// Grouped matmuls on Hopper: rows of the left factor are first copied in the order of their matrices, so that the copy engine brings tiles of both
// factors. A block multiplies one tile with the main loop of wgmma_single.cuh and passes its sums to the epilogue through shared memory. Blocks with
// many rows work in pairs on neighbouring columns: each loads its own weights and half of the rows, which it multicasts to both.
#ifndef HEDDLE_GROUPED_WGMMA_CUH
#define HEDDLE_GROUPED_WGMMA_CUH

#include "grouped_mma.cuh"
#include "wgmma_choice.cuh"
#include "wgmma_single.cuh"
#include "wgmma_tall.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

/// A tile of `Rows` rows, 64 per warpgroup; one more warp starts the copies. `Pair` blocks of a cluster share the rows of a tile.
template <int Rows, int Columns, int Pair>
struct GroupedWgmmaTile {
  static constexpr int rows = Rows;
  static constexpr int columns = Columns;
  static constexpr int pair = Pair;
  static constexpr int block_rows = 64;  // of one wgmma
  static constexpr int multiplying = Rows / block_rows * warpgroup_threads;
  static constexpr int threads = multiplying + 32;
  // As store_sums() divides a tile: sixteen rows per warp.
  static constexpr int warps_m = multiplying / 32, warps_n = 1, warp_rows = 16, warp_columns = Columns;
  static constexpr int row_pieces = 1, column_pieces = Columns / 16;
  static constexpr uint32_t row_bytes = box_row_bytes;
  static constexpr uint32_t a_bytes = Rows * row_bytes, b_bytes = Columns * row_bytes, stage_bytes = a_bytes + b_bytes;
  static constexpr uint32_t barrier_bytes = 16;  // per stage: one for full, one for empty
  static constexpr uint32_t shared_limit = 227 * 1024;
  static constexpr int stages = static_cast<int>(shared_limit / (stage_bytes + barrier_bytes));
  static constexpr uint32_t shared_bytes = stages * (stage_bytes + barrier_bytes);
};
using GroupedTallTile = GroupedWgmmaTile<128, 192, 2>;
using GroupedShortTile = GroupedWgmmaTile<64, 192, 1>;

/// Copies rows of the left factor, in the order of their matrices: a thread moves 16 bytes.
template <class Slots>
__global__ void __launch_bounds__(256, 1)
    gather_rows(const int64_t work, const int k, const GroupedOrder order, const Out<typename Slots::Left> to, const Slots slots) {
  constexpr int vec = 16 / static_cast<int>(sizeof(typename Slots::Left));
  begin_kernel();
  const int64_t at = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (at >= work) return;
  const int chunks = k / vec;
  const int64_t place = at / chunks, first = at % chunks * vec;
  const int64_t from = slots.left_begin(order.row(place)) + first;
  to.template set_pack<vec>(place * k + first, slots.left().template get_pack<vec>(from));
}

/// Parameters of a launch.
struct GroupedWork {
  int n, steps;  // steps of 128 bytes along k
  int matrices;
};

#if defined(HEDDLE_HOPPER_CODE)

/// Fills the ring with the tiles of a block. Called by one thread. `side`: the block's place in its pair.
template <class T, class Tile>
__device__ __forceinline__ void fill_grouped_ring(Ring<Tile> ring, const CUtensorMap& left_map, const CUtensorMap& right_map, int steps,
                                                  int left_row, int right_row, int side) {
  for (int step = 0; step < steps; ++step, ring.advance()) {
    if (step >= Tile::stages) ring.empty().wait(ring.parity ^ 1);
    ring.full().arrive_expecting(Tile::stage_bytes);
    copy_box(ring.b(), right_map, ring.full(), step * box_columns<T>, right_row);
    if constexpr (Tile::pair == 1) {
      copy_box(ring.a(), left_map, ring.full(), step * box_columns<T>, left_row);
    } else {
      const int half = side * (Tile::rows / 2);
      copy_box_to_pair(ring.a() + static_cast<uint32_t>(half) * Tile::row_bytes, left_map, ring.full(), step * box_columns<T>, left_row + half, 0);
    }
  }
}

/// Sums of one thread as those of mma: pieces of eight columns.
template <int Columns>
struct WgmmaSums {
  const float (&sums)[Columns / 2];
  struct Row {
    const float (&sums)[Columns / 2];
    __device__ __forceinline__ const float (&operator[](int j) const)[4] { return reinterpret_cast<const float(&)[4]>(sums[4 * j]); }
  };
  __device__ __forceinline__ Row operator[](int) const { return {sums}; }
};

#endif

/// A block per tile of rows and Tile::columns columns: those of a pair, then the tiles of rows. `Whole`: no chunk of columns is cut off.
template <class Slots, class Tile, bool Whole>
__global__ void __launch_bounds__(Tile::threads, 1)
    grouped_wgmma(const __grid_constant__ CUtensorMap left_map, const __grid_constant__ CUtensorMap right_map, const GroupedWork work,
                  const GroupedOrder order, const Slots slots) {
#if defined(HEDDLE_HOPPER_CODE)
  using T = typename Slots::Left;
  HEDDLE_DYNAMIC_SHARED(shared);
  const Ring<Tile> ring{shared};
  if (threadIdx.x == 0) {
    prefetch_map(left_map);
    prefetch_map(right_map);
    for (int stage = 0; stage < Tile::stages; ++stage) {
      ring.full_of(stage).initialise(1);
      ring.empty_of(stage).initialise(Tile::pair * (Tile::multiplying / warpgroup_threads));
    }
    publish_barriers();
  }
  if constexpr (Tile::pair == 1) {
    __syncthreads();
  } else {
    cluster_barrier();
  }
  // In this order for the reason given in matmul_mma.cuh.
  wait_for_producers();
  release_consumers();
  const uint32_t cluster = blockIdx.x / Tile::pair, tiles = static_cast<uint32_t>(order.layout.most_tiles);
  const int tile = static_cast<int>(cluster % tiles), side = static_cast<int>(blockIdx.x % Tile::pair);
  if (tile >= order.tiles()) return;
  const GroupedTile own = order.tile(tile);
  const int column0 = (static_cast<int>(cluster / tiles) * Tile::pair + side) * Tile::columns;
  const int steps = own.matrix < work.matrices ? work.steps : 0;
  const bool multiplies = threadIdx.x < Tile::multiplying;
  float sums[Tile::columns / 2] = {};
  if (multiplies) {
    multiply_single<T, Tile, Tile::pair>(sums, ring, steps);
  } else if (threadIdx.x == Tile::multiplying) {
    fill_grouped_ring<T, Tile>(ring, left_map, right_map, steps, own.first, own.matrix * work.n + column0, side);
  }
  // Sums overwrite stages that the other warpgroup may still read.
  __syncthreads();
  if (multiplies) store_sums<Tile>(WgmmaSums<Tile::columns>{sums}, shared);
  __syncthreads();
  finish_grouped_tile<Tile, Whole>(slots, order, own, work.n, column0, shared);
#else
  __trap();
#endif
}

/// Number of blocks for the tiles of rows and n columns.
template <class Tile>
int64_t grouped_blocks(const GroupedLayout& layout, int64_t n) {
  constexpr int64_t of_pair = Tile::pair * Tile::columns;
  return (n + of_pair - 1) / of_pair * Tile::pair * layout.most_tiles;
}

/// Enqueues the order of rows, their copies, and the matmul with one tile.
template <class Tile, class Slots>
int32_t launch_grouped_wgmma(const heddle_launch* queue, heddle_error* error, const char* name, int64_t rows, int64_t n, int64_t k,
                             int64_t matrices, const Slots& slots) {
  using T = typename Slots::Left;
  constexpr int vec = 16 / static_cast<int>(sizeof(T)), copy_threads = 256;
  const GroupedLayout layout = GroupedLayout::of(rows, matrices, Tile::rows);
  const int64_t chunks = rows * (k / vec);
  const Scratch scratch(queue, error, name, layout.words());
  const Scratch copies(queue, error, name, chunks * 4, ScratchOf::op);
  int32_t status = scratch.status != HEDDLE_OK ? scratch.status : copies.status;
  CUtensorMap left_map, right_map;
  if (status == HEDDLE_OK) status = row_map(&left_map, error, name, copies.template in_as<T>(), rows, k, Tile::rows / Tile::pair);
  if (status == HEDDLE_OK) status = row_map(&right_map, error, name, slots.right(), matrices * n, k, Tile::columns);
  if (status == HEDDLE_OK) status = launch_group_rows(queue, error, name, rows, matrices, Tile::rows, layout, scratch, slots);
  const GroupedOrder order{scratch.template in_as<int>(), layout};
  if (status == HEDDLE_OK) {
    status = launch_elements(queue, error, name, chunks, copy_threads, gather_rows<Slots>, chunks, static_cast<int>(k), order,
                             copies.template out_as<T>(), slots);
  }
  if (status != HEDDLE_OK) return status;
  const GroupedWork work{static_cast<int>(n), static_cast<int>((k + box_columns<T> - 1) / box_columns<T>), static_cast<int>(matrices)};
  const dim3 grid(static_cast<unsigned int>(grouped_blocks<Tile>(layout, n)));
  const LaunchConfig config{name, grid, dim3(Tile::threads), Tile::shared_bytes, Sync::block, true, Tile::pair};
  const bool whole = n % 8 == 0 && EpilogueCall<Slots>::whole_chunks(slots);
  return launch(queue, error, config, whole ? grouped_wgmma<Slots, Tile, true> : grouped_wgmma<Slots, Tile, false>, left_map, right_map,
                work, order, slots);
}

/// True if the tiles of this header can multiply: both factors are within the coordinates of the copy engine.
inline bool can_group_by_wgmma(int64_t rows, int64_t n, int64_t k, int64_t matrices) {
  constexpr int64_t largest = INT32_MAX / 2;
  const Count right = Count(matrices) * Count(n), chunks = Count(rows) * Count(k);
  if (n > largest || right.is_overflow() || right.value > largest || chunks.is_overflow() || chunks.value / 8 / 256 > largest || matrices <= 0) return false;
  // The smaller tile has more blocks.
  const Count blocks = Count(grouped_blocks<GroupedShortTile>({0, 1}, n)) * Count(GroupedLayout::of(rows, matrices, GroupedShortTile::rows).most_tiles);
  return !blocks.is_overflow() && blocks.value <= largest && wgmma::can(rows, n, k);
}

}  // namespace heddle

#endif

#endif
