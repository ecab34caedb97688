// Properties of a Slots (see attention.cuh) for the attention bodies, beside its functions: its optional members, the keys that a query
// attends, and elements of rows that are computed while they are loaded.
#ifndef HEDDLE_ATTENTION_SLOTS_CUH
#define HEDDLE_ATTENTION_SLOTS_CUH

#include "attention_softmax.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// An integer as a type, which selects a template's instance.
template <int Value>
struct Integer {
  static constexpr int value = Value;
};

/// Extents of a launch. `queries` is the most query rows of any sequence.
struct AttentionExtents {
  int64_t batch, heads, queries, keys, head_dim, value_dim;
  bool settled = false;  // true if the previous launch writes nothing that rows, ranges and numbers of queries depend on
};

/// The extents that kernels read, and the number of elements by which rows are moved where that is less than 8.
struct AttentionSizes {
  int keys, head_dim, value_dim, unit;
  bool settled;
};

inline AttentionSizes sizes_of(const AttentionExtents& extents, int unit = 8) {
  return {static_cast<int>(extents.keys), static_cast<int>(extents.head_dim), static_cast<int>(extents.value_dim), unit,
          extents.settled};
}

/// True if a Slots declares that its score is plain.
template <class Slots, class = void>
constexpr bool has_plain_score = false;
template <class Slots>
constexpr bool has_plain_score<Slots, decltype(static_cast<void>(Slots::plain_score))> = Slots::plain_score;

/// True if a Slots declares by `score_factor()` that its score is a multiple of the dot product.
template <class Slots, class = void>
constexpr bool is_proportional = false;
template <class Slots>
constexpr bool is_proportional<Slots, decltype(static_cast<void>(&Slots::score_factor))> = true;

/// True if a Slots maps results to stored values.
template <class Slots, class = void>
constexpr bool changes_results = false;
template <class Slots>
constexpr bool changes_results<Slots, decltype(static_cast<void>(&Slots::stored))> = true;

/// True if a Slots defines the divisor of sums.
template <class Slots, class = void>
constexpr bool has_denominator = false;
template <class Slots>
constexpr bool has_denominator<Slots, decltype(static_cast<void>(&Slots::denominator))> = true;

/// True if a Slots stores values of rows of the softmax, such as the logarithm of a sum.
template <class Slots, class = void>
constexpr bool stores_rows = false;
template <class Slots>
constexpr bool stores_rows<Slots, decltype(static_cast<void>(&Slots::store_row))> = true;

/// True if these values are the same relative to any score, as log(total) + top is.
template <class Slots, class = void>
constexpr bool rows_shift = false;
template <class Slots>
constexpr bool rows_shift<Slots, decltype(static_cast<void>(Slots::rows_shift))> = Slots::rows_shift;

/// True if a Slots stores values of a row that need its largest score.
template <class Slots>
constexpr bool stores_peaks = stores_rows<Slots> && !rows_shift<Slots>;

/// True if a Slots needs the largest score of a row.
template <class Slots>
constexpr bool needs_peak = has_denominator<Slots> || stores_peaks<Slots>;

/// True if a Slots defines scales of rows of keys and values.
template <class Slots, class = void>
constexpr bool scales_rows = false;
template <class Slots>
constexpr bool scales_rows<Slots, decltype(static_cast<void>(&Slots::key_scale))> = true;

/// True if a Slots masks keys of a query's range.
template <class Slots, class = void>
constexpr bool masks_pairs = false;
template <class Slots>
constexpr bool masks_pairs<Slots, decltype(static_cast<void>(&Slots::allowed))> = true;

/// True if a Slots reads a tensor for each pair.
template <class Slots, class = void>
constexpr bool reads_pairs = false;
template <class Slots>
constexpr bool reads_pairs<Slots, decltype(static_cast<void>(&Slots::template pair_chunk<2>))> = true;

/// True if a tensor that a Slots reads for pairs differs between sequences, or between heads.
template <class Slots, class = void>
constexpr bool pairs_of_sequence = true;
template <class Slots>
constexpr bool pairs_of_sequence<Slots, decltype(static_cast<void>(Slots::pair_of_sequence))> = Slots::pair_of_sequence;
template <class Slots, class = void>
constexpr bool pairs_of_head = true;
template <class Slots>
constexpr bool pairs_of_head<Slots, decltype(static_cast<void>(Slots::pair_of_head))> = Slots::pair_of_head;

