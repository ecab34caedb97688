// Products of one row whose right factors lie one row behind the other, such as the weights of a step at batch 1: as matmul_rows.cuh, a
// block takes eight columns of every product, its warps divide k, and no tensor core helps. What a lane multiplies next is on its way while
// it multiplies, the first of it before the launch in front has finished where nothing writes weights. Sums are added in the order of k.
#ifndef HEDDLE_MATMUL_PRODUCTS_ONE_CUH
#define HEDDLE_MATMUL_PRODUCTS_ONE_CUH

#include "matmul_products_ahead.cuh"
#include "matmul_rows.cuh"

namespace heddle {

template <class Slots>
struct OneTile {
  using Stored = typename FewFactor<Slots, 1>::Stored;
  static constexpr int columns = RowsTile::columns, warps = RowsTile::most_warps, threads = 32 * warps;
  static constexpr int vec = FewFactor<Slots, 1>::vec;  // elements of k a lane takes of a row at a time: 16 bytes as they lie
  static constexpr int step = threads * vec;
};

/// k is a multiple of `OneTile::vec`. `constant`: nothing writes the right factors meanwhile.
template <bool Whole, class Slots>
__global__ void __launch_bounds__(OneTile<Slots>::threads, 2)
    matmul_products_one(const int64_t n, const int k, const bool constant, const Slots slots) {
  using Tile = OneTile<Slots>;
  constexpr int count = Slots::PRODUCTS, columns = Tile::columns, vec = Tile::vec;
  HEDDLE_SHARED(float, parts, Tile::warps * count * columns);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * columns;
  const int64_t left = n - column;
  const int valid = static_cast<int>(left < columns ? left : columns);
  Chunk<typename Tile::Stored, vec> weights[count][columns];
  const auto fetch = [&](int at) {
    for_each_product<Slots>([&](auto p) {
      constexpr int which = decltype(p)::value;
      const auto from = slots.stored_of(Factor<which + 1>(), 0);
      HEDDLE_UNROLL
      for (int j = 0; j < columns; ++j) {
        const int64_t row = column + (j < valid ? j : 0);
        weights[which][j] = load_chunk<vec, true>(from.tensor, from.first + row * k + at, vec);
      }
    });
  };

  if (!constant) wait_for_producers();
  int at = static_cast<int>(threadIdx.x) * vec;
  if (at < k) fetch(at);
  if (threadIdx.x == 0) prefetch_constants(slots, static_cast<int>(column), 0);
  if (constant) wait_for_producers();
  release_consumers();
  const bool finishes = threadIdx.x == 0;
  typename Slots::Loaded loaded = {};
  if (finishes) loaded = slots.template load<Whole>(0, static_cast<int>(column), valid);
  const LeftRow<Slots> known = find_left<Tile::warps>(slots, 1);
  float sums[count][columns] = {};
  for (; at < k; at += Tile::step) {
    float row[vec / 8][8];
    HEDDLE_UNROLL
    for (int part = 0; part < vec / 8; ++part) factor_chunk<0, true>(slots, known.template of<0>(), true, 0, 0, at + part * 8, k, row[part]);
    HEDDLE_UNROLL
    for (int p = 0; p < count; ++p) {
      HEDDLE_UNROLL
      for (int j = 0; j < columns; ++j) {
        HEDDLE_UNROLL
        for (int e = 0; e < vec; ++e) sums[p][j] += row[e / 8][e % 8] * weights[p][j][e];
      }
    }
    if (at + Tile::step < k) fetch(at + Tile::step);
  }
  HEDDLE_UNROLL
  for (int p = 0; p < count; ++p) {
    const float sum = sum_eight(sums[p], lane);
    if (lane % 4 == 0) parts[(warp * count + p) * columns + lane / 4] = sum;
  }
  __syncthreads();
  if (!finishes) return;
  float total[count][columns] = {};
  HEDDLE_UNROLL
  for (int w = 0; w < Tile::warps; ++w) {
    HEDDLE_UNROLL
    for (int p = 0; p < count; ++p) {
      HEDDLE_UNROLL
      for (int j = 0; j < columns; ++j) total[p][j] += parts[(w * count + p) * columns + j];
    }
  }
  finish_products<Whole>(slots, 0, static_cast<int>(column), valid, total, loaded);
}

/// Whether there are so few products that one row of them is multiplied so, and their factors lie as it takes. More products would
/// leave no registers for what is on its way, and integers take less to become what tensor cores multiply than to become floats.
template <class Slots>
constexpr bool takes_one_row() {
  if constexpr (Slots::PRODUCTS <= 2 && std::is_same_v<typename Slots::Sum, float> && few_stored<Slots>()) {
    return std::is_same_v<typename FewFactor<Slots, 1>::Stored, typename Slots::Element>;
  } else {
    return false;
  }
}

/// Enqueues products of one row, whose factors have whole rows and k a multiple of `OneTile::vec`. Refuses more blocks than a grid has.
template <class Slots>
int32_t launch_products_one(const heddle_launch* queue, heddle_error* error, const char* name, int64_t n, int64_t k, bool constant,
                            const Slots& slots) {
  using Tile = OneTile<Slots>;
  const int64_t blocks = (n + Tile::columns - 1) / Tile::columns;
  if (blocks > INT32_MAX || k > INT32_MAX - Tile::step) {
    return fail(error, HEDDLE_INVALID, "kernel %s: n is %lld and k is %lld: too many for a launch", name, static_cast<long long>(n),
                static_cast<long long>(k));
  }
  const LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks)), dim3(Tile::threads), 0, Sync::block, true};
  const bool whole = n % Tile::columns == 0 && slots.whole_chunks();
  const auto run = [&](auto kernel) { return launch(queue, error, config, kernel, n, static_cast<int>(k), constant, slots); };
  return run(whole ? matmul_products_one<true, Slots> : matmul_products_one<false, Slots>);
}

}  // namespace heddle

#endif
