// Attention on Hopper for long sequences of 16-bit rows: one warpgroup fills rings of key and value tiles. The others have 64 query rows
// each and overlap the softmax of one tile with the matmuls of the next. They issue their matmuls in turns, so that while one computes
// weights the tensor cores run the others' matmuls.
#ifndef HEDDLE_ATTENTION_PIPELINED_CUH
#define HEDDLE_ATTENTION_PIPELINED_CUH

#include "attention_pipeline.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

#if defined(HEDDLE_HOPPER_CODE)

/// State of a warpgroup between tiles. A thread has parts of two rows: elements 4 j to 4 j + 3 of sums are columns 8 j + 2 (t % 4) and the
/// next, of the first row and of the row 8 further.
template <class Shape>
struct PipelinedRows {
  float output[Shape::width / 2] = {};
  float scores[Shape::keys / 2];
  uint32_t weights[Shape::keys / 16][4];
  QuadSoftmax softmax;
};

/// Starts scores = queries x keys^T.
template <class T, class Shape>
__device__ __forceinline__ void start_scores(PipelinedRows<Shape>& rows, Shared16 queries, Shared16 keys) {
  HEDDLE_UNROLL
  for (int k = 0; k < Shape::slices; ++k) {
    const uint32_t block = static_cast<uint32_t>(k / 4);
    const uint64_t a = swizzled_rows(queries + block * Shape::query_block_bytes) + 2 * (k % 4);
    const uint64_t b = swizzled_rows(keys + block * Shape::key_block_bytes) + 2 * (k % 4);
    multiply_rows<T, Shape::keys>(rows.scores, a, b, k);
  }
  commit_products();
}

/// Starts output += weights x values.
template <class T, class Shape>
__device__ __forceinline__ void start_output(PipelinedRows<Shape>& rows, Shared16 values) {
  const uint64_t b = swizzled_columns(values, Shape::key_block_bytes);
  HEDDLE_UNROLL
  for (int k = 0; k < Shape::keys / 16; ++k) {
    multiply_values<T, Shape::width>(rows.output, rows.weights[k], b + static_cast<uint64_t>(k) * 128);
  }
  commit_products();
}

/// Rounds weights to T, as the left operand of the matmul with values.
template <class T, class Shape>
__device__ __forceinline__ void round_weights(PipelinedRows<Shape>& rows) {
  HEDDLE_UNROLL
  for (int i = 0; i < Shape::keys / 4; ++i) rows.weights[i / 4][i % 4] = round_pair<T>(rows.scores[2 * i], rows.scores[2 * i + 1]);
}

template <class Shape>
__device__ __forceinline__ void rescale(PipelinedRows<Shape>& rows, const float (&factors)[2]) {
  HEDDLE_UNROLL
  for (int i = 0; i < Shape::width / 2; ++i) rows.output[i] *= factors[i / 2 % 2];
}

