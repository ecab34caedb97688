// The tiles of a Hopper matmul: the division of work within a block, the ring in shared memory that the copy engine fills, and the wgmmas
// of one tile. matmul_wgmma.cuh combines them.
#ifndef HEDDLE_WGMMA_TILE_CUH
#define HEDDLE_WGMMA_TILE_CUH

#include "tensor_map.cuh"
#include "wgmma.cuh"
#include "wgmma_right.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

/// A tile of 128 rows and `Columns`, and its division between the two warpgroups: they take tiles in turns, or half of the rows of each
/// tile. Two blocks, a cluster, share the columns of two tiles, one below the other; with a `Split` of 2 they divide k of one tile. With
/// several `Products` of one left factor, the columns of the matmuls are concatenated in the tile.
template <int Columns, bool InTurns, int Split = 1, int Products = 1>
struct WgmmaTile {
  static constexpr int rows = 128;
  static constexpr int columns = Columns;
  static constexpr int products = Products, own_columns = Columns / Products;  // own: of the output
  static constexpr bool in_turns = InTurns;
  static constexpr int block_rows = 64;                // of one wgmma
  static constexpr int blocks = InTurns ? 2 : 1;       // of one warpgroup
  static constexpr int threads = 3 * warpgroup_threads;
  static constexpr int cluster = 2, split = Split, pair = cluster / split;
  static_assert(Split == 1 || (Split == 2 && !InTurns), "of a thread's two rows each block keeps one");
  static_assert(Products == 1 || (Products == pair && own_columns % permuted_rows == 0), "each block of a pair brings one product's columns");
  // Each block of a pair loads half of the columns for both; where that is not a whole number of boxes, all columns of every other step.
  static constexpr bool halves = pair > 1 && Columns % (pair * permuted_rows) == 0;
  static constexpr int box = halves ? Columns / pair : Columns;
  static constexpr uint32_t row_bytes = box_row_bytes;
  static constexpr uint32_t a_bytes = rows * row_bytes, b_bytes = columns * row_bytes, stage_bytes = a_bytes + b_bytes;
  static constexpr uint32_t barrier_bytes = 16;        // per stage: one for full, one for empty
  // Sums that the other part of k sends, per warp, and one barrier for each.
  static constexpr int warps = 2 * warpgroup_threads / 32;
  static constexpr uint32_t sent_bytes = Split > 1 ? Columns / 4 * 4 * 32 : 0;
  static constexpr uint32_t exchange_bytes = Split > 1 ? warps * (sent_bytes + barrier_bytes) : 0;
  static constexpr uint32_t shared_limit = 227 * 1024;
  static constexpr int stages = static_cast<int>((shared_limit - exchange_bytes) / (stage_bytes + barrier_bytes));
  static constexpr uint32_t ring_bytes = stages * (stage_bytes + barrier_bytes), shared_bytes = ring_bytes + exchange_bytes;
};

/// Parameters of a launch. Tiles are numbered in bands of `band` columns of tiles, whose factor stays in the L2 cache.
struct WgmmaWork {
  int m, n, steps;               // steps of 128 bytes along k
  int tile_pairs, tile_columns;  // down and across
  int band;
  bool read_b_early;

  __device__ __forceinline__ int count() const { return tile_pairs * tile_columns; }
};

/// Tensor maps of the matmuls' right factors.
template <int Products>
struct RightMaps {
  CUtensorMap of[Products];
};

#if defined(HEDDLE_HOPPER_CODE)

/// The ring of stages, as one thread iterates over it.
template <class Tile>
struct Ring {
  Shared16 tiles;
  int stage = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ Shared16 a() const { return tiles + static_cast<uint32_t>(stage) * Tile::stage_bytes; }
  __device__ __forceinline__ Shared16 b() const { return a() + Tile::a_bytes; }
  __device__ __forceinline__ PhaseBarrier full() const { return full_of(stage); }
  __device__ __forceinline__ PhaseBarrier empty() const { return empty_of(stage); }
  __device__ __forceinline__ PhaseBarrier full_of(int s) const {
    return {tiles.address + Tile::stages * Tile::stage_bytes + static_cast<uint32_t>(s) * Tile::barrier_bytes};
  }
  __device__ __forceinline__ PhaseBarrier empty_of(int s) const { return {full_of(s).address + Tile::barrier_bytes / 2}; }

  __device__ __forceinline__ void advance() {
    if (++stage < Tile::stages) return;
    stage = 0;
    parity ^= 1;
  }
  __device__ __forceinline__ void advance(int steps) {
    const unsigned int passed = static_cast<unsigned int>(stage + steps);
    stage = static_cast<int>(passed % Tile::stages);
    parity ^= passed / Tile::stages & 1;
  }
};

/// The pairs of tiles of a cluster: the first, and the distance to the next. Recomputed where they are needed, since registers are scarce.
template <class Tile>
__device__ __forceinline__ int first_pair() {
  return static_cast<int>(blockIdx.x / Tile::cluster);
}
template <class Tile>
__device__ __forceinline__ int pair_stride() {
  return static_cast<int>(gridDim.x / Tile::cluster);
}

