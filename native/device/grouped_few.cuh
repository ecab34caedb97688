// Grouped matmuls of up to eight rows, such as the experts of one token: bound by the time that the chosen matrices take to arrive. A block
// reads eight columns of one matrix, once for all rows that choose it. Its warps divide k, and their sums are added in the order of k.
#ifndef HEDDLE_GROUPED_FEW_CUH
#define HEDDLE_GROUPED_FEW_CUH

#include "matmul_rows.cuh"

namespace heddle {

struct GroupedFewTile {
  static constexpr int columns = 8;  // per block
  static constexpr int vec = 8;      // elements of k per lane at a time
  static constexpr int warps = 4;
  static constexpr int threads = 32 * warps;
  static constexpr int most_rows = 8;
  /// Blocks per multiprocessor that ptxas must allow for: more would spill the sums and the columns of wide elements.
  template <class T>
  static constexpr int resident(int rows) { return rows > 2 && sizeof(T) > 2 ? 2 : 4; }
};

/// Block (x, r) computes columns 8 x to 8 x + 7 of the rows that choose the matrix of row r, if r is the first of them. `Rows`: at least
/// `rows`. `Whole`: no chunk of k or of columns is cut off, and all are aligned.
template <class Slots, int Rows, bool Whole>
__global__ void __launch_bounds__(GroupedFewTile::threads, GroupedFewTile::resident<typename Slots::Right>(Rows))
    grouped_few(const int rows, const int64_t n, const int k, const int matrices, const Slots slots) {
  using Tile = GroupedFewTile;
  using Call = EpilogueCall<Slots>;
  HEDDLE_SHARED(float, parts, Tile::warps * Rows * Tile::columns);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * Tile::columns;
  const int64_t left = n - column;
  const int valid = static_cast<int>(left < Tile::columns ? left : Tile::columns);
  const auto matrix_of = [&](int row) {
    const int matrix = slots.matrix_of(row);
    return matrix >= 0 && matrix < matrices ? matrix : matrices;
  };
  // In this order for the reason given in matmul_mma.cuh.
  wait_for_producers();
  release_consumers();
  const int leader = static_cast<int>(blockIdx.y), matrix = matrix_of(leader);
  bool chooses[Rows];
  int64_t begin[Rows];
  bool is_first = true;
  HEDDLE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    chooses[r] = r < rows && matrix_of(r < rows ? r : 0) == matrix;
    begin[r] = chooses[r] && matrix < matrices ? slots.left_begin(r) : 0;
    if (r < leader && chooses[r]) is_first = false;
  }
  if (!is_first) return;
  float sums[Rows][Tile::columns] = {};
  const int length = matrix < matrices ? k : 0;
  const int64_t first = (static_cast<int64_t>(matrix) * n + column) * k;
  Chunk<typename Slots::Right, Tile::vec> weights[Tile::columns];
  const auto fetch = [&](int at) {
    HEDDLE_UNROLL
    for (int j = 0; j < Tile::columns; ++j) {
      weights[j] = load_chunk<Tile::vec, Whole>(slots.right(), first + static_cast<int64_t>(j < valid ? j : 0) * k + at, k - at);
    }
  };
  constexpr int step = Tile::threads * Tile::vec;
  int at = static_cast<int>(threadIdx.x) * Tile::vec;
  if (at < length) fetch(at);
  for (; at < length; at += step) {
    HEDDLE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      if (!chooses[r]) continue;
      const auto row = load_chunk<Tile::vec, Whole>(slots.left(), begin[r] + at, k - at);
      HEDDLE_UNROLL
      for (int j = 0; j < Tile::columns; ++j) {
        HEDDLE_UNROLL
        for (int e = 0; e < Tile::vec; ++e) sums[r][j] += row[e] * weights[j][e];
      }
    }
    if (at + step < length) fetch(at + step);
  }
  HEDDLE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    const float sum = sum_eight(sums[r], lane);
    if (lane % 4 == 0) parts[(warp * Rows + r) * Tile::columns + lane / 4] = sum;
  }
  __syncthreads();
  const int r = static_cast<int>(threadIdx.x);
  if (r >= rows || matrix_of(r) != matrix) return;
  float total[Tile::columns] = {};
  for (int w = 0; w < Tile::warps; ++w) {
    HEDDLE_UNROLL
    for (int j = 0; j < Tile::columns; ++j) total[j] += parts[(w * Rows + r) * Tile::columns + j];
  }
  const auto loaded = Call::template load<Whole>(slots, r, static_cast<int>(column), valid);
  Call::template finish<Whole>(slots, r, static_cast<int>(column), valid, total, loaded);
}

/// Enqueues the matmul of at most eight rows.
template <class Slots>
int32_t launch_grouped_few(const heddle_launch* queue, heddle_error* error, const char* name, int64_t rows, int64_t n, int64_t k,
                           int64_t matrices, bool whole, const Slots& slots) {
  using Tile = GroupedFewTile;
  const dim3 grid(static_cast<unsigned int>((n + Tile::columns - 1) / Tile::columns), static_cast<unsigned int>(rows));
  LaunchConfig config{name, grid, dim3(Tile::threads), 0, Sync::block};
  config.starts_early = true;
  const auto run = [&](auto kernel) {
    return launch(queue, error, config, kernel, static_cast<int>(rows), n, static_cast<int>(k), static_cast<int>(matrices), slots);
  };
  if (rows <= 2) return whole ? run(grouped_few<Slots, 2, true>) : run(grouped_few<Slots, 2, false>);
  constexpr int most = Tile::most_rows;
  return whole ? run(grouped_few<Slots, most, true>) : run(grouped_few<Slots, most, false>);
}

}  // namespace heddle

#endif
