// The shape of a block of tensor-core attention, and a warp's two matmuls: queries x keys^T, whose sums stay in registers, and weights x
// values, for which those registers become the left operand. attention_kernel.cuh combines them.
#ifndef HEDDLE_ATTENTION_MMA_CUH
#define HEDDLE_ATTENTION_MMA_CUH

#include "attention_tiles.cuh"
#include "attention_weights.cuh"
#include "attention_wgmma.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Query rows of a block and keys of a tile. InWarpgroups: Hopper's matmuls where the GPU has them and the shape suits them.
/// src/schedule/tiles.ts lists those that `heddle tune` times.
template <int Queries, int Keys, bool InWarpgroups>
struct AttentionTile {
  static constexpr int queries = Queries, keys = Keys;
  static constexpr bool in_warpgroups = InWarpgroups;
};

/// True if rows of `width` elements are permuted in shared memory; others are padded.
constexpr bool is_swizzled(int width) { return width == 32 || width == 64 || width == 128; }

/// Warps with 16 query rows each, which attend keys in tiles. Rows of queries, keys and values have up to HeadDim elements; missing ones
/// are zeros in shared memory. PlainScore: the op's score is arithmetic on the raw dot product alone, and so needs few registers.
/// Wide: rows of operands and results can be moved 16 bytes at a time.
template <class T, int HeadDim, bool PlainScore, class Tile, bool Wide>
struct AttentionShape {
  static_assert(HeadDim % 16 == 0, "whole fragments");
  static constexpr bool wide = Wide;
  using Rows = std::conditional_t<is_swizzled(HeadDim), SwizzledRows<T, is_swizzled(HeadDim) ? HeadDim : 32>, PaddedRows<T, HeadDim>>;
  static constexpr int warp_queries = 16;
  static constexpr int queries = Tile::queries;
  static constexpr int keys = Tile::keys;
  static constexpr int threads = queries / warp_queries * 32;
#if defined(HEDDLE_HOPPER_CODE)
  // Matmuls of a warpgroup read tiles whose rows fill the 128 bytes of a swizzle.
  static constexpr bool in_warpgroups = Tile::in_warpgroups && HeadDim == 64 && keys == 64;
#else
  static constexpr bool in_warpgroups = false;
#endif
  // Resident blocks per multiprocessor, which bounds registers: the most without spills.
  static constexpr int warpgroups_held =
      HeadDim <= 16 && PlainScore ? (keys > 64 ? 3 : 4) : keys > 64 ? 2 : in_warpgroups && PlainScore && Wide ? 4 : HeadDim <= (Wide ? 64 : 48) ? 3 : 2;
  static constexpr int resident = warpgroups_held * 128 / threads;
  static constexpr uint32_t key_bytes = keys * Rows::row_bytes;
  static constexpr uint32_t query_bytes = queries * Rows::row_bytes;
  static constexpr uint32_t shared_bytes = query_bytes + 4 * key_bytes;  // two stages of keys and values
  static constexpr int head_tiles = HeadDim / 16;
  /// True if queries stay in registers: output leaves room for them.
  static constexpr bool keeps_query = HeadDim <= 128;
  static constexpr int key_tiles = keys / 16;

  /// Raw dot products, then scores, then weights of a warp's rows and a tile of keys.
  using Scores = float[2 * key_tiles][4];

  /// State of a warp between tiles of keys. Fragments of 16 x 8 outputs and scores are laid out as in mma_m16n8k16, so a lane holds parts
  /// of two rows, and its quad the rest of them.
  struct Carried {
    uint32_t query[keeps_query ? head_tiles : 1][4];
    float output[2 * head_tiles][4] = {};
    QuadSoftmax softmax;
  };
};

/// Raw dot products of a warp's queries, which are at `queries` if not in registers, with a tile of keys. Only the first `valid` keys count
/// unless the tile is Whole.
template <class T, bool Whole, class Shape>
__device__ __forceinline__ void multiply_keys(const typename Shape::Carried& carried, [[maybe_unused]] Shared16 queries, Shared16 tile,
                                              uint32_t corner, int valid, typename Shape::Scores& scores) {
  HEDDLE_UNROLL
  for (int i = 0; i < 8 * Shape::key_tiles; ++i) scores[i / 4][i % 4] = 0.0f;
  // Matmuls that accumulate into the same scores are kept apart, so that none waits for the previous one.
  HEDDLE_UNROLL
  for (int k = 0; k < Shape::head_tiles; ++k) {
    const auto multiply = [&](const uint32_t(&query)[4]) {
      HEDDLE_UNROLL
      for (int n = 0; n < Shape::key_tiles; ++n) {
        if (!Whole && n * 16 >= valid) break;
        uint32_t keys[4];
        load_matrix_x4(keys, tile + Shape::Rows::fragment(corner, n, k));
        mma_m16n8k16<T>(scores[2 * n], query, {keys[0], keys[1]});
        mma_m16n8k16<T>(scores[2 * n + 1], query, {keys[2], keys[3]});
      }
    };
    if constexpr (Shape::keeps_query) {
      multiply(carried.query[k]);
    } else {
      // Rows are padded in this case, so offsets of fragments add up.
      uint32_t query[4];
      load_matrix_x4(query, queries + Shape::Rows::fragment(0, 0, k));
      multiply(query);
    }
  }
}

/// output += weights x values, the weights rounded to T.
template <class T, bool Whole, class Shape>
__device__ __forceinline__ void multiply_values(typename Shape::Carried& carried, Shared16 tile, uint32_t corner, int valid,
                                                const typename Shape::Scores& weights) {
  HEDDLE_UNROLL
  for (int k = 0; k < Shape::key_tiles; ++k) {
    if (!Whole && k * 16 >= valid) break;
    uint32_t left[4];
    HEDDLE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float(&pair)[4] = weights[2 * k + i / 2];
      left[i] = round_pair<T>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
    }
    HEDDLE_UNROLL
    for (int n = 0; n < Shape::head_tiles; ++n) {
      uint32_t values[4];
      load_matrix_x4_transposed(values, tile + Shape::Rows::fragment(corner, k, n));
      mma_m16n8k16<T>(carried.output[2 * n], left, {values[0], values[1]});
      mma_m16n8k16<T>(carried.output[2 * n + 1], left, {values[2], values[3]});
    }
  }
}

/// Both matmuls by warpgroups where the code and the shape allow, else by warps.
template <class T, bool Whole, class Shape>
__device__ __forceinline__ void multiply_queries_keys(const typename Shape::Carried& carried, Shared16 queries, Shared16 tile,
                                                      uint32_t corner, int valid, typename Shape::Scores& scores) {
#if defined(HEDDLE_HOPPER_CODE)
  if constexpr (Shape::in_warpgroups) {
    multiply_keys_wgmma<T>(carried.query, tile, scores);
  } else
#endif
  {
    multiply_keys<T, Whole, Shape>(carried, queries, tile, corner, valid, scores);
  }
}

template <class T, bool Whole, class Shape>
__device__ __forceinline__ void multiply_weights_values(typename Shape::Carried& carried, Shared16 tile, uint32_t corner,
                                                        int valid, const typename Shape::Scores& weights) {
#if defined(HEDDLE_HOPPER_CODE)
  if constexpr (Shape::in_warpgroups) {
    multiply_values_wgmma<T>(weights, tile, carried.output);
  } else
#endif
  {
    multiply_values<T, Whole, Shape>(carried, tile, corner, valid, weights);
  }
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
