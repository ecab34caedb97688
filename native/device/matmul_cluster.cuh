// The matmul for up to a few hundred rows on Hopper, where a matmul is bound by reads of the L2 cache and by latency. Large tiles read the
// factors less often, but there are few of them, so the blocks of a cluster divide a tile's k. The copy engine (TMA) loads whole shares of
// k, those of the weights while the previous launch still runs; warpgroups multiply each step as it lands.
//
// A warp's sums are split into units of 8 rows x 32 columns, each owned by one block. A thread holds its sums of the units that its block
// owns in registers and sends the others to the same thread of their owner. It adds the received sums in the order of the senders, so that
// timing changes no bit, and runs the epilogue. Little is sent, and no warp waits for a whole block.
#ifndef HEDDLE_MATMUL_CLUSTER_CUH
#define HEDDLE_MATMUL_CLUSTER_CUH

#include <algorithm>

#include "cluster.cuh"
#include "matmul_cluster_choice.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

/// Blocks of a cluster are neighbours along x. All chunks of the epilogue are whole.
template <class T, class Tile, class Epilogue>
__global__ void __launch_bounds__(Tile::threads, 2)
    matmul_cluster(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, const ClusterWork work,
                   const Epilogue epilogue) {
#if defined(HEDDLE_HOPPER_CODE)
  HEDDLE_DYNAMIC_SHARED(shared);
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0), lane = static_cast<int>(threadIdx.x) % 32;
  const int rank = static_cast<int>(cluster_rank());
  const Shared16 sums_here = shared + static_cast<uint32_t>(work.stages) * Tile::stage_bytes;
  const ClusterStages<Tile> stages{shared, sums_here.address + Tile::sums_bytes};
  const auto received_by = [&](int w) { return stages.full_of(work.stages + w); };
  const int begin = work.share * rank + (rank < work.rest ? rank : work.rest), count = work.share + (rank < work.rest ? 1 : 0);
  const int row0 = static_cast<int>(blockIdx.x) / Tile::split * Tile::rows;
  const int column0 = static_cast<int>(blockIdx.y) * Tile::columns;

  if (warp == Tile::warps) {
    if (lane == 0) {
      prefetch_map(a_map);
      prefetch_map(b_map);
    }
    if (lane < work.stages) {
      stages.full_of(lane).initialise(1);
      stages.empty_of(lane).initialise(Tile::warps / 4);
    }
    if (lane < Tile::warps) received_by(lane).initialise(1);
    publish_barriers();
    // Each lane arrives at the barrier that it initialised itself, but racecheck reports a race unless the warp synchronises in between.
    __syncwarp();
    if (lane < Tile::warps) received_by(lane).arrive_expecting((Tile::split - 1) * Tile::owned * Tile::unit_bytes);
  }
  __syncthreads();
  announce_to_cluster();
  if (warp == Tile::warps) {
    if (lane == 0) fill_stages<T>(stages, a_map, b_map, work, row0, column0, begin, count);
    __syncwarp();
    wait_for_producers();
    release_consumers();
    return;
  }

  // Thread q of a quad holds columns 8 q to 8 q + 7 of each row of a unit.
  using Call = EpilogueCall<Epilogue>;
  const int first_row = row0 + warp * 16 + lane / 4, first_column = column0 + lane % 4 * 8;
  const auto row_of = [&](int owned) { return first_row + (rank * Tile::owned + owned) % 2 * Tile::unit_rows; };
  const auto column_of = [&](int owned) { return first_column + (rank * Tile::owned + owned) / 2 * Tile::unit_columns; };
  const auto exists = [&](int owned) { return row_of(owned) < work.m && column_of(owned) < work.n; };
  HEDDLE_UNROLL
  for (int i = 0; i < Tile::owned; ++i) {
    if (exists(i)) prefetch_constants(epilogue, column_of(i), 0);
  }
  const Shared16 received = sums_here + (static_cast<uint32_t>(warp) * Tile::unit_bytes + static_cast<uint32_t>(lane) * 16);
  constexpr uint32_t part_bytes = Tile::warps * Tile::unit_bytes, half_bytes = Tile::unit_bytes / 2;
  uint32_t to[Tile::split], counter[Tile::split];
  HEDDLE_UNROLL
  for (int owner = 0; owner < Tile::split; ++owner) {
    const uint32_t slot = (rank - (rank > owner ? 1 : 0)) * Tile::owned * part_bytes;
    to[owner] = address_in_block(received.address + slot, owner);
    counter[owner] = address_in_block(received_by(warp).address, owner);
  }
  const uint64_t a_rows = swizzled_rows(shared + static_cast<uint32_t>(warp) / 4 * 64 * step_row_bytes);
  const uint64_t b_rows = swizzled_rows(shared + Tile::a_bytes);
  wait_for_cluster();

  // The next launch may start only now: lines that its blocks bring into the L1 cache before could be older than this launch's input.
  wait_for_producers();
  release_consumers();
  typename Call::Loaded loaded[Tile::owned] = {};
  HEDDLE_UNROLL
  for (int i = 0; i < Tile::owned; ++i) {
    if (exists(i)) loaded[i] = Call::template load<true>(epilogue, row_of(i), column_of(i), 8);
  }

  SumOf<T> sums[Tile::columns / 8][4] = {};
  int stage = 0, last_stage = 0;
  uint32_t parity = 0;
  HEDDLE_ROLLED
  for (int s = 0; s < count; ++s) {
    stages.full_of(stage).wait(parity);
    begin_products();
    HEDDLE_UNROLL
    for (int slice = 0; slice < step_slices; ++slice) {
      const uint64_t at = stage * (Tile::stage_bytes / 16) + 2 * slice;
      multiply_narrow<T>(sums, a_rows + at, b_rows + at);
    }
    commit_products();
    if (s > 0 && s - 1 + work.stages < count) {
      wait_products<1>();
      if (threadIdx.x % warpgroup_threads == 0) stages.empty_of(last_stage).arrive_expecting(0);
    }
    last_stage = stage;
    if (++stage == work.stages) stage = 0, parity ^= 1;
  }
  wait_products<0>();
  pin(sums);

  if (row0 + warp * 16 >= work.m) return;
  SumOf<T> total[Tile::owned][8];
  HEDDLE_UNROLL
  for (int unit = 0; unit < Tile::units; ++unit) {
    const int owner = unit / Tile::owned, place = unit % Tile::owned;
    HEDDLE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const SumOf<T>(&first)[4] = sums[unit / 2 * 4 + 2 * half], (&second)[4] = sums[unit / 2 * 4 + 2 * half + 1];
      const int upper = unit % 2 * 2;
      const Pack<SumOf<T>, 4> four = {{first[upper], first[upper + 1], second[upper], second[upper + 1]}};
      if (owner == rank) {
        HEDDLE_UNROLL
        for (int i = 0; i < 4; ++i) total[place][4 * half + i] = four.v[i];
      } else {
        send_16(to[owner] + place * part_bytes + half * half_bytes, counter[owner], four);
      }
    }
  }
  // Sums arrive by st.async: the barrier counts their bytes, and its phase ends when all of them have landed.
  received_by(warp).wait_across_blocks(0);
  HEDDLE_UNROLL
  for (int i = 0; i < Tile::owned; ++i) {
    HEDDLE_UNROLL
    for (int part = 0; part < Tile::split - 1; ++part) {
      HEDDLE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const auto four = load_shared_16<SumOf<T>>(received + ((part * Tile::owned + i) * part_bytes + half * half_bytes));
        HEDDLE_UNROLL
        for (int c = 0; c < 4; ++c) total[i][4 * half + c] += four.v[c];
      }
    }
    if (exists(i)) Call::template finish<true>(epilogue, row_of(i), column_of(i), 8, total[i], loaded[i]);
  }
