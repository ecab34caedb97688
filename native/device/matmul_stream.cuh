// Several matmuls of one left factor of few rows on Hopper, such as a gate and the values that it scales, whose time is bound by reading
// their weights. The copy engine (TMA) streams the weights through a ring in shared memory and starts before the previous launch has ended.
// Each cluster reads the rows of the left factor once and multicasts them to all of its blocks. A thread holds the same columns of every
// matmul, so that the epilogue combines them in registers. No block divides k, so sums have one order.
//
// Only for right factors that may be copied unchanged; otherwise matmul_products_mma.cuh computes the same.
#ifndef HEDDLE_MATMUL_STREAM_CUH
#define HEDDLE_MATMUL_STREAM_CUH

#include "matmul_cluster_choice.cuh"
#include "matmul_products_wgmma.cuh"
#include "matmul_stream_tile.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

/// Blocks of a cluster are neighbours along x. All chunks of the epilogue are whole.
template <class Tile, class Slots>
__global__ void __launch_bounds__(Tile::threads, Tile::most_sharing)
    matmul_stream(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ RightMaps<Tile::products> b_maps, const StreamWork work,
                  const Slots slots) {
#if defined(HEDDLE_HOPPER_CODE)
  using T = typename Slots::Element;
  using Sum = typename Slots::Sum;
  HEDDLE_DYNAMIC_SHARED(shared);
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0), lane = static_cast<int>(threadIdx.x) % 32;
  const StreamStages<Tile> stages(shared, work);
  const int block_column = static_cast<int>(blockIdx.x) * Tile::own_columns;
  if (warp == Tile::warps) {
    if (lane == 0) {
      prefetch_map(a_map);
      HEDDLE_UNROLL
      for (int product = 0; product < Tile::products; ++product) prefetch_map(b_maps.of[product]);
    }
    stages.initialise(lane, work.stages);
  }
  __syncthreads();
  announce_to_cluster();
  if (warp == Tile::warps) {
    fill_stream<T>(stages, a_map, b_maps, work, block_column, lane);
    release_consumers();
    return;
  }

  // Thread q of a quad holds columns 8 q to 8 q + 7. The last blocks may have no columns, but still load rows for the other blocks.
  const int column = block_column + lane % 4 * 8, first_row = warp * 16 + lane / 4;
  const auto exists = [&](int chunk) { return first_row + 8 * chunk < work.m && column < work.n; };
  if (exists(0)) prefetch_constants(slots, column, 0);
  wait_for_cluster();

  // The order matters, for the reason given in matmul_cluster.cuh.
  wait_for_producers();
  release_consumers();
  typename Slots::Loaded loaded[Tile::chunks] = {};
  HEDDLE_UNROLL
  for (int chunk = 0; chunk < Tile::chunks; ++chunk) {
    if (exists(chunk)) loaded[chunk] = slots.template load<true>(first_row + 8 * chunk, column, 8);
  }

  Sum sums[Tile::products][Tile::pieces][4] = {};
  int stage = 0, last_stage = 0;
  uint32_t parity = 0;
  HEDDLE_ROLLED
  for (int s = 0; s < work.steps; ++s) {
    stages.full_of(stage).wait(parity);
    begin_products();
    const uint64_t a_rows = swizzled_rows(stages.a_of(stage)), b_rows = swizzled_rows(stages.b_of(stage));
    constexpr int slices = box_row_bytes / 32;
    HEDDLE_UNROLL
    for (int slice = 0; slice < slices; ++slice) {
      HEDDLE_UNROLL
      for (int product = 0; product < Tile::products; ++product) {
        multiply_narrow<T>(sums[product], a_rows + 2 * slice, b_rows + (product * (Tile::part_bytes / 16) + 2 * slice));
      }
    }
    commit_products();
    // A stage is released to all blocks, but only if they fill it again: otherwise they may have ended.
    if (s > 0 && s - 1 + work.stages < work.steps) {
      wait_products<1>();
      if (threadIdx.x < Tile::cluster) stages.empty_of(last_stage).arrive_at(threadIdx.x);
    }
    last_stage = stage;
    if (++stage == work.stages) stage = 0, parity ^= 1;
  }
  wait_products<0>();
  HEDDLE_UNROLL
  for (int product = 0; product < Tile::products; ++product) pin(sums[product]);

  HEDDLE_UNROLL
  for (int chunk = 0; chunk < Tile::chunks; ++chunk) {
    Sum own[Tile::products][8];
    HEDDLE_UNROLL
    for (int product = 0; product < Tile::products; ++product) {
      HEDDLE_UNROLL
      for (int i = 0; i < 8; ++i) own[product][i] = sums[product][i / 2][2 * chunk + i % 2];
    }
    if (exists(chunk)) finish_products<true>(slots, first_row + 8 * chunk, column, 8, own, loaded[chunk]);
  }
