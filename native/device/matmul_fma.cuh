// Matmuls in float32: every m, n, k and alignment, one or several right factors, factors in memory or computed, one or many matrices.
// Multiply-adds of the ordinary cores, from operands that asynchronous copies bring to shared memory some steps of k ahead. A thread
// reads 16 to 24 elements of each slice of k for 64 or 128 multiply-adds, so that shared memory keeps pace with them.
//
// k is divided twice where tiles are few: over groups of threads of a block, and over the blocks of a cluster. Sums are added in the order
// of k, so that timing changes no bit. They reach the epilogue through shared memory, eight columns of a row per thread.
#ifndef HEDDLE_MATMUL_FMA_CUH
#define HEDDLE_MATMUL_FMA_CUH

#include "matmul_fma_stages.cuh"

namespace heddle {

namespace fma {

/// Sizes of the launch, and facts that its host side knows.
struct Shape {
  int64_t m, n;
  int k, split;
  uint32_t tiles_m, tiles_n;
  bool constant;  // nothing writes the right factors meanwhile
  bool words;     // copied rows are aligned to 16 bytes
  bool whole;     // no chunk of the epilogue is cut off
};

/// A block's tile, and its share of the steps of k. The tile's rows are distributed over the blocks of the cluster, eight at a time; a block
/// receives the sums of its own rows from all of them.
template <class Tile, int Columns>
struct Part {
  int64_t row0, column0, matrix;
  int rank, first, length;      // among the blocks; of the elements of k
  int live, row_groups, owned;  // rows of the tile that exist, in groups of eight; groups per block
  int own_first, own_rows;      // first group of the block's rows, and number of these

  __device__ __forceinline__ explicit Part(const Shape& shape) {
    uint32_t block = blockIdx.x;
    // Computed where it is needed, since the main loop has no registers to spare.
    keep(block);
    rank = static_cast<int>(block % static_cast<uint32_t>(shape.split));
    const uint32_t tile = block / static_cast<uint32_t>(shape.split), tile_n = tile / shape.tiles_m;
    row0 = static_cast<int64_t>(tile % shape.tiles_m) * Tile::rows;
    column0 = static_cast<int64_t>(tile_n % shape.tiles_n) * Columns;
    matrix = tile_n / shape.tiles_n;
    const int all = static_cast<int>(steps_of<float>(shape.k));
    constexpr int step = step_elements<float>;
    first = all * rank / shape.split * step;
    length = min(shape.k, all * (rank + 1) / shape.split * step) - first;
    live = static_cast<int>(shape.m - row0 < Tile::rows ? shape.m - row0 : Tile::rows);
    row_groups = (live + 7) / 8;
    owned = Tile::owned_groups(live, shape.split);
    own_first = rank * owned;
    own_rows = max(0, min(live - own_first * 8, owned * 8));
  }
};

/// A thread's place in the grid of its group: its first row, the next being threads_m further, and its chunk of eight columns. A warp has
/// four threads along rows by eight along columns, with neighbours along rows in neighbouring lanes: eight lanes then read two rows and
/// four columns.
template <class Tile>
struct Place {
  uint32_t group, row, chunk;

  __device__ __forceinline__ Place() {
    uint32_t thread = threadIdx.x;
    // Computed where it is needed, since a main loop has no registers to spare.
    keep(thread);
    group = thread / Tile::group_threads;
    thread %= Tile::group_threads;
    constexpr uint32_t warps_m = Tile::threads_m < 4 ? 1 : Tile::threads_m / 4;
    row = thread % 2 + thread / 16 % 2 * 2 + thread / 32 % warps_m * 4;
    chunk = thread / 2 % 8 + thread / 32 / warps_m * 8;
  }
};

/// The multiply-adds of a thread.
template <class Tile>
class Multiplier {
 public:
  float sums[Tile::thread_rows][8] = {};

