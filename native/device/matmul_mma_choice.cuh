// The tiles of matmul_mma.cuh in use, and the choice among them for a matmul.
#ifndef HEDDLE_MATMUL_MMA_CHOICE_CUH
#define HEDDLE_MATMUL_MMA_CHOICE_CUH

#include <algorithm>

#include "matmul_choice.cuh"
#include "matmul_mma.cuh"

namespace heddle {

/// Properties of the device that the choice depends on.
struct MatmulDevice {
  int64_t multiprocessors;
  int64_t shared_bytes;  // maximum of one block
  bool clusters;
};

/// Properties of this device. The CPU device chooses as a large GPU without clusters would, so that it runs the tiles of such a GPU.
inline MatmulDevice matmul_device() {
#if !defined(HEDDLE_HOPPER)
  return {132, simt::kMaxSharedBytes, false};
#else
  return {device_attribute(cudaDevAttrMultiProcessorCount), device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
          device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9};
#endif
}

// Deep pipelines hold all of a short k, so that there is one wait; shallow ones let more blocks share a multiprocessor.
using DeepNarrowTile = MmaTile<64, 32, 4, 1, 1, 8, 2>;
using NarrowTile = MmaTile<64, 32, 4, 1, 1, 6, 2>;
using SquareTile = MmaTile<64, 64, 4, 1, 1, 6, 2>;
using LargeTile = MmaTile<128, 96, 8, 1, 1, 7, 1>;

/// Maximum number of blocks of a cluster that divide k: every GPU with clusters supports eight.
constexpr int64_t most_parts = 8;

/// True if reading the weights bounds a matmul's time: one tile of rows, a long k and many columns.
template <class T>
bool streams_weights(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t few_rows = 64, many_columns = 4096, long_k = 24;
  return m <= few_rows && n >= many_columns && steps_of<T>(k) >= long_k;
}
/// Maximum number of 16-bit rows for which tiles of warps read streamed weights faster than tiles that divide k over a cluster. From timing
/// both for n of 4,096 and 12,288, k of 4,096 and 11,008 and 8, 16, 32 and 64 rows on an H200.
constexpr int64_t most_streamed_rows = 16;

/// True if dividing k in two pays off for tiles of which two share a multiprocessor. Blocks run in rounds, and half blocks must fill theirs
/// better by more than their exchange costs.
inline bool halves_fill(int64_t tiles, int64_t multiprocessors) {
  const int64_t places = 2 * multiprocessors, rounds = (tiles + places - 1) / places, half_rounds = (2 * tiles + places - 1) / places;
  return 40 * rounds > 23 * half_rounds;
}

/// Returns the tile and split of matmul_mma.cuh for a matmul, with rows of both operands aligned to 16 bytes. The rules come from timing
/// all tiles and splits for the matmuls of a 768 wide layer, 8 to 1024 rows, on a GPU of 132 multiprocessors.
template <class T>
MatmulChoice choose_mma(int64_t m, int64_t n, int64_t k, bool whole) {
  const MatmulDevice device = matmul_device();
  const int64_t steps = steps_of<T>(k);
  const auto tiles = [&](auto tile) {
    return (m + tile.rows - 1) / tile.rows * ((n + tile.columns - 1) / tile.columns);
  };
  const auto fits = [&](auto tile, int split) { return decltype(tile)::shared_bytes(m, steps, split) <= device.shared_bytes; };
  // Tails are rare: one tile serves them, so that a kernel file does not compile every tile twice.
  const auto choice = [&](MatmulTile tile, int64_t split) {
    return MatmulChoice{whole ? tile : MatmulTile::mma_64x32, static_cast<int>(split)};
  };
  const int64_t squares = tiles(SquareTile()), narrows = tiles(NarrowTile());

  if (device.clusters) {
    if (sizeof(T) == 2 && streams_weights<T>(m, n, k) && fits(SquareTile(), 2)) {
      return choice(MatmulTile::mma_64x64, halves_fill(squares, device.multiprocessors) ? 2 : 1);
    }
    // A quarter of the device stays free for blocks of the next launch, which fetch its weights. A share of k below three steps is not
    // worth the exchange of its sums.
    constexpr int64_t fewest_steps = 3, long_k = 24;
    const int64_t wanted = std::min(device.multiprocessors * 3 / 4 / squares, steps / fewest_steps);
    const int64_t split = std::min(wanted, most_parts);
    if (split > 1) return choice(MatmulTile::mma_64x64, split);
    if (steps >= long_k && 4 * squares <= 3 * device.multiprocessors) return choice(MatmulTile::mma_64x64, 2);
    if (steps >= long_k && 2 * tiles(LargeTile()) <= device.multiprocessors && fits(LargeTile(), 2)) {
      return choice(MatmulTile::mma_128x96, 2);
    }
  }
  // If all rows fit one tile, every tile reads weights once, and small ones keep more of them in flight.
  const bool few_rows = m <= DeepNarrowTile::rows || 3 * narrows <= 5 * device.multiprocessors;
  if (few_rows && fits(DeepNarrowTile(), 1)) return choice(MatmulTile::mma_64x32_deep, 1);
  if (narrows <= 3 * device.multiprocessors) return choice(MatmulTile::mma_64x32, 1);
  if (squares > 2 * device.multiprocessors && fits(LargeTile(), 1)) return choice(MatmulTile::mma_128x96, 1);
  return choice(fits(SquareTile(), 1) ? MatmulTile::mma_64x64 : MatmulTile::mma_64x32, 1);
}

}  // namespace heddle

#endif
