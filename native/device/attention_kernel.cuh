// Attention on tensor cores, for 16-bit types and heads of up to 256 elements: a block takes some query rows of one head and loops over the
// keys that any of them attends in tiles, prefetching the next tile while one is used. Queries, scores and output stay in registers.
#ifndef HEDDLE_ATTENTION_KERNEL_CUH
#define HEDDLE_ATTENTION_KERNEL_CUH

#include "attention_blocks.cuh"
#include "attention_output.cuh"
#include "attention_pairs.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// One block for each tile of query rows of each head of each sequence.
template <class T, class O, class Shape, class Slots>
__global__ void __launch_bounds__(Shape::threads, Shape::resident)
    attention_tiles(const AttentionSizes sizes, const BlockOrder order, const In<T> query, const In<T> key, const In<T> value, const Out<O> out,
                    const Slots slots) {
  using Rows = typename Shape::Rows;
  // Registers of large heads do not suffice for values that are kept across the wait.
  const bool settled = Shape::keeps_query && sizes.settled;
  if (!settled) begin_kernel();
  const BlockPlace place = place_of_block<Slots>(order);
  const int own_tile = place.tile, tiles = place.tiles, h = place.h, b = place.b;
  const int queries = slots.queries(b);
  const int first = own_tile * Shape::queries, last = min(first + Shape::queries, queries) - 1;
  // Keys that some query of the block attends, and those that all do.
  int begin = 0, end = 0, all_begin = 0, all_end = 0;
  if (first < queries) {
    begin = lower_of(slots, b, h, first), end = upper_of(slots, b, h, last, sizes.keys);
    all_begin = lower_of(slots, b, h, last), all_end = upper_of(slots, b, h, first, sizes.keys);
  }
  HEDDLE_DYNAMIC_SHARED(memory);
  KeyTiles<Slots, Shape::keys> met;
  const Shared16 key_tiles = memory + Shape::query_bytes;
  const Shared16 value_tiles = key_tiles + 2 * Shape::key_bytes;
  using Parts = RowParts<Rows, Shape::threads>;
  // Offset within a tile at which the calling thread begins.
  const auto own = [](const Parts& parts, int64_t stride) { return Shape::wide ? 0 : parts.own(stride); };
  const Parts head_parts(sizes.head_dim, sizes.unit), value_parts(sizes.value_dim, sizes.unit);
  const auto copy = [&](auto rows, Shared16 to, const In<T>& tensor, int64_t start, int64_t stride, int valid, const Parts& parts) {
    if constexpr (Shape::wide) {
      copy_rows<Rows, decltype(rows)::value, Shape::threads>(to, tensor, start, stride, valid, parts.width);
    } else {
      parts.template copy<decltype(rows)::value>(to, tensor, start, stride, valid);
    }
  };
  // Read once: offsets may come from memory. Settled ones are read while the previous launch ends.
  int64_t key_start = 0, value_start = 0;
  if constexpr (!computes_key<Slots>) key_start = slots.key_row(b, h, 0) + own(head_parts, slots.key_stride());
  if constexpr (!computes_value<Slots>) value_start = slots.value_row(b, h, 0) + own(value_parts, slots.value_stride());
  if (settled) begin_kernel();
  const auto copy_keys = [&](int from, uint32_t stage) {
    const Shared16 to = key_tiles + stage * Shape::key_bytes;
    if constexpr (computes_key<Slots>) {
      compute_rows<T, Rows, Shape::keys, Shape::threads>(
          to,
          [&](int row, int c, int count, float(&values)[8]) { slots.template key_elements<8, Shape::wide>(b, h, from + row, c, count, values); },
          end - from, sizes.head_dim);
    } else {
      const int64_t stride = slots.key_stride();
      copy(Integer<Shape::keys>{}, to, key, key_start + from * stride, stride, end - from, head_parts);
    }
  };
  const auto copy_values = [&](int from, uint32_t stage) {
    const Shared16 to = value_tiles + stage * Shape::key_bytes;
    if constexpr (computes_value<Slots>) {
      compute_rows<T, Rows, Shape::keys, Shape::threads>(
          to,
          [&](int row, int c, int count, float(&values)[8]) { slots.template value_elements<8, Shape::wide>(b, h, from + row, c, count, values); },
          end - from, sizes.value_dim);
    } else {
      const int64_t stride = slots.value_stride();
      copy(Integer<Shape::keys>{}, to, value, value_start + from * stride, stride, end - from, value_parts);
    }
  };
  if constexpr (!Shape::wide) {
    // Columns beyond the last, which no copy writes.
    zero_tiles<T, Shape::threads>(memory, Shape::shared_bytes);
    __syncthreads();
  }
  if (first < queries) {
    if constexpr (computes_query<Slots>) {
      compute_rows<T, Rows, Shape::queries, Shape::threads>(
          memory,
          [&](int row, int c, int count, float(&values)[8]) { slots.template query_elements<8, Shape::wide>(b, h, first + row, c, count, values); },
          queries - first, sizes.head_dim);
    } else {
      copy(Integer<Shape::queries>{}, memory, query, slots.query_row(b, h, first) + own(head_parts, slots.query_stride()), slots.query_stride(), queries - first, head_parts);
    }
    met.template find<Shape::threads, Shape::queries>(slots, b, h, first, last, begin, end);
    if (met.count > 0) copy_keys(met.first_of(0), 0);
    copy_async_commit();
    if (met.count > 0) copy_values(met.first_of(0), 0);
    copy_async_commit();
    if (met.count > 1) {
      copy_keys(met.first_of(1), 1);
      copy_values(met.first_of(1), 1);
    }
    copy_async_commit();
  }
  const int owned = slots.owned(b);
  if (owned > queries) {
    zero_rows<Shape::queries, Shape::threads, Rows::chunks, Shape::wide>(out, slots, b, h, own_tile, tiles, queries, owned, sizes.value_dim);
  }
  if (first >= queries) return;

  // Every thread sees the copies of all. So do matmuls of warpgroups, which read shared memory through another proxy.
  const auto meet_copies = [] {
#if defined(HEDDLE_HOPPER_CODE)
    if constexpr (Shape::in_warpgroups) publish_to_products();
#endif
    __syncthreads();
  };
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_first = static_cast<int>(threadIdx.x) / 32 * Shape::warp_queries;
  const uint32_t key_corner = Rows::template corner<false>(lane), value_corner = Rows::template corner<true>(lane);
  copy_async_wait<2>();
  meet_copies();
  typename Shape::Carried carried;
  const Shared16 own_queries = memory + Rows::fragment(value_corner, warp_first / 16, 0);
  if constexpr (Shape::keeps_query) {
    HEDDLE_UNROLL
    for (int k = 0; k < Shape::head_tiles; ++k) {
      load_matrix_x4(carried.query[k], memory + Rows::fragment(value_corner, warp_first / 16, k));
    }
  }
  // Rows beyond the last query are computed and dropped; their scores use the index of the last.
  const int row = first + warp_first + lane / 4;
  const int rows[2] = {min(row, queries - 1), min(row + 8, queries - 1)};
  uint32_t stage = 0;
  for (int tile = 0; tile < met.count; ++tile) {
    const int from = met.first_of(tile);
    const bool is_last = tile + 1 == met.count;
    if (tile > 0 && !is_last) {
      const int coming = met.first_of(tile + 1);
      copy_keys(coming, stage ^ 1);
      copy_values(coming, stage ^ 1);
      copy_async_commit();
    }
    const Shared16 keys_here = key_tiles + stage * Shape::key_bytes, values_here = value_tiles + stage * Shape::key_bytes;
    const auto step = [&](auto choice) {
      constexpr bool whole = decltype(choice)::value;
      const int valid = end - from;
      typename Shape::Scores scores;
      constexpr int elements = 8 * Shape::key_tiles;
      Pairs<Slots, elements> pairs;
      pairs.load(slots, b, h, from, sizes.keys, [&](int half) { return rows[half]; });
      multiply_queries_keys<T, whole, Shape>(carried, own_queries, keys_here, key_corner, valid, scores);
      pairs.settle();
      const int own = from + lane % 4 * 2;
      const float own_float = static_cast<float>(own);
      const float row_floats[2] = {static_cast<float>(rows[0]), static_cast<float>(rows[1])};
      const auto score = [&](int half, int place, float raw) {
        const float further = static_cast<float>(place);
        const PairPlace at = {row_floats[half], own_float + further, own_float - row_floats[half], further};
        return score_of(slots, raw, b, h, rows[half], own + place, at, pairs(half, place));
      };
      int lower[2] = {}, upper[2] = {};
      if constexpr (!whole) {
        HEDDLE_UNROLL
        for (int half = 0; half < 2; ++half) {
          lower[half] = lower_of(slots, b, h, rows[half]) - own;
          upper[half] = upper_of(slots, b, h, rows[half], sizes.keys) - own;
        }
      }
      const auto is_attended = [&](int half, int place) {
        return place >= lower[half] && place < upper[half] && is_allowed(slots, b, h, rows[half], own + place, pairs(half, place));
      };
      float factors[2];
      const auto element = [&](int i) -> float& { return scores[i / 4][i % 4]; };
      if (!whole && warp_class<Shape::keys>(slots, b, h, first + warp_first, queries, from, sizes.keys) == TileClass::none) {
        HEDDLE_UNROLL
        for (int i = 0; i < elements; ++i) element(i) = 0.0f;
      } else {
        carried.softmax.template weigh<whole, elements>(element, slots, is_attended, score, factors, [&] {
          HEDDLE_UNROLL
          for (int i = 0; i < 8 * Shape::head_tiles; ++i) carried.output[i / 4][i % 4] *= factors[i / 2 % 2];
        });
      }
      if (tile == 0) {
        // The wait for the first values is deferred to this place.
        copy_async_wait<1>();
        meet_copies();
      }
      multiply_weights_values<T, whole, Shape>(carried, values_here, value_corner, valid, scores);
    };
    if (from >= all_begin && from + Shape::keys <= all_end && met.is_open(tile)) {
      step(Constant<true>{});
    } else {
      step(Constant<false>{});
    }
    if (!is_last) {
      copy_async_wait<0>();
      meet_copies();
      stage ^= 1;
    }
  }
  store_output<Shape>(carried, out, slots, b, h, first + warp_first, queries, sizes.value_dim);
}

