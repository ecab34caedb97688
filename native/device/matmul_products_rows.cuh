// Matmuls of a few rows, the counterpart of matmul_rows.cuh for factors of slots. A block takes eight columns of every matmul, its warps
// divide k, and each lane multiplies eight neighbours at a time, which it reads or computes itself. Sums are added in the order of k.
#ifndef HEDDLE_MATMUL_PRODUCTS_ROWS_CUH
#define HEDDLE_MATMUL_PRODUCTS_ROWS_CUH

#include "matmul_factor.cuh"
#include "matmul_rows.cuh"

namespace heddle {

/// Eight elements of a right factor's row: prefetched as stored, or computed when they are multiplied.
template <class Slots, int Which, class Copied = decltype(std::declval<const Slots&>().copy_of(Factor<Which>(), int64_t()))>
struct RowsFactor {
  struct Chunks {};
  template <class Row>
  static __device__ __forceinline__ void read(Chunks&, const Slots&, const Row&, bool, int, int, int) {}
  template <class Row>
  static __device__ __forceinline__ void values(const Chunks&, const Slots& slots, const Row& row, bool exists, int at, int along, int k,
                                                float (&of)[8]) {
    factor_chunk<Which>(slots, row, exists, 0, at, along, k, of);
  }
};
template <class Slots, int Which, class T>
struct RowsFactor<Slots, Which, CopiedRows<T>> {
  using Chunks = Chunk<T, 8>;
  template <class Row>
  static __device__ __forceinline__ void read(Chunks& chunk, const Slots& slots, const Row&, bool exists, int at, int along, int k) {
    const auto from = slots.copy_of(Factor<Which>(), 0);
    const int valid = !exists ? 0 : k - along < 8 ? k - along : 8;
    chunk = load_chunk<8>(from.tensor, from.first + static_cast<int64_t>(exists ? at : 0) * k + along, valid);
  }
  template <class Row>
  static __device__ __forceinline__ void values(const Chunks& chunk, const Slots&, const Row&, bool, int, int, int, float (&of)[8]) {
    HEDDLE_UNROLL
    for (int e = 0; e < 8; ++e) of[e] = chunk[e];
  }
};

/// `Rows`: at least m. With bounds of more than one block per multiprocessor ptxas spills a register or two.
template <int Rows, bool Whole, class Slots>
__global__ void __launch_bounds__(32 * RowsTile::most_warps, 1)
    matmul_products_rows(const int m, const int64_t n, const int k, const Slots slots) {
  using Tile = RowsTile;
  constexpr int count = Slots::PRODUCTS, columns = Tile::columns;
  HEDDLE_SHARED(float, parts, Tile::most_warps * Rows * count * columns);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * columns;
  const int64_t left = n - column;
  const int valid = static_cast<int>(left < columns ? left : columns);
  if (threadIdx.x == 0) prefetch_constants(slots, static_cast<int>(column), 0);

  // The order matters, for the reason given in matmul_mma.cuh.
  wait_for_producers();
  release_consumers();
  const bool finishes = static_cast<int>(threadIdx.x) < m;
  typename Slots::Loaded loaded = {};
  if (finishes) loaded = slots.template load<Whole>(threadIdx.x, static_cast<int>(column), valid);
  const WarpTeam<32, Tile::most_warps> team;
  LeftRow<Slots> a_rows[Rows] = {};
  RightRows<Slots> b_rows[columns] = {};
  HEDDLE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    if (r < m) a_rows[r].find(slots, team, 0, r);
  }
  HEDDLE_UNROLL
  for (int j = 0; j < columns; ++j) {
    if (j < valid) b_rows[j].find(slots, team, 0, static_cast<int>(column) + j);
  }
  float sums[Rows][count][columns] = {};
  for (int at = static_cast<int>(threadIdx.x) * Tile::vec; at < k; at += warps * Tile::warp_k) {
    float rows[Rows][Tile::vec];
    HEDDLE_UNROLL
    for (int r = 0; r < Rows; ++r) factor_chunk<0>(slots, a_rows[r].template of<0>(), r < m, 0, r, at, k, rows[r]);
    for_each_product<Slots>([&](auto p) {
      constexpr int which = decltype(p)::value + 1;
      // All eight are in flight before the first is multiplied, unchanged from memory where they are copies.
      using Factors = RowsFactor<Slots, which>;
      typename Factors::Chunks chunks[columns];
      HEDDLE_UNROLL
      for (int j = 0; j < columns; ++j) {
        Factors::read(chunks[j], slots, b_rows[j].template of<which>(), j < valid, static_cast<int>(column) + j, at, k);
      }
      HEDDLE_UNROLL
      for (int j = 0; j < columns; ++j) {
        float weights[Tile::vec];
        Factors::values(chunks[j], slots, b_rows[j].template of<which>(), j < valid, static_cast<int>(column) + j, at, k, weights);
        HEDDLE_UNROLL
        for (int r = 0; r < Rows; ++r) {
          HEDDLE_UNROLL
          for (int e = 0; e < Tile::vec; ++e) sums[r][which - 1][j] += rows[r][e] * weights[e];
        }
      }
    });
  }
  HEDDLE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    HEDDLE_UNROLL
    for (int p = 0; p < count; ++p) {
      const float sum = sum_eight(sums[r][p], lane);
      if (lane % 4 == 0) parts[((warp * Rows + r) * count + p) * columns + lane / 4] = sum;
    }
  }
  __syncthreads();
  if (!finishes) return;
  const int r = static_cast<int>(threadIdx.x);
  float total[count][columns] = {};
  for (int w = 0; w < warps; ++w) {
    HEDDLE_UNROLL
    for (int p = 0; p < count; ++p) {
      HEDDLE_UNROLL
      for (int j = 0; j < columns; ++j) total[p][j] += parts[((w * Rows + r) * count + p) * columns + j];
    }
  }
  finish_products<Whole>(slots, r, static_cast<int>(column), valid, total, loaded);
}

/// Enqueues matmuls of at most `RowsTile::most_rows` rows of one matrix, summed in float32. Refuses more than 2^31 - 1 blocks.
template <class Slots>
int32_t launch_products_rows(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                             const Slots& slots) {
  const int64_t blocks = (n + RowsTile::columns - 1) / RowsTile::columns;
  if (blocks > INT32_MAX || k > INT32_MAX - RowsTile::most_warps * RowsTile::warp_k) {
    return fail(error, HEDDLE_INVALID, "kernel %s: n is %lld and k is %lld: too large for a launch", name, static_cast<long long>(n),
                static_cast<long long>(k));
  }
  const int64_t wanted = (k + RowsTile::warp_k - 1) / RowsTile::warp_k;
  const int64_t warps = wanted < RowsTile::most_warps ? wanted : RowsTile::most_warps;
  LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks)), dim3(static_cast<unsigned int>(32 * warps)), 0, Sync::block};
  config.starts_early = true;
  const bool whole = n % RowsTile::columns == 0 && slots.whole_chunks();
  const auto run = [&](auto kernel) {
    return launch(queue, error, config, kernel, static_cast<int>(m), n, static_cast<int>(k), slots);
  };
  if (m == 1) return run(whole ? matmul_products_rows<1, true, Slots> : matmul_products_rows<1, false, Slots>);
  return run(whole ? matmul_products_rows<RowsTile::most_rows, true, Slots> : matmul_products_rows<RowsTile::most_rows, false, Slots>);
}

}  // namespace heddle

#endif
