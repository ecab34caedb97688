// Matmul for hundreds of rows on Hopper, where tiles of 128 rows are partly empty. The weights are the left factor of wgmma, so that the rows of
// the tile are its columns: any multiple of 16 up to 256. All rows are divided into equal tiles, and little is empty.
//
// Blocks work in pairs on neighbouring columns: each loads its own weights and half of the rows, which it multicasts to both. The blocks of a
// cluster that divide k send sums to one another, and each adds those of its rows in the order of the senders, so that timing changes no bit.
// Sums reach the epilogue through shared memory, since a thread holds two columns only.
#ifndef HEDDLE_MATMUL_TALL_CUH
#define HEDDLE_MATMUL_TALL_CUH

#include <algorithm>

#include "cluster.cuh"
#include "matmul_epilogue.cuh"
#include "matmul_tall_choice.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

#if defined(HEDDLE_HOPPER_CODE)

/// Calls `run` with the number of rows of a tile as a constant.
template <class Run>
__device__ __forceinline__ void with_rows_of_tile(int rows, Run run) {
  static_assert(TallTile::fewest_rows == 64 && TallTile::granule == 16 && TallTile::most_rows == 256, "the cases");
  switch (rows) {
    case 64:
      return run(std::integral_constant<int, 64>());
    case 80:
      return run(std::integral_constant<int, 80>());
    case 96:
      return run(std::integral_constant<int, 96>());
    case 112:
      return run(std::integral_constant<int, 112>());
    case 128:
      return run(std::integral_constant<int, 128>());
    case 144:
      return run(std::integral_constant<int, 144>());
    case 160:
      return run(std::integral_constant<int, 160>());
    case 176:
      return run(std::integral_constant<int, 176>());
    case 192:
      return run(std::integral_constant<int, 192>());
    case 208:
      return run(std::integral_constant<int, 208>());
    case 224:
      return run(std::integral_constant<int, 224>());
    case 240:
      return run(std::integral_constant<int, 240>());
    default:
      return run(std::integral_constant<int, 256>());
  }
}

/// Multiplies the block's part of k in one warpgroup: 64 columns of a tile of Rows rows. A stage is released to both blocks of the pair once the
/// next step's wgmmas are in flight, unless no copy waits for it.
template <class T, int Rows>
__device__ __forceinline__ void multiply_tall(TallSums& sums, const TallStages& stages, const TallWork& work, const TallPlace& place) {
  float(&own)[Rows / 2] = reinterpret_cast<float(&)[Rows / 2]>(sums);
  const uint32_t group = __shfl_sync(0xffffffffu, threadIdx.x / warpgroup_threads, 0), thread = threadIdx.x % warpgroup_threads;
  int stage = 0, last = 0;
  uint32_t parity = 0;
  HEDDLE_ROLLED
  for (int step = 0; step < place.count; ++step) {
    stages.full_of(stage).wait(parity);
    begin_products();
    const uint64_t a = swizzled_rows(stages.columns_of(stage) + group * (TallTile::block_columns * TallTile::row_bytes));
    const uint64_t b = swizzled_rows(stages.rows_of(stage));
    HEDDLE_UNROLL
    for (int slice = 0; slice < 4; ++slice) multiply_tall_rows<T, Rows>(own, a + 2 * slice, b + 2 * slice, step | slice);
    commit_products();
    wait_products<1>();
    if (step > 0 && step - 1 + work.stages < place.count && thread < 2) stages.empty_of(last).arrive_at(place.first_rank() + thread);
    last = stage;
    if (++stage == work.stages) stage = 0, parity ^= 1;
  }
  wait_products<0>();
  pin(own);
}

