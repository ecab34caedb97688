// Which tile of matmul_cluster.cuh computes a product of few rows, by how many blocks its k is divided, and how many steps of it they hold
// in shared memory.
#ifndef HEDDLE_MATMUL_CLUSTER_CHOICE_CUH
#define HEDDLE_MATMUL_CLUSTER_CHOICE_CUH

#include "matmul_choice.cuh"
#include "matmul_cluster_tile.cuh"
#include "matmul_epilogue.cuh"

#if !defined(HEDDLE_SIMT)

namespace heddle {

/// Bytes of weights that a multiprocessor waits for where reading them takes the time: with less under way memory idles, and with more the
/// blocks of one wave would not all have room.
constexpr int64_t weights_under_way = 96 << 10;

namespace clusters {

/// Whether the tiles can compute a product: on Hopper, when n is a multiple of 32 and all chunks of the epilogue are whole. Rows of a and b
/// are aligned to 16 bytes.
template <class Epilogue>
bool can(int64_t m, int64_t n, int64_t k, const Epilogue& epilogue) {
  constexpr int64_t largest = INT32_MAX / 2;
  return m <= largest && n <= largest && k <= largest && n % permuted_rows == 0 && EpilogueCall<Epilogue>::whole_chunks(epilogue) &&
         device_attribute(cudaDevAttrComputeCapabilityMajor) == 9 && tensor_maps::encoder() != nullptr;
}

/// Whether there is such a tile, divided so.
inline bool exists(const MatmulChoice& choice, int64_t steps) {
  if (choice.split > steps) return false;
  if (choice.tile == MatmulTile::cluster_64x64) return choice.split == 2 || choice.split == 4;
  return choice.tile == MatmulTile::cluster_64x96 && (choice.split == 2 || choice.split == 3 || choice.split == 6);
}

/// How to divide a product; no tile where that is not how to compute it. `streams`: its time is that of reading its weights. The rules come
/// from timing tiles, splits and stages for the matmuls of a 768 wide layer, 1 to 256 rows, of 16 bits and of int8, on a GPU of 132
/// multiprocessors; those for weights that stream, of 16 bits, for n of 4,096 and 12,288 and k of 4,096 and 11,008, 8 to 64 rows, on an H200.
inline MatmulChoice choose(int64_t m, int64_t n, int64_t steps, int64_t multiprocessors, bool streams) {
  // A share of a long k that fits in shared memory needs no stage twice; where that takes too many blocks, and of a short k, more
  // blocks pay as long as a quarter of the device stays free for those of the next launch, which fetch its weights.
  constexpr int64_t fewest_steps = 3, held_steps = 8, tile_rows = 64;
  const int64_t down = (m + tile_rows - 1) / tile_rows;
  const int64_t squares = down * ((n + 63) / 64), wides = down * ((n + 95) / 96);
  const int64_t spare = multiprocessors * 3 / 4, few = multiprocessors / 2;
  if (steps > 4 * held_steps && 6 * wides <= few) return {MatmulTile::cluster_64x96, 6};
  if (steps >= 2 * fewest_steps && 4 * squares <= spare) return {MatmulTile::cluster_64x64, 4};
  if (steps >= 3 * fewest_steps && 3 * wides <= spare) return {MatmulTile::cluster_64x96, 3};
  if (steps < 2 * fewest_steps) return {};
  // A multiprocessor without a block reads nothing. Blocks of narrower tiles are more, and pairs of them find room on every GPU: larger
  // clusters leave multiprocessors over where those of a group are no multiple.
  if (streams && 2 * squares <= multiprocessors) return {MatmulTile::cluster_64x64, 2};
  // Two blocks share a multiprocessor.
  if (2 * wides <= 2 * multiprocessors) return {MatmulTile::cluster_64x96, 2};
  return {};
}

/// Whether the blocks of one tile of rows keep the device busy to the end: in one round, or in several of which the last is full enough.
inline bool fill(const MatmulChoice& choice, int64_t n, int64_t multiprocessors) {
  const int64_t columns = choice.tile == MatmulTile::cluster_64x64 ? 64 : 96;
  const int64_t blocks = choice.split * ((n + columns - 1) / columns), rounds = (blocks + multiprocessors - 1) / multiprocessors;
  return rounds == 1 || 5 * blocks >= 4 * rounds * multiprocessors;
}

/// The most steps that a block holds. Of a short k that two blocks divide few, so that the next launch's blocks start beside them; where more
/// divide it there are few blocks, and much shared memory keeps them on multiprocessors of their own. Of a long k as many
/// as weights_under_way says.
template <class Tile>
int most_stages(int64_t blocks, int64_t steps, int64_t multiprocessors) {
  constexpr int many = 8, few = 4;
  constexpr int64_t long_k = 24;
  if (Tile::split > 2) return many;
  if (steps < long_k) return few;
  const int64_t sharing = blocks <= multiprocessors ? 1 : 2;
  return static_cast<int>(weights_under_way / (sharing * Tile::b_bytes));
}

}  // namespace clusters

}  // namespace heddle

#endif

#endif
