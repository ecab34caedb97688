// Matmul for many rows on Hopper: the copy engine feeds a ring of tiles in shared memory, warpgroups multiply them with wgmma and
// hand their sums to a compiled epilogue. Blocks work in pairs (a cluster) on two tiles one below the other: each reads half of
// the columns' factor and sends it to both. The grid is as large as the GPU; a block takes tiles until none is left.
//
// A block is one warpgroup whose first thread starts the copies and two that multiply. These take turns with tiles of their own,
// so that one multiplies while the other is in its epilogue; when there is only one tile for each block they share it. Products
// too small to fill the GPU with such tiles go to wgmma_single.cuh.
//
// wgmma is machine code of sm_90a alone: a library for GPUs of compute capability 9.0 is built for that architecture.
#ifndef HEDDLE_MATMUL_WGMMA_CUH
#define HEDDLE_MATMUL_WGMMA_CUH

#include <algorithm>
#include <type_traits>

#include "matmul_choice.cuh"
#include "wgmma_epilogue.cuh"
#include "wgmma_single.cuh"

#if !defined(HEDDLE_SIMT)

namespace heddle {

#if defined(HEDDLE_HOPPER_CODE)

/// One of the two warpgroups: products and epilogues of its tiles.
template <class T, class Tile, bool Whole, class Epilogue>
__device__ __forceinline__ void multiply_and_finish(Ring<Tile> ring, const WgmmaWork& work, const Epilogue& epilogue) {
  // The next launch may start only now: what its blocks brought to the L1 cache before could be older than this launch's input.
  wait_for_producers();
  release_consumers();
  const int group = static_cast<int>(threadIdx.x / warpgroup_threads) - 1;
  const int offset = Tile::in_turns ? 0 : group * Tile::block_rows;
  const int count = work.count();
  int turn = 0;
  for (int index = first_pair(); index < count; index += pair_stride(), turn ^= 1) {
    if (Tile::in_turns && turn != group) {
      ring.advance(work.steps);
      continue;
    }
    using Chunks = ThreadChunks<Tile, Whole, Epilogue>;
    Chunks chunks(epilogue, work);
    if (Chunks::load_early) {
      chunks.place(tile_origin<Tile>(work, index), offset);
      chunks.load(0, Chunks::held);
    }
    // A barrier's parity tells the present phase from its neighbours only, so a warpgroup waits for its turn first.
    if (Tile::in_turns && index != first_pair()) await_warpgroup(1 + group);
    SumOf<T> sums[Tile::blocks][Tile::columns / 2];
    multiply_tile<T, Tile>(sums, ring, work.steps, offset, [&] {
      if (Tile::in_turns && index + pair_stride() < count) signal_warpgroup(2 - group);
    });
    if (!Chunks::load_early) chunks.place(tile_origin<Tile>(work, index), offset);
    chunks.finish(sums);
  }
}

#endif

template <class T, class Tile, bool Whole, class Epilogue>
__global__ void __launch_bounds__(Tile::threads, 1)
    matmul_wgmma(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, const WgmmaWork work,
                 const Epilogue epilogue) {
#if defined(HEDDLE_HOPPER_CODE)
  HEDDLE_DYNAMIC_SHARED(tiles);
  const Ring<Tile> ring{tiles};
  if (threadIdx.x == 0) {
    prefetch_map(a_map);
    prefetch_map(b_map);
    for (int stage = 0; stage < Tile::stages; ++stage) {
      ring.full_of(stage).initialise(1);
      ring.empty_of(stage).initialise(Tile::pair * (Tile::in_turns ? 1 : 2));
    }
    publish_barriers();
  }
  cluster_barrier();
  constexpr int few = 24, many = 240;
  if (threadIdx.x < warpgroup_threads) {
    shrink_registers<few>();
    if (threadIdx.x == 0) fill_ring<T>(ring, a_map, b_map, work);
  } else {
    grow_registers<many>();
    multiply_and_finish<T, Tile, Whole>(ring, work, epilogue);
  }
  // The other block may still write to this one's shared memory.
  cluster_barrier();
#else
  __trap();
#endif
}

namespace wgmma {

template <class Epilogue, class = void>
constexpr bool in_two_steps = false;
template <class Epilogue>
constexpr bool in_two_steps<Epilogue, std::void_t<typename Epilogue::Loaded>> = true;

/// Clusters that run at the same time.
inline int64_t pairs_at_once() { return std::max(1, device_attribute(cudaDevAttrMultiProcessorCount) / 2); }

inline int64_t divide_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

/// Tiles one block computes one after the other.
template <class Tile>
int64_t rounds(int64_t m, int64_t n, int64_t pairs_at_once) {
  return divide_up(divide_up(m, Tile::pair * Tile::rows) * divide_up(n, Tile::columns), pairs_at_once);
}

template <class T, class Tile, bool Whole, class Epilogue>
int32_t launch_tiles(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                     const In<T>& a, const In<T>& b, const Epilogue& epilogue, bool read_b_early, int64_t pairs_at_once) {
  CUtensorMap a_map, b_map;
  int32_t status = row_map(&a_map, error, name, a, m, k, Tile::rows);
  if (status == HEDDLE_OK) status = permuted_map(&b_map, error, name, b, n, k, Tile::columns / Tile::pair);
  if (status != HEDDLE_OK) return status;

  // A band's factor takes at most half of a 50 MB cache.
  constexpr int64_t band_bytes = 24 << 20;
  const int64_t column_bytes = Tile::columns * k * static_cast<int64_t>(sizeof(T));
  const int64_t pairs = divide_up(m, Tile::pair * Tile::rows), columns = divide_up(n, Tile::columns);
  const int64_t band = std::min(columns, std::max<int64_t>(1, band_bytes / column_bytes));
  const WgmmaWork work{static_cast<int>(m),     static_cast<int>(n),       static_cast<int>(divide_up(k, box_columns<T>)),
                       static_cast<int>(pairs), static_cast<int>(columns), static_cast<int>(band),
                       read_b_early};
  const dim3 grid(static_cast<unsigned int>(Tile::pair * std::min(pairs * columns, pairs_at_once)));
  const LaunchConfig config{name, grid, dim3(Tile::threads), Tile::shared_bytes, Sync::block, true, Tile::pair};
  return launch(queue, error, config, matmul_wgmma<T, Tile, Whole, Epilogue>, a_map, b_map, work, epilogue);
}

/// A wide tile taken in turns leaves no registers for loads that run ahead, so where rows are loaded there is none. Nor of int8: a
/// step takes as long as that of wider types and there are half as many, so epilogues take more of the time.
template <class T, class Epilogue>
constexpr bool wide_in_turns() {
  if constexpr (in_two_steps<Epilogue>) {
    return sizeof(typename Epilogue::Loaded) <= 16 && !std::is_same_v<T, signed char>;
  } else {
    return false;
  }
}

/// Whether the tiles of this header and of wgmma_single.cuh can compute a product whose rows are aligned to 16 bytes.
inline bool can(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t largest = INT32_MAX / 2;
  const int64_t pairs = divide_up(m, 256) * divide_up(n, 128);
  return m <= largest && n <= largest && k <= largest && pairs <= largest && n % permuted_rows == 0 &&
         device_attribute(cudaDevAttrComputeCapabilityMajor) == 9 && tensor_maps::encoder() != nullptr;
}

/// Whether there is such a tile for an epilogue.
template <class T, class Epilogue>
bool exists(const MatmulChoice& choice, const Epilogue& epilogue) {
  if (choice.split != 1) return false;
  if (choice.tile == MatmulTile::turns_128x128) return true;
  if constexpr (in_two_steps<Epilogue>) {
    if (!epilogue.whole_chunks() || choice.tile < MatmulTile::single_128x64) return false;
    return choice.tile < MatmulTile::turns_128x192 || (choice.tile == MatmulTile::turns_128x192 && wide_in_turns<T, Epilogue>());
  } else {
    return false;
  }
}

/// The single tile that is the fastest for a product, or none. From timing all widths for the matmuls of a 768 wide layer, 192 to
/// 3500 rows, on a GPU of 132 multiprocessors.
template <class T>
MatmulTile choose_single(int64_t m, int64_t n, int64_t k) {
  const int64_t at_once = device_attribute(cudaDevAttrMultiProcessorCount);
  const auto tiles = [&](int64_t columns) { return divide_up(m, SingleTile<64>::rows) * divide_up(n, columns); };
  // Few rows leave much of a tile empty, few tiles most of the GPU; and a long k can then be divided, as long as halves of 64 x 96
  // all run at once. Of int8, dividing a k of 24 and of 32 steps was slower than not to.
  constexpr int64_t few_rows = 256, long_k = 24 * box_columns<T>;
  constexpr int64_t divided_k = std::is_same_v<T, signed char> ? 40 * box_columns<T> : long_k;
  const bool halves = k >= divided_k && 2 * divide_up(m, 64) * divide_up(n, 96) <= at_once;
  if (m < few_rows || 2 * tiles(64) <= at_once || halves) return MatmulTile::none;
  // The narrowest of which all run at once takes the least time.
  if (tiles(64) <= at_once) return MatmulTile::single_128x64;
  if (tiles(96) <= at_once) return MatmulTile::single_128x96;
  // Pairs of tiles read less, but an odd number of rows of tiles may cost them a round, and over a long k they wait for each other.
  const bool pairs_lose = k >= long_k || rounds<WgmmaTile<128, false>>(m, n, pairs_at_once()) > 1;
  return tiles(128) <= at_once && pairs_lose ? MatmulTile::single_128x128 : MatmulTile::none;
}

/// How to compute a product; no tile where another body is faster.
template <class T, class Epilogue>
MatmulChoice choose(int64_t m, int64_t n, int64_t k, const Epilogue& epilogue) {
  // With tiles for less than two thirds of the GPU, smaller ones win.
  const int64_t pairs = divide_up(m, 256) * divide_up(n, 128);
  const bool many = m >= 512 && pairs * 3 >= pairs_at_once() * 2;
  if constexpr (in_two_steps<Epilogue>) {
    if (epilogue.whole_chunks()) {
      const MatmulTile single = choose_single<T>(m, n, k);
      if (single != MatmulTile::none) return {single};
      if (!many) return {};
      // Time goes with rounds x columns. A wide tile reads less of the factors, so a narrow one must save something.
      const int64_t wide = rounds<WgmmaTile<192, true>>(m, n, pairs_at_once());
      const int64_t narrow = rounds<WgmmaTile<128, true>>(m, n, pairs_at_once());
      if (narrow == 1) return {MatmulTile::pair_128x128};
      if (wide == 1) return {MatmulTile::pair_128x192};
      return {narrow * 128 < wide * 192 || !wide_in_turns<T, Epilogue>() ? MatmulTile::turns_128x128 : MatmulTile::turns_128x192};
    }
  }
  return {many ? MatmulTile::turns_128x128 : MatmulTile::none};
}

}  // namespace wgmma

/// Enqueues epilogue(a x b transposed) by a tile that exists(), for a product it can() compute. An epilogue in two steps (see
/// matmul.cuh) whose chunks are all whole is fastest. `read_b_early`: no launch writes b, so that it may be read while earlier
/// launches run.
template <class T, class Epilogue>
int32_t launch_matmul_wgmma(const MatmulChoice& choice, const heddle_launch* launch, heddle_error* error, const char* name, int64_t m,
                            int64_t n, int64_t k, In<T> a, In<T> b, Epilogue epilogue, bool read_b_early = false) {
  const auto run = [&](auto tile, auto whole) {
    return wgmma::launch_tiles<T, decltype(tile), decltype(whole)::value>(launch, error, name, m, n, k, a, b, epilogue,
                                                                          read_b_early, wgmma::pairs_at_once());
  };
  if constexpr (wgmma::in_two_steps<Epilogue>) {
    const auto run_single = [&](auto columns) {
      using Tile = SingleTile<decltype(columns)::value>;
      return launch_wgmma_single<Tile>(launch, error, name, m, n, k, a, b, epilogue, read_b_early);
    };
    if (epilogue.whole_chunks()) {
      switch (choice.tile) {
        case MatmulTile::single_128x64:
          return run_single(std::integral_constant<int, 64>());
        case MatmulTile::single_128x96:
          return run_single(std::integral_constant<int, 96>());
        case MatmulTile::single_128x128:
          return run_single(std::integral_constant<int, 128>());
        case MatmulTile::pair_128x128:
          return run(WgmmaTile<128, false>(), Constant<true>());
        case MatmulTile::pair_128x192:
          return run(WgmmaTile<192, false>(), Constant<true>());
        case MatmulTile::turns_128x192:
          return run(WgmmaTile<wgmma::wide_in_turns<T, Epilogue>() ? 192 : 128, true>(), Constant<true>());
        default:
          return run(WgmmaTile<128, true>(), Constant<true>());
      }
    }
  }
  return run(WgmmaTile<128, true>(), Constant<false>());
}

}  // namespace heddle

#endif

#endif
