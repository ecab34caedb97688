// Decisions of a launch of attention: the order in which blocks run, and the typical number of keys per query.
#ifndef HEDDLE_ATTENTION_ORDER_CUH
#define HEDDLE_ATTENTION_ORDER_CUH

#include "attention_slots.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Blocks that run at the same time: tiles of one head share its keys. If sequences or heads share the tensors of pairs, the same tile of
/// all of them, so that memory is read once.
enum class BlockOrder { tiles, sequences, heads };

/// Order of a launch of `tiles` tiles per head and sequence.
template <class Slots>
BlockOrder order_of([[maybe_unused]] int64_t tiles) {
  if constexpr (reads_pairs<Slots>) {
    constexpr int64_t most = 65535;  // of the other axes of a grid
    if (tiles <= most && !pairs_of_sequence<Slots>) return BlockOrder::sequences;
    if (tiles <= most && !pairs_of_head<Slots>) return BlockOrder::heads;
  }
  return BlockOrder::tiles;
}

inline dim3 grid_of(BlockOrder order, int64_t tiles, const AttentionExtents& extents) {
  const auto tile_count = static_cast<unsigned int>(tiles), heads = static_cast<unsigned int>(extents.heads);
  const auto batch = static_cast<unsigned int>(extents.batch);
  if (order == BlockOrder::sequences) return dim3(batch, tile_count, heads);
  return order == BlockOrder::heads ? dim3(heads, tile_count, batch) : dim3(tile_count, heads, batch);
}

/// Work of a block: the last tiles come first, since they have the most keys under a causal mask.
struct BlockPlace {
  int tile, tiles, h, b;
};

template <class Slots>
__device__ __forceinline__ BlockPlace place_of_block(BlockOrder order) {
  const int x = static_cast<int>(blockIdx.x), y = static_cast<int>(blockIdx.y), z = static_cast<int>(blockIdx.z);
  if (!reads_pairs<Slots> || order == BlockOrder::tiles) return {static_cast<int>(gridDim.x) - 1 - x, static_cast<int>(gridDim.x), y, z};
  const bool by_heads = order == BlockOrder::heads;
  return {static_cast<int>(gridDim.y) - 1 - y, static_cast<int>(gridDim.y), by_heads ? x : z, by_heads ? z : x};
}

/// Keys in the range of a query: the mean over some queries, or all keys if the host cannot evaluate ranges.
template <class Slots>
int64_t typical_keys([[maybe_unused]] const Slots& slots, const AttentionExtents& extents) {
  if constexpr (knows_span<Slots>) {
    constexpr int64_t asked = 16;
    int64_t sum = 0;
    for (int64_t i = 0; i < asked; ++i) sum += slots.span(static_cast<int>((2 * i + 1) * extents.queries / (2 * asked)), static_cast<int>(extents.keys));
    return sum / asked;
  } else {
    return extents.keys;
  }
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
