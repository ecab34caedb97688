// Attention for any storage type, head size and alignment, in float32 arithmetic: a warp takes a few query rows of one head. Lane
// l scores key l of every 32, then the lanes share out the elements of the output and receive weights by shuffle.
#ifndef HEDDLE_ATTENTION_ROWS_CUH
#define HEDDLE_ATTENTION_ROWS_CUH

#include "attention_output.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Raw products of `Rows` query rows, from `query_rows` on, with the key at `key_row`, summed in the order of elements.
template <int Rows, class T>
__device__ __forceinline__ void dot_rows(const In<T>& query, const int64_t (&query_rows)[Rows], const In<T>& key, int64_t key_row,
                                         int head_dim, float (&products)[Rows]) {
  constexpr int vec = 8;
  for (int c = 0; c < head_dim; c += vec) {
    const auto key_chunk = load_chunk<vec>(key, key_row + c, head_dim - c);
    HEDDLE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const auto query_chunk = load_chunk<vec>(query, query_rows[r] + c, head_dim - c);
      HEDDLE_UNROLL
      for (int i = 0; i < vec; ++i) products[r] = fmaf(query_chunk[i], key_chunk[i], products[r]);
    }
  }
}

/// A warp for every Rows query rows of a head; a lane keeps up to Elements elements of each output row. `groups` warps serve a
/// head, and share the rows that are to be zero.
template <class T, class O, int Warps, int Rows, int Elements, class Slots>
__global__ void __launch_bounds__(32 * Warps, 1)
    attention_rows(const int64_t work, const int heads, const int groups, const int head_dim, const In<T> query, const In<T> key,
                   const In<T> value, const Out<O> out, const Slots slots) {
  wait_for_producers();
  release_consumers();
  int64_t position = static_cast<int64_t>(blockIdx.x) * Warps + static_cast<int>(threadIdx.x) / 32;
  if (position >= work) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = peel(position, groups);
  const int h = peel(position, heads);
  const int b = static_cast<int>(position);
  const int queries = slots.queries(b), owned = slots.owned(b);
  for (int row = group; row < owned; row += groups) {
    if (row < queries) continue;
    const int64_t start = slots.out_row(b, h, row);
    for (int c = lane; c < head_dim; c += 32) write(out, start + c, stored_of(slots, 0.0f));
  }
  const int first = group * Rows;
  if (first >= queries) return;

  const int keys = slots.keys(b);
  int rows[Rows];
  int64_t query_rows[Rows];
  HEDDLE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    // Rows beyond the last query are computed as copies of it and dropped.
    rows[r] = min(first + r, queries - 1);
    query_rows[r] = slots.query_row(b, h, rows[r]);
  }
  OnlineSoftmax softmax[Rows];
  float output[Rows][Elements] = {};
  constexpr int batch = Elements <= 8 ? 4 : 1;
  for (int from = 0; from < keys; from += 32) {
    const int here = min(keys - from, 32);
    float weights[Rows] = {};
    if (lane < here) dot_rows(query, query_rows, key, slots.key_row(b, h, from + lane), head_dim, weights);
    HEDDLE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const float score = lane < here ? slots.score(weights[r], b, h, rows[r], from + lane) : -INFINITY;
      const float factor = softmax[r].admit(combine_lanes<Max<float>, 32>(score, 0xffffffffu));
      weights[r] = softmax[r].weight(score);
      softmax[r].total += weights[r];
      HEDDLE_UNROLL
      for (int e = 0; e < Elements; ++e) output[r][e] *= factor;
    }
    for (int j = 0; j < here; j += batch) {
      // Keys beyond the last have no weight; the rows of a batch are under way together.
      float values[batch][Elements];
      HEDDLE_UNROLL
      for (int k = 0; k < batch; ++k) {
        const int64_t value_row = slots.value_row(b, h, min(from + j + k, keys - 1)) + lane;
        HEDDLE_UNROLL
        for (int e = 0; e < Elements; ++e) values[k][e] = e * 32 + lane < head_dim ? read(value, value_row + e * 32) : 0.0f;
      }
      HEDDLE_UNROLL
      for (int k = 0; k < batch; ++k) {
        HEDDLE_UNROLL
        for (int r = 0; r < Rows; ++r) {
          const float weight = __shfl_sync(0xffffffffu, weights[r], j + k);
          HEDDLE_UNROLL
          for (int e = 0; e < Elements; ++e) output[r][e] = fmaf(weight, values[k][e], output[r][e]);
        }
      }
    }
  }
  HEDDLE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    const float total = combine_lanes<Sum<float>, 32>(softmax[r].total, 0xffffffffu);
    if (first + r >= queries) break;
    const int64_t start = slots.out_row(b, h, first + r);
    HEDDLE_UNROLL
    for (int e = 0; e < Elements; ++e) {
      if (e * 32 + lane < head_dim) write(out, start + e * 32 + lane, stored_of(slots, output[r][e] / total));
    }
  }
}

/// Launches `attention_rows` with Rows rows a warp, for heads of at most 32 * Elements elements.
template <int Rows, int Elements, class T, class O, class Slots>
int32_t launch_attention_rows(const heddle_launch* queue, heddle_error* error, const char* name, int64_t batch, int64_t heads,
                              int64_t max_queries, int64_t head_dim, In<T> query, In<T> key, In<T> value, Out<O> out,
                              Slots slots) {
  constexpr int warps = 4;
  const int64_t groups = longest((max_queries + Rows - 1) / Rows, int64_t{1});
  const Count work = Count(batch) * heads * groups;
  if (work.is_overflow() || work.value / warps >= INT32_MAX) {
    return fail(error, HEDDLE_INVALID, "kernel %s: the launch exceeds 2147483647 blocks", name);
  }
  const dim3 grid(static_cast<unsigned int>((work.value + warps - 1) / warps));
  const LaunchConfig config = {name, grid, dim3(32 * warps), 0, Sync::warp, true};
  return launch(queue, error, config, attention_rows<T, O, warps, Rows, Elements, Slots>, work.value, static_cast<int>(heads),
                static_cast<int>(groups), static_cast<int>(head_dim), query, key, value, out, slots);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