/// Launches `attention_tiles` for rows of at most HeadDim elements, moved `unit` elements at a time: 8 if Wide, else fewer. HEDDLE_INVALID for more than 65535 heads or sequences, the limit of a
/// grid.
template <int HeadDim, bool PlainScore, bool Wide, class Tile, class T, class O, class Slots>
int32_t launch_attention_tiles(const heddle_launch* queue, heddle_error* error, const char* name, const AttentionExtents& extents,
                               In<T> query, In<T> key, In<T> value, Out<O> out, Slots slots, int unit) {
  // With a mask that classifies no tiles, the loop has one form for all of them. There ptxas (13.0) gives registers of queries, which every
  // tile needs, to weights: matmuls of single warps are used instead.
  constexpr bool has_two_forms = !masks_pairs<Slots> || masks_tiles<Slots>;
  using Used = AttentionTile<Tile::queries, Tile::keys, Tile::in_warpgroups && has_two_forms>;
  using Shape = AttentionShape<T, HeadDim, PlainScore, Used, Wide>;
  constexpr int64_t most = 65535;
  if (extents.batch > most || extents.heads > most) {
    return fail(error, HEDDLE_INVALID, "kernel %s: got %lld sequences of %lld heads, expected at most %lld of each", name,
                static_cast<long long>(extents.batch), static_cast<long long>(extents.heads), static_cast<long long>(most));
  }
  // A sequence without queries may own rows that must be zero.
  const int64_t tiles = longest((extents.queries + Shape::queries - 1) / Shape::queries, int64_t{1});
  const BlockOrder order = order_of<Slots>(tiles);
  const LaunchConfig config = {name, grid_of(order, tiles, extents), dim3(Shape::threads), Shape::shared_bytes, Sync::block, true};
  return launch(queue, error, config, attention_tiles<T, O, Shape, Slots>, sizes_of(extents, unit), order, query, key, value, out, slots);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
