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
#include "wgmma_parts.cuh"
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
  for (int index = first_pair<Tile>(); index < count; index += pair_stride<Tile>(), turn ^= 1) {
    if (Tile::in_turns && turn != group) {
      ring.advance(work.steps);
      continue;
    }
    using Chunks = ThreadChunks<Tile, Whole, Epilogue>;
    Chunks chunks(epilogue, work);
    if (Chunks::load_early) {
      chunks.place(tile_origin<Tile>(work, index), offset + own_row<Tile>());
      chunks.load(0, Chunks::held);
    }
    // A barrier's parity tells the present phase from its neighbours only, so a warpgroup waits for its turn first.
    if (Tile::in_turns && index != first_pair<Tile>()) await_warpgroup(1 + group);
    SumOf<T> sums[Tile::blocks][Tile::columns / 2];
    multiply_tile<T, Tile>(sums, ring, own_steps<Tile>(work).count, offset, [&] {
      if (Tile::in_turns && index + pair_stride<Tile>() < count) signal_warpgroup(2 - group);
    });
    if (!Chunks::load_early) chunks.place(tile_origin<Tile>(work, index), offset + own_row<Tile>());
    if constexpr (Tile::split > 1) {
      SumOf<T> own[1][Chunks::sums];
      add_parts_of_k<T, Tile>(own[0], sums[0], ring.tiles);
      chunks.finish(own);
    } else {
      chunks.finish(sums);
    }
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
    if constexpr (Tile::split > 1) expect_parts_of_k<Tile>(ring.tiles);
    publish_barriers();
  }
  cluster_barrier();
  // Together what a block is launched with. Copies of a part of k need more.
  constexpr int few = Tile::split > 1 ? 40 : 24, many = Tile::split > 1 ? 232 : 240;
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
  if (status == HEDDLE_OK) status = permuted_map(&b_map, error, name, b, n, k, Tile::box);
  if (status != HEDDLE_OK) return status;

  // A band's factor takes at most half of a 50 MB cache.
  constexpr int64_t band_bytes = 24 << 20;
  const int64_t column_bytes = Tile::columns * k * static_cast<int64_t>(sizeof(T));
  const int64_t pairs = divide_up(m, Tile::pair * Tile::rows), columns = divide_up(n, Tile::columns);
  const int64_t band = std::min(columns, std::max<int64_t>(1, band_bytes / column_bytes));
  const WgmmaWork work{static_cast<int>(m),     static_cast<int>(n),       static_cast<int>(divide_up(k, box_columns<T>)),
                       static_cast<int>(pairs), static_cast<int>(columns), static_cast<int>(band),
                       read_b_early};
  const int64_t clusters = Tile::split > 1 ? pairs * columns : std::min(pairs * columns, pairs_at_once);
  const dim3 grid(static_cast<unsigned int>(Tile::cluster * clusters));
  const LaunchConfig config{name, grid, dim3(Tile::threads), Tile::shared_bytes, Sync::block, true, Tile::cluster};
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

/// Whether there are tiles of 160 columns, and such whose k two blocks divide: of int8 neither was measured.
template <class T>
constexpr bool has_more_tiles = !std::is_same_v<T, signed char>;

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
  const bool is_middle = choice.tile == MatmulTile::pair_128x160 || choice.tile == MatmulTile::turns_128x160;
  const bool splits = choice.tile == MatmulTile::pair_128x128 || choice.tile == MatmulTile::pair_128x160;
  if (choice.split != 1 && !(has_more_tiles<T> && choice.split == 2 && splits)) return false;
  if (is_middle && !has_more_tiles<T>) return false;
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

/// What a product costs in tiles of 128 rows and `columns` that blocks compute one each, in cycles of a multiprocessor: the rounds of
/// blocks, in each its steps and what is `around` them. A step takes as long as its products, or what it reads of the L2 cache: by one
/// multiprocessor, and by all of them, which share it. From timing these tiles for 128 to 1,024 rows on an H200.
inline int64_t cost_of(int64_t columns, int64_t steps, int64_t blocks, int64_t at_once, int64_t around) {
  constexpr int64_t rows = 128, products_a_cycle = 32;          // of 64 elements of k
  constexpr int64_t own_bytes_a_cycle = 72, bytes_a_cycle = 46;  // of one multiprocessor, alone and beside all others
  const int64_t products = rows * columns / products_a_cycle * (columns == 160 ? 9 : 8) / 8, read = (rows + columns) * box_row_bytes;
  const int64_t step = std::max({products, read / own_bytes_a_cycle, read * std::min(blocks, at_once) / (bytes_a_cycle * at_once)});
  return divide_up(blocks, at_once) * (steps * step + around);
}

struct PricedChoice {
  MatmulChoice choice;
  int64_t cost;
};

/// The cheapest of the single tiles that `may` be chosen.
template <class T, class May>
PricedChoice cheapest_single(int64_t m, int64_t n, int64_t k, May may) {
  constexpr int64_t fill = 2000;
  const int64_t at_once = device_attribute(cudaDevAttrMultiProcessorCount), steps = divide_up(k, box_columns<T>);
  // Weights arrive at most at this rate, from memory.
  constexpr int64_t memory_bytes_a_cycle = 2480;
  const int64_t arrival = n * k * static_cast<int64_t>(sizeof(T)) / memory_bytes_a_cycle;
  PricedChoice best = {{}, INT64_MAX};
  const auto consider = [&](MatmulTile tile, int64_t columns) {
    const int64_t cost = cost_of(columns, steps, divide_up(m, 128) * divide_up(n, columns), at_once, fill);
    if (may(tile) && std::max(cost, arrival + fill) < best.cost) best = {{tile}, std::max(cost, arrival + fill)};
  };
  consider(MatmulTile::single_128x64, 64);
  consider(MatmulTile::single_128x96, 96);
  consider(MatmulTile::single_128x128, 128);
  return best;
}

