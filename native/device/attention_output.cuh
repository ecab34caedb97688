// How results leave attention: what the op stores of each, its rounding, and the rows that nobody computes. Outputs may have
// another type than operands, int8 among them.
#ifndef HEDDLE_ATTENTION_OUTPUT_CUH
#define HEDDLE_ATTENTION_OUTPUT_CUH

#include "attention_mma.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Whether a Slots says what is stored of a result.
template <class Slots, class = void>
constexpr bool changes_results = false;
template <class Slots>
constexpr bool changes_results<Slots, decltype(static_cast<void>(&Slots::stored))> = true;

/// What is stored of a result, before it is rounded.
template <class Slots>
__device__ __forceinline__ float stored_of(const Slots& slots, float result) {
  if constexpr (changes_results<Slots>) {
    return slots.stored(result);
  } else {
    return result;
  }
}

/// Writes what is stored of zero to rows [queries, owned) that fall to query tile `tile` of `tiles`, in chunks of 8 elements.
template <class Shape, class O, class Slots>
__device__ __forceinline__ void zero_rows(const Out<O>& out, const Slots& slots, int b, int h, int tile, int tiles, int queries,
                                          int owned) {
  constexpr int chunks = Shape::Rows::chunks, rows = Shape::threads / chunks;
  const float zero = stored_of(slots, 0.0f);
  const float zeros[8] = {zero, zero, zero, zero, zero, zero, zero, zero};
  const int column = static_cast<int>(threadIdx.x) % chunks * 8;
  for (int first = tile * Shape::queries; first < owned; first += tiles * Shape::queries) {
    for (int i = static_cast<int>(threadIdx.x) / chunks; i < Shape::queries; i += rows) {
      const int row = first + i;
      if (row >= queries && row < owned) store_chunk<8, true>(out, slots.out_row(b, h, row) + column, 8, zeros);
    }
  }
}

/// Rounds what `value` says of a lane's elements of four fragments, two neighbours of each, and gives lane l of a quad the 8
/// neighbours that the quad's lanes have of fragment l.
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

/// Divides by the sums of weights and writes what is stored of the warp's rows below `queries`, 8 elements a lane and access.
template <class Shape, class O, class Slots>
__device__ __forceinline__ void store_output(const typename Shape::Carried& carried, const Out<O>& out, const Slots& slots, int b,
                                             int h, int first, int queries) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  HEDDLE_UNROLL
  for (int half = 0; half < 2; ++half) {
    float total = carried.softmax[half].total;
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    const float scale = 1.0f / total;
    const int row = first + half * 8 + lane / 4;
    HEDDLE_UNROLL
    for (int group = 0; group < Shape::head_tiles / 2; ++group) {
      const auto value = [&](int i) {
        return stored_of(slots, carried.output[group * 4 + i / 2][half * 2 + i % 2] * scale);
      };
      if constexpr (sizeof(O) <= 2) {
        const Pack<O, 8> pack = round_quad<O>(value, lane);
        if (row < queries) out.template set_pack<8>(slots.out_row(b, h, row) + (group * 4 + lane % 4) * 8, pack);
      } else {
        HEDDLE_UNROLL
        for (int i = 0; i < 4; ++i) {
          Pack<O, 2> pack;
          const float values[2] = {value(2 * i), value(2 * i + 1)};
          round_into(pack, values);
          if (row < queries) out.template set_pack<2>(slots.out_row(b, h, row) + (group * 4 + i) * 8 + lane % 4 * 2, pack);
        }
      }
    }
  }
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
