// Implementations of a matmul, by name: the tile of a kernel body, and the number of blocks of a cluster that divide k. The rules of
// matmul.cuh choose one; `heddle tune` times the others, and generated source names those that were faster.
#ifndef HEDDLE_MATMUL_CHOICE_CUH
#define HEDDLE_MATMUL_CHOICE_CUH

#include <cstdint>

namespace heddle {

// Tiles by body: `rows` of matmul_rows.cuh, `few` of matmul_few.cuh, `simple` of matmul_simple.cuh, fma_* of matmul_fma.cuh (float32), mma_* of
// matmul_mma.cuh, cluster_* of matmul_cluster.cuh, single_* of wgmma_single.cuh. From matmul_wgmma.cuh, pair_* (the warpgroups share a tile) and turns_* (ping-pong: the
// warpgroups take turns). tall_* of matmul_tall.cuh, with up to as many rows. Numbers are rows x columns of a block's tile. src/schedule/tiles.ts has the same list.
#define HEDDLE_MATMUL_TILES(tile)                                                                                      \
  tile(rows) tile(few) tile(simple) tile(fma_16x64) tile(fma_64x64) tile(fma_64x128) tile(fma_128x128)                 \
  tile(mma_64x32_deep) tile(mma_64x32) tile(mma_64x64) tile(mma_128x96) tile(cluster_64x64) tile(cluster_64x96)        \
  tile(single_128x64) tile(single_128x96) tile(single_128x128) tile(pair_128x128) tile(pair_128x160)                   \
  tile(pair_128x192) tile(turns_128x128) tile(turns_128x160) tile(turns_128x192) tile(tall_128x128)                     \
  tile(tall_256x128)

enum class MatmulTile {
#define HEDDLE_TILE(name) name,
  HEDDLE_MATMUL_TILES(HEDDLE_TILE)
#undef HEDDLE_TILE
      none
};

inline const char* name_of(MatmulTile tile) {
  static constexpr const char* names[] = {
#define HEDDLE_TILE(name) #name,
      HEDDLE_MATMUL_TILES(HEDDLE_TILE)
#undef HEDDLE_TILE
          "none"};
  return names[static_cast<int>(tile)];
}

struct MatmulChoice {
  MatmulTile tile = MatmulTile::none;
  /// Number of blocks that divide k.
  int split = 1;
};

}  // namespace heddle

#endif
