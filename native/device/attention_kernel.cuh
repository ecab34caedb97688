// Attention on tensor cores, for 16-bit types and heads of 32, 64 or 128 elements: a block takes some query rows of one head and
// walks that head's keys and values in tiles, the next tile on its way while one is used. Queries, scores and output stay in
// registers.
#ifndef HEDDLE_ATTENTION_KERNEL_CUH
#define HEDDLE_ATTENTION_KERNEL_CUH

#include "attention_output.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Turns raw products into weights, and brings what was summed up so far to the same scale. `score(half, column, raw)` compiles
/// the op's arithmetic for one element of either of a lane's rows; columns from `valid` on weigh nothing.
template <bool Whole, class Shape, class Score>
__device__ __forceinline__ void soften(typename Shape::Carried& carried, int valid, Score score, typename Shape::Scores& scores) {
  constexpr int elements = 8 * Shape::key_tiles;
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
  // Even and odd columns are kept apart, which halves the chains of dependent instructions.
  float largest[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
  HEDDLE_UNROLL
  for (int i = 0; i < elements; ++i) {
    float& element = scores[i / 4][i % 4];
    const int j = i / 4 * 8 + column + i % 2;
    element = Whole || j < valid ? score(i / 2 % 2, j, element) : -INFINITY;
    largest[i % 4] = fmaxf(largest[i % 4], element);
  }
  float factors[2];
  HEDDLE_UNROLL
  for (int half = 0; half < 2; ++half) {
    float top = fmaxf(largest[2 * half], largest[2 * half + 1]);
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
    factors[half] = carried.softmax[half].admit(top);
  }
  if (__any_sync(0xffffffffu, factors[0] != 1.0f || factors[1] != 1.0f)) {
    HEDDLE_UNROLL
    for (int i = 0; i < 8 * Shape::head_tiles; ++i) carried.output[i / 4][i % 4] *= factors[i / 2 % 2];
  }
  float sums[4] = {};
  HEDDLE_UNROLL
  for (int i = 0; i < elements; ++i) {
    float& element = scores[i / 4][i % 4];
    element = carried.softmax[i / 2 % 2].weight(element);
    sums[i % 4] += element;
  }
  HEDDLE_UNROLL
  for (int half = 0; half < 2; ++half) carried.softmax[half].total += sums[2 * half] + sums[2 * half + 1];
}

/// One block for each tile of query rows (x) of each head (y) of each sequence (z): tiles are innermost, since they share keys.
template <class T, class O, class Shape, class Slots>
__global__ void __launch_bounds__(Shape::threads, Shape::resident)
    attention_tiles(const In<T> query, const In<T> key, const In<T> value, const Out<O> out, const Slots slots) {
  using Rows = typename Shape::Rows;
  wait_for_producers();
  release_consumers();
  const int tile = static_cast<int>(blockIdx.x), tiles = static_cast<int>(gridDim.x);
  const int h = static_cast<int>(blockIdx.y), b = static_cast<int>(blockIdx.z);
  const int queries = slots.queries(b), keys = slots.keys(b);
  const int first = tile * Shape::queries;
  HEDDLE_DYNAMIC_SHARED(memory);
  const Shared16 key_tiles = memory + Shape::query_bytes;
  const Shared16 value_tiles = key_tiles + 2 * Shape::key_bytes;
  const int64_t key_start = slots.key_row(b, h, 0), value_start = slots.value_row(b, h, 0);
  const int64_t key_stride = slots.key_stride(), value_stride = slots.value_stride();
  const auto copy_keys = [&](int from, uint32_t stage) {
    Rows::template copy<Shape::keys, Shape::threads>(key_tiles + stage * Shape::key_bytes, key, key_start + from * key_stride,
                                                     key_stride, keys - from);
  };
  const auto copy_values = [&](int from, uint32_t stage) {
    Rows::template copy<Shape::keys, Shape::threads>(value_tiles + stage * Shape::key_bytes, value,
                                                     value_start + from * value_stride, value_stride, keys - from);
  };
  if (first < queries) {
    Rows::template copy<Shape::queries, Shape::threads>(memory, query, slots.query_row(b, h, first), slots.query_stride(),
                                                        queries - first);
    copy_keys(0, 0);
    copy_async_commit();
    copy_values(0, 0);
    copy_async_commit();
    if (keys > Shape::keys) {
      copy_keys(Shape::keys, 1);
      copy_values(Shape::keys, 1);
    }
    copy_async_commit();
  }
  const int owned = slots.owned(b);
  if (owned > queries) zero_rows<Shape>(out, slots, b, h, tile, tiles, queries, owned);
  if (first >= queries) return;

  // Every thread sees what all have copied, and so do products of warpgroups, which read shared memory by another way.
  const auto meet_copies = [] {
#if defined(HEDDLE_HOPPER_CODE)
    if constexpr (Shape::in_warpgroups) publish_copies();
#endif
    __syncthreads();
  };
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_first = static_cast<int>(threadIdx.x) / 32 * Shape::warp_queries;
  const uint32_t key_corner = Rows::template corner<false>(lane), value_corner = Rows::template corner<true>(lane);
  copy_async_wait<2>();
  meet_copies();
  typename Shape::Carried carried;
  HEDDLE_UNROLL
  for (int k = 0; k < Shape::head_tiles; ++k) {
    load_matrix_x4(carried.query[k], memory + Rows::fragment(value_corner, warp_first / 16, k));
  }
  // Rows beyond the last query are computed along and dropped; their scores are asked for as if they were the last.
  const int row = first + warp_first + lane / 4;
  const int rows[2] = {min(row, queries - 1), min(row + 8, queries - 1)};
  uint32_t stage = 0;
  for (int from = 0; from < keys; from += Shape::keys) {
    const bool last = keys - from <= Shape::keys;
    if (from > 0 && !last) {
      copy_keys(from + Shape::keys, stage ^ 1);
      copy_values(from + Shape::keys, stage ^ 1);
      copy_async_commit();
    }
    const Shared16 keys_here = key_tiles + stage * Shape::key_bytes, values_here = value_tiles + stage * Shape::key_bytes;
    const auto step = [&](auto choice) {
      constexpr bool whole = decltype(choice)::value;
      const int valid = keys - from;
      typename Shape::Scores scores;
      multiply_queries_keys<T, whole, Shape>(carried, keys_here, key_corner, valid, scores);
      const auto score = [&](int half, int j, float raw) { return slots.score(raw, b, h, rows[half], from + j); };
      soften<whole, Shape>(carried, valid, score, scores);
      if (from == 0) {
        // The first values are given until now to arrive.
        copy_async_wait<1>();
        meet_copies();
      }
      multiply_weights_values<T, whole, Shape>(carried, values_here, value_corner, valid, scores);
    };
    if (keys - from >= Shape::keys) {
      step(Constant<true>{});
    } else {
      step(Constant<false>{});
    }
    if (!last) {
      copy_async_wait<0>();
      meet_copies();
      stage ^= 1;
    }
  }
  store_output<Shape>(carried, out, slots, b, h, first + warp_first, queries);
}

/// Launches `attention_tiles`. HEDDLE_INVALID for more than 65535 heads or sequences, which is what a grid holds.
template <int HeadDim, bool PlainScore, class Tile, class T, class O, class Slots>
int32_t launch_attention_tiles(const heddle_launch* queue, heddle_error* error, const char* name, int64_t batch, int64_t heads,
                               int64_t max_queries, In<T> query, In<T> key, In<T> value, Out<O> out, Slots slots) {
  using Shape = AttentionShape<T, HeadDim, PlainScore, Tile>;
  constexpr int64_t most = 65535;
  if (batch > most || heads > most) {
    return fail(error, HEDDLE_INVALID, "kernel %s: %lld sequences of %lld heads, allowed are %lld of each", name,
                static_cast<long long>(batch), static_cast<long long>(heads), static_cast<long long>(most));
  }
  // A sequence without queries may own rows that are to be zero.
  const int64_t tiles = longest((max_queries + Shape::queries - 1) / Shape::queries, int64_t{1});
  const dim3 grid(static_cast<unsigned int>(tiles), static_cast<unsigned int>(heads), static_cast<unsigned int>(batch));
  const LaunchConfig config = {name, grid, dim3(Shape::threads), Shape::shared_bytes, Sync::block, true};
  return launch(queue, error, config, attention_tiles<T, O, Shape, Slots>, query, key, value, out, slots);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
