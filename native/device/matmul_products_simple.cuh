// Matmuls of any factors: every type, every order of axes, computed or not, any sizes. 64 x 64 tiles, plain multiply-adds in float32, or in
// int32 for int8.
#ifndef HEDDLE_MATMUL_PRODUCTS_SIMPLE_CUH
#define HEDDLE_MATMUL_PRODUCTS_SIMPLE_CUH

#include "matmul_factor.cuh"

namespace heddle {

/// A block computes `edge` rows and columns, `depth` of k at a time; a thread computes two rows of eight columns. Shared memory holds a
/// piece of each factor.
template <int Products>
struct ProductsTile {
  static constexpr int edge = 64;
  static constexpr int depth = Products <= 3 ? 32 : 16;
  static constexpr int threads = 256;
  static constexpr int rows = 2;
  static constexpr int columns = 8;
  static constexpr int lanes = depth / 8;          // threads that read one row of a piece, eight elements each
  static constexpr int readers = edge * lanes;
  static constexpr int stride = edge + 4;          // per k slice; the padding spreads the transposing stores over the banks
  static_assert(Products <= 4 && readers <= threads, "four products fit shared memory");
};

/// `Whole`: no chunk of columns is cut off.
template <bool Whole, class Slots>
__global__ void __launch_bounds__(256, 1)
    matmul_products_simple(const int64_t m, const int64_t n, const int k, const int64_t tiles_m, const int64_t tiles_n,
                           const Slots slots) {
  constexpr int count = Slots::PRODUCTS;
  using Tile = ProductsTile<count>;
  using Sum = typename Slots::Sum;
  HEDDLE_SHARED(Sum, a_piece, Tile::depth * Tile::stride);
  HEDDLE_SHARED(Sum, b_pieces, count * Tile::depth * Tile::stride);
  const int64_t row0 = blockIdx.x % tiles_m * Tile::edge;
  const int64_t column0 = blockIdx.x / tiles_m % tiles_n * Tile::edge;
  const int64_t matrix = blockIdx.x / tiles_m / tiles_n;
  const int thread = static_cast<int>(threadIdx.x);
  const bool reads = thread < Tile::readers;
  const int read_row = thread / Tile::lanes, read_k = thread % Tile::lanes * 8;
  const int row = thread / (Tile::edge / Tile::columns) * Tile::rows;
  const int column = thread % (Tile::edge / Tile::columns) * Tile::columns;
  const bool a_exists = reads && row0 + read_row < m, b_exists = reads && column0 + read_row < n;
  const int a_at = static_cast<int>(row0) + read_row, b_at = static_cast<int>(column0) + read_row;

  // The order matters, for the reason given in matmul_mma.cuh.
  wait_for_producers();
  release_consumers();
  const WarpTeam<Tile::lanes, Tile::edge> team;
  LeftRow<Slots> a_row = {};
  RightRows<Slots> b_rows = {};
  if (a_exists) a_row.find(slots, team, matrix, a_at);
  if (b_exists) b_rows.find(slots, team, matrix, b_at);
  Sum sums[Tile::rows][count][Tile::columns] = {};
  Sum a_next[8], b_next[count][8];
  const auto read = [&](int k0) {
    factor_chunk<0>(slots, a_row.template of<0>(), a_exists, matrix, a_at, k0 + read_k, k, a_next);
    for_each_product<Slots>([&](auto p) {
      constexpr int which = decltype(p)::value + 1;
      factor_chunk<which>(slots, b_rows.template of<which>(), b_exists, matrix, b_at, k0 + read_k, k, b_next[which - 1]);
    });
  };
  read(0);
  for (int64_t k0 = 0; k0 < k; k0 += Tile::depth) {
    if (reads) {
      HEDDLE_UNROLL
      for (int i = 0; i < 8; ++i) {
        a_piece[(read_k + i) * Tile::stride + read_row] = a_next[i];
        HEDDLE_UNROLL
        for (int p = 0; p < count; ++p) b_pieces[(p * Tile::depth + read_k + i) * Tile::stride + read_row] = b_next[p][i];
      }
    }
    __syncthreads();
    // The loads of the next pieces are in flight while these are multiplied.
    if (k0 + Tile::depth < k) read(static_cast<int>(k0) + Tile::depth);
#pragma unroll 4
    for (int inner = 0; inner < Tile::depth; ++inner) {
      Sum a_values[Tile::rows];
      HEDDLE_UNROLL
      for (int i = 0; i < Tile::rows; ++i) a_values[i] = a_piece[inner * Tile::stride + row + i];
      HEDDLE_UNROLL
      for (int p = 0; p < count; ++p) {
        HEDDLE_UNROLL
        for (int j = 0; j < Tile::columns; ++j) {
          const Sum b_value = b_pieces[(p * Tile::depth + inner) * Tile::stride + column + j];
          HEDDLE_UNROLL
          for (int i = 0; i < Tile::rows; ++i) sums[i][p][j] += a_values[i] * b_value;
        }
      }
    }
    __syncthreads();
  }
  const int64_t left = n - column0 - column;
  HEDDLE_UNROLL
  for (int i = 0; i < Tile::rows; ++i) {
    if (row0 + row + i >= m) continue;
    const int valid = static_cast<int>(left <= 0 ? 0 : left < Tile::columns ? left : Tile::columns);
    const int64_t own_row = matrix * m + row0 + row + i;
    const int own_column = static_cast<int>(column0) + column;
    if (valid > 0) {
      const auto loaded = slots.template load<Whole>(own_row, own_column, valid);
      finish_products<Whole>(slots, own_row, own_column, valid, sums[i], loaded);
    }
    // Neighbouring threads have the same row; all of them take part, with existing columns or without.
    keep_products(slots, own_row, own_column, valid, sums[i]);
  }
}

/// Enqueues matmuls of any factors. `name`: the kernel's name in messages. Refuses more than 2^31 - 1 tiles.
template <class Slots>
int32_t launch_products_simple(const heddle_launch* queue, heddle_error* error, const char* name, int64_t matrices, int64_t m,
                               int64_t n, int64_t k, const Slots& slots) {
  using Tile = ProductsTile<Slots::PRODUCTS>;
  const int64_t tiles_m = (m + Tile::edge - 1) / Tile::edge, tiles_n = (n + Tile::edge - 1) / Tile::edge;
  const Count blocks = Count(tiles_m) * Count(tiles_n) * Count(matrices);
  if (blocks.is_overflow() || blocks.value > INT32_MAX) {
    return fail(error, HEDDLE_INVALID, "kernel %s: %lld x %lld tiles of %lld matrices exceed the 2147483647 blocks of a launch", name,
                static_cast<long long>(tiles_m), static_cast<long long>(tiles_n), static_cast<long long>(matrices));
  }
  LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks.value)), dim3(Tile::threads), 0, Sync::block};
  config.starts_early = true;
  const bool whole = n % Tile::columns == 0 && slots.whole_chunks();
  return launch(queue, error, config, whole ? matmul_products_simple<true, Slots> : matmul_products_simple<false, Slots>, m, n,
                static_cast<int>(k), tiles_m, tiles_n, slots);
}

}  // namespace heddle

#endif
