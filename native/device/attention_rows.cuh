// Attention for any storage type, head size and alignment, in float32 arithmetic: a warp takes a few query rows of one head. Lane l scores
// key l of every 32. The lanes then divide the elements of the output among them and receive weights by shuffle.
#ifndef HEDDLE_ATTENTION_ROWS_CUH
#define HEDDLE_ATTENTION_ROWS_CUH

#include "attention_output.cuh"
#include "attention_pairs.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Raw dot products of `Rows` query rows with key j, summed in the order of elements.
template <int Rows, class T, class Slots>
__device__ __forceinline__ void dot_rows(const In<T>& query, const int (&rows)[Rows], const int64_t (&query_rows)[Rows],
                                         const In<T>& key, const Slots& slots, int b, int h, int j, int head_dim,
                                         float (&products)[Rows]) {
  constexpr int vec = 8;
  const int64_t key_row = key_row_of(slots, b, h, j);
  for (int c = 0; c < head_dim; c += vec) {
    const auto key_part = key_chunk<vec>(key, slots, b, h, j, key_row, c, head_dim);
    HEDDLE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const auto query_part = query_chunk<vec>(query, slots, b, h, rows[r], query_rows[r], c, head_dim);
      HEDDLE_UNROLL
      for (int i = 0; i < vec; ++i) products[r] = fmaf(query_part[i], key_part[i], products[r]);
    }
  }
}

