// The tiles of matmul_fma.cuh in use, and the choice among them and among divisions of k by price.
#ifndef HEDDLE_MATMUL_FMA_CHOICE_CUH
#define HEDDLE_MATMUL_FMA_CHOICE_CUH

#include "matmul_choice.cuh"
#include "matmul_few.cuh"
#include "matmul_fma.cuh"

namespace heddle {

// Few rows are bound by the loads of the weights: a tile of sixteen computes no more than those hide. Large tiles read shared memory least
// for each multiply-add; smaller ones serve where large ones would be too few, and where factors are computed, whose values take registers.
template <bool Computed>
using FmaFewTile = FmaTile<16, 64, 8, 8, 1, 5, Computed ? 2 : 4>;
template <bool Computed>
using FmaSquareTile = std::conditional_t<Computed, FmaTile<64, 64, 8, 4, 1, 4, 1>, FmaTile<64, 64, 16, 4, 2, 3, 2>>;
using FmaWideTile = FmaTile<64, 128, 16, 2, 2, 3, 2>;
using FmaLargeTile = FmaTile<128, 128, 16, 1, 1, 2, 2>;

namespace fma {

/// True if the slots' matmuls are in float32. Partial reductions need groups of 32 columns in a tile.
template <class Slots>
constexpr bool multiplies = std::is_same_v<typename Slots::Sum, float> && std::is_same_v<typename Slots::Element, float> &&
                            (!Slots::PARTS || FmaSquareTile<false>::columns_each<Slots::PRODUCTS> % 32 == 0);

template <class Slots, int... F>
constexpr bool copies_factors(std::integer_sequence<int, F...>) {
  return (!std::is_same_v<decltype(std::declval<const Slots&>().copy_of(Factor<F>(), int64_t())), NotCopied> && ...);
}
/// True if no factor is computed.
template <class Slots>
constexpr bool copies_factors() {
  return copies_factors<Slots>(std::make_integer_sequence<int, Slots::PRODUCTS + 1>());
}

/// True if the rows of all factors that are copied consist of aligned words.
template <class Slots, int... F>
bool has_words(const Slots& slots, int64_t k, std::integer_sequence<int, F...>) {
  return (slots.copies(Factor<F>(), k) && ...);
}

constexpr bool is_tile(MatmulTile tile) { return tile >= MatmulTile::fma_16x64 && tile <= MatmulTile::fma_128x128; }

/// True if a choice can compute matmuls of factors in memory.
inline bool can(const MatmulChoice& choice, int64_t k) {
  const int64_t most = matmul_device().clusters ? std::min(steps_of<float>(k), most_parts) : 1;
  return is_tile(choice.tile) && choice.split >= 1 && choice.split <= most;
}

/// Parameters of the price of a tile, in clocks of a multiprocessor.
struct TileTime {
  int64_t block;     // around the steps of a block
  int64_t percent;   // share of the multiply-adds per clock that the tile reaches
  int64_t alone;     // time where one block has a multiprocessor to itself, in percent of that share's
  int64_t exchange;  // of each part of k beyond the first
  int64_t bytes;     // of factors that arrive per clock, from memory and the shared cache
};
// From timing every tile and split for 109 sizes of 1 to 6,000 on an H200; for computed factors, for twenty.
template <bool Computed>
constexpr TileTime few_time = Computed ? TileTime{1500, 35, 200, 500, 24} : TileTime{1530, 83, 343, 165, 18};
template <bool Computed>
constexpr TileTime square_time = Computed ? TileTime{1500, 55, 100, 8000, 24} : TileTime{5380, 60, 114, 123, 40};
constexpr TileTime wide_time = {6530, 59, 108, 249, 40}, large_time = {10780, 69, 110, 0, 24};
/// Percent of that share that a tile reaches where rows are copied by elements.
constexpr int64_t by_elements = 90;

/// Price of a matmul with a tile.
struct Price {
  int64_t m, n, k, matrices, multiprocessors;