/// Computes the 64 query rows of one warpgroup, from row `first` on.
template <class T, class Shape, class O, class Slots>
__device__ __forceinline__ void attend_rows(const PipelinedWork<Slots, Shape>& work, const PipelinedMemory<Shape>& memory,
                                            const AttentionSizes& sizes, const Out<O>& out, const Slots& slots, int group) {
  const int b = work.b, h = work.h;
  // Recomputed at each use, to save registers.
  const auto row_of = [&](int half) {
    const int thread = static_cast<int>(threadIdx.x);
    return work.first + thread / 32 * 16 + thread % 32 / 4 + half * 8;
  };
  // Rows beyond the last query are computed and dropped; their scores use the index of the last.
  const auto known = [&](int half) { return min(row_of(half), work.queries - 1); };
  // The keys that all rows of the warp attend.
  const int warp_first = work.first + static_cast<int>(threadIdx.x) / 32 * 16;
  const int all_begin = lower_of(slots, b, h, min(warp_first + 15, work.queries - 1));
  const int all_end = upper_of(slots, b, h, min(warp_first, work.queries - 1), sizes.keys);
  PipelinedRows<Shape> rows;
  const Shared16 queries = memory.queries + static_cast<uint32_t>(group) * 64 * 128;
  Pairs<Slots, Shape::keys / 2> pairs;
  const auto load_pairs = [&](int tile) { pairs.load(slots, b, h, work.met.first_of(tile), sizes.keys, known); };
  // Classified before there are scores, to save registers.
  const auto told = [&](int tile) {
    if constexpr (masks_tiles<Slots>) {
      if (work.met.is_open(tile)) return TileClass::all;
      return warp_class<Shape::keys>(slots, b, h, warp_first, work.queries, work.met.first_of(tile), sizes.keys);
    } else {
      return masks_pairs<Slots> ? TileClass::some : TileClass::all;
    }
  };
  const auto weigh = [&](int tile, TileClass mask, float(&factors)[2]) {
    pairs.settle();
    const int from = work.met.first_of(tile);
    const int own = from + static_cast<int>(threadIdx.x) % 4 * 2;
    // Indices as floats are sums of floats: conversions take as long as exponentials.
    const float own_float = static_cast<float>(own), row_floats[2] = {static_cast<float>(known(0)), static_cast<float>(known(1))};
    const auto score = [&](int half, int place, float raw) {
      const float further = static_cast<float>(place);
      const PairPlace at = {row_floats[half], own_float + further, own_float - row_floats[half], further};
      return score_of(slots, raw, b, h, known(half), own + place, at, pairs(half, place));
    };
    const auto element = [&](int i) -> float& { return rows.scores[i]; };
    const bool is_whole = mask == TileClass::all && from >= all_begin && from + Shape::keys <= all_end;
    // A warp that attends nothing of a tile takes the path of one that attends all: a third path would cost both registers.
    if (is_whole || (masks_tiles<Slots> && mask == TileClass::none)) {
      const auto is_attended = [&](int, int) { return is_whole; };
      return rows.softmax.template weigh<!masks_tiles<Slots>, Shape::keys / 2>(element, slots, is_attended, score, factors, [] {});
    } else {
      int lower[2], upper[2];
      HEDDLE_UNROLL
      for (int half = 0; half < 2; ++half) {
        lower[half] = lower_of(slots, b, h, known(half)) - own;
        upper[half] = upper_of(slots, b, h, known(half), sizes.keys) - own;
      }
      const auto is_attended = [&](int half, int place) {
        return place >= lower[half] && place < upper[half] && is_allowed(slots, b, h, known(half), own + place, pairs(half, place));
      };
      return rows.softmax.template weigh<false, Shape::keys / 2>(element, slots, is_attended, score, factors, [] {});
    }
  };
  const int tiles = work.met.count;
  float factors[2];
  if (tiles > 0) {
    const TileClass mask = told(0);
    begin_turns<Shape>(group);
    load_pairs(0);
    memory.queries_full().wait(0);
    memory.keys_full(0).wait(0);
    await_turn<Shape>(group);
    begin_products();
    start_scores<T, Shape>(rows, queries, memory.keys(0));
    pass_turn<Shape>(group, tiles == 1);
    wait_products<0>();
    pin(rows.scores);
    free_tile(memory.keys_empty(0));
    weigh(0, mask, factors);
    round_weights<T, Shape>(rows);
  }
  for (int tile = 1; tile < tiles; ++tile) {
    const PipelinedPlace here = place_of<Shape>(tile), before = place_of<Shape>(tile - 1);
    const TileClass mask = told(tile);
    load_pairs(tile);
    memory.keys_full(here.stage).wait(here.parity);
    await_turn<Shape>(group);
    begin_products();
    start_scores<T, Shape>(rows, queries, memory.keys(here.stage));
    memory.values_full(before.stage).wait(before.parity);
    start_output<T, Shape>(rows, memory.values(before.stage));
    pass_turn<Shape>(group, tile + 1 == tiles);
    wait_products<1>();
    pin(rows.scores);
    free_tile(memory.keys_empty(here.stage));
    const bool changes = weigh(tile, mask, factors);
    wait_products<0>();
    pin(rows.output);
    free_tile(memory.values_empty(before.stage));
    if (changes) rescale(rows, factors);
    round_weights<T, Shape>(rows);
  }
  if (tiles > 0) {
    const PipelinedPlace last = place_of<Shape>(tiles - 1);
    memory.values_full(last.stage).wait(last.parity);
    begin_products();
    start_output<T, Shape>(rows, memory.values(last.stage));
    wait_products<0>();
    pin(rows.output);
  }
  HEDDLE_UNROLL
  for (int half = 0; half < 2; ++half) {
    const Quotient quotient = rows.softmax.quotient(slots, half, b, h, known(half), row_of(half) < work.queries);
    store_fragments<Shape::width / 8, true>(out, slots, b, h, row_of(half), work.queries, sizes.value_dim, [&](int fragment, int e) {
      return quotient(rows.output[4 * fragment + 2 * half + e]);
    });
  }
}

