// Prices of Hopper's tiles in 16 bits: the time of a matmul by each tile and split, from which the fastest is chosen for more than 64 rows. The rules
// of matmul.cuh choose first, and a tile replaces theirs if its price is lower by more than prices err.
#ifndef HEDDLE_MATMUL_PRICE_CUH
#define HEDDLE_MATMUL_PRICE_CUH

#include <algorithm>

#include "matmul_cluster_choice.cuh"
#include "matmul_mma_choice.cuh"
#include "matmul_tall.cuh"
#include "wgmma_choice.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

namespace prices {

/// Parameters of the price of a tile and split, in cycles of a multiprocessor.
struct TilePrice {
  MatmulTile tile;
  int split;
  int rows, columns;  // of a block; for tall tiles at most as many rows
  int start;          // of a launch
  int around, row;    // around the steps of a block, in all and per row of the tile: the first loads, exchange, epilogue
  int shared, own;    // bytes that a multiprocessor reads from the L2 cache in ten cycles, beside all others and alone
};

/// From timing every tile for 362 matmuls of 65 to 8,192 rows on an H100. The median error of a price is 4 to 10 %.
constexpr TilePrice table[] = {
    {MatmulTile::single_128x64, 1, 128, 64, 4080, 0, 0, 391, 703},
    {MatmulTile::single_128x96, 1, 128, 96, 4700, 310, 3, 384, 741},
    {MatmulTile::single_128x128, 1, 128, 128, 4270, 0, 9, 368, 730},
    {MatmulTile::pair_128x128, 1, 128, 128, 6010, 0, 0, 337, 621},
    {MatmulTile::pair_128x128, 2, 128, 128, 3440, 1750, 24, 390, 775},
    {MatmulTile::pair_128x160, 1, 128, 160, 2950, 1450, 12, 340, 492},
    {MatmulTile::pair_128x160, 2, 128, 160, 2300, 1420, 35, 384, 572},
    {MatmulTile::pair_128x192, 1, 128, 192, 3950, 1070, 12, 313, 600},
    {MatmulTile::turns_128x128, 1, 128, 128, 7260, 0, 0, 351, 608},
    {MatmulTile::turns_128x160, 1, 128, 160, 6780, 710, 2, 343, 600},
    {MatmulTile::turns_128x192, 1, 128, 192, 7760, 430, 0, 315, 487},
    {MatmulTile::tall_128x128, 1, 128, 128, 3980, 0, 34, 358, 643},
    {MatmulTile::tall_128x128, 2, 128, 128, 2900, 1520, 51, 348, 1232},
    {MatmulTile::tall_128x128, 4, 128, 128, 420, 3970, 44, 314, 363},
    {MatmulTile::tall_256x128, 1, 256, 128, 3110, 0, 27, 293, 608},
    {MatmulTile::tall_256x128, 2, 256, 128, 3240, 0, 45, 275, 550},
    {MatmulTile::tall_256x128, 4, 256, 128, 1830, 770, 58, 254, 356},
    // Chosen by rules alone: these show when another tile is faster.
    {MatmulTile::cluster_64x64, 2, 64, 64, 2250, 820, 6, 406, 403},
    {MatmulTile::cluster_64x64, 4, 64, 64, 3980, 0, 11, 261, 601},
    {MatmulTile::cluster_64x96, 2, 64, 96, 1780, 2590, 0, 589, 431},
    {MatmulTile::cluster_64x96, 3, 64, 96, 2540, 350, 42, 319, 429},
    {MatmulTile::cluster_64x96, 6, 64, 96, 4540, 1120, 1, 219, 600},
    {MatmulTile::mma_64x32, 1, 64, 32, 3270, 50, 17, 734, 399},
    {MatmulTile::mma_64x32_deep, 1, 64, 32, 1450, 540, 24, 734, 497},
    {MatmulTile::mma_64x64, 1, 64, 64, 3020, 2320, 4, 755, 491},
    {MatmulTile::mma_64x64, 2, 64, 64, 1820, 2760, 15, 725, 455},
    {MatmulTile::mma_128x96, 1, 128, 96, 610, 220, 52, 607, 432},
};

/// The work of a launch with a tile.
struct TileWork {
  int64_t blocks, at_once;  // at once: on the whole device
  int64_t rows;             // of a tile
  int64_t multiply, read;   // cycles and bytes of a step
  int64_t sharing;          // blocks that share a multiprocessor
};

/// `multiprocessors` of the device; `clusters_of(blocks)`: how many clusters of so many blocks run at once.
template <class T, class Clusters>
TileWork work_of(const TilePrice& price, int64_t m, int64_t n, int64_t k, int64_t multiprocessors, Clusters clusters_of) {
  constexpr int64_t products_a_cycle = 32;  // per 64 elements of k
  const auto divide_up = wgmma::divide_up;
  const int64_t area = int64_t{price.rows} * price.columns / products_a_cycle, sides = price.rows + price.columns;
  if (price.tile >= MatmulTile::tall_128x128) {
    const TallWork work = tall::work_of<T>({price.tile, price.split}, m, n, k);
    const int64_t cluster = 2 * price.split;
    return {tall::blocks(work), clusters_of(cluster) * cluster, work.rows, int64_t{work.rows} * price.columns / products_a_cycle,
            int64_t{price.columns + work.rows / 2} * box_row_bytes, 1};
  }
  const int64_t blocks = price.split * divide_up(m, price.rows) * divide_up(n, price.columns);
  if (price.tile < MatmulTile::single_128x64) {
    // Loads by threads and small wgmmas leave a quarter of the tensor cores' time unused.
    const int64_t sharing = price.tile == MatmulTile::mma_128x96 ? 1 : 2;
    return {blocks, sharing * multiprocessors, price.rows, area * 13 / 10, sides * box_row_bytes, sharing};
  }
  // A width of 160 takes nine eighths of its share.
  const int64_t multiply = price.columns == 160 ? area * 9 / 8 : area;
  const bool shares = price.tile >= MatmulTile::pair_128x128 && price.split == 1;
  if (!shares) return {blocks, multiprocessors, price.rows, multiply, sides * box_row_bytes, 1};
  return {2 * divide_up(m, 2 * price.rows) * divide_up(n, price.columns), multiprocessors, price.rows, multiply,
          int64_t{price.rows + price.columns / 2} * box_row_bytes, 1};
}

constexpr bool is_single(MatmulTile tile) { return tile >= MatmulTile::single_128x64 && tile <= MatmulTile::single_128x128; }

/// True if rows are not aligned to sectors of the L2 cache.
template <class T>
bool crosses_sectors(int64_t k) {
  constexpr int64_t sector = 32;
  return k * static_cast<int64_t>(sizeof(T)) % sector != 0;
}

/// Time to read a row of a step, in tenths of that of a row in one line of the L2 cache. A row in two lines costs more, but neighbouring steps share the
/// lines. One that is not aligned to sectors of 32 bytes needs five of them in place of four. From timing 86 such matmuls on an H100.
template <class T>
int64_t line_tenths(MatmulTile tile, int64_t k) {
  if (!wgmma::crosses_lines<T>(k)) return 10;
  if (!crosses_sectors<T>(k)) return 13;
  return is_single(tile) ? 18 : tile == MatmulTile::tall_256x128 ? 13 : 15;
}

/// Cycles of a matmul with a tile: rounds of blocks, each with its steps, or the time of its operands from memory. Between rounds, a block waits for its
/// first operands; of a short k that is most of the time, and persistent blocks wait less.
template <class T, class Clusters>
int64_t price_of(const TilePrice& price, int64_t m, int64_t n, int64_t k, int64_t multiprocessors, Clusters clusters_of) {
  constexpr int64_t memory_bytes_a_cycle = 1400;
  const TileWork work = work_of<T>(price, m, n, k, multiprocessors, clusters_of);
  const auto divide_up = wgmma::divide_up;
  const int64_t steps = divide_up(divide_up(k, box_columns<T>), price.split), rounds = divide_up(work.blocks, work.at_once);
  const int64_t read = work.read * line_tenths<T>(price.tile, k);
  const int64_t sharing = std::min(work.sharing, divide_up(work.blocks, multiprocessors));
  const int64_t step = std::max({sharing * work.multiply, sharing * read / price.own,
                                 read * std::min(work.blocks, work.at_once) / (price.shared * multiprocessors)});
  const int64_t from_memory = (n * k + m * k + m * n) * static_cast<int64_t>(sizeof(T)) / memory_bytes_a_cycle;
  const int64_t between = (rounds - 1) * (is_single(price.tile) ? 3000 : price.tile > MatmulTile::single_128x128 ? 1500 : 0);
  return price.start + between + std::max(rounds * (steps * step + price.around + price.row * work.rows), from_memory);
}

/// True if the rules were fitted to times of nearby sizes: one round of single tiles or pairs, and many rows whose steps are whole lines.
template <class T>
bool is_timed(const MatmulChoice& ruled, int64_t m, int64_t k) {
  constexpr int64_t many = 1024;
  return is_single(ruled.tile) || (ruled.tile == MatmulTile::pair_128x128 && ruled.split == 1) || (m >= many && !wgmma::crosses_lines<T>(k));
}

/// Percent of a price that the price of the rules' tile has to exceed: more where the rules were timed, less where no rule knows of sectors.
template <class T>
int64_t margin(const MatmulChoice& ruled, int64_t m, int64_t k) {
  if (crosses_sectors<T>(k)) return 105;
  return is_timed<T>(ruled, m, k) ? 120 : 110;
}

/// The choice of the rules, or the tile that is cheaper by the margin. Rules stay where they choose what has no price. Of the 362 matmuls this changes
/// 111, to 0.77 of their time in the geometric mean; 2 of them take more than 2 % longer.
template <class T, class Epilogue>
MatmulChoice improve(const MatmulChoice& ruled, int64_t m, int64_t n, int64_t k, const Epilogue& epilogue) {
  constexpr int64_t small = 64;
  if (sizeof(T) != 2 || !wgmma::in_two_steps<Epilogue> || m <= small || !wgmma::can(m, n, k) || !wgmma::is_whole(n, epilogue)) return ruled;
  // Queried once: a launch should not wait for many queries of the device.
  const int64_t multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
  const auto clusters_of = [&](int64_t blocks) {
    return tall::clusters_at_once(matmul_tall<T, Epilogue>, static_cast<int>(blocks), multiprocessors);
  };
  int64_t of_rules = 0, least = INT64_MAX;
  MatmulChoice best;
  for (const TilePrice& price : table) {
    const MatmulChoice choice{price.tile, price.split};
    const bool is_ruled = choice.tile == ruled.tile && choice.split == ruled.split;
    const bool is_large = choice.tile >= MatmulTile::single_128x64;
    const auto exists = [&] { return tall::is_tile(choice.tile) ? tall::exists<T>(choice, m, n, k) : wgmma::exists<T>(choice, n, k, epilogue); };
    if (!is_ruled && !(is_large && exists())) continue;
    const int64_t cycles = price_of<T>(price, m, n, k, multiprocessors, clusters_of);
    if (is_ruled) of_rules = cycles;
    if (is_large && cycles < least) least = cycles, best = choice;
  }
  if (best.tile == MatmulTile::none) return ruled;
  return least * margin<T>(ruled, m, k) < of_rules * 100 ? best : ruled;
}

}  // namespace prices

}  // namespace heddle

#endif

#endif
