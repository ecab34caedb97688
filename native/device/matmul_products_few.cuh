// Products of a handful of rows whose factors are computed, such as weights of 8 or 4 bits with their scales: as matmul_few.cuh, the
// columns of a product are rows of what tensor cores multiply, and fragments are made where they are multiplied. Factors are read in whole
// chunks, of which a lane has many on their way at once; those that may not be go through matmul_products_rows.cuh.
#ifndef HEDDLE_MATMUL_PRODUCTS_FEW_CUH
#define HEDDLE_MATMUL_PRODUCTS_FEW_CUH

#include "matmul_products_ahead.cuh"

namespace heddle {

/// A block for each sixteen columns of every product. Factors are read in whole chunks. `Stored`: rows of the right ones lie one behind the
/// other, and are read a step ahead, the first before the launch in front has finished where nothing writes them: `constant`. Columns that
/// are cut off take the registers of another block.
template <bool Whole, bool Stored, class Slots>
__global__ void __launch_bounds__(ProductsFewTile<Slots, Stored>::threads, Whole ? 2 : 1)
    matmul_products_few(const int m, const int64_t n, const int k, const bool constant, const Slots slots) {
  constexpr int count = Slots::PRODUCTS;
  using Tile = ProductsFewTile<Slots, Stored>;
  using T = typename Slots::Element;
  HEDDLE_SHARED(float, parts, Tile::warps * count * Tile::rows * Tile::columns);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * Tile::columns;
  // Columns that do not exist repeat the last; nobody looks at what comes of them.
  int at[2];
  HEDDLE_UNROLL
  for (int half = 0; half < 2; ++half) at[half] = static_cast<int>(column) + min(half * 8 + lane / 4, static_cast<int>(n - 1 - column));
  const int own_k = warp * Tile::warp_k + lane % 4 * Tile::vec;  // the lane's first element of k

  [[maybe_unused]] std::conditional_t<Stored, FewStored<Slots>, int> ahead;
  if constexpr (Stored) {
    if (!constant) wait_for_producers();
    ahead.fetch_all(slots, at, own_k, k);
  }
  // Thread t finishes eight columns of one row.
  const int own_row = static_cast<int>(threadIdx.x) / 2;
  const int64_t own_column = column + static_cast<int>(threadIdx.x) % 2 * 8;
  const bool finishes = static_cast<int>(threadIdx.x) < Tile::chunks && own_row < m && own_column < n;
  const int valid = static_cast<int>(n - own_column < 8 ? n - own_column : 8);
  if (finishes && own_row == 0) prefetch_constants(slots, static_cast<int>(own_column), 0);

  // In this order for the reason given in matmul_mma.cuh.
  if (!Stored || constant) wait_for_producers();
  release_consumers();
  typename Slots::Loaded loaded = {};
  if (finishes) loaded = slots.template load<Whole>(own_row, static_cast<int>(own_column), valid);
  // Rows that do not exist repeat the last, too. Four lanes have one row.
  const int row = min(lane / 4, m - 1);
  const LeftRow<Slots> a_row = find_left<Tile::warps>(slots, m);
  [[maybe_unused]] RightRows<Slots> b_rows[2] = {};
  if constexpr (!Stored) {
    const WarpTeam<4, Tile::threads / 4> team;
    HEDDLE_UNROLL
    for (int half = 0; half < 2; ++half) b_rows[half].find(slots, team, 0, at[half]);
  }
  float sums[count][4] = {};
  const auto multiply = [&](int first, auto inside) {
    constexpr bool is_inside = decltype(inside)::value;
    const auto add = [&](float(&sum)[4], const uint32_t(&upper)[4], const uint32_t(&lower)[4], const uint32_t(&right)[4]) {
      HEDDLE_UNROLL
      for (int pair = 0; pair < 4; pair += 2) {
        mma_m16n8k16<T>(sum, {upper[pair], lower[pair], upper[pair + 1], lower[pair + 1]}, {right[pair], right[pair + 1]});
      }
    };
    if constexpr (Stored) {
      HEDDLE_UNROLL
      for (int i = 0; i < Tile::pieces; ++i) {
        const int along = first + i * Tile::piece;
        uint32_t right[Tile::vec / 8][4];
        HEDDLE_UNROLL
        for (int part = 0; part < Tile::vec / 8; ++part) factor_words<0, is_inside>(slots, a_row.template of<0>(), row, along + part * 8, k, right[part]);
        for_each_product<Slots>([&](auto p) {
          constexpr int which = decltype(p)::value;
          const auto upper = ahead.chunks[which][0][i], lower = ahead.chunks[which][1][i];
          // What is multiplied next is on its way while this is.
          ahead.template fetch<which>(slots, at, i, along + Tile::step, k);
          HEDDLE_UNROLL
          for (int part = 0; part < Tile::vec / 8; ++part) {
            uint32_t upper_words[4], lower_words[4];
            stored_words<T>(upper, part * 8, upper_words);
            stored_words<T>(lower, part * 8, lower_words);
            add(sums[which], upper_words, lower_words, right[part]);
          }
        });
      }
    } else {
      for_each_product<Slots>([&](auto p) {
        constexpr int which = decltype(p)::value + 1;
        uint32_t upper[Tile::pieces][4], lower[Tile::pieces][4];
        HEDDLE_UNROLL
        for (int i = 0; i < Tile::pieces; ++i) {
          const int along = first + i * Tile::piece;
          factor_words<which, is_inside>(slots, b_rows[0].template of<which>(), at[0], along, k, upper[i]);
          factor_words<which, is_inside>(slots, b_rows[1].template of<which>(), at[1], along, k, lower[i]);
        }
        HEDDLE_UNROLL
        for (int i = 0; i < Tile::pieces; ++i) {
          uint32_t right[4];
          factor_words<0, is_inside>(slots, a_row.template of<0>(), row, first + i * Tile::piece, k, right);
          add(sums[which - 1], upper[i], lower[i], right);
        }
      });
    }
  };
  // Lanes of a warp go the same way: they multiply together.
  for (int begin = warp * Tile::warp_k; begin < k; begin += Tile::step) {
    const int first = begin + lane % 4 * Tile::vec;
    if (begin + Tile::warp_k <= k) {
      multiply(first, Constant<true>());
    } else {
      multiply(first, Constant<false>());
    }
  }
  // A lane has, of columns lane / 4 and 8 more, rows 2 (lane % 4) and the next.
  HEDDLE_UNROLL
  for (int p = 0; p < count; ++p) {
    HEDDLE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int r = lane % 4 * 2 + i % 2, own = i / 2 * 8 + lane / 4;
      parts[((warp * count + p) * Tile::rows + r) * Tile::columns + own] = sums[p][i];
    }
  }
  __syncthreads();
  if (!finishes) return;
  float total[count][8] = {};
  for (int w = 0; w < Tile::warps; ++w) {
    HEDDLE_UNROLL
    for (int p = 0; p < count; ++p) {
      HEDDLE_UNROLL
      for (int j = 0; j < 8; ++j) {
        total[p][j] += parts[((w * count + p) * Tile::rows + own_row) * Tile::columns + static_cast<int>(threadIdx.x) % 2 * 8 + j];
      }
    }
  }
  finish_products<Whole>(slots, own_row, static_cast<int>(own_column), valid, total, loaded);
}

