// Output of attention: stored values, their rounding, and the rows that are not computed. Outputs may have another type than operands, for
// example int8.
#ifndef HEDDLE_ATTENTION_OUTPUT_CUH
#define HEDDLE_ATTENTION_OUTPUT_CUH

#include "attention_mma.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Writes the stored value of zero to the part of rows [queries, owned) that belongs to query tile `tile` of `tiles`, of Rows rows, in
/// chunks of 8 elements. Wide: all of a chunk's elements exist, and it is aligned.
template <int Rows, int Threads, int Chunks, bool Wide, class O, class Slots>
__device__ __forceinline__ void zero_rows(const Out<O>& out, const Slots& slots, int b, int h, int tile, int tiles, int queries,
                                          int owned, int value_dim) {
  constexpr int rows = Threads / Chunks;
  const int column = static_cast<int>(threadIdx.x) % Chunks * 8, own = static_cast<int>(threadIdx.x) / Chunks;
  if (own >= rows || column >= value_dim) return;
  for (int first = tile * Rows; first < owned; first += tiles * Rows) {
    for (int i = own; i < Rows; i += rows) {
      const int row = first + i;
      if (row < queries || row >= owned) continue;
      float zeros[8];
      HEDDLE_UNROLL
      for (int e = 0; e < 8; ++e) zeros[e] = Wide || column + e < value_dim ? stored_of(slots, 0.0f, b, h, row, column + e) : 0.0f;
      store_chunk<8, Wide>(out, slots.out_row(b, h, row) + column, value_dim - column, zeros);
    }
  }
}

/// Rounds a lane's elements `value` of four fragments, two adjacent ones of each, and gives lane l of a quad the 8 adjacent elements that
/// the quad's lanes have of fragment l.
template <class O, class Value>
__device__ __forceinline__ Pack<O, 8> round_quad(Value value, int lane) {
  static_assert(sizeof(O) <= 2, "one access holds 8 elements");
  constexpr int count = 2 * static_cast<int>(sizeof(O)), per_word = 8 / count;
  uint32_t words[count];
  HEDDLE_UNROLL
  for (int i = 0; i < count; ++i) {
    float values[per_word];
    HEDDLE_UNROLL
    for (int k = 0; k < per_word; ++k) values[k] = value(i * per_word + k);
    Pack<O, per_word> word;
    round_into(word, values);
    memcpy(&words[i], &word, sizeof word);
  }
  transpose_quad(words, lane);
  Pack<O, 8> pack;
  memcpy(&pack, words, sizeof pack);
  return pack;
}

/// Writes the first `count` elements of a pack, all of them if Wide.
template <bool Wide, int N, class O>
__device__ __forceinline__ void store_pack(const Out<O>& out, int64_t offset, [[maybe_unused]] int count, const Pack<O, N>& pack) {
  if constexpr (Wide) {
    out.template set_pack<N>(offset, pack);
  } else {
    HEDDLE_UNROLL
    for (int e = 0; e < N; ++e) {
      if (e < count) out.set(offset + e, pack.v[e]);
    }
  }
}

/// Writes the elements of a lane's output row: `result(fragment, e)` is element e of two of fragment `fragment` of Fragments, `row` is
/// their row. All lanes take part. Only rows below `queries` and columns below `value_dim` are written: 8 elements per
/// access if Wide, else one.
template <int Fragments, bool Wide, class O, class Slots, class Result>
__device__ __forceinline__ void store_fragments(const Out<O>& out, const Slots& slots, int b, int h, int row, int queries,
                                                int value_dim, Result result) {
  const int lane = static_cast<int>(threadIdx.x) % 32, pair = lane % 4 * 2;
  // Rows beyond the last use the index of the last.
  const int known = min(row, queries - 1);
  HEDDLE_UNROLL
  for (int group = 0; group < (Fragments + 3) / 4; ++group) {
    const auto value = [&](int i) {
      const int fragment = group * 4 + i / 2;
      if (fragment >= Fragments) return 0.0f;
      const int c = fragment * 8 + pair + i % 2;
      if (changes_results<Slots> && c >= value_dim) return 0.0f;
      return stored_of(slots, result(fragment, i % 2), b, h, known, c);
    };
    if constexpr (sizeof(O) <= 2) {
      const Pack<O, 8> pack = round_quad<O>(value, lane);
      const int column = (group * 4 + lane % 4) * 8;
      if (row < queries && column < value_dim) store_pack<Wide>(out, slots.out_row(b, h, row) + column, value_dim - column, pack);
    } else {
      HEDDLE_UNROLL
      for (int i = 0; i < 4; ++i) {
        Pack<O, 2> pack;
        const float values[2] = {value(2 * i), value(2 * i + 1)};
        round_into(pack, values);
        const int column = (group * 4 + i) * 8 + pair;
        if (row < queries && column < value_dim) store_pack<Wide>(out, slots.out_row(b, h, row) + column, value_dim - column, pack);
      }
    }
  }
}

/// Divides by the sums of weights and writes the stored values of the warp's rows below `queries`.
template <class Shape, class O, class Slots>
__device__ __forceinline__ void store_output(const typename Shape::Carried& carried, const Out<O>& out, const Slots& slots, int b,
                                             int h, int first, int queries, int value_dim) {
  HEDDLE_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = first + half * 8 + static_cast<int>(threadIdx.x) % 32 / 4;
    const Quotient quotient = carried.softmax.quotient(slots, half, b, h, min(row, queries - 1), row < queries);
    store_fragments<2 * Shape::head_tiles, Shape::wide>(out, slots, b, h, row, queries, value_dim, [&](int fragment, int e) {
      return quotient(carried.output[fragment][half * 2 + e]);
    });
  }
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
