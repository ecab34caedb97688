// The shape of attention_pipelined.cuh: number of warpgroups, rings of key and value tiles in shared memory, the warpgroup that fills them,
// and the turns of the others.
#ifndef HEDDLE_ATTENTION_PIPELINE_CUH
#define HEDDLE_ATTENTION_PIPELINE_CUH

#include "attention_blocks.cuh"
#include "attention_output.cuh"
#include "attention_pairs.cuh"
#include "wgmma_values.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Rows of queries, keys and values have up to Width elements, in blocks of 64 columns: the width of a 128-byte swizzle. Three warpgroups
/// compute if their scores and output leave room for a third in the register file, since they share keys and values. Scores that are more
/// than a multiple of dot products need registers, and most of all with masks. They are computed for fewer keys at a time: Narrow, where
/// rows have up to 64 elements.
template <class T, int Width, int Narrow>
struct PipelinedShape {
  static_assert(sizeof(T) == 2 && Width % 16 == 0 && Width <= 256, "whole slices of a type of 16 bits");
  static constexpr int width = Width, slices = Width / 16, blocks = (Width + 63) / 64;
  static constexpr int groups = Width <= 64 ? 3 : 2;
  static constexpr int queries = 64 * groups, keys = Width <= 64 ? Narrow : Width <= 128 ? 128 : Width <= 192 ? 96 : 64;
  static constexpr int threads = 128 * (groups + 1);
  static constexpr int producer_registers = groups == 3 ? 32 : 40, consumer_registers = groups == 3 ? 160 : 232;
  static constexpr int stages = 2;
  static constexpr uint32_t row_bytes = 128;
  static constexpr uint32_t query_block_bytes = queries * row_bytes, key_block_bytes = keys * row_bytes;
  static constexpr uint32_t query_bytes = blocks * query_block_bytes, key_bytes = blocks * key_block_bytes;
  static constexpr uint32_t tile_bytes = query_bytes + 2 * stages * key_bytes;
  static constexpr uint32_t shared_bytes = tile_bytes + 128;
};

/// The block's query rows, and the tiles of keys that they attend.
template <class Slots, class Shape>
struct PipelinedWork {
  int b, h, queries, first;
  KeyTiles<Slots, Shape::keys> met;
};

#if defined(HEDDLE_HOPPER_CODE)

/// Stage of a tile in its ring, and the parity of its phase.
struct PipelinedPlace {
  int stage;
  uint32_t parity;
};
template <class Shape>
__device__ __forceinline__ PipelinedPlace place_of(int tile) {
  return {tile % Shape::stages, static_cast<uint32_t>(tile / Shape::stages % 2)};
}

/// Shared memory: queries, rings of keys and of values, then barriers.
template <class Shape>
struct PipelinedMemory {
  Shared16 queries;

  __device__ __forceinline__ Shared16 keys(int stage) const {
    return queries + (Shape::query_bytes + static_cast<uint32_t>(stage) * Shape::key_bytes);
  }
  __device__ __forceinline__ Shared16 values(int stage) const { return keys(stage + Shape::stages); }
  __device__ __forceinline__ PhaseBarrier keys_full(int stage) const { return barrier(stage); }
  __device__ __forceinline__ PhaseBarrier keys_empty(int stage) const { return barrier(Shape::stages + stage); }
  __device__ __forceinline__ PhaseBarrier values_full(int stage) const { return barrier(2 * Shape::stages + stage); }
  __device__ __forceinline__ PhaseBarrier values_empty(int stage) const { return barrier(3 * Shape::stages + stage); }
  __device__ __forceinline__ PhaseBarrier queries_full() const { return barrier(4 * Shape::stages); }

  /// Initialises the barriers, by one thread, before a barrier of the block. All threads of the producer signal that a tile is full, and
  /// one lane of each other warp signals that it is empty. Computed queries are those of all other threads.
  template <class Slots>
  __device__ __forceinline__ void initialise() const {
    for (int stage = 0; stage < Shape::stages; ++stage) {
      keys_full(stage).initialise(warpgroup_threads);
      values_full(stage).initialise(warpgroup_threads);
      keys_empty(stage).initialise(4 * Shape::groups);
      values_empty(stage).initialise(4 * Shape::groups);
    }
    queries_full().initialise(computes_query<Slots> ? Shape::groups * warpgroup_threads : warpgroup_threads);
    publish_barriers();
  }