  template <class Tile, int Products>
  int64_t of(int64_t split, const TileTime& time) const {
    constexpr int64_t lanes = 128;  // multiply-adds per clock
    constexpr int64_t columns = Tile::template columns_each<Products>;
    const int64_t tiles_m = (m + Tile::rows - 1) / Tile::rows, tiles = tiles_m * ((n + columns - 1) / columns) * matrices;
    // The last tile leaves out rows that do not exist.
    const int64_t last = m - (tiles_m - 1) * Tile::rows, part = Tile::few_rows * Tile::threads_m;
    const int64_t rows = (tiles_m - 1) * Tile::rows + (last > part ? int64_t{Tile::rows} : part);
    const int64_t turns = (tiles * split + multiprocessors - 1) / multiprocessors;
    const int64_t share = (steps_of<float>(k) + split - 1) / split * step_elements<float>;
    const int64_t percent = k % 4 == 0 ? time.percent : time.percent * by_elements / 100;
    const int64_t multiply = rows * Tile::columns * share * (turns > 1 ? 100 : time.alone) / (tiles_m * lanes * percent);
    const int64_t load = (rows / tiles_m + Tile::columns) * share * 4 / time.bytes;
    return turns * (time.block + (split - 1) * time.exchange + (multiply > load ? multiply : load));
  }
};

/// Returns the tile and split for matmuls of these sizes. `Computed`: factors are computed. The large tile is for matmuls with enough of them.
template <int Products, bool Computed>
MatmulChoice choose(int64_t matrices, int64_t m, int64_t n, int64_t k) {
  const MatmulDevice device = matmul_device();
  const Price price{m, n, k, matrices, device.multiprocessors};
  const int64_t most = device.clusters ? std::min(steps_of<float>(k), most_parts) : 1;
  MatmulChoice best;
  int64_t least = 0;
  const auto consider = [&](MatmulTile tile, int split, int64_t found) {
    if (best.tile != MatmulTile::none && found >= least) return;
    best = {tile, split};
    least = found;
  };
  // Several tiles of sixteen rows read large weights again and again: they were timed up to here.
  constexpr double most_products = 4e9;
  const bool is_few = Computed || m <= FmaFewTile<Computed>::rows || static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) <= most_products;
  if (!Computed) consider(MatmulTile::fma_128x128, 1, price.of<FmaLargeTile, Products>(1, large_time));
  for (int split = 1; split <= most; split *= 2) {
    if (!Computed) consider(MatmulTile::fma_64x128, split, price.of<FmaWideTile, Products>(split, wide_time));
    consider(MatmulTile::fma_64x64, split, price.of<FmaSquareTile<Computed>, Products>(split, square_time<Computed>));
    if (is_few) consider(MatmulTile::fma_16x64, split, price.of<FmaFewTile<Computed>, Products>(split, few_time<Computed>));
  }
  return best;
}

}  // namespace fma

/// Enqueues matmuls in float32 with a choice of fma::choose().
template <class Slots>
int32_t launch_fma(const MatmulChoice& choice, const heddle_launch* queue, heddle_error* error, const char* name, int64_t matrices, int64_t m,
                   int64_t n, int64_t k, const Slots& slots, bool constant) {
  const bool words = fma::has_words(slots, k, std::make_integer_sequence<int, Slots::PRODUCTS + 1>());
  const auto run = [&](auto tile) {
    return launch_fma_tile<decltype(tile)>(queue, error, name, matrices, m, n, k, slots, constant, words, choice.split);
  };
  constexpr bool computed = !fma::copies_factors<Slots>();
  if constexpr (!computed) {
    if (choice.tile == MatmulTile::fma_128x128) return run(FmaLargeTile());
    if (choice.tile == MatmulTile::fma_64x128) return run(FmaWideTile());
  }
  return choice.tile == MatmulTile::fma_16x64 ? run(FmaFewTile<computed>()) : run(FmaSquareTile<computed>());
}

/// The same with the choice of the rules.
template <class Slots>
int32_t launch_fma(const heddle_launch* queue, heddle_error* error, const char* name, int64_t matrices, int64_t m, int64_t n, int64_t k,
                   const Slots& slots, bool constant) {
  const MatmulChoice choice = fma::choose<Slots::PRODUCTS, !fma::copies_factors<Slots>()>(matrices, m, n, k);
  return launch_fma(choice, queue, error, name, matrices, m, n, k, slots, constant);
}

}  // namespace heddle

#endif