/// Fills the stages with the block's weights and its half of the pair's rows. Called by one thread.
template <class T>
__device__ __forceinline__ void fill_tall(const TallStages& stages, const CUtensorMap& a_map, const CUtensorMap& b_map, const TallWork& work,
                                          const TallPlace& place) {
  const auto start_columns = [&](int step, int stage) {
    stages.full_of(stage).arrive_expecting(work.stage_bytes());
    copy_box(stages.columns_of(stage), b_map, stages.full_of(stage), (place.begin + step) * box_columns<T>, place.column);
  };
  const auto start_rows = [&](int step, int stage) {
    const int half = place.side * work.rows / 2;
    copy_box_to_pair(stages.rows_of(stage) + static_cast<uint32_t>(half) * TallTile::row_bytes, a_map, stages.full_of(stage),
                     (place.begin + step) * box_columns<T>, place.row + half, place.first_rank());
  };
  const int first = min(place.count, work.stages);
  if (!work.constant_b) wait_for_producers();
  HEDDLE_ROLLED
  for (int step = 0; step < first; ++step) start_columns(step, step);
  wait_for_producers();
  HEDDLE_ROLLED
  for (int step = 0; step < first; ++step) start_rows(step, step);
  uint32_t parity = 0;
  HEDDLE_ROLLED
  for (int step = first, stage = 0; step < place.count; ++step) {
    stages.empty_of(stage).wait(parity);
    start_columns(step, stage);
    start_rows(step, stage);
    if (++stage == work.stages) stage = 0, parity ^= 1;
  }
}

/// Stores the sums of a tile, row by row. Straight code of few instructions: all of it runs once and comes from memory.
__device__ __forceinline__ void store_tall_sums(const TallSums& sums, const TallStages& stages, int rows) {
  const int thread = static_cast<int>(threadIdx.x);
  const Shared16 to = stages.sums_of(thread % 4 * 2) + static_cast<uint32_t>(thread / 32 * 16 + thread % 32 / 4) * 4;
  constexpr int at_once = TallTile::granule / 8;
  HEDDLE_UNROLL
  for (int group = 0; group < TallTile::most_rows / 8; group += at_once) {
    if (group * 8 >= rows) break;
    HEDDLE_UNROLL
    for (int i = 0; i < 4 * at_once; ++i) {
      const uint32_t row = static_cast<uint32_t>(group + i / 4) * 8 + i % 2;
      store_shared_4(to + (row * TallTile::sums_stride + static_cast<uint32_t>(i % 4 / 2) * 32), sums[4 * group + i]);
    }
  }
}

/// Sends the sums of rows that other parts of k own to their blocks, and waits for those of the own rows.
__device__ __forceinline__ void exchange_sums(const TallStages& stages, const TallWork& work, const TallPlace& place) {
  constexpr int words = TallTile::columns / 4, apart = TallTile::multiplying / words;
  const int word = static_cast<int>(threadIdx.x) % words * 16, each = work.rows / work.split;
  HEDDLE_ROLLED
  for (int part = 0; part < work.split; ++part) {
    if (part == place.part) continue;
    const int slot = place.part - (place.part > part ? 1 : 0), rank = 2 * part + place.side;
    const uint32_t counter = address_in_block(stages.arrived().address, rank);
    const uint32_t to = address_in_block((stages.received(slot * each) + static_cast<uint32_t>(word)).address, rank);
    HEDDLE_ROLLED
    for (int row = static_cast<int>(threadIdx.x) / words; row < each; row += apart) {
      const auto sent = load_shared_16<float>(stages.sums_of(part * each + row) + static_cast<uint32_t>(word));
      send_16(to + static_cast<uint32_t>(row) * TallTile::received_stride, counter, sent);
    }
  }
  stages.arrived().wait_across_blocks(0);
}