  __device__ __forceinline__ Multiplier() {
    const Place<Tile> own;
    left_ = Tile::template word_at<false>(own.row, own.group * Tile::words);
    right_ = Tile::right_at + Tile::template word_at<true>(own.chunk * 8, own.group * Tile::words);
  }

  /// Multiplies one stage. `Count`: number of the thread's rows, the first of them, of which any exist.
  template <int Count>
  __device__ __forceinline__ void multiply(Shared16 stage) {
    HEDDLE_ROLLED
    for (uint32_t w = 0; w < Tile::words; w += Tile::unroll) {
      HEDDLE_UNROLL
      for (uint32_t i = 0; i < Tile::unroll; ++i) multiply_word<Count>(stage, w + i);
    }
  }

 private:
  template <int Count>
  __device__ __forceinline__ void multiply_word(Shared16 stage, uint32_t w) {
    // Words and permutations of rows are exclusive-ors of the same bits.
    const Shared16 left = stage + (left_ ^ w * 16), right = stage + (right_ ^ w * 16);
    Pack<float, 4> columns[8];
    HEDDLE_UNROLL
    for (uint32_t j = 0; j < 8; ++j) columns[j] = load_shared_16<float>(right + j * step_row_bytes);
    constexpr uint32_t held = Tile::held_rows < Count ? Tile::held_rows : Count;
    HEDDLE_UNROLL
    for (uint32_t first = 0; first < Count; first += held) {
      Pack<float, 4> rows[held];
      HEDDLE_UNROLL
      for (uint32_t i = 0; i < held && first + i < Count; ++i) rows[i] = load_shared_16<float>(row_at(left, stage, w, first + i));
      HEDDLE_UNROLL
      for (int e = 0; e < 4; ++e) {
        HEDDLE_UNROLL
        for (uint32_t i = 0; i < held && first + i < Count; ++i) {
          HEDDLE_UNROLL
          for (uint32_t j = 0; j < 8; ++j) {
            // Neighbouring multiply-adds share an operand, which is then read once: reads of three registers of two banks take two cycles.
            const uint32_t column = (first + i) % 2 == 0 ? j : 7 - j;
            sums[first + i][column] += rows[i].v[e] * columns[column].v[e];
          }
        }
      }
    }
  }
  /// Place of the word of the thread's row `i`.
  __device__ __forceinline__ Shared16 row_at(Shared16 left, Shared16 stage, uint32_t w, uint32_t i) const {
    constexpr uint32_t rows = Tile::threads_m;
    const Shared16 at = rows % 8 == 0 ? left : stage + (left_ ^ w * 16 ^ i * rows % 8 * 16);
    return at + i * rows * step_row_bytes;
  }