/// The part of k that the block computes, and its steps: the first parts have one more where they do not divide evenly.
template <class Tile>
__device__ __forceinline__ int part_of_k() {
  return Tile::split == 1 ? 0 : static_cast<int>(cluster_rank()) / Tile::pair;
}
struct Steps {
  int begin, count;
};
template <class Tile>
__device__ __forceinline__ Steps own_steps(const WgmmaWork& work) {
  if constexpr (Tile::split == 1) {
    return {0, work.steps};
  } else {
    const int part = part_of_k<Tile>(), share = work.steps / Tile::split, rest = work.steps % Tile::split;
    return {part * share + min(part, rest), share + (part < rest ? 1 : 0)};
  }
}

/// Position of the first element of the block's tile of pair `index`.
struct TileOrigin {
  int row, column;
};

template <class Tile>
__device__ __forceinline__ TileOrigin tile_origin(const WgmmaWork& work, int index) {
  const int band = index / (work.band * work.tile_pairs), first = band * work.band;
  const int width = min(work.band, work.tile_columns - first), place = index - first * work.tile_pairs;
  const int row = (place / width * Tile::pair + static_cast<int>(cluster_rank()) % Tile::pair) * Tile::rows;
  return {row, (first + place % width) * Tile::own_columns};
}

/// Fills the ring with the block's tiles of a and its share of those of b. Called by one thread. `Permuted`: as in copy_right().
template <class T, class Tile, bool Permuted>
__device__ __forceinline__ void fill_ring(Ring<Tile> ring, const CUtensorMap& a_map, const RightMaps<Tile::products>& b_maps,
                                          const WgmmaWork& work) {
  const int rank = static_cast<int>(cluster_rank()) % Tile::pair;
  const Steps steps = own_steps<Tile>(work);
  const auto start_b = [&](const Ring<Tile>& at, int column, int step) {
    at.full().arrive_expecting(Tile::stage_bytes);
    const int first = (steps.begin + step) * box_columns<T>;
    if constexpr (Tile::pair == 1) {
      copy_right<Tile::box, Permuted>(at.b(), b_maps.of[0], at.full(), first, column, work.n);
    } else if constexpr (Tile::products > 1) {
      copy_right<Tile::box, Permuted, true>(at.b() + static_cast<uint32_t>(rank) * (Tile::box * Tile::row_bytes), b_maps.of[rank],
                                            at.full(), first, column, work.n);
    } else if constexpr (Tile::halves) {
      copy_right<Tile::box, Permuted, true>(at.b() + static_cast<uint32_t>(rank) * (Tile::box * Tile::row_bytes), b_maps.of[0],
                                            at.full(), first, column + rank * Tile::box, work.n);
    } else if (step % 2 == rank) {
      copy_right<Tile::box, Permuted, true>(at.b(), b_maps.of[0], at.full(), first, column, work.n);
    }
  };
  int early = work.read_b_early ? min(steps.count, Tile::stages) : 0;
  Ring<Tile> ahead = ring;
  for (int step = 0; step < early; ++step, ahead.advance()) start_b(ahead, tile_origin<Tile>(work, first_pair<Tile>()).column, step);
  wait_for_producers();
  for (int index = first_pair<Tile>(); index < work.count(); index += pair_stride<Tile>()) {
    const TileOrigin origin = tile_origin<Tile>(work, index);
    for (int step = 0; step < steps.count; ++step, ring.advance()) {
      if (early > 0) {
        --early;
      } else {
        ring.empty().wait(ring.parity ^ 1);
        start_b(ring, origin.column, step);
      }
      copy_box(ring.a(), a_map, ring.full(), (steps.begin + step) * box_columns<T>, origin.row);
    }
  }
}

/// Multiplies one tile in one warpgroup; `first_row` is the first of its rows in the tile. Stages are released to both blocks' copies,
/// since each fills part of the other's ring. `taken` runs when all stages have arrived and the next tile's may be waited for.
template <class T, class Tile, class Taken>
__device__ __forceinline__ void multiply_tile(SumOf<T> (&sums)[Tile::blocks][Tile::columns / 2], Ring<Tile>& ring, int steps,
                                              int first_row, Taken taken) {
  const uint32_t thread = threadIdx.x % warpgroup_threads;
  const auto give_back = [&](PhaseBarrier empty) {
    if (thread < Tile::pair) empty.arrive_at(part_of_k<Tile>() * Tile::pair + thread);
  };
  PhaseBarrier previous{};
  for (int step = 0; step < steps; ++step) {
    ring.full().wait(ring.parity);
    begin_products();
    HEDDLE_UNROLL
    for (int part = 0; part < 4; ++part) {
      const uint64_t b = swizzled_rows(ring.b()) + 2 * part;
      HEDDLE_UNROLL
      for (int block = 0; block < Tile::blocks; ++block) {
        const Shared16 a = ring.a() + static_cast<uint32_t>(first_row + block * Tile::block_rows) * Tile::row_bytes;
        multiply_rows<T, Tile::columns>(sums[block], swizzled_rows(a) + 2 * part, b, step | part);
      }
    }
    commit_products();
    wait_products<1>();
    if (step > 0) give_back(previous);
    previous = ring.empty();
    ring.advance();
  }
  taken();
  wait_products<0>();
  HEDDLE_UNROLL
  for (int block = 0; block < Tile::blocks; ++block) pin(sums[block]);
  give_back(previous);
}

#endif

}  // namespace heddle

#endif

#endif