/// True if a Slots gives the host the number of keys in a query's range.
template <class Slots, class = void>
constexpr bool knows_span = false;
template <class Slots>
constexpr bool knows_span<Slots, decltype(static_cast<void>(&Slots::span))> = true;

/// True if a Slots can evaluate its mask for a whole tile.
template <class Slots, class = void>
constexpr bool masks_tiles = false;
template <class Slots>
constexpr bool masks_tiles<Slots, decltype(static_cast<void>(&Slots::tile))> = true;

/// True if a Slots computes the elements of rows while they are loaded.
template <class Slots, class = void>
constexpr bool computes_query = false;
template <class Slots>
constexpr bool computes_query<Slots, decltype(static_cast<void>(Slots::computed_query))> = Slots::computed_query;
template <class Slots, class = void>
constexpr bool computes_key = false;
template <class Slots>
constexpr bool computes_key<Slots, decltype(static_cast<void>(Slots::computed_key))> = Slots::computed_key;
template <class Slots, class = void>
constexpr bool computes_value = false;
template <class Slots>
constexpr bool computes_value<Slots, decltype(static_cast<void>(Slots::computed_value))> = Slots::computed_value;

/// Number of keys from `lower` on and below `upper`, of `keys` in total.
inline int span_of(int lower, int upper, int keys) {
  const int begin = lower > 0 ? lower : 0, end = upper < keys ? upper : keys;
  return begin < end ? end - begin : 0;
}

/// Stored value of a result, before it is rounded.
template <class Slots>
__device__ __forceinline__ float stored_of(const Slots& slots, float result, [[maybe_unused]] int b, [[maybe_unused]] int h,
                                           [[maybe_unused]] int i, [[maybe_unused]] int c) {
  if constexpr (changes_results<Slots>) {
    return slots.stored(result, b, h, i, c);
  } else {
    return result;
  }
}

/// Indices of a query and a key as floats; key - query is apart + further.
struct PairPlace {
  float i, j, apart, further;
};

/// Input of softmax. `pair` is the value read for the pair: a float or an integer.
template <class Slots, class Pair>
__device__ __forceinline__ float score_of(const Slots& slots, float raw, int b, int h, int i, int j, PairPlace at,
                                          [[maybe_unused]] Pair pair) {
  if constexpr (reads_pairs<Slots>) {
    return slots.score(raw, b, h, i, j, at.i, at.j, at.apart, at.further, pair);
  } else {
    return slots.score(raw, b, h, i, j, at.i, at.j, at.apart, at.further);
  }
}

/// Bounds of the existing keys that a query attends.
template <class Slots>
__device__ __forceinline__ int lower_of(const Slots& slots, int b, int h, int i) {
  return max(slots.lower(b, h, i), 0);
}
template <class Slots>
__device__ __forceinline__ int upper_of(const Slots& slots, int b, int h, int i, int keys) {
  return min(slots.upper(b, h, i), keys);
}

/// True if the mask lets query i attend a key of its range.
template <class Slots, class Pair>
__device__ __forceinline__ bool is_allowed([[maybe_unused]] const Slots& slots, [[maybe_unused]] int b, [[maybe_unused]] int h,
                                           [[maybe_unused]] int i, [[maybe_unused]] int j, [[maybe_unused]] Pair pair) {
  if constexpr (masks_pairs<Slots> && reads_pairs<Slots>) {
    return slots.allowed(b, h, i, j, pair);
  } else if constexpr (masks_pairs<Slots>) {
    return slots.allowed(b, h, i, j);
  } else {
    return true;
  }
}

/// Maps a query's sum of weighted values to its result.
struct Quotient {
  float scale;
  bool none;  // all keys are masked

  __device__ __forceinline__ float operator()(float sum) const { return none ? 0.0f : sum * scale; }
};

/// `total` is relative to `top`, `peak` is the largest score.
template <class Slots>
__device__ __forceinline__ Quotient quotient_of(const Slots& slots, float total, [[maybe_unused]] float top,
                                                [[maybe_unused]] float peak, [[maybe_unused]] int b, [[maybe_unused]] int h,
                                                [[maybe_unused]] int i) {
  const bool none = total == 0.0f;
  if constexpr (has_denominator<Slots>) {
    const float factor = exp2_flushed((top - peak) * OnlineSoftmax::log2_e);
    return {none ? 0.0f : factor / slots.denominator(total * factor, peak, b, h, i), none};
  } else {
    return {1.0f / total, none};
  }
}