 private:
  __device__ __forceinline__ PhaseBarrier barrier(int index) const {
    return {queries.address + Shape::tile_bytes + static_cast<uint32_t>(index) * 8};
  }
};

/// Signals that the calling warp has no matmuls in flight that read a tile.
__device__ __forceinline__ void free_tile(PhaseBarrier empty) {
  if (threadIdx.x % 32 == 0) empty.arrive();
}

/// Warpgroups issue the matmuls of a tile in turns, each after the previous one. The first begins, and the last passes no turn on after its
/// last tile.
template <class Shape>
__device__ __forceinline__ void await_turn(int group) {
  await_warpgroup(1 + group);
}
template <class Shape>
__device__ __forceinline__ void begin_turns(int group) {
  if (group == Shape::groups - 1) signal_warpgroup(1);
}
template <class Shape>
__device__ __forceinline__ void pass_turn(int group, bool is_last) {
  const int next = group + 1 == Shape::groups ? 0 : group + 1;
  if (next != 0 || !is_last) signal_warpgroup(1 + next);
}

/// Rows of a tensor that a thread of the producer copies: every 16th, eight elements of each block of 64 columns.
template <class T>
struct RowCopier {
#if defined(HEDDLE_SIMT)
  In<T> tensor;
  int64_t from;    // the thread's elements of its next row
#else
  const T* from;   // the thread's elements of its next row
#endif
  int64_t step;    // elements from row to row
  int columns;     // elements of a row from the thread's first on

#if defined(HEDDLE_SIMT)
  RowCopier(const In<T>& tensor, int64_t first, int64_t stride, int width)
      : tensor(tensor), from(first + own_row() * stride + own_chunk() * 8), step(rows_a_step * stride), columns(width - own_chunk() * 8) {}
  void copy_16(Shared16 to, int offset, bool valid) const { copy_async_16(to, tensor, from + offset, valid); }
#else
  __device__ __forceinline__ RowCopier(const In<T>& tensor, int64_t first, int64_t stride, int width)
      : from(tensor.data + first + own_row() * stride + own_chunk() * 8), step(rows_a_step * stride), columns(width - own_chunk() * 8) {}
  __device__ __forceinline__ void copy_16(Shared16 to, int offset, bool valid) const { copy_async_16(to, In<T>{from}, offset, valid); }
#endif

  static constexpr int rows_a_step = warpgroup_threads / 8;
  static __device__ __forceinline__ int own_row() { return static_cast<int>(threadIdx.x) % warpgroup_threads / 8; }
  static __device__ __forceinline__ int own_chunk() { return static_cast<int>(threadIdx.x) % 8; }

  /// Starts copying the next Rows rows, of which `valid` exist; other rows, and missing columns, arrive as zeros.
  template <class Shape, int Rows>
  __device__ __forceinline__ void copy(Shared16 tile, int valid) {
    static_assert(Rows % rows_a_step == 0, "every thread copies as many rows");
    const int row = own_row(), chunk = own_chunk();
    Shared16 to = tile + (static_cast<uint32_t>(row) * Shape::row_bytes + static_cast<uint32_t>(chunk ^ row % 8) * 16);
    valid -= row;
    HEDDLE_ROLLED
    for (int i = 0; i < Rows; i += rows_a_step) {
      HEDDLE_UNROLL
      for (int block = 0; block < Shape::blocks; ++block) {
        // Columns that no matmul reads are not written.
        if (Shape::width - block * 64 < 64 && chunk * 8 >= Shape::width - block * 64) continue;
        copy_16(to + static_cast<uint32_t>(block * Rows) * Shape::row_bytes, block * 64, block * 64 < columns && i < valid);
      }
      from += step;
      to = to + rows_a_step * Shape::row_bytes;
    }
  }
};

/// Starts copying the queries, by the producer.
template <class T, class Shape, class Slots>
__device__ __forceinline__ void copy_queries(const PipelinedWork<Slots, Shape>& work, const PipelinedMemory<Shape>& memory,
                                             const AttentionSizes& sizes, const In<T>& query, const Slots& slots) {
  RowCopier<T> queries(query, slots.query_row(work.b, work.h, work.first), slots.query_stride(), sizes.head_dim);
  queries.template copy<Shape, Shape::queries>(memory.queries, work.queries - work.first);
}

