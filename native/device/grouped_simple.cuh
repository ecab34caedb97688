// Grouped matmuls of any types and sizes: 64 x 64 tiles, multiply-adds in float32.
#ifndef HEDDLE_GROUPED_SIMPLE_CUH
#define HEDDLE_GROUPED_SIMPLE_CUH

#include "grouped_rows.cuh"
#include "matmul_epilogue.cuh"
#include "vector.cuh"

namespace heddle {

/// A block computes `edge` rows and columns, `depth` of k at a time; a thread computes two rows of eight columns.
struct GroupedSimpleTile {
  static constexpr int rows = 64;
  static constexpr int columns = 64;
  static constexpr int depth = 32;
  static constexpr int threads = 256;
  static constexpr int thread_rows = 2;
  static constexpr int thread_columns = 8;
  static constexpr int lanes = depth / 8;      // threads that read one row of a piece, eight elements each
  static constexpr int stride = rows + 4;      // per k slice; the padding spreads the transposing stores over the banks
  static_assert(rows == columns && rows * lanes == threads, "every thread reads eight elements of each factor");
};

/// `Whole`: no chunk of columns is cut off.
template <class Slots, bool Whole>
__global__ void __launch_bounds__(GroupedSimpleTile::threads, 2)
    grouped_simple(const int64_t n, const int k, const int matrices, const GroupedOrder order, const Slots slots) {
  using Tile = GroupedSimpleTile;
  using Call = EpilogueCall<Slots>;
  HEDDLE_SHARED(float, left_piece, Tile::depth * Tile::stride);
  HEDDLE_SHARED(float, right_piece, Tile::depth * Tile::stride);
  const int64_t column0 = static_cast<int64_t>(blockIdx.y) * Tile::columns;
  const int thread = static_cast<int>(threadIdx.x);
  const int read_row = thread / Tile::lanes, read_k = thread % Tile::lanes * 8;
  // In this order for the reason given in matmul_mma.cuh.
  wait_for_producers();
  release_consumers();
  if (static_cast<int>(blockIdx.x) >= order.tiles()) return;
  const GroupedTile own = order.tile(blockIdx.x);
  const int length = own.matrix < matrices ? k : 0;
  const bool left_exists = read_row < own.count, right_exists = column0 + read_row < n;
  const int64_t left_begin = left_exists && length > 0 ? slots.left_begin(order.row(own.first + read_row)) : 0;
  const int64_t right_begin = (own.matrix * n + column0 + read_row) * k;
  Chunk<typename Slots::Left, 8> left_next = {};
  Chunk<typename Slots::Right, 8> right_next = {};
  const auto read = [&](int k0) {
    const int valid = k - k0 - read_k;
    if (left_exists) left_next = load_chunk<8>(slots.left(), left_begin + k0 + read_k, valid);
    if (right_exists) right_next = load_chunk<8>(slots.right(), right_begin + k0 + read_k, valid);
  };
  const int row0 = thread / (Tile::columns / Tile::thread_columns) * Tile::thread_rows;
  const int own_column = thread % (Tile::columns / Tile::thread_columns) * Tile::thread_columns;
  float sums[Tile::thread_rows][Tile::thread_columns] = {};
  if (length > 0) read(0);
  for (int k0 = 0; k0 < length; k0 += Tile::depth) {
    HEDDLE_UNROLL
    for (int i = 0; i < 8; ++i) {
      left_piece[(read_k + i) * Tile::stride + read_row] = left_next[i];
      right_piece[(read_k + i) * Tile::stride + read_row] = right_next[i];
    }
    __syncthreads();
    // The loads of the next pieces are in flight while these are multiplied.
    if (k0 + Tile::depth < length) read(k0 + Tile::depth);
    HEDDLE_UNROLL_FEW
    for (int inner = 0; inner < Tile::depth; ++inner) {
      HEDDLE_UNROLL
      for (int j = 0; j < Tile::thread_columns; ++j) {
        const float right_value = right_piece[inner * Tile::stride + own_column + j];
        HEDDLE_UNROLL
        for (int i = 0; i < Tile::thread_rows; ++i) sums[i][j] += left_piece[inner * Tile::stride + row0 + i] * right_value;
      }
    }
    __syncthreads();
  }
  const int64_t left = n - column0 - own_column;
  const int valid = static_cast<int>(left <= 0 ? 0 : left < Tile::thread_columns ? left : Tile::thread_columns);
  if (valid == 0) return;
  HEDDLE_UNROLL
  for (int i = 0; i < Tile::thread_rows; ++i) {
    if (row0 + i >= own.count) continue;
    const int64_t row = order.row(own.first + row0 + i);
    const int column = static_cast<int>(column0) + own_column;
    const auto loaded = Call::template load<Whole>(slots, row, column, valid);
    Call::template finish<Whole>(slots, row, column, valid, sums[i], loaded);
  }
}

/// Enqueues the order of rows, and the matmul.
template <class Slots>
int32_t launch_grouped_simple(const heddle_launch* queue, heddle_error* error, const char* name, int64_t rows, int64_t n, int64_t k,
                              int64_t matrices, const Slots& slots) {
  using Tile = GroupedSimpleTile;
  const GroupedLayout layout = GroupedLayout::of(rows, matrices, Tile::rows);
  const int64_t tiles_n = (n + Tile::columns - 1) / Tile::columns;
  constexpr int64_t most_n = 65535;
  if (tiles_n > most_n || layout.most_tiles > INT32_MAX) {
    return fail(error, HEDDLE_INVALID, "kernel %s: %lld x %lld tiles, expected at most 2147483647 x %lld", name,
                static_cast<long long>(layout.most_tiles), static_cast<long long>(tiles_n), static_cast<long long>(most_n));
  }
  const Scratch scratch(queue, error, name, layout.words());
  if (scratch.status != HEDDLE_OK) return scratch.status;
  const int32_t status = launch_group_rows(queue, error, name, rows, matrices, Tile::rows, layout, scratch, slots);
  if (status != HEDDLE_OK) return status;
  LaunchConfig config{name, dim3(static_cast<unsigned int>(layout.most_tiles), static_cast<unsigned int>(tiles_n)), dim3(Tile::threads), 0,
                      Sync::block};
  config.starts_early = true;
  const bool whole = n % 8 == 0 && EpilogueCall<Slots>::whole_chunks(slots);
  return launch(queue, error, config, whole ? grouped_simple<Slots, true> : grouped_simple<Slots, false>, n, static_cast<int>(k),
                static_cast<int>(matrices), GroupedOrder{scratch.template in_as<int>(), layout}, slots);
}

}  // namespace heddle

#endif