#else
  __trap();
#endif
}

/// Number of blocks that share a multiprocessor: the smallest with which all clusters run at once, so that there is no second wave and as
/// many weights as possible are in flight. Where there are too many clusters for that, the number measured to be fastest.
template <class Tile>
int stream_sharing(int64_t clusters, int64_t multiprocessors) {
  // A cluster runs within one group of multiprocessors (GPC). If an odd number of blocks share each multiprocessor, a group may have room
  // for half a cluster, which is lost. GPUs have up to eight groups.
  constexpr int64_t lost = 4;
  constexpr int usual = 3;
  for (int sharing = 1; sharing <= Tile::most_sharing; ++sharing) {
    if (clusters <= sharing * multiprocessors / Tile::cluster - sharing % 2 * lost) return sharing;
  }
  return usual;
}

template <class Slots>
int stream_sharing(int64_t n) {
  using Tile = StreamTile<Slots::PRODUCTS>;
  return stream_sharing<Tile>(wgmma::divide_up(n, Tile::cluster * Tile::own_columns), device_attribute(cudaDevAttrMultiProcessorCount));
}

/// True if this body computes the matmuls of one matrix, whose rows are copied in aligned words: those bound by reading weights. Where only
/// one or two blocks share a multiprocessor, warps that load for themselves are faster by a quarter.
template <class Slots>
bool streams_products(int64_t m, int64_t n, int64_t k, const Slots& slots) {
  constexpr int least_sharing = 3;
  return streams_weights<typename Slots::Element>(m, Slots::PRODUCTS * n, k) && clusters::can(m, n, k, slots) &&
         stream_sharing<Slots>(n) >= least_sharing;
}

/// Enqueues epilogue(a x b transposed, a x b2 transposed, ...) of rows that streams_products(). `constant_b`: no launch writes the right
/// factors, so that they may be read while earlier launches run.
template <class Slots>
int32_t launch_products_stream(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                               const Slots& slots, bool constant_b) {
  using T = typename Slots::Element;
  using Tile = StreamTile<Slots::PRODUCTS>;
  const int64_t a_rows = wgmma::divide_up(m, Tile::least_rows) * Tile::least_rows;
  CUtensorMap a_map;
  RightMaps<Tile::products> b_maps;
  const In<T> factors[] = {copied_factor(slots, Factor<0>()), copied_factor(slots, Factor<1>()), copied_factor(slots, Factor<2>())};
  static_assert(Slots::PRODUCTS == 2, "as many right factors");
  int32_t status = row_map(&a_map, error, name, factors[0], m, k, static_cast<int>(a_rows) / Tile::cluster);
  for (int product = 0; product < Tile::products && status == HEDDLE_OK; ++product) {
    status = permuted_map(&b_maps.of[product], error, name, factors[1 + product], n, k, Tile::own_columns);
  }
  if (status != HEDDLE_OK) return status;
  const int64_t clusters = wgmma::divide_up(n, Tile::cluster * Tile::own_columns), steps = wgmma::divide_up(k, box_columns<T>);
  const int sharing = stream_sharing<Slots>(n);
  const auto stages = static_cast<int>(std::min<int64_t>(steps, weights_under_way / (sharing * Tile::b_bytes)));
  const StreamWork work{static_cast<int>(m),      static_cast<int>(n), static_cast<int>(steps),
                        static_cast<int>(a_rows), stages,              constant_b};
  const uint32_t stage_bytes = static_cast<uint32_t>(a_rows) * box_row_bytes + Tile::b_bytes + Tile::barrier_bytes;
  const LaunchConfig config{name, dim3(static_cast<unsigned int>(Tile::cluster * clusters)), dim3(Tile::threads),
                            std::max(stages * stage_bytes, static_cast<uint32_t>(memory_of_sharing(sharing))), Sync::block, true, Tile::cluster};
  return launch(queue, error, config, matmul_stream<Tile, Slots>, a_map, b_maps, work, slots);
}

}  // namespace heddle

#endif

#endif