/// A tile whose k two blocks divide, where that beats the `single` one by more than a tenth: its sums are exchanged, but it is larger for
/// as many blocks, so the factors are read less often.
template <class T>
MatmulChoice choose_halves(PricedChoice single, int64_t m, int64_t n, int64_t k) {
  if (!has_more_tiles<T>) return single.choice;
  constexpr int64_t exchange = 7000;
  const int64_t at_once = device_attribute(cudaDevAttrMultiProcessorCount), steps = divide_up(k, 2 * box_columns<T>);
  PricedChoice best = {single.choice, single.cost / 11 * 10};
  const auto consider = [&](MatmulTile tile, int64_t columns) {
    const int64_t blocks = 2 * divide_up(m, 128) * divide_up(n, columns), cost = cost_of(columns, steps, blocks, at_once, exchange);
    if (blocks <= at_once && cost < best.cost) best = {{tile, 2}, cost};
  };
  consider(MatmulTile::pair_128x128, 128);
  consider(MatmulTile::pair_128x160, 160);
  return best.choice;
}

/// Whether a product of 16 bits has one tile of rows, more than half full, and so many columns and so long a k that they matter more.
inline bool is_half_full(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t half = 64, whole = 128, many_columns = 4096, long_k = 1024;
  return m > half && m <= whole && n >= many_columns && k >= long_k;
}

/// How to compute a product; no tile where another body is faster.
template <class T, class Epilogue>
MatmulChoice choose(int64_t m, int64_t n, int64_t k, const Epilogue& epilogue) {
  // With tiles for less than two thirds of the GPU, smaller ones win, and where much of the lower tile of a pair is empty.
  const int64_t pairs = divide_up(m, 256) * divide_up(n, 128);
  const bool is_full = m >= 512 || (has_more_tiles<T> && 4 * m >= 3 * 256 * divide_up(m, 256));
  const bool many = is_full && pairs * 3 >= pairs_at_once() * 2;
  if constexpr (in_two_steps<Epilogue>) {
    if (epilogue.whole_chunks()) {
      const auto any = [](MatmulTile) { return true; };
      if (has_more_tiles<T> && is_half_full(m, n, k)) return choose_halves<T>(cheapest_single<T>(m, n, k, any), m, n, k);
      const MatmulTile single = choose_single<T>(m, n, k);
      if (single != MatmulTile::none) {
        return choose_halves<T>(cheapest_single<T>(m, n, k, [&](MatmulTile tile) { return tile == single; }), m, n, k);
      }
      if (!many) return {};
      const int64_t narrow = rounds<WgmmaTile<128, true>>(m, n, pairs_at_once());
      const int64_t middle = rounds<WgmmaTile<160, true>>(m, n, pairs_at_once());
      const int64_t wide = rounds<WgmmaTile<192, true>>(m, n, pairs_at_once());
      if (narrow == 1) return {MatmulTile::pair_128x128};
      if (has_more_tiles<T> && middle == 1) return {MatmulTile::pair_128x160};
      if (wide == 1) return {MatmulTile::pair_128x192};
      // What a round takes, in columns of the narrowest: a wide tile reads less of the factors. From timing all three for 1,024 to 6,144
      // rows and n and k of 1,280 to 22,016 on an H200.
      constexpr int64_t middle_columns = 166, wide_columns = 184;
      MatmulTile best = MatmulTile::turns_128x128;
      int64_t least = narrow * 128;
      if (has_more_tiles<T> && middle * middle_columns < least) best = MatmulTile::turns_128x160, least = middle * middle_columns;
      if (wide_in_turns<T, Epilogue>() && wide * wide_columns < least) best = MatmulTile::turns_128x192;
      return {best};
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
          if constexpr (wgmma::has_more_tiles<T>) {
            if (choice.split == 2) return run(WgmmaTile<128, false, 2>(), Constant<true>());
          }
          return run(WgmmaTile<128, false>(), Constant<true>());
        case MatmulTile::pair_128x160:
          if constexpr (wgmma::has_more_tiles<T>) {
            if (choice.split == 2) return run(WgmmaTile<160, false, 2>(), Constant<true>());
            return run(WgmmaTile<160, false>(), Constant<true>());
          }
          break;
        case MatmulTile::pair_128x192:
          return run(WgmmaTile<192, false>(), Constant<true>());
        case MatmulTile::turns_128x160:
          if constexpr (wgmma::has_more_tiles<T>) return run(WgmmaTile<160, true>(), Constant<true>());
          break;
        case MatmulTile::turns_128x192:
          return run(WgmmaTile<wgmma::wide_in_turns<T, Epilogue>() ? 192 : 128, true>(), Constant<true>());
        default:
          break;
      }
      return run(WgmmaTile<128, true>(), Constant<true>());
    }
  }
  return run(WgmmaTile<128, true>(), Constant<false>());
}

}  // namespace heddle

#endif

#endif