/// Computes a warpgroup's 64 rows of queries, rounded to T, and announces its part.
template <class T, class Shape, class Slots>
__device__ __forceinline__ void compute_queries(const PipelinedWork<Slots, Shape>& work, const PipelinedMemory<Shape>& memory,
                                                const AttentionSizes& sizes, const Slots& slots, int group) {
  constexpr int chunks = Shape::width / 8;
#pragma unroll 2
  for (int at = static_cast<int>(threadIdx.x) % warpgroup_threads; at < 64 * chunks; at += warpgroup_threads) {
    const int row = group * 64 + at / chunks, chunk = at % chunks, column = chunk * 8;
    float values[8] = {};
    if (work.first + row < work.queries && column < sizes.head_dim) {
      slots.template query_elements<8, true>(work.b, work.h, work.first + row, column, min(sizes.head_dim - column, 8), values);
    }
    Pack<T, 8> pack;
    round_into(pack, values);
    const uint32_t block = static_cast<uint32_t>(chunk / 8) * Shape::query_block_bytes;
    const uint32_t place = static_cast<uint32_t>(row) * Shape::row_bytes + static_cast<uint32_t>(chunk % 8 ^ row % 8) * 16;
    store_shared_16(memory.queries + (block + place), pack);
  }
  publish_to_products();
  memory.queries_full().arrive();
}

/// Announces the queries and fills the rings: keys of a tile and values of the previous one. Started copies are announced when the next
/// ones are in flight, or when the ring has no room for them.
template <class T, class Shape, class Slots>
__device__ __forceinline__ void fill_rings(const PipelinedWork<Slots, Shape>& work, const PipelinedMemory<Shape>& memory, const AttentionSizes& sizes,
                                           const In<T>& key, const In<T>& value, const Slots& slots) {
  uint32_t pending = 0;  // barrier of the copies that are not announced yet
  const auto announce = [&] {
    publish_to_products();
    PhaseBarrier{pending}.arrive();
  };
  const auto started = [&](PhaseBarrier full) {
    copy_async_commit();
    if (pending != 0) {
      copy_async_wait<1>();
      announce();
    }
    pending = full.address;
  };
  const auto make_room = [&](PhaseBarrier empty, uint32_t parity) {
    if (empty.has_ended(parity)) return;
    if (pending != 0) {
      copy_async_wait<0>();
      announce();
      pending = 0;
    }
    empty.wait(parity);
  };
  if constexpr (!computes_query<Slots>) started(memory.queries_full());
  const int64_t key_stride = slots.key_stride(), value_stride = slots.value_stride();
  const auto& met = work.met;
  RowCopier<T> keys(key, slots.key_row(work.b, work.h, 0) + met.begin * key_stride, key_stride, sizes.head_dim);
  RowCopier<T> values(value, slots.value_row(work.b, work.h, 0) + met.begin * value_stride, value_stride, sizes.value_dim);
  // Copiers jump over skipped tiles.
  [[maybe_unused]] int next_key = met.begin, next_value = met.begin;
  for (int tile = 0; tile <= met.count; ++tile) {
    if (tile < met.count) {
      const PipelinedPlace at = place_of<Shape>(tile);
      const int from = met.first_of(tile);
      if constexpr (masks_tiles<Slots>) {
        keys.from += (from - next_key) * key_stride;
        next_key = from + Shape::keys;
      }
      make_room(memory.keys_empty(at.stage), at.parity ^ 1);
      keys.template copy<Shape, Shape::keys>(memory.keys(at.stage), met.end - from);
      started(memory.keys_full(at.stage));
    }
    if (tile > 0) {
      const PipelinedPlace at = place_of<Shape>(tile - 1);
      const int from = met.first_of(tile - 1);
      if constexpr (masks_tiles<Slots>) {
        values.from += (from - next_value) * value_stride;
        next_value = from + Shape::keys;
      }
      make_room(memory.values_empty(at.stage), at.parity ^ 1);
      values.template copy<Shape, Shape::keys>(memory.values(at.stage), met.end - from);
      started(memory.values_full(at.stage));
    }
  }
  copy_async_wait<0>();
  announce();
}

#endif

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