/// Whether all factors are read in whole chunks.
template <class Slots, int... F>
bool has_whole_rows(const Slots& slots, int64_t k, std::integer_sequence<int, F...>) {
  return (slots.whole_rows(Factor<F>(), k) && ...);
}
template <class Slots>
bool has_whole_rows(const Slots& slots, int64_t k) {
  return has_whole_rows(slots, k, std::make_integer_sequence<int, Slots::PRODUCTS + 1>());
}

/// Enqueues products of at most few::most_rows rows of one matrix, summed in float32, whose factors have whole rows. Refuses more blocks
/// than a grid has.
template <class Slots>
int32_t launch_products_few(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                            bool constant, const Slots& slots) {
  using Tile = ProductsFewTile<Slots, false>;
  const int64_t blocks = (n + Tile::columns - 1) / Tile::columns;
  constexpr int64_t most = INT32_MAX - 4 * Tile::step;
  if (n > most || k > most) {
    return fail(error, HEDDLE_INVALID, "kernel %s: n is %lld and k is %lld, allowed are %lld of each", name, static_cast<long long>(n),
                static_cast<long long>(k), static_cast<long long>(most));
  }
  const LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks)), dim3(Tile::threads), 0, Sync::block, true};
  const bool whole = n % 8 == 0 && slots.whole_chunks();
  const auto run = [&](auto kernel) {
    return launch(queue, error, config, kernel, static_cast<int>(m), n, static_cast<int>(k), constant, slots);
  };
  const auto run_stored = [&](auto stored) {
    constexpr bool is_stored = decltype(stored)::value;
    return run(whole ? matmul_products_few<true, is_stored, Slots> : matmul_products_few<false, is_stored, Slots>);
  };
  if constexpr (!few_stored<Slots>()) {
    return run_stored(Constant<false>());
  } else if constexpr (FewFactor<Slots, 1>::vec == 8) {
    // Whole rows are multiples of eight.
    return run_stored(Constant<true>());
  } else {
    return k % FewFactor<Slots, 1>::vec == 0 ? run_stored(Constant<true>()) : run_stored(Constant<false>());
  }
}

}  // namespace heddle

#endif