/// One warp for every Rows query rows of a head; a lane holds up to Elements elements of each output row. `groups` warps serve a head, and
/// share the rows that must be zero.
template <class T, class O, int Warps, int Rows, int Elements, class Slots>
__global__ void __launch_bounds__(32 * Warps, 1)
    attention_rows(const int64_t work, const int heads, const int groups, const AttentionSizes sizes, const In<T> query,
                   const In<T> key, const In<T> value, const Out<O> out, const Slots slots) {
  wait_for_producers();
  release_consumers();
  int64_t position = static_cast<int64_t>(blockIdx.x) * Warps + static_cast<int>(threadIdx.x) / 32;
  if (position >= work) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = peel(position, groups);
  const int h = peel(position, heads);
  const int b = static_cast<int>(position);
  const int queries = slots.queries(b), owned = slots.owned(b), value_dim = sizes.value_dim;
  for (int row = group; row < owned; row += groups) {
    if (row < queries) continue;
    const int64_t start = slots.out_row(b, h, row);
    for (int c = lane; c < value_dim; c += 32) write(out, start + c, stored_of(slots, 0.0f, b, h, row, c));
  }
  const int first = group * Rows;
  if (first >= queries) return;

  int rows[Rows], lower[Rows], upper[Rows];
  int64_t query_rows[Rows];
  HEDDLE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    // Rows beyond the last query are computed as copies of it and dropped.
    rows[r] = min(first + r, queries - 1);
    query_rows[r] = query_row_of(slots, b, h, rows[r]);
    lower[r] = lower_of(slots, b, h, rows[r]);
    upper[r] = upper_of(slots, b, h, rows[r], sizes.keys);
  }
  const int end = upper[Rows - 1];
  OnlineSoftmax softmax[Rows];
  float peak[Rows], output[Rows][Elements] = {};
  HEDDLE_UNROLL
  for (int r = 0; r < Rows; ++r) peak[r] = -INFINITY;
  constexpr int batch = Elements <= 8 ? 4 : 1;
  for (int from = lower[0]; from < end; from += 32) {
    const int here = min(end - from, 32), j = from + lane;
    float weights[Rows] = {};
    decltype(pair_of(slots, b, h, 0, 0)) pairs[Rows];
    bool attended[Rows], some = false;
    HEDDLE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      attended[r] = j >= lower[r] && j < upper[r];
      pairs[r] = attended[r] ? pair_of(slots, b, h, rows[r], j) : 0;
      attended[r] = attended[r] && is_allowed(slots, b, h, rows[r], j, pairs[r]);
      some = some || attended[r];
    }
    if (masks_pairs<Slots> && !__any_sync(0xffffffffu, some)) continue;
    if (lane < here) dot_rows(query, rows, query_rows, key, slots, b, h, j, sizes.head_dim, weights);
    HEDDLE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const float row_float = static_cast<float>(rows[r]), key_float = static_cast<float>(j);
      const PairPlace at = {row_float, key_float, key_float - row_float, 0.0f};
      const float score = attended[r] ? score_of(slots, weights[r], b, h, rows[r], j, at, pairs[r]) : -INFINITY;
      const float largest = combine_lanes<Max<float>, 32>(score, 0xffffffffu);
      peak[r] = fmaxf(peak[r], largest);
      const float factor = softmax[r].admit(largest);
      weights[r] = softmax[r].weight(score);
      softmax[r].total += weights[r];
      HEDDLE_UNROLL
      for (int e = 0; e < Elements; ++e) output[r][e] *= factor;
    }
    for (int place = 0; place < here; place += batch) {
      // Keys beyond the last have no weight; the rows of a batch are loaded together.
      float values[batch][Elements];
      HEDDLE_UNROLL
      for (int k = 0; k < batch; ++k) {
        const int at = min(from + place + k, end - 1);
        const int64_t value_row = value_row_of(slots, b, h, at);
        HEDDLE_UNROLL
        for (int e = 0; e < Elements; ++e) {
          const int c = e * 32 + lane;
          values[k][e] = c < value_dim ? value_element(value, slots, b, h, at, value_row, c) : 0.0f;
        }
      }
      HEDDLE_UNROLL
      for (int k = 0; k < batch; ++k) {
        HEDDLE_UNROLL
        for (int r = 0; r < Rows; ++r) {
          const float weight = __shfl_sync(0xffffffffu, weights[r], place + k);
          HEDDLE_UNROLL
          for (int e = 0; e < Elements; ++e) output[r][e] = fmaf(weight, values[k][e], output[r][e]);
        }
      }
    }
  }
  HEDDLE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    const float total = combine_lanes<Sum<float>, 32>(softmax[r].total, 0xffffffffu);
    const int row = first + r;
    if (row >= queries) break;
    const Quotient quotient = quotient_of(slots, total, softmax[r].top, peak[r], b, h, row);
    if (stores_rows<Slots> && lane == 0) store_row_of(slots, total, softmax[r].top, peak[r], b, h, row);
    const int64_t start = slots.out_row(b, h, row);
    HEDDLE_UNROLL
    for (int e = 0; e < Elements; ++e) {
      const int c = e * 32 + lane;
      if (c < value_dim) write(out, start + c, stored_of(slots, quotient(output[r][e]), b, h, row, c));
    }
  }
}

/// Launches `attention_rows` with Rows rows per warp, for values of at most 32 * Elements elements.
template <int Rows, int Elements, class T, class O, class Slots>
int32_t launch_attention_rows(const heddle_launch* queue, heddle_error* error, const char* name, const AttentionExtents& extents,
                              In<T> query, In<T> key, In<T> value, Out<O> out, Slots slots) {
  constexpr int warps = 4;
  const int64_t groups = longest((extents.queries + Rows - 1) / Rows, int64_t{1});
  const Count work = Count(extents.batch) * extents.heads * groups;
  if (work.is_overflow() || work.value / warps >= INT32_MAX) {
    return fail(error, HEDDLE_INVALID, "kernel %s: the launch exceeds 2147483647 blocks", name);
  }
  const dim3 grid(static_cast<unsigned int>((work.value + warps - 1) / warps));
  const LaunchConfig config = {name, grid, dim3(32 * warps), 0, Sync::warp, true};
  return launch(queue, error, config, attention_rows<T, O, warps, Rows, Elements, Slots>, work.value, static_cast<int>(extents.heads),
                static_cast<int>(groups), sizes_of(extents), query, key, value, out, slots);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
