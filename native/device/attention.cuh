// Fused self-attention: softmax(score(query x key^T)) x value for every head of every sequence, without scores or weights in
// device memory. Generated files include this header, compile a `Slots` from the op's bodies and call launch_attention; it picks
// the body by type, head size and alignment.
//
// Slots says where rows are and which of them count. Members are device functions and const:
//   int keys(int b)                       keys [0, keys) of sequence b are attended, at least 1
//   int queries(int b)                    query rows of b that are computed
//   int owned(int b)                      rows of b that are written: those in [queries, owned) as if results were zero
//   int64_t query_row(int b, int h, int i), key_row(b, h, j), value_row(b, h, j), out_row(b, h, i)
//                                         element offset of a head's row of head_dim neighbours, affine in i or j with steps
//   int64_t query_stride(), key_stride(), value_stride(), out_stride()
//   float score(float raw, int b, int h, int i, int j)
//                                         what softmax is taken of, from the raw product of query i with a counted key j
// Where head_dim is a multiple of 8, all offsets and steps must be. A Slots whose score is arithmetic on `raw` alone may say so,
// which lets more blocks run side by side:
//   static constexpr bool plain_score = true;
// A Slots may say what is stored of a result, before it is rounded to the output's type; else results are stored as they are:
//   float stored(float result)
#ifndef HEDDLE_ATTENTION_CUH
#define HEDDLE_ATTENTION_CUH

#include "attention_kernel.cuh"
#include "attention_rows.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// An integer as a type, which picks a template's instance.
template <int Value>
struct Integer {
  static constexpr int value = Value;
};

/// Whether a type's products can run on tensor cores with float32 sums.
template <class T>
constexpr bool has_tensor_products = false;
template <>
constexpr bool has_tensor_products<__half> = true;
template <>
constexpr bool has_tensor_products<__nv_bfloat16> = true;

/// Whether a Slots says that its score is plain.
template <class Slots, class = void>
constexpr bool has_plain_score = false;
template <class Slots>
constexpr bool has_plain_score<Slots, decltype(static_cast<void>(Slots::plain_score))> = Slots::plain_score;

/// Whether all rows may be moved 16 bytes at a time.
template <class T, class O>
bool in_words(const In<T>& query, const In<T>& key, const In<T>& value, const Out<O>& out) {
  constexpr int word = 16;
  return query.aligned(0, word) && key.aligned(0, word) && value.aligned(0, word) && out.aligned(0, word);
}

/// out[b, i, h, :] = sum over j of softmax over j of score(query[b, i, h, :] . key[b, j, h, :]) times value[b, j, h, :], or what
/// Slots stores of that.
/// `max_queries` is the largest number of query rows of a sequence; a sequence may own more rows than that. HEDDLE_INVALID for
/// head_dim beyond 1024.
template <class T, class O, class Slots>
int32_t launch_attention(const heddle_launch* launch, heddle_error* error, const char* name, int64_t batch, int64_t heads,
                         int64_t max_queries, int64_t head_dim, In<T> query, In<T> key, In<T> value, Out<O> out, Slots slots) {
  if constexpr (has_tensor_products<T>) {
    using Tile = AttentionTile<64, 64, true>;
    const bool aligned = in_words(query, key, value, out);
    const auto start = [&](auto size) {
      return launch_attention_tiles<decltype(size)::value, has_plain_score<Slots>, Tile>(launch, error, name, batch, heads,
                                                                                        max_queries, query, key, value, out, slots);
    };
    if (aligned && head_dim == 32) return start(Integer<32>{});
    if (aligned && head_dim == 64) return start(Integer<64>{});
    if (aligned && head_dim == 128) return start(Integer<128>{});
  }
  const auto start = [&](auto rows, auto elements) {
    return launch_attention_rows<decltype(rows)::value, decltype(elements)::value>(launch, error, name, batch, heads, max_queries,
                                                                                   head_dim, query, key, value, out, slots);
  };
  if (head_dim <= 64) return start(Integer<4>{}, Integer<2>{});
  if (head_dim <= 128) return start(Integer<4>{}, Integer<4>{});
  if (head_dim <= 256) return start(Integer<4>{}, Integer<8>{});
  if (head_dim <= 1024) return start(Integer<1>{}, Integer<32>{});
  return fail(error, HEDDLE_INVALID, "kernel %s: heads of %lld elements, allowed are 1 to 1024", name,
              static_cast<long long>(head_dim));
}

/// The same by one tile, for heads of HeadDim elements and a 16-bit type. HEDDLE_INVALID for others.
template <int HeadDim, class Tile, class T, class O, class Slots>
int32_t launch_attention_as(const heddle_launch* launch, heddle_error* error, const char* name, int64_t batch, int64_t heads,
                            int64_t max_queries, int64_t head_dim, In<T> query, In<T> key, In<T> value, Out<O> out, Slots slots) {
  static_assert(has_tensor_products<T>, "tiles are of 16-bit types");
  if (head_dim != HeadDim || !in_words(query, key, value, out)) {
    return fail(error, HEDDLE_INVALID, "kernel %s: the tile for heads of %d cannot compute heads of %lld, or rows not in words of 16 bytes",
                name, HeadDim, static_cast<long long>(head_dim));
  }
  return launch_attention_tiles<HeadDim, has_plain_score<Slots>, Tile>(launch, error, name, batch, heads, max_queries, query, key,
                                                                      value, out, slots);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
