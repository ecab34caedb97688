// Matmuls of at most eight rows whose factors are computed, such as weights of 8 or 4 bits with their scales. As in matmul_few.cuh, output
// columns are the rows of an mma, and fragments are made where they are multiplied. Factors are read in whole chunks, of which a lane has
// many in flight at once. Factors that cannot be read so go through matmul_products_rows.cuh.
#ifndef HEDDLE_MATMUL_PRODUCTS_FEW_CUH
#define HEDDLE_MATMUL_PRODUCTS_FEW_CUH

#include "matmul_few.cuh"

namespace heddle {

/// Sixteen columns of every matmul per block.
template <int Products>
struct ProductsFewTile {
  static constexpr int columns = 16, rows = 8;
  static constexpr int warps = 8, threads = 32 * warps;
  static constexpr int vec = 8, piece = 4 * vec;  // of k: per lane, and per four lanes
  /// Pieces of every matmul that a warp has in flight at once: as many as there are registers for.
  static constexpr int pieces = Products < 4 ? 8 / Products : 2;
  static constexpr int warp_k = pieces * piece, step = warps * warp_k;
  static constexpr int chunks = rows * columns / 8;  // chunks of eight columns for the epilogue, one per thread
};

/// One block per sixteen columns of every matmul. Factors are read in whole chunks. Cut-off columns need the registers of a second block.
template <bool Whole, class Slots>
__global__ void __launch_bounds__(ProductsFewTile<Slots::PRODUCTS>::threads, Whole ? 2 : 1)
    matmul_products_few(const int m, const int64_t n, const int k, const Slots slots) {
  constexpr int count = Slots::PRODUCTS;
  using Tile = ProductsFewTile<count>;
  using T = typename Slots::Element;
  HEDDLE_SHARED(float, parts, Tile::warps * count * Tile::rows * Tile::columns);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * Tile::columns;
  // Columns that do not exist repeat the last; their results are not used.
  int at[2];
  HEDDLE_UNROLL
  for (int half = 0; half < 2; ++half) at[half] = static_cast<int>(column) + min(half * 8 + lane / 4, static_cast<int>(n - 1 - column));
  // Thread t finishes eight columns of one row.
  const int own_row = static_cast<int>(threadIdx.x) / 2;
  const int64_t own_column = column + static_cast<int>(threadIdx.x) % 2 * 8;
  const bool finishes = static_cast<int>(threadIdx.x) < Tile::chunks && own_row < m && own_column < n;
  const int valid = static_cast<int>(n - own_column < 8 ? n - own_column : 8);
  if (finishes && own_row == 0) prefetch_constants(slots, static_cast<int>(own_column), 0);

  // The order matters, for the reason given in matmul_mma.cuh.
  wait_for_producers();
  release_consumers();
  typename Slots::Loaded loaded = {};
  if (finishes) loaded = slots.template load<Whole>(own_row, static_cast<int>(own_column), valid);
  // Rows that do not exist repeat the last, too. Four lanes share one row.
  const int row = min(lane / 4, m - 1);
  const LeftRow<Slots> a_row = find_left<Tile::warps>(slots, m);
  RightRows<Slots> b_rows[2] = {};
  const WarpTeam<4, Tile::threads / 4> team;
  HEDDLE_UNROLL
  for (int half = 0; half < 2; ++half) b_rows[half].find(slots, team, 0, at[half]);
  float sums[count][4] = {};
  const auto multiply = [&](int first, auto inside) {
    constexpr bool is_inside = decltype(inside)::value;
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
        HEDDLE_UNROLL
        for (int pair = 0; pair < 4; pair += 2) {
          mma_m16n8k16<T>(sums[which - 1], {upper[i][pair], lower[i][pair], upper[i][pair + 1], lower[i][pair + 1]},
                          {right[pair], right[pair + 1]});
        }
      }
    });
  };
  // The branch is warp-uniform, since the lanes of a warp multiply together.
  for (int begin = warp * Tile::warp_k; begin < k; begin += Tile::step) {
    const int first = begin + lane % 4 * Tile::vec;
    if (begin + Tile::warp_k <= k) {
      multiply(first, Constant<true>());
    } else {
      multiply(first, Constant<false>());
    }
  }
  // A lane holds rows 2 (lane % 4) and the next of columns lane / 4 and lane / 4 + 8.
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

/// True if all factors are read in whole chunks.
template <class Slots, int... F>
bool has_whole_rows(const Slots& slots, int64_t k, std::integer_sequence<int, F...>) {
  return (slots.whole_rows(Factor<F>(), k) && ...);
}
template <class Slots>
bool has_whole_rows(const Slots& slots, int64_t k) {
  return has_whole_rows(slots, k, std::make_integer_sequence<int, Slots::PRODUCTS + 1>());
}

/// Enqueues matmuls of at most few::most_rows rows of one matrix, summed in float32, whose factors have whole rows. Refuses more blocks
/// than a grid has.
template <class Slots>
int32_t launch_products_few(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                            [[maybe_unused]] bool constant, const Slots& slots) {
  if constexpr (few_stored<Slots>()) {
    // Whole rows are multiples of eight.
    constexpr int vec = FewFactor<Slots, 1>::vec;
    if (vec == 8 || k % vec == 0) return few::launch_stored(queue, error, name, m, n, k, constant, slots);
  }
  if constexpr (!few_stored<Slots>() || FewFactor<Slots, 1>::vec > 8) {
    using Tile = ProductsFewTile<Slots::PRODUCTS>;
    const int64_t blocks = (n + Tile::columns - 1) / Tile::columns;
    constexpr int64_t most = INT32_MAX - 4 * Tile::step;
    if (n > most || k > most) {
      return fail(error, HEDDLE_INVALID, "kernel %s: n is %lld and k is %lld, expected at most %lld for each", name, static_cast<long long>(n),
                  static_cast<long long>(k), static_cast<long long>(most));
    }
    const LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks)), dim3(Tile::threads), 0, Sync::block, true};
    const bool whole = n % 8 == 0 && slots.whole_chunks();
    const auto run = [&](auto kernel) { return launch(queue, error, config, kernel, static_cast<int>(m), n, static_cast<int>(k), slots); };
    return run(whole ? matmul_products_few<true, Slots> : matmul_products_few<false, Slots>);
  }
}

}  // namespace heddle

#endif