  uint32_t left_, right_;  // places in a stage of the thread's first word
};

}  // namespace fma

/// A block computes a tile of every matmul of one matrix, or its share of k: the `split` blocks of a cluster divide the steps.
template <class Tile, class Slots>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks) matmul_fma(const fma::Shape shape, const Slots slots) {
  constexpr int count = Slots::PRODUCTS, columns = Tile::template columns_each<count>, chunks = columns / 8;
  static_assert(chunks > 0 && (!Slots::PARTS || chunks % 4 == 0), "four neighbours hold a group of columns");
  HEDDLE_DYNAMIC_SHARED(shared);
  const fma::Part<Tile, columns> part(shape);
  const int length = part.length, live = part.live;
  const int most_live = static_cast<int>(shape.m < Tile::rows ? shape.m : Tile::rows), all_steps = static_cast<int>(steps_of<float>(shape.k));
  const ClusterExchange exchange(shared + Tile::barrier_at(most_live, all_steps, shape.split), shape.split);
  exchange.announce(static_cast<uint32_t>((part.own_rows + 7) / 8 * shape.split) * Tile::sums_group_bytes);

  fma::Stages<0, 0, Tile::rows, Tile, Slots> left(slots, {part.matrix, part.row0, shape.m, shape.k, part.first, length, shape.words});
  fma::RightStages<1, count, columns, Tile, Slots> right(slots, {part.matrix, part.column0, shape.n, shape.k, part.first, length, shape.words});
  constexpr int step = step_elements<float>;
  const auto stage_at = [&](int stage) { return shared + static_cast<uint32_t>(stage) * Tile::stage_bytes; };
  if (!shape.constant) wait_for_producers();
  right.find(slots);
  HEDDLE_UNROLL
  for (int s = 0; s < Tile::ahead; ++s) {
    if (s * step >= length) break;
    right.begin(slots, stage_at(s) + Tile::right_at, s);
    right.end(stage_at(s) + Tile::right_at);
  }
  const int first_column = static_cast<int>(part.column0) + static_cast<int>(threadIdx.x) * 8;
  if (threadIdx.x < chunks && first_column < shape.n) prefetch_constants(slots, first_column, 0);
  // The order matters, for the reason given in matmul_mma.cuh.
  wait_for_producers();
  release_consumers();
  left.find(slots);
  HEDDLE_UNROLL
  for (int s = 0; s < Tile::ahead; ++s) {
    if (s * step < length) {
      left.begin(slots, stage_at(s), s);
      left.end(stage_at(s));
    }
    copy_async_commit();
  }

  fma::Multiplier<Tile> multiplier;
  const auto run = [&](auto rows) {
    int stage = 0;
    HEDDLE_ROLLED
    for (int s = 0; s * step < length; ++s) {
      copy_async_wait<Tile::ahead - 1>();
      __syncthreads();
      const bool refills = (s + Tile::ahead) * step < length;
      const Shared16 refilled = stage_at(stage == 0 ? Tile::ahead : stage - 1);
      if (refills) {
        left.begin(slots, refilled, s + Tile::ahead);
        right.begin(slots, refilled + Tile::right_at, s + Tile::ahead);
      }
      copy_async_commit();
      multiplier.template multiply<decltype(rows)::value>(stage_at(stage));
      if (refills) {
        left.end(refilled);
        right.end(refilled + Tile::right_at);
      }
      stage = stage + 1 == Tile::stages ? 0 : stage + 1;
    }
  };
  if (live > Tile::few_rows * Tile::threads_m) {
    run(std::integral_constant<int, Tile::thread_rows>());
  } else {
    run(std::integral_constant<int, Tile::few_rows>());
  }

  // Sums overwrite stages that other threads may still read.
  __syncthreads();
  const fma::Place<Tile> own;
  const fma::Part<Tile, columns> done(shape);
  const uint32_t part_bytes = static_cast<uint32_t>(done.row_groups) * Tile::sums_group_bytes;
  HEDDLE_UNROLL
  for (int i = 0; i < Tile::thread_rows; ++i) {
    const int row = static_cast<int>(own.row) + i * Tile::threads_m, chunk = static_cast<int>(own.chunk);
    if (row >= done.row_groups * 8) break;
    const float(&d)[8] = multiplier.sums[i];
    const Shared16 to = shared + own.group * part_bytes;
    store_shared_16(to + Tile::half_at(row, chunk, 0), Pack<float, 4>{{d[0], d[1], d[2], d[3]}});
    store_shared_16(to + Tile::half_at(row, chunk, 1), Pack<float, 4>{{d[4], d[5], d[6], d[7]}});
  }
  __syncthreads();
  Shared16 from = shared;
  int parts = Tile::groups;
  uint32_t stride = part_bytes;
  if (shape.split > 1) {
    from = shared + Tile::received_at(most_live, all_steps, shape.split);
    parts = shape.split;
    stride = static_cast<uint32_t>(done.owned) * Tile::sums_group_bytes;
    exchange.ready();
    for (int chunk = static_cast<int>(threadIdx.x); chunk < done.row_groups * 8 * Tile::threads_n; chunk += Tile::threads) {
      const int row = chunk / Tile::threads_n, at = chunk % Tile::threads_n;
      const int owner = row / 8 / done.owned, own_row = row - owner * done.owned * 8;
      float d[8] = {};
      Tile::add_parts(d, shared, row, at, Tile::groups, part_bytes);
      const auto to = exchange.destination(from + static_cast<uint32_t>(done.rank) * stride, owner);
      exchange.send<true>(to, Tile::half_at(own_row, at, 0), Pack<float, 4>{{d[0], d[1], d[2], d[3]}});
      exchange.send<true>(to, Tile::half_at(own_row, at, 1), Pack<float, 4>{{d[4], d[5], d[6], d[7]}});
    }
    exchange.receive();
  }

  const auto finish = [&](auto all) {
    constexpr bool whole = decltype(all)::value;
    for (int chunk = static_cast<int>(threadIdx.x); chunk < done.own_rows * chunks; chunk += Tile::threads) {
      const int own_row = chunk / chunks, column = static_cast<int>(done.column0) + chunk % chunks * 8;
      const int64_t row = done.matrix * shape.m + done.row0 + done.own_first * 8 + own_row, rest = shape.n - column;
      const int valid = static_cast<int>(rest <= 0 ? 0 : whole || rest >= 8 ? 8 : rest);
      if (valid == 0 && !Slots::PARTS) continue;
      typename Slots::Loaded loaded = {};
      if (valid > 0) loaded = slots.template load<whole>(row, column, valid);
      float total[count][8] = {};
      HEDDLE_UNROLL
      for (int p = 0; p < count; ++p) Tile::add_parts(total[p], from, own_row, p * chunks + chunk % chunks, parts, stride);
      if (valid > 0) finish_products<whole>(slots, row, column, valid, total, loaded);
      // Neighbouring threads have the same row; all of them take part, with existing columns or without.
      keep_products(slots, row, column, valid, total);
    }
  };
  if (shape.whole) {
    finish(Constant<true>());
  } else {
    finish(Constant<false>());
  }
}

