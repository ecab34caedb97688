// Choice among Hopper's large tiles for a matmul: the cost of tiles, from timing them, and the rules. The tiles are in matmul_wgmma.cuh and
// wgmma_single.cuh.
#ifndef HEDDLE_WGMMA_CHOICE_CUH
#define HEDDLE_WGMMA_CHOICE_CUH

#include <algorithm>
#include <type_traits>

#include "matmul_choice.cuh"
#include "matmul_epilogue.cuh"
#include "wgmma_single.cuh"
#include "wgmma_tile.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

namespace wgmma {

template <class Epilogue, class = void>
constexpr bool in_two_steps = false;
template <class Epilogue>
constexpr bool in_two_steps<Epilogue, std::void_t<typename Epilogue::Loaded>> = true;

/// True if registers suffice for the epilogue beside ragged tiles of 128 columns: not if it holds the factors, too (8 bytes would spill).
template <class Epilogue, class = void>
constexpr bool has_ragged_square = true;
template <class Epilogue>
constexpr bool has_ragged_square<Epilogue, std::void_t<decltype(Epilogue::HOLDS_FACTORS)>> = false;

/// Number of clusters that run at the same time.
inline int64_t pairs_at_once() { return std::max(1, device_attribute(cudaDevAttrMultiProcessorCount) / 2); }

inline int64_t divide_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

/// Number of tiles that one block computes one after the other.
template <class Tile>
int64_t rounds(int64_t m, int64_t n, int64_t pairs_at_once) {
  return divide_up(divide_up(m, Tile::pair * Tile::rows) * divide_up(n, Tile::own_columns), pairs_at_once);
}

/// True if wide tiles may be taken in turns (ping-pong). Such a tile leaves no registers for prefetched loads, so it does not exist where
/// the epilogue loads rows. Nor does it for int8: a step takes as long as one of wider types and there are half as many, so epilogues take
/// more of the time.
template <class T, class Epilogue>
constexpr bool wide_in_turns() {
  if constexpr (in_two_steps<Epilogue>) {
    return sizeof(typename Epilogue::Loaded) <= 16 && !std::is_same_v<T, signed char>;
  } else {
    return false;
  }
}

/// True if there are tiles of 160 columns and tiles whose k two blocks divide: for int8 neither was measured.
template <class T>
constexpr bool has_more_tiles = !std::is_same_v<T, signed char>;

/// True if the tiles of this header and of wgmma_single.cuh can compute a matmul whose rows are aligned to 16 bytes.
inline bool can(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t largest = INT32_MAX / 2;
  const int64_t pairs = divide_up(m, 256) * divide_up(n, 128);
  return m <= largest && n <= largest && k <= largest && pairs <= largest &&
         device_attribute(cudaDevAttrComputeCapabilityMajor) == 9 && tensor_maps::encoder() != nullptr;
}

/// True if all chunks of eight columns are whole, so that right factors are permuted.
template <class Epilogue>
bool is_whole(int64_t n, const Epilogue& epilogue) {
  return n % 8 == 0 && EpilogueCall<Epilogue>::whole_chunks(epilogue);
}

/// True if there is such a tile for a matmul of n columns and its epilogue.
template <class T, class Epilogue>
bool exists(const MatmulChoice& choice, int64_t n, int64_t k, const Epilogue& epilogue) {
  if (choice.split > steps_of<T>(k)) return false;
  const bool is_middle = choice.tile == MatmulTile::pair_128x160 || choice.tile == MatmulTile::turns_128x160;
  const bool splits = choice.tile == MatmulTile::pair_128x128 || choice.tile == MatmulTile::pair_128x160;
  if (choice.split != 1 && !(has_more_tiles<T> && choice.split == 2 && splits)) return false;
  if (is_middle && !has_more_tiles<T>) return false;
  if (choice.tile == MatmulTile::turns_128x128) return true;
  if constexpr (in_two_steps<Epilogue>) {
    if (choice.tile < MatmulTile::single_128x64) return false;
    const bool is_square = has_ragged_square<Epilogue> && choice.tile == MatmulTile::single_128x128;
    if (!is_whole(n, epilogue)) return choice.split == 1 && (choice.tile == MatmulTile::single_128x64 || is_square);
    return choice.tile < MatmulTile::turns_128x192 || (choice.tile == MatmulTile::turns_128x192 && wide_in_turns<T, Epilogue>());
  } else {
    return false;
  }
}

/// The fastest single tile for a matmul, or none. From timing all widths for the matmuls of a 768 wide layer, 192 to 3500 rows, on a GPU of
/// 132 multiprocessors.
template <class T>
MatmulTile choose_single(int64_t m, int64_t n, int64_t k) {
  const int64_t at_once = device_attribute(cudaDevAttrMultiProcessorCount);
  const auto tiles = [&](int64_t columns) { return divide_up(m, SingleTile<64>::rows) * divide_up(n, columns); };
  // Few rows leave much of a tile empty, few tiles most of the GPU. A long k can then be divided, as long as halves of 64 x 96 all run at
  // once. For int8, dividing a k of 24 or of 32 steps was slower than not dividing it.
  constexpr int64_t few_rows = 256, long_k = 24 * box_columns<T>;
  constexpr int64_t divided_k = std::is_same_v<T, signed char> ? 40 * box_columns<T> : long_k;
  const bool halves = k >= divided_k && 2 * divide_up(m, 64) * divide_up(n, 96) <= at_once;
  if (m < few_rows || 2 * tiles(64) <= at_once || halves) return MatmulTile::none;
  // The narrowest tile with which all blocks run at once takes the least time.
  if (tiles(64) <= at_once) return MatmulTile::single_128x64;
  if (tiles(96) <= at_once) return MatmulTile::single_128x96;
  // Pairs of tiles read less, but an odd number of rows of tiles may cost them a round, and over a long k they wait for each other.
  const bool pairs_lose = k >= long_k || rounds<WgmmaTile<128, false>>(m, n, pairs_at_once()) > 1;
  return tiles(128) <= at_once && pairs_lose ? MatmulTile::single_128x128 : MatmulTile::none;
}

/// Cost of a matmul with tiles of 128 rows and `columns`, one per block, in cycles of a multiprocessor: rounds of blocks, each with its
/// steps and the time `around` them. A step takes as long as its multiplications or its reads of the L2 cache: by one multiprocessor, and
/// by all of them, which share it. From timing these tiles for 128 to 1,024 rows on an H200.
inline int64_t cost_of(int64_t columns, int64_t steps, int64_t blocks, int64_t at_once, int64_t around) {
  constexpr int64_t rows = 128, products_a_cycle = 32;          // per 64 elements of k
  constexpr int64_t own_bytes_a_cycle = 72, bytes_a_cycle = 46;  // per multiprocessor, alone and beside all others
  const int64_t products = rows * columns / products_a_cycle * (columns == 160 ? 9 : 8) / 8, read = (rows + columns) * box_row_bytes;
  const int64_t step = std::max({products, read / own_bytes_a_cycle, read * std::min(blocks, at_once) / (bytes_a_cycle * at_once)});
  return divide_up(blocks, at_once) * (steps * step + around);
}

struct PricedChoice {
  MatmulChoice choice;
  int64_t cost;
};

/// The cheapest of the single tiles that `may` be chosen.
template <class T, class May>
PricedChoice cheapest_single(int64_t m, int64_t n, int64_t k, May may) {
  constexpr int64_t fill = 2000;
  const int64_t at_once = device_attribute(cudaDevAttrMultiProcessorCount), steps = divide_up(k, box_columns<T>);
  // Weights arrive from memory at most at this rate.
  constexpr int64_t memory_bytes_a_cycle = 2480;
  const int64_t arrival = n * k * static_cast<int64_t>(sizeof(T)) / memory_bytes_a_cycle;
  PricedChoice best = {{}, INT64_MAX};
  const auto consider = [&](MatmulTile tile, int64_t columns) {
    const int64_t cost = cost_of(columns, steps, divide_up(m, 128) * divide_up(n, columns), at_once, fill);
    if (may(tile) && std::max(cost, arrival + fill) < best.cost) best = {{tile}, std::max(cost, arrival + fill)};
  };
  consider(MatmulTile::single_128x64, 64);
  consider(MatmulTile::single_128x96, 96);
  consider(MatmulTile::single_128x128, 128);
  return best;
}

/// The choice of a tile whose k two blocks divide, where that beats the `single` one by more than a tenth. Its sums are exchanged, but the
/// tile is larger for the same number of blocks, so the factors are read less often.
template <class T>
MatmulChoice choose_halves(PricedChoice single, int64_t m, int64_t n, int64_t k) {
  if (!has_more_tiles<T>) return single.choice;
  constexpr int64_t exchange = 7000;
  const int64_t at_once = device_attribute(cudaDevAttrMultiProcessorCount), steps = divide_up(k, 2 * box_columns<T>);
  PricedChoice best = {single.choice, single.cost / 11 * 10};
  const auto consider = [&](MatmulTile tile, int64_t columns) {
    const int64_t blocks = 2 * divide_up(m, 128) * divide_up(n, columns), cost = cost_of(columns, steps, blocks, at_once, exchange);
    if (blocks <= at_once && cost < best.cost) best = {{tile, 2}, cost};
  };
  consider(MatmulTile::pair_128x128, 128);
  consider(MatmulTile::pair_128x160, 160);
  return best.choice;
}

/// True if a 16-bit matmul has one tile of rows, more than half full, and so many columns and so long a k that they matter more.
inline bool is_half_full(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t half = 64, whole = 128, many_columns = 4096, long_k = 1024;
  return m > half && m <= whole && n >= many_columns && k >= long_k;
}

/// True if matmuls of `n` columns together have tiles for two thirds of the GPU, and little of the lower tile of a pair is empty. Otherwise
/// smaller tiles are faster.
template <class T>
bool fill_pairs(int64_t m, int64_t n) {
  const bool is_full = m >= 512 || (has_more_tiles<T> && 4 * m >= 3 * 256 * divide_up(m, 256));
  return is_full && divide_up(m, 256) * divide_up(n, 128) * 3 >= pairs_at_once() * 2;
}

/// The fastest tile of pairs for `Products` of n columns each, which fill_pairs().
template <class T, class Epilogue, int Products>
MatmulTile choose_pairs(int64_t m, int64_t n) {
  constexpr bool has_middle = has_more_tiles<T> && Products == 1;
  const int64_t narrow = rounds<WgmmaTile<128, true, 1, Products>>(m, n, pairs_at_once());
  const int64_t middle = rounds<WgmmaTile<160, true>>(m, n, pairs_at_once());
  const int64_t wide = rounds<WgmmaTile<192, true, 1, Products>>(m, n, pairs_at_once());
  if (narrow == 1) return MatmulTile::pair_128x128;
  if (has_middle && middle == 1) return MatmulTile::pair_128x160;
  if (wide == 1) return MatmulTile::pair_128x192;
  // Cost of a round, in columns of the narrowest tile: a wide tile reads less of the factors. From timing all three for 1,024 to 6,144 rows
  // and n and k of 1,280 to 22,016 on an H200.
  constexpr int64_t middle_columns = 166, wide_columns = 184;
  MatmulTile best = MatmulTile::turns_128x128;
  int64_t least = narrow * 128;
  if (has_middle && middle * middle_columns < least) best = MatmulTile::turns_128x160, least = middle * middle_columns;
  if (wide_in_turns<T, Epilogue>() && wide * wide_columns < least) best = MatmulTile::turns_128x192;
  return best;
}

/// True if a row of a step lies in two lines of the L2 cache, so that a step reads twice as many.
template <class T>
bool crosses_lines(int64_t k) {
  return k % box_columns<T> != 0;
}

/// The choice for a matmul whose chunks are not whole, for which few tiles are compiled: the one of least cost in cycles, as in cost_of().
/// Where a few rows leave much of a tile empty, it still reads the factors less often than small tiles do. Of the time around the steps the
/// last epilogue is the most, whose columns are not stored in whole words. Of nine matmuls of 150 to 1,500 rows on an H200, this finds the
/// fastest of the three tiles for seven, and one that takes 1.1 and 1.24 times as long for the others.
template <class T, bool HasSquare>
MatmulChoice choose_ragged(int64_t m, int64_t n, int64_t k) {
  const int64_t at_once = device_attribute(cudaDevAttrMultiProcessorCount), steps = divide_up(k, box_columns<T>);
  const int64_t narrow = divide_up(m, 128) * divide_up(n, 64), square = divide_up(m, 128) * divide_up(n, 128);
  if (2 * narrow <= at_once) return {};
  constexpr int64_t bytes_a_cycle = 46, products_a_cycle = 32, around_narrow = 12000, around_square = 17000, around_pair = 20000;
  const auto cost = [&](int64_t columns, int64_t rows_read, int64_t blocks, int64_t rounds) {
    const int64_t read = rows_read * box_row_bytes * (crosses_lines<T>(k) ? 2 : 1);
    return rounds * steps * std::max(128 * columns / products_a_cycle, read * std::min(blocks, at_once) / (bytes_a_cycle * at_once));
  };
  const int64_t by_narrow = cost(64, 192, narrow, divide_up(narrow, at_once)) + around_narrow;
  const int64_t by_square = HasSquare ? cost(128, 256, square, divide_up(square, at_once)) + around_square : INT64_MAX;
  // Each block of a pair reads half of the columns, for both.
  const int64_t pairs = divide_up(m, 256) * divide_up(n, 128);
  const int64_t by_pairs = cost(128, 192, 2 * pairs, divide_up(pairs, pairs_at_once())) + around_pair;
  if (by_pairs <= by_narrow && by_pairs <= by_square) return {MatmulTile::turns_128x128};
  return {by_narrow <= by_square ? MatmulTile::single_128x64 : MatmulTile::single_128x128};
}

/// The choice for a matmul; no tile where another body is faster.
template <class T, class Epilogue>
MatmulChoice choose(int64_t m, int64_t n, int64_t k, const Epilogue& epilogue) {
  const bool many = fill_pairs<T>(m, n);
  if constexpr (in_two_steps<Epilogue>) {
    if (!is_whole(n, epilogue)) return choose_ragged<T, has_ragged_square<Epilogue>>(m, n, k);
    const auto any = [](MatmulTile) { return true; };
    if (has_more_tiles<T> && is_half_full(m, n, k)) return choose_halves<T>(cheapest_single<T>(m, n, k, any), m, n, k);
    const MatmulTile single = choose_single<T>(m, n, k);
    if (single != MatmulTile::none) {
      const MatmulChoice choice = choose_halves<T>(cheapest_single<T>(m, n, k, [&](MatmulTile tile) { return tile == single; }), m, n, k);
      // Pairs win from 250 rows on if reads take twice as long: they read less.
      const bool pairs_win = has_more_tiles<T> && crosses_lines<T>(k) && choice.split == 1;
      return pairs_win && rounds<WgmmaTile<128, false>>(m, n, pairs_at_once()) == 1 ? MatmulChoice{MatmulTile::pair_128x128} : choice;
    }
    // Two rounds of single tiles, or small tiles, cost more than a pair whose lower tile is partly empty.
    const bool is_crowded = has_more_tiles<T> && m > 256 && divide_up(m, 128) * divide_up(n, 128) > device_attribute(cudaDevAttrMultiProcessorCount);
    return {many || is_crowded ? choose_pairs<T, Epilogue, 1>(m, n) : MatmulTile::none};
  } else {
    return {many ? MatmulTile::turns_128x128 : MatmulTile::none};
  }
}

}  // namespace wgmma

}  // namespace heddle

#endif

#endif