#endif

/// One block for each tile of query rows of each head of each sequence.
template <class T, class O, class Shape, class Slots>
__global__ void __launch_bounds__(Shape::threads, 1)
    attention_pipelined(const AttentionSizes sizes, const BlockOrder order, const In<T> query, const In<T> key, const In<T> value,
                        const Out<O> out, const Slots slots) {
#if defined(HEDDLE_HOPPER_CODE)
  if (!sizes.settled) begin_kernel();
  const BlockPlace place = place_of_block<Slots>(order);
  const int tiles = place.tiles, tile = place.tile;
  PipelinedWork<Slots, Shape> work;
  work.h = place.h, work.b = place.b;
  work.queries = slots.queries(work.b), work.first = tile * Shape::queries;
  const int owned = slots.owned(work.b);
  // Settled data is read while the previous launch ends.
  if (sizes.settled) begin_kernel();
  if (owned > work.queries) {
    zero_rows<Shape::queries, Shape::threads, Shape::width / 8, true>(out, slots, work.b, work.h, tile, tiles, work.queries, owned,
                                                               sizes.value_dim);
  }
  if (work.first >= work.queries) return;
  const int last = min(work.first + Shape::queries, work.queries) - 1;
  HEDDLE_DYNAMIC_SHARED(shared);
  const PipelinedMemory<Shape> memory{shared};
  if (threadIdx.x == 0) memory.template initialise<Slots>();
  if constexpr (masks_tiles<Slots> && !computes_query<Slots>) {
    // Loaded while tiles are classified.
    if (threadIdx.x / warpgroup_threads == Shape::groups) copy_queries<T, Shape>(work, memory, sizes, query, slots);
  }
  work.met.template find<Shape::threads, Shape::queries>(slots, work.b, work.h, work.first, last,
                                                         lower_of(slots, work.b, work.h, work.first),
                                                         upper_of(slots, work.b, work.h, last, sizes.keys));
  __syncthreads();
  // Uniform, so that roles are branches and not predicates.
  const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
  if (group == Shape::groups) {
    shrink_registers<Shape::producer_registers>();
    if constexpr (!masks_tiles<Slots> && !computes_query<Slots>) copy_queries<T, Shape>(work, memory, sizes, query, slots);
    if (work.met.count > 0) fill_rings<T, Shape>(work, memory, sizes, key, value, slots);
  } else {
    grow_registers<Shape::consumer_registers>();
    if constexpr (computes_query<Slots>) compute_queries<T, Shape>(work, memory, sizes, slots, group);
    attend_rows<T, Shape>(work, memory, sizes, out, slots, group);
  }
#endif
}

/// Launches `attention_pipelined` for rows of at most Width elements.
template <int Width, class T, class O, class Slots>
int32_t launch_attention_pipelined(const heddle_launch* queue, heddle_error* error, const char* name, const AttentionExtents& extents,
                                   In<T> query, In<T> key, In<T> value, Out<O> out, Slots slots) {
  constexpr int narrow = masks_tiles<Slots> ? 64 : is_proportional<Slots> && !masks_pairs<Slots> ? 128 : 96;
  using Shape = PipelinedShape<T, Width, narrow>;
  constexpr int64_t most = 65535;
  if (extents.batch > most || extents.heads > most) {
    return fail(error, HEDDLE_INVALID, "kernel %s: got %lld sequences of %lld heads, expected at most %lld of each", name,
                static_cast<long long>(extents.batch), static_cast<long long>(extents.heads), static_cast<long long>(most));
  }
  const int64_t tiles = longest((extents.queries + Shape::queries - 1) / Shape::queries, int64_t{1});
  const BlockOrder order = order_of<Slots>(tiles);
  const LaunchConfig config = {name, grid_of(order, tiles, extents), dim3(Shape::threads), Shape::shared_bytes, Sync::block, true};
  return launch(queue, error, config, attention_pipelined<T, O, Shape, Slots>, sizes_of(extents), order, query, key, value, out, slots);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