/// Stores the values of a row. `total` is relative to `top`, `peak` is the largest score; a row without keys has the total 0 and the largest
/// score -Infinity. One thread per row calls it.
template <class Slots>
__device__ __forceinline__ void store_row_of([[maybe_unused]] const Slots& slots, [[maybe_unused]] float total, [[maybe_unused]] float top,
                                             [[maybe_unused]] float peak, [[maybe_unused]] int b, [[maybe_unused]] int h,
                                             [[maybe_unused]] int i) {
  if constexpr (stores_rows<Slots>) {
    const bool none = total == 0.0f;
    if constexpr (rows_shift<Slots>) {
      slots.store_row(total, none ? -INFINITY : top, b, h, i);
    } else {
      const float relative = none ? 0.0f : total * exp2_flushed((top - peak) * OnlineSoftmax::log2_e);
      slots.store_row(relative, none ? -INFINITY : peak, b, h, i);
    }
  }
}

/// Offset of a row; 0 for a computed one.
template <class Slots>
__device__ __forceinline__ int64_t query_row_of([[maybe_unused]] const Slots& slots, [[maybe_unused]] int b, [[maybe_unused]] int h,
                                              [[maybe_unused]] int i) {
  if constexpr (computes_query<Slots>) {
    return 0;
  } else {
    return slots.query_row(b, h, i);
  }
}
template <class Slots>
__device__ __forceinline__ int64_t key_row_of([[maybe_unused]] const Slots& slots, [[maybe_unused]] int b, [[maybe_unused]] int h,
                                              [[maybe_unused]] int j) {
  if constexpr (computes_key<Slots>) {
    return 0;
  } else {
    return slots.key_row(b, h, j);
  }
}
template <class Slots>
__device__ __forceinline__ int64_t value_row_of([[maybe_unused]] const Slots& slots, [[maybe_unused]] int b, [[maybe_unused]] int h,
                                              [[maybe_unused]] int j) {
  if constexpr (computes_value<Slots>) {
    return 0;
  } else {
    return slots.value_row(b, h, j);
  }
}

/// Floats rounded to a chunk of T.
template <class T, int Vec>
__device__ __forceinline__ Chunk<T, Vec> rounded_chunk(const float (&elements)[Vec]) {
  using Of = Chunk<T, Vec>;
  Of chunk = {};
  HEDDLE_UNROLL
  for (int e = 0; e < Vec; ++e) Of::Words::set(chunk.words[e / Of::per_word], e % Of::per_word, Storage<T>::store(elements[e]));
  return chunk;
}

/// Elements of rows of head_dim elements from c on; rows that are not computed begin at `row`.
template <int Vec, class T, class Slots>
__device__ __forceinline__ Chunk<T, Vec> query_chunk(const In<T>& query, [[maybe_unused]] const Slots& slots, [[maybe_unused]] int b,
                                                     [[maybe_unused]] int h, [[maybe_unused]] int i, int64_t row, int c,
                                                     int head_dim) {
  if constexpr (computes_query<Slots>) {
    float elements[Vec];
    slots.template query_elements<Vec, false>(b, h, i, c, head_dim - c, elements);
    return rounded_chunk<T>(elements);
  } else {
    return load_chunk<Vec>(query, row + c, head_dim - c);
  }
}
template <int Vec, class T, class Slots>
__device__ __forceinline__ Chunk<T, Vec> key_chunk(const In<T>& key, [[maybe_unused]] const Slots& slots, [[maybe_unused]] int b,
                                                   [[maybe_unused]] int h, [[maybe_unused]] int j, int64_t row, int c, int head_dim) {
  if constexpr (computes_key<Slots>) {
    float elements[Vec];
    slots.template key_elements<Vec, false>(b, h, j, c, head_dim - c, elements);
    return rounded_chunk<T>(elements);
  } else {
    return load_chunk<Vec>(key, row + c, head_dim - c);
  }
}

/// Element c of a row of values.
template <class T, class Slots>
__device__ __forceinline__ float value_element(const In<T>& value, [[maybe_unused]] const Slots& slots, [[maybe_unused]] int b,
                                               [[maybe_unused]] int h, [[maybe_unused]] int j, int64_t row, int c) {
  if constexpr (computes_value<Slots>) {
    float element[1];
    slots.template value_elements<1, false>(b, h, j, c, 1, element);
    return Storage<T>::load(Storage<T>::store(element[0]));
  } else {
    return read(value, row + c);
  }
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
