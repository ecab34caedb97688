// Matmuls of one row whose right factors have contiguous rows, such as the weights of a decoding step at batch 1. As in matmul_rows.cuh, a
// block takes eight columns of every matmul, its warps divide k, and tensor cores do not pay off. A lane prefetches its next elements while
// it multiplies. Where nothing writes the weights, the first of them load before the previous launch has finished. Sums are added in the
// order of k. Every block reads the whole row, so a row that is scaled by a function of its sums, as in a norm, is multiplied unscaled and
// the sums of the matmul are scaled at the end. Parts of a row that all rows share, as those of a layer norm, are multiplied before the wait.
#ifndef HEDDLE_MATMUL_PRODUCTS_ONE_CUH
#define HEDDLE_MATMUL_PRODUCTS_ONE_CUH

#include "matmul_few_tile.cuh"
#include "matmul_fixed.cuh"
#include "matmul_row_scale.cuh"
#include "matmul_rows.cuh"

namespace heddle {

/// Small blocks, several of which fit a multiprocessor: one begins while others end.
template <class Slots>
struct OneTile {
  using Stored = typename FewFactor<Slots, 1>::Stored;
  static constexpr int columns = RowsTile::columns, warps = 4, threads = 32 * warps, resident = 4;
  static constexpr int held = columns / Slots::PRODUCTS;  // columns of each matmul in registers at once
  static constexpr int vec = FewFactor<Slots, 1>::vec;    // elements of k that a lane loads per row: 16 bytes as stored
  static constexpr int step = threads * vec;
};

/// Values of the left factor's only row, known before the row is multiplied or, with `Scales`, after that.
template <class Slots, bool Scales = (row_folds<Slots> > 0)>
struct OneRow {
  LeftRow<Slots> known = {};

  __device__ __forceinline__ void find(const Slots& slots) { known.find(slots, BlockTeam<OneTile<Slots>::threads>(), 0, 0); }
  __device__ __forceinline__ void prefetch(const Slots&, int) const {}
  __device__ __forceinline__ void read(const Slots& slots, int at, int k, float (&values)[8]) {
    factor_chunk<0, true>(slots, known.template of<0>(), true, 0, 0, at, k, values);
  }
};
template <class Slots>
struct OneRow<Slots, true> {
  UnscaledRow<Slots> row = {};

  __device__ __forceinline__ void find(const Slots& slots) { row.find(slots, 0); }
  __device__ __forceinline__ void prefetch(const Slots& slots, int at) const { slots.prefetch_of(Factor<0>(), at); }
  __device__ __forceinline__ void read(const Slots& slots, int at, int, float (&values)[8]) { row.read(slots, 0, at, values); }
};

/// A lane's part of the row, in the form that weights are multiplied by.
template <class Slots, class Stored = typename OneTile<Slots>::Stored>
class RowPart {
  using Tile = OneTile<Slots>;

 public:
  __device__ __forceinline__ explicit RowPart(const float (&row)[Tile::vec / 8][8]) {
    HEDDLE_UNROLL
    for (int e = 0; e < Tile::vec; ++e) row_[e] = row[e / 8][e % 8];
  }
  /// Adds the products with the weights of the columns that a lane holds.
  __device__ __forceinline__ void add_products(const Chunk<Stored, Tile::vec> (&weights)[Slots::PRODUCTS][Tile::held], float (&sums)[8]) const {
    HEDDLE_UNROLL
    for (int i = 0; i < 8; ++i) {
      HEDDLE_UNROLL
      for (int e = 0; e < Tile::vec; ++e) sums[i] += row_[e] * weights[i / Tile::held][i % Tile::held][e];
    }
  }

 private:
  float row_[Tile::vec];
};
template <class Slots>
class RowPart<Slots, signed char> {
  using Tile = OneTile<Slots>;

 public:
  __device__ __forceinline__ explicit RowPart(const float (&row)[Tile::vec / 8][8]) : fixed_(row) {}
  __device__ __forceinline__ void add_products(const Chunk<signed char, Tile::vec> (&weights)[Slots::PRODUCTS][Tile::held],
                                               float (&sums)[8]) const {
    HEDDLE_UNROLL
    for (int i = 0; i < 8; ++i) sums[i] += fixed_.times(weights[i / Tile::held][i % Tile::held].words);
  }

