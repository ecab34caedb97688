// Matmul for many rows on Hopper: the copy engine (TMA) feeds a ring of tiles in shared memory, warpgroups multiply them with wgmma and
// pass their sums to a compiled epilogue. Blocks work in pairs (a cluster) on two tiles, one below the other: each loads half of the
// columns' factor and multicasts it to both. The grid is as large as the GPU; a block takes tiles until none is left.
//
// A block is one warpgroup whose first thread starts the copies and two that multiply. These take turns with tiles of their own
// (ping-pong), so that one multiplies while the other is in its epilogue. If there is only one tile per block they share it. Matmuls too
// small to fill the GPU with such tiles go to wgmma_single.cuh. Two matmuls of one left factor divide a tile's columns
// (matmul_products_wgmma.cuh), so that they are one matmul to all but the copies and the epilogue.
//
// wgmma exists in machine code of sm_90a only: a library for GPUs of compute capability 9.0 is built for that architecture.
#ifndef HEDDLE_MATMUL_WGMMA_CUH
#define HEDDLE_MATMUL_WGMMA_CUH

#include <algorithm>
#include <type_traits>

#include "matmul_choice.cuh"
#include "wgmma_choice.cuh"
#include "wgmma_epilogue.cuh"
#include "wgmma_parts.cuh"
#include "wgmma_single.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

#if defined(HEDDLE_HOPPER_CODE)

/// Computes the matmuls and epilogues of the tiles of one of the two warpgroups.
template <class T, class Tile, bool Whole, class Epilogue>
__device__ __forceinline__ void multiply_and_finish(Ring<Tile> ring, const WgmmaWork& work, const Epilogue& epilogue) {
  // The next launch may start only now: lines that its blocks bring into the L1 cache before could be older than this launch's input.
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
    // A barrier's parity distinguishes the present phase from its neighbours only, so a warpgroup waits for its turn first.
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
    matmul_wgmma(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ RightMaps<Tile::products> b_maps,
                 const WgmmaWork work, const Epilogue epilogue) {
#if defined(HEDDLE_HOPPER_CODE)
  HEDDLE_DYNAMIC_SHARED(tiles);
  const Ring<Tile> ring{tiles};
  if (threadIdx.x == 0) {
    prefetch_map(a_map);
    HEDDLE_UNROLL
    for (int product = 0; product < Tile::products; ++product) prefetch_map(b_maps.of[product]);
    for (int stage = 0; stage < Tile::stages; ++stage) {
      ring.full_of(stage).initialise(1);
      ring.empty_of(stage).initialise(Tile::pair * (Tile::in_turns ? 1 : 2));
    }
    if constexpr (Tile::split > 1) expect_parts_of_k<Tile>(ring.tiles);
    publish_barriers();
  }
  cluster_barrier();
  // The sum of both is the number of registers at launch. Copies of a part of k need more.
  constexpr int few = Tile::split > 1 ? 40 : 24, many = Tile::split > 1 ? 232 : 240;
  if (threadIdx.x < warpgroup_threads) {
    shrink_registers<few>();
    if (threadIdx.x == 0) fill_ring<T, Tile, Whole>(ring, a_map, b_maps, work);
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

template <class T, class Tile, bool Whole, class Epilogue>
int32_t launch_tiles(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                     const In<T>& a, const In<T> (&b)[Tile::products], const Epilogue& epilogue, bool read_b_early,
                     int64_t pairs_at_once) {
  CUtensorMap a_map;
  RightMaps<Tile::products> b_maps;
  int32_t status = row_map(&a_map, error, name, a, m, k, Tile::rows);
  for (int product = 0; product < Tile::products && status == HEDDLE_OK; ++product) {
    status = right_map<Whole>(&b_maps.of[product], error, name, b[product], n, k, Tile::box);
  }
  if (status != HEDDLE_OK) return status;

  // A band's factor takes at most half of a 50 MB L2 cache.
  constexpr int64_t band_bytes = 24 << 20;
  const int64_t column_bytes = Tile::columns * k * static_cast<int64_t>(sizeof(T));
  const int64_t pairs = divide_up(m, Tile::pair * Tile::rows), columns = divide_up(n, Tile::own_columns);
  const int64_t band = std::min(columns, std::max<int64_t>(1, band_bytes / column_bytes));
  const WgmmaWork work{static_cast<int>(m),     static_cast<int>(n),       static_cast<int>(divide_up(k, box_columns<T>)),
                       static_cast<int>(pairs), static_cast<int>(columns), static_cast<int>(band),
                       read_b_early};
  const int64_t clusters = Tile::split > 1 ? pairs * columns : std::min(pairs * columns, pairs_at_once);
  const dim3 grid(static_cast<unsigned int>(Tile::cluster * clusters));
  const LaunchConfig config{name, grid, dim3(Tile::threads), Tile::shared_bytes, Sync::block, true, Tile::cluster};
  return launch(queue, error, config, matmul_wgmma<T, Tile, Whole, Epilogue>, a_map, b_maps, work, epilogue);
}

}  // namespace wgmma

/// Enqueues epilogue(a x b transposed) with a tile that exists(), for a matmul that it can() compute. An epilogue in two steps (see
/// matmul.cuh) whose chunks are all whole is fastest. `read_b_early`: no launch writes b, so that b may be read while earlier launches run.
template <class T, class Epilogue>
int32_t launch_matmul_wgmma(const MatmulChoice& choice, const heddle_launch* launch, heddle_error* error, const char* name, int64_t m,
                            int64_t n, int64_t k, In<T> a, In<T> b, Epilogue epilogue, bool read_b_early = false) {
  const auto run = [&](auto tile, auto whole) {
    return wgmma::launch_tiles<T, decltype(tile), decltype(whole)::value>(launch, error, name, m, n, k, a, {b}, epilogue,
                                                                          read_b_early, wgmma::pairs_at_once());
  };
  if constexpr (wgmma::in_two_steps<Epilogue>) {
    const auto run_single = [&](auto tile, auto whole) {
      return launch_wgmma_single<decltype(tile), decltype(whole)::value>(launch, error, name, m, n, k, a, b, epilogue, read_b_early);
    };
    if (!wgmma::is_whole(n, epilogue)) {
      if (choice.tile == MatmulTile::single_128x64) return run_single(SingleTile<64>(), Constant<false>());
      if constexpr (wgmma::has_ragged_square<Epilogue>) {
        if (choice.tile == MatmulTile::single_128x128) return run_single(SingleTile<128>(), Constant<false>());
      }
    } else {
      switch (choice.tile) {
        case MatmulTile::single_128x64:
          return run_single(SingleTile<64>(), Constant<true>());
        case MatmulTile::single_128x96:
          return run_single(SingleTile<96>(), Constant<true>());
        case MatmulTile::single_128x128:
          return run_single(SingleTile<128>(), Constant<true>());
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
