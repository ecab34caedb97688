// Fused self-attention: softmax(score(query x key^T)) x value for every head of every sequence, without scores or weights in
// device memory. Generated files include this header, compile a `Slots` from the op's bodies and call launch_attention, which picks
// the body by type, head size and alignment.
//
// Slots gives the addresses of rows and the keys of each query. Members are device functions and const:
//   int lower(int b, int h, int i), upper(b, h, i)
//                                         keys [lower, upper) are attended by query i, none where that range is empty. Neither bound
//                                         decreases as i grows; indices outside of the existing keys are left out
//   int span(int i, int keys)             optional, for the host: how many of `keys` keys lie in that range in any sequence and head
//   int queries(int b)                    query rows of b that are computed
//   int owned(int b)                      rows of b that are written: those in [queries, owned) as if results were zero
//   int64_t query_row(int b, int h, int i), key_row(b, h, j), value_row(b, h, j), out_row(b, h, i)
//                                         element offset of a head's contiguous row, affine in i or j with strides
//   int64_t query_stride(), key_stride(), value_stride()
//   bool aligned(int unit)                true if rows begin at multiples of `unit` elements; for the host
//   float score(float raw, int b, int h, int i, int j, float i_float, float j_float, float apart, float further)
//                                         input of softmax, from the raw dot product of query i with an attended key j. Both indices
//                                         are also given as floats; j - i is apart + further. Scores below -1e29 count as masked
// A Slots whose score is arithmetic on `raw` alone may declare it, which lets more blocks be resident:
//   static constexpr bool plain_score = true;
// If that score is a multiple of `raw`, the multiplication is left to the exponential where the factor is positive. The host checks that:
//   float score_factor()
//   bool rises()
// A Slots may mask keys of a query's range. Scores of masked keys are not computed:
//   bool allowed(int b, int h, int i, int j)
// A Slots may read a tensor for every pair. The value read is the last argument of `score` and `allowed`:
//   pair_chunk<Vec>(int b, int h, int i, int j, int valid)      a Chunk of keys from j on, of which `valid` exist
//   static constexpr bool pair_of_sequence, pair_of_head;       true if it differs between sequences, or between heads
// A Slots with a mask may evaluate it for all pairs of a tile, from bounds of indices and of its values per row and per column:
//   static constexpr int row_values, key_values;
//   row_value<N>(int b, int h, int i), key_value<N>(b, h, j)
//   ranges::Truth tile(int b, int h, ranges::Range i, ranges::Range j, const ranges::Range* rows, const ranges::Range* keys)
// A Slots may compute rows while they are loaded. Offsets of such a row are not used, and its elements are rounded to T:
//   static constexpr bool computed_query = true, computed_key, computed_value;
//   void query_elements<Vec, Whole>(int b, int h, int i, int c, int valid, float (&elements)[Vec]), key_elements(b, h, j, ...),
//   value_elements                        elements from c on, of which `valid` exist; the others are zero. Whole: aligned(8) is true
// A Slots may give the divisor of sums of weighted values. The default is `total`, the sum of weights relative to `top`, the largest
// score. It may also map a result to the stored value, before that is rounded to the output's type; by default results are stored as
// they are:
//   float denominator(float total, float top, int b, int h, int i)
//   float stored(float result, int b, int h, int i, int c)
// A Slots may store values of a row of the softmax, from `total` and `top`; they are 0 and -Infinity for a row without keys:
//   void store_row(float total, float top, int b, int h, int i)
// If they are the same relative to any score, as log(total) + top is, the loops need not search for the largest one:
//   static constexpr bool rows_shift = true;
#ifndef HEDDLE_ATTENTION_CUH
#define HEDDLE_ATTENTION_CUH

#include "attention_kernel.cuh"
#include "attention_pipelined.cuh"
#include "attention_rows.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// True if matmuls of a type can run on tensor cores with float32 sums.
template <class T>
constexpr bool has_tensor_products = false;
template <>
constexpr bool has_tensor_products<__half> = true;
template <>
constexpr bool has_tensor_products<__nv_bfloat16> = true;

/// True unless a score is a multiple of the dot product and does not grow with it: the loops on tensor cores search for the largest
/// product.
template <class Slots>
bool has_rising_scores([[maybe_unused]] const Slots& slots) {
  if constexpr (is_proportional<Slots>) {
    return slots.rises();
  } else {
    return true;
  }
}