/// Enqueues the matmuls with one tile, and k split over clusters of `split` blocks (1 to 8, at most the steps of k; more than 1 requires
/// sm_90). Refuses more blocks than a grid has, and a k beyond 2^28.
template <class Tile, class Slots>
int32_t launch_fma_tile(const heddle_launch* queue, heddle_error* error, const char* name, int64_t matrices, int64_t m, int64_t n, int64_t k,
                        const Slots& slots, bool constant, bool words, int split) {
  constexpr int columns = Tile::template columns_each<Slots::PRODUCTS>;
  const int64_t tiles_m = (m + Tile::rows - 1) / Tile::rows, tiles_n = (n + columns - 1) / columns;
  const Count blocks = Count(tiles_m) * Count(tiles_n) * Count(matrices) * Count(split);
  constexpr int64_t most_k = int64_t{1} << 28;
  if (blocks.is_overflow() || blocks.value > INT32_MAX || k > most_k) {
    return fail(error, HEDDLE_INVALID,
                "kernel %s: %lld x %lld tiles of %lld matrices with k of %lld, expected at most 2147483647 blocks and a k of 268435456", name,
                static_cast<long long>(tiles_m), static_cast<long long>(tiles_n), static_cast<long long>(matrices), static_cast<long long>(k));
  }
  const int live = static_cast<int>(m < Tile::rows ? m : Tile::rows), steps = static_cast<int>(steps_of<float>(k));
  LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks.value)), dim3(Tile::threads),
                      Tile::barrier_at(live, steps, split) + ClusterExchange::barrier_bytes, Sync::block};
  config.starts_early = true;
  config.cluster = static_cast<uint32_t>(split);
  const fma::Shape shape{m, n, static_cast<int>(k), split, static_cast<uint32_t>(tiles_m), static_cast<uint32_t>(tiles_n),
                         constant, words, n % 8 == 0 && slots.whole_chunks()};
  return launch(queue, error, config, matmul_fma<Tile, Slots>, shape, slots);
}

}  // namespace heddle

#endif