 private:
  FixedPoint fixed_;
};

/// Adds the products of a chunk of the parts that all rows share with the weights of the columns that a lane holds.
template <class Slots>
__device__ __forceinline__ void add_common(const Slots& slots, int at,
                                           const Chunk<typename OneTile<Slots>::Stored, OneTile<Slots>::vec> (&weights)[Slots::PRODUCTS][OneTile<Slots>::held],
                                           float (&sums)[row_commons<Slots>][8]) {
  constexpr int chunks = OneTile<Slots>::vec / 8, count = row_commons<Slots>;
  float parts[count][chunks][8];
  HEDDLE_UNROLL
  for (int c = 0; c < chunks; ++c) {
    float values[count][8];
    slots.template common_of<true>(Factor<0>(), at + c * 8, 8, values);
    HEDDLE_UNROLL
    for (int p = 0; p < count; ++p) {
      HEDDLE_UNROLL
      for (int e = 0; e < 8; ++e) parts[p][c][e] = values[p][e];
    }
  }
  HEDDLE_UNROLL
  for (int p = 0; p < count; ++p) RowPart<Slots>(parts[p]).add_products(weights, sums[p]);
}

/// Sums of the row's parts in `parts`, which a lane finishes for one column of a matmul: those of the row, and those of parts that all rows share.
template <class Slots, class Parts, class Folds>
__device__ __forceinline__ float finish_row(const Slots& slots, [[maybe_unused]] const OneRow<Slots>& row, int lane, const Parts& parts,
                                            [[maybe_unused]] const Folds& folds) {
  using Tile = OneTile<Slots>;
  constexpr int all = Slots::PRODUCTS * Tile::columns, commons = row_commons<Slots>;
  float sums[1 + commons] = {};
  HEDDLE_UNROLL
  for (int w = 0; w < Tile::warps; ++w) {
    HEDDLE_UNROLL
    for (int p = 0; p <= commons; ++p) sums[p] += parts[(w * (1 + commons) + p) * all + lane];
  }
  if constexpr (row_folds<Slots> > 0) {
    float factors[commons > 0 ? commons : 1];
    sums[0] *= row.row.template scale<Tile::warps>(slots, 0, folds, factors);
    HEDDLE_UNROLL
    for (int p = 0; p < commons; ++p) sums[0] += sums[1 + p] * factors[p];
  }
  return sums[0];
}

/// k is a multiple of `OneTile::vec`. `constant`: nothing writes the right factors and the parts that all rows share meanwhile.
template <bool Whole, class Slots>
__global__ void __launch_bounds__(OneTile<Slots>::threads, OneTile<Slots>::resident - (row_commons<Slots> > 0))
    matmul_products_one(const int64_t n, const int k, const bool constant, const Slots slots) {
  using Tile = OneTile<Slots>;
  constexpr int count = Slots::PRODUCTS, columns = Tile::columns, held = Tile::held, vec = Tile::vec;
  constexpr int turns = columns / held, commons = row_commons<Slots>, rows = 1 + commons;
  static_assert(count * held == 8, "lanes add up eight sums at a time");
  HEDDLE_SHARED(float, parts, Tile::warps * rows * count * columns);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * columns;
  const int64_t left = n - column;
  const int valid = static_cast<int>(left < columns ? left : columns);
  Chunk<typename Tile::Stored, vec> weights[count][held];
  const auto fetch = [&](int first, int at) {
    for_each_product<Slots>([&](auto p) {
      constexpr int which = decltype(p)::value;
      const auto from = slots.stored_of(Factor<which + 1>(), 0);
      HEDDLE_UNROLL
      for (int j = 0; j < held; ++j) {
        const int64_t row = column + (first + j < valid ? first + j : 0);
        weights[which][j] = load_chunk<vec, true>(from.tensor, from.first + row * k + at, vec);
      }
    });
  };
  float sums[turns][8] = {};
  [[maybe_unused]] float common[turns][commons > 0 ? commons : 1][8] = {};

  if (!constant) wait_for_producers();
  const int own = static_cast<int>(threadIdx.x) * vec;
  if (own < k) fetch(0, own);
  OneRow<Slots> row_of = {};
  for (int at = own; at < k; at += Tile::step) row_of.prefetch(slots, at);
  if (threadIdx.x == 0) prefetch_constants(slots, static_cast<int>(column), 0);
  if constexpr (commons > 0) {
    if (own < k) add_common(slots, own, weights, common[0]);
  }
  if (constant) wait_for_producers();
  release_consumers();
  const bool finishes = threadIdx.x == 0;
  typename Slots::Loaded loaded = {};
  if (finishes) loaded = slots.template load<Whole>(0, static_cast<int>(column), valid);
  row_of.find(slots);
  for (int at = own; at < k; at += Tile::step) {
    float row[vec / 8][8];
    HEDDLE_UNROLL
    for (int part = 0; part < vec / 8; ++part) row_of.read(slots, at + part * 8, k, row[part]);
    const RowPart<Slots> multiplier(row);
    HEDDLE_UNROLL
    for (int turn = 0; turn < turns; ++turn) {
      multiplier.add_products(weights, sums[turn]);
      if constexpr (commons > 0) {
        if (turn > 0 || at > own) add_common(slots, at, weights, common[turn]);
      }
      if (turn + 1 < turns) {
        fetch((turn + 1) * held, at);
      } else if (at + Tile::step < k) {
        fetch(0, at + Tile::step);
      }
    }
  }
  HEDDLE_UNROLL
  for (int turn = 0; turn < turns; ++turn) {
    const int which = lane / 4 / held, j = turn * held + lane / 4 % held;
    const auto leave = [&](int part, float(&values)[8]) {
      const float sum = sum_eight(values, lane);
      if (lane % 4 == 0) parts[((warp * rows + part) * count + which) * columns + j] = sum;
    };
    leave(0, sums[turn]);
    HEDDLE_UNROLL
    for (int p = 0; p < commons; ++p) leave(1 + p, common[turn][p]);
  }
  HEDDLE_SHARED(float, folds, Tile::warps * (row_folds<Slots> + 1));
  if constexpr (row_folds<Slots> > 0) leave_folds<Slots>(row_of.row.folds, folds);
  __syncthreads();
  if (warp > 0) return;
  // One lane per column adds the parts of k and leaves the sum in place of the first warp's: the thread that finishes would take long.
  if (lane < count * columns) parts[lane] = finish_row(slots, row_of, lane, parts, folds);
  __syncwarp();
  if (!finishes) return;
  float total[count][columns];
  HEDDLE_UNROLL
  for (int p = 0; p < count; ++p) {
    HEDDLE_UNROLL
    for (int j = 0; j < columns; ++j) total[p][j] = parts[p * columns + j];
  }
  finish_products<Whole>(slots, 0, static_cast<int>(column), valid, total, loaded);
}

/// True if this body can multiply one row: at most two matmuls whose right factors are stored in a suitable type. More matmuls would leave
/// no registers for prefetched elements.
template <class Slots>
constexpr bool takes_one_row() {
  if constexpr (Slots::PRODUCTS <= 2 && std::is_same_v<typename Slots::Sum, float> && few_stored<Slots>()) {
    using Stored = typename FewFactor<Slots, 1>::Stored;
    return std::is_same_v<Stored, typename Slots::Element> || std::is_same_v<Stored, signed char>;
  } else {
    return false;
  }
}

/// Enqueues matmuls of one row, whose factors have whole rows and k a multiple of `OneTile::vec`. Refuses more blocks than a grid has.
template <class Slots>
int32_t launch_products_one(const heddle_launch* queue, heddle_error* error, const char* name, int64_t n, int64_t k, bool constant,
                            const Slots& slots) {
  using Tile = OneTile<Slots>;
  const int64_t blocks = (n + Tile::columns - 1) / Tile::columns;
  if (blocks > INT32_MAX || k > INT32_MAX - Tile::step) {
    return fail(error, HEDDLE_INVALID, "kernel %s: n is %lld and k is %lld: too large for a launch", name, static_cast<long long>(n),
                static_cast<long long>(k));
  }
  const LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks)), dim3(Tile::threads), memory_of_one_row(blocks), Sync::block, true};
  const bool whole = n % Tile::columns == 0 && slots.whole_chunks();
  const auto run = [&](auto kernel) { return launch(queue, error, config, kernel, n, static_cast<int>(k), constant, slots); };
  return run(whole ? matmul_products_one<true, Slots> : matmul_products_one<false, Slots>);
}

}  // namespace heddle

#endif