/// True if all rows can be moved `unit` elements at a time. Computed rows are not moved, and narrow results are stored by element.
template <class T, class O, class Slots>
bool in_units(int unit, const AttentionExtents& extents, const In<T>& query, const In<T>& key, const In<T>& value, const Out<O>& out,
              const Slots& slots) {
  const int bytes = unit * static_cast<int>(sizeof(T));
  return extents.head_dim % unit == 0 && extents.value_dim % unit == 0 && slots.aligned(unit) && (unit < 8 || out.aligned(0, 16)) &&
         (computes_query<Slots> || query.aligned(0, bytes)) && (computes_key<Slots> || key.aligned(0, bytes)) &&
         (computes_value<Slots> || value.aligned(0, bytes));
}

/// True if the fastest loops on tensor cores support a problem: all rows can be moved 16 bytes at a time.
template <class T, class O, class Slots>
bool in_words(const AttentionExtents& extents, const In<T>& query, const In<T>& key, const In<T>& value, const Out<O>& out,
              const Slots& slots) {
  return has_rising_scores(slots) && in_units(8, extents, query, key, value, out, slots);
}

/// Elements by which rows are moved where they are not in words of 16 bytes.
template <class T, class O, class Slots>
int narrow_unit(const AttentionExtents& extents, const In<T>& query, const In<T>& key, const In<T>& value, const Out<O>& out,
                const Slots& slots) {
  for (const int unit : {4, 2}) {
    if (in_units(unit, extents, query, key, value, out, slots)) return unit;
  }
  return 1;
}

#if defined(HEDDLE_HOPPER)
/// True if attention_pipelined, on the devices that have it, is faster than attention_tiles: measured on an H200 with 12 and 16 heads. It
/// gains from many keys per query where the tiles use warpgroups as well, which is for heads of 64 elements. It also gains from enough
/// blocks for most multiprocessors, since its own have more query rows. For heads larger than 128 it always wins. A block has a
/// multiprocessor for itself, so nothing hides its work before and after its tiles of keys. That work is large where a mask classifies
/// tiles, and smaller blocks attend fewer tiles.
template <class Slots>
bool is_pipelined(const Slots& slots, const AttentionExtents& extents, int64_t wider) {
  constexpr int64_t few_rows = 64, block_rows = 128, many_keys = 1024, some_keys = 1280, many_blocks = 96;
  if (wider <= 32 || extents.queries <= few_rows) return false;
  const int64_t blocks = extents.batch * extents.heads * ((extents.queries + block_rows - 1) / block_rows);
  const int64_t met = typical_keys(slots, extents);
  const bool many = !masks_tiles<Slots> && (met == extents.keys ? met >= many_keys : met >= some_keys);
  const bool pays = wider > 128 || (wider > 64 && extents.queries > block_rows) || (blocks >= many_blocks && (wider > 64 || many));
  return pays && device_attribute(cudaDevAttrComputeCapabilityMajor) == 9;
}
#endif

