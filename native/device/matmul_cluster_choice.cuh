// Choice of a tile of matmul_cluster.cuh for a matmul of few rows, of the number of blocks that divide its k, and of the number of stages
// that they hold in shared memory.
#ifndef HEDDLE_MATMUL_CLUSTER_CHOICE_CUH
#define HEDDLE_MATMUL_CLUSTER_CHOICE_CUH

#include "matmul_choice.cuh"
#include "matmul_cluster_tile.cuh"
#include "matmul_epilogue.cuh"
#include "sharing.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

/// Bytes of weights in flight per multiprocessor where reading the weights bounds the time. With fewer in flight memory idles; with more
/// the blocks of one wave would not all fit.
constexpr int64_t weights_under_way = 96 << 10;

namespace clusters {

/// True if the tiles can compute a matmul: on Hopper, when n is a multiple of 8 and all chunks of the epilogue are whole. Requires rows of a
/// and b aligned to 16 bytes.
template <class Epilogue>
bool can(int64_t m, int64_t n, int64_t k, const Epilogue& epilogue) {
  constexpr int64_t largest = INT32_MAX / 2;
  return m <= largest && n <= largest && k <= largest && n % 8 == 0 && EpilogueCall<Epilogue>::whole_chunks(epilogue) &&
         device_attribute(cudaDevAttrComputeCapabilityMajor) == 9 && tensor_maps::encoder() != nullptr;
}

/// True if there is such a tile with such a split.
inline bool exists(const MatmulChoice& choice, int64_t steps) {
  if (choice.split > steps) return false;
  if (choice.tile == MatmulTile::cluster_64x64) return choice.split == 2 || choice.split == 4;
  return choice.tile == MatmulTile::cluster_64x96 && (choice.split == 2 || choice.split == 3 || choice.split == 6);
}

/// Returns the choice for a matmul; none where another implementation should compute it. `streams`: reading the weights bounds its time.
/// The rules come from timing tiles, splits and stages on a GPU of 132 multiprocessors, for the 16-bit and int8 matmuls of a 768 wide layer
/// with 1 to 256 rows. Those for streamed weights come from an H200: 16 bits, n of 4,096 and 12,288, k of 4,096 and 11,008, 8 to 64 rows.
inline MatmulChoice choose(int64_t m, int64_t n, int64_t steps, int64_t multiprocessors, bool streams) {
  // If a block's share of a long k fits in shared memory, no stage is used twice. Where that takes too many blocks, and for a short k, more
  // blocks pay off as long as a quarter of the device stays free for the blocks of the next launch, which fetch its weights.
  constexpr int64_t fewest_steps = 3, held_steps = 8, tile_rows = 64;
  const int64_t down = (m + tile_rows - 1) / tile_rows;
  const int64_t squares = down * ((n + 63) / 64), wides = down * ((n + 95) / 96);
  const int64_t spare = multiprocessors * 3 / 4, few = multiprocessors / 2;
  if (steps > 4 * held_steps && 6 * wides <= few) return {MatmulTile::cluster_64x96, 6};
  if (steps >= 2 * fewest_steps && 4 * squares <= spare) return {MatmulTile::cluster_64x64, 4};
  if (steps >= 3 * fewest_steps && 3 * wides <= spare) return {MatmulTile::cluster_64x96, 3};
  if (steps < 2 * fewest_steps) return {};
  // A multiprocessor without a block reads nothing. Narrower tiles give more blocks, and clusters of two fit on every GPU. Larger clusters
  // leave multiprocessors idle where the number in a group (GPC) is not a multiple of the cluster's size.
  if (streams && 2 * squares <= multiprocessors) return {MatmulTile::cluster_64x64, 2};
  // Wider tiles that are no fewer compute columns that do not exist.
  if (squares == wides && squares <= multiprocessors) return {MatmulTile::cluster_64x64, 2};
  // Two blocks share a multiprocessor.
  if (2 * wides <= 2 * multiprocessors) return {MatmulTile::cluster_64x96, 2};
  return {};
}

/// True if the blocks of one tile of rows keep the device busy to the end: they run in one round, or the last of several rounds is full
/// enough.
inline bool fill(const MatmulChoice& choice, int64_t n, int64_t multiprocessors) {
  const int64_t columns = choice.tile == MatmulTile::cluster_64x64 ? 64 : 96;
  const int64_t blocks = choice.split * ((n + columns - 1) / columns), rounds = (blocks + multiprocessors - 1) / multiprocessors;
  return rounds == 1 || 5 * blocks >= 4 * rounds * multiprocessors;
}

constexpr int64_t long_k = 24;  // steps

/// Maximum number of stages of a block. Low for a short k divided by two blocks, so that the next launch's blocks start beside them. If
/// more blocks divide k there are few blocks in all, and much shared memory keeps each on a multiprocessor of its own. For a long k as many
/// as weights_under_way allows.
template <class Tile>
int most_stages(int64_t blocks, int64_t steps, int64_t multiprocessors) {
  constexpr int many = 8, few = 4;
  if (Tile::split > 2) return many;
  if (steps < long_k) return few;
  const int64_t sharing = blocks <= multiprocessors ? 1 : 2;
  return static_cast<int>(weights_under_way / (sharing * Tile::b_bytes));
}

}  // namespace clusters

}  // namespace heddle

#endif

#endif