/// Passes the stored sums to the epilogue, after adding the received ones: a thread takes the same eight columns of every sixteenth row. Loads of several rows are in flight.
template <class Epilogue>
__device__ __forceinline__ void finish_tall(const Epilogue& epilogue, const TallStages& stages, const TallWork& work, const TallPlace& place) {
  using Call = EpilogueCall<Epilogue>;
  constexpr int vec = 8, pieces = TallTile::columns / vec, apart = TallTile::multiplying / pieces, batch = 4;
  const int thread = static_cast<int>(threadIdx.x), piece = thread % pieces * vec, column = place.column + piece;
  const int each = work.rows / work.split, row0 = place.row + place.part * each, count = min(each, work.m - row0);
  if (column >= work.n) return;
  HEDDLE_ROLLED
  for (int first = thread / pieces; first < count; first += batch * apart) {
    typename Call::Loaded loaded[batch];
    HEDDLE_UNROLL
    for (int i = 0; i < batch; ++i) loaded[i] = Call::template load<true>(epilogue, row0 + min(first + i * apart, count - 1), column, vec);
    HEDDLE_UNROLL
    for (int i = 0; i < batch; ++i) {
      const int own = first + i * apart;
      if (own >= count) break;
      float values[vec] = {};
      const auto add = [&](Shared16 row) {
        const Shared16 from = row + static_cast<uint32_t>(piece) * 4;
        const Pack<float, 4> low = load_shared_16<float>(from), high = load_shared_16<float>(from + 16);
        HEDDLE_UNROLL
        for (int c = 0; c < vec; ++c) values[c] += c < 4 ? low.v[c] : high.v[c - 4];
      };
      add(stages.sums_of(place.part * each + own));
      HEDDLE_ROLLED
      for (int slot = 0; slot + 1 < work.split; ++slot) add(stages.received(slot * each + own));
      Call::template finish<true>(epilogue, row0 + own, column, vec, values, loaded[i]);
    }
  }
}

#endif

/// All chunks of the epilogue are whole.
template <class T, class Epilogue>
__global__ void __launch_bounds__(TallTile::threads, 1)
    matmul_tall(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, const TallWork work, const Epilogue epilogue) {
#if defined(HEDDLE_HOPPER_CODE)
  HEDDLE_DYNAMIC_SHARED(shared);
  const TallStages stages{shared, work};
  const TallPlace place(work);
  if (threadIdx.x == 0) {
    prefetch_map(a_map);
    prefetch_map(b_map);
    for (int stage = 0; stage < work.stages; ++stage) {
      stages.full_of(stage).initialise(1);
      stages.empty_of(stage).initialise(2 * TallTile::multiplying / warpgroup_threads);
    }
    if (work.split > 1) stages.arrived().initialise(1);
    publish_barriers();
    if (work.split > 1) stages.arrived().arrive_expecting(work.received_bytes());
  }
  cluster_barrier();
  const bool multiplies = threadIdx.x < TallTile::multiplying;
  TallSums sums = {};
  if (multiplies) {
    const int column = place.column + static_cast<int>(threadIdx.x) % (TallTile::columns / 8) * 8;
    if (column < work.n) prefetch_constants(epilogue, column, 0);
    // The next launch may start only now: lines that its blocks bring into the L1 cache before could be older than this launch's input.
    wait_for_producers();
    release_consumers();
    with_rows_of_tile(work.rows, [&](auto rows) { multiply_tall<T, decltype(rows)::value>(sums, stages, work, place); });
  } else if (threadIdx.x == TallTile::multiplying) {
    fill_tall<T>(stages, a_map, b_map, work, place);
  }
  // Sums overwrite stages that the other warpgroup may still read.
  __syncthreads();
  if (multiplies) store_tall_sums(sums, stages, work.rows);
  __syncthreads();
  if (!multiplies) return;
  if (work.split > 1) exchange_sums(stages, work, place);
  finish_tall(epilogue, stages, work, place);
#else
  __trap();
#endif
}

/// Enqueues the matmul with a tile and split that tall::can() compute.
template <class T, class Epilogue>
int32_t launch_matmul_tall(const MatmulChoice& choice, const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n,
                           int64_t k, In<T> a, In<T> b, Epilogue epilogue, bool constant_b) {
  const TallWork work = tall::work_of<T>(choice, m, n, k, constant_b);
  CUtensorMap a_map, b_map;
  int32_t status = row_map(&a_map, error, name, a, m, k, work.rows / 2);
  if (status == HEDDLE_OK) status = row_map(&b_map, error, name, b, n, k, TallTile::columns);
  if (status != HEDDLE_OK) return status;
  const dim3 grid(static_cast<unsigned int>(tall::blocks(work)));
  const LaunchConfig config{name, grid, dim3(TallTile::threads), work.shared_bytes(), Sync::block, true, static_cast<uint32_t>(2 * work.split)};
  return launch(queue, error, config, matmul_tall<T, Epilogue>, a_map, b_map, work, epilogue);
}

}  // namespace heddle

#endif

#endif