#else
  __trap();
#endif
}

namespace clusters {

/// Enqueues the matmul with one tile.
template <class Tile, class T, class Epilogue>
int32_t launch_tiles(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                     const In<T>& a, const In<T>& b, const Epilogue& epilogue, bool constant_b) {
  // Rows that do not exist are not copied; nothing reads the sums that are computed in their place.
  const int a_rows = static_cast<int>(std::min<int64_t>(Tile::rows, (m + 7) / 8 * 8));
  CUtensorMap a_map, b_map;
  int32_t status = row_map(&a_map, error, name, a, m, k, a_rows);
  if (status == HEDDLE_OK) status = permuted_map(&b_map, error, name, b, n, k, Tile::columns);
  if (status != HEDDLE_OK) return status;
  const int steps = static_cast<int>(steps_of<T>(k));
  const dim3 grid(static_cast<unsigned int>((m + Tile::rows - 1) / Tile::rows * Tile::split),
                  static_cast<unsigned int>((n + Tile::columns - 1) / Tile::columns));
  const int64_t blocks = static_cast<int64_t>(grid.x) * grid.y;
  const int most = most_stages<Tile>(blocks, steps, device_attribute(cudaDevAttrMultiProcessorCount));
  const int stages = std::min((steps + Tile::split - 1) / Tile::split, most);
  const ClusterWork work{static_cast<int>(m), static_cast<int>(n),         steps / Tile::split, steps % Tile::split, stages,
                         a_rows * step_row_bytes + Tile::b_bytes, constant_b};
  // Memory keeps apart two blocks of a long k that would share one multiprocessor and leave another without any. Larger clusters, and blocks
  // that do not fill the device, would wait too long for room.
  const bool apart = Tile::split == 2 && steps >= long_k && fills_shares(blocks);
  const LaunchConfig config{name, grid, dim3(Tile::threads), evenly_shared(blocks, Tile::shared_bytes(stages), apart ? 1 : 0), Sync::block, true,
                            Tile::split};
  return launch(queue, error, config, matmul_cluster<T, Tile, Epilogue>, a_map, b_map, work, epilogue);
}

}  // namespace clusters

/// Enqueues epilogue(a x b transposed) with a tile that exists(), for a matmul that it can() compute. `constant_b`: no launch still in
/// flight writes b.
template <class T, class Epilogue>
int32_t launch_matmul_cluster(const MatmulChoice& choice, const heddle_launch* queue, heddle_error* error, const char* name,
                              int64_t m, int64_t n, int64_t k, In<T> a, In<T> b, Epilogue epilogue, bool constant_b) {
  const auto run = [&](auto tile) {
    return clusters::launch_tiles<decltype(tile)>(queue, error, name, m, n, k, a, b, epilogue, constant_b);
  };
  if (choice.tile == MatmulTile::cluster_64x64) return choice.split == 2 ? run(ClusterTile<64, 64, 2>()) : run(ClusterTile<64, 64, 4>());
  if (choice.split == 6) return run(ClusterTile<64, 96, 6>());
  if (choice.split == 3) return run(ClusterTile<64, 96, 3>());
  return run(ClusterTile<64, 96, 2>());
}

}  // namespace heddle

#endif

#endif