/// out[b, i, h, :] = sum over j of softmax over j of score(query[b, i, h, :] . key[b, j, h, :]) times value[b, j, h, :], or the value that
/// Slots stores for it. A sequence may own more rows than extents.queries. HEDDLE_INVALID for heads beyond 1024 elements.
template <class T, class O, class Slots>
int32_t launch_attention(const heddle_launch* launch, heddle_error* error, const char* name, const AttentionExtents& extents,
                         In<T> query, In<T> key, In<T> value, Out<O> out, Slots slots) {
  const int64_t wider = extents.head_dim > extents.value_dim ? extents.head_dim : extents.value_dim;
  // Indices are passed to scores as floats, too.
  constexpr int64_t most_places = int64_t{1} << 24;
  if (extents.queries > most_places || extents.keys > most_places) {
    return fail(error, HEDDLE_INVALID, "kernel %s: got %lld queries and %lld keys, expected at most %lld of each", name,
                static_cast<long long>(extents.queries), static_cast<long long>(extents.keys), static_cast<long long>(most_places));
  }
  if constexpr (has_tensor_products<T>) {
    const auto start_as = [&](auto wide, auto size, auto keys, int unit) {
      using Tile = AttentionTile<64, decltype(keys)::value, true>;
      return launch_attention_tiles<decltype(size)::value, has_plain_score<Slots>, decltype(wide)::value, Tile>(
          launch, error, name, extents, query, key, value, out, slots, unit);
    };
    // Registers suffice for fewer keys that are computed.
    constexpr int few_keys = computes_key<Slots> || computes_value<Slots> ? 16 : 32;
    if (in_words(extents, query, key, value, out, slots)) {
#if defined(HEDDLE_HOPPER)
      if constexpr (!computes_key<Slots> && !computes_value<Slots>) {
        const auto pipelined = [&](auto size) {
          return launch_attention_pipelined<decltype(size)::value>(launch, error, name, extents, query, key, value, out, slots);
        };
        if (is_pipelined(slots, extents, wider) && (wider > 64 || !stores_peaks<Slots>)) {
          // Registers do not suffice for stored maxima in the smallest blocks.
          if constexpr (!stores_peaks<Slots>) {
            if (wider <= 64) return pipelined(Integer<64>{});
          }
          if (wider <= 80) return pipelined(Integer<80>{});
          if (wider <= 96) return pipelined(Integer<96>{});
          if (wider <= 128) return pipelined(Integer<128>{});
          if (wider <= 192) return pipelined(Integer<192>{});
          if (wider <= 256) return pipelined(Integer<256>{});
        }
      }
#endif
      const auto start = [&](auto size, auto keys) { return start_as(Constant<true>{}, size, keys, 8); };
      if (wider <= 16) return start(Integer<16>{}, Integer<64>{});
      if (wider <= 32) return start(Integer<32>{}, Integer<64>{});
      if (wider <= 64) return start(Integer<64>{}, Integer<64>{});
      if (wider <= 80) return start(Integer<80>{}, Integer<64>{});
      if (wider <= 96) return start(Integer<96>{}, Integer<64>{});
      if (wider <= 128) return start(Integer<128>{}, Integer<64>{});
      if (wider <= 192) return start(Integer<192>{}, Integer<32>{});
      if (wider <= 256) return start(Integer<256>{}, Integer<few_keys>{});
    } else if (has_rising_scores(slots)) {
      const int unit = narrow_unit(extents, query, key, value, out, slots);
      const auto start = [&](auto size, auto keys) { return start_as(Constant<false>{}, size, keys, unit); };
      // Parts cost more than words, and tiles of more keys wait for them less often.
      if (wider <= 16) return start(Integer<16>{}, Integer<128>{});
      if (wider <= 32) return start(Integer<32>{}, Integer<64>{});
      if (wider <= 64) return start(Integer<64>{}, Integer<64>{});
      if (wider <= 128) return start(Integer<128>{}, Integer<64>{});
      if (wider <= 256) return start(Integer<256>{}, Integer<few_keys>{});
    }
  }
  const auto start = [&](auto rows, auto elements) {
    return launch_attention_rows<decltype(rows)::value, decltype(elements)::value>(launch, error, name, extents, query, key, value,
                                                                                   out, slots);
  };
  if (wider <= 64) return start(Integer<4>{}, Integer<2>{});
  if (wider <= 128) return start(Integer<4>{}, Integer<4>{});
  if (wider <= 256) return start(Integer<4>{}, Integer<8>{});
  if (wider <= 1024) return start(Integer<1>{}, Integer<32>{});
  return fail(error, HEDDLE_INVALID, "kernel %s: expected heads of 1 to 1024 elements, got %lld", name, static_cast<long long>(wider));
}

/// The same by one tile, for heads of HeadDim elements and a 16-bit type. HEDDLE_INVALID for others.
template <int HeadDim, class Tile, class T, class O, class Slots>
int32_t launch_attention_as(const heddle_launch* launch, heddle_error* error, const char* name, const AttentionExtents& extents,
                            In<T> query, In<T> key, In<T> value, Out<O> out, Slots slots) {
  static_assert(has_tensor_products<T>, "tiles are of 16-bit types");
  if (extents.head_dim != HeadDim || extents.value_dim > HeadDim || !in_words(extents, query, key, value, out, slots)) {
    return fail(error, HEDDLE_INVALID, "kernel %s: the tile for heads of %d cannot compute heads of %lld, rows that are not in 16-byte words, or decreasing scores",
                name, HeadDim, static_cast<long long>(extents.head_dim));
  }
  return launch_attention_tiles<HeadDim, has_plain_score<Slots>, true, Tile>(launch, error, name, extents, query, key, value, out, slots, 8);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
