// Combination of the sums of all workers in attention_decode_kernel.cuh: lanes share the slots of a column, in one order for every block.
#ifndef HEDDLE_ATTENTION_DECODE_OUTPUT_CUH
#define HEDDLE_ATTENTION_DECODE_OUTPUT_CUH

#include "attention_decode_parts.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Adjacent lanes that share the slots of four columns: 1 << bits of them, which depends on a row alone, so that the order of summation is
/// fixed. A number and not a type: a second copy of the code of a block's end takes longer to fetch than it saves.
struct DecodeChains {
  int bits;

  __device__ __forceinline__ int count() const { return 1 << bits; }
  /// The thread's own chain, and the index of its group of chains among `groups()` of the block.
  __device__ __forceinline__ int own() const { return static_cast<int>(threadIdx.x) & (count() - 1); }
  __device__ __forceinline__ int group() const { return static_cast<int>(threadIdx.x) >> bits; }
  __device__ __forceinline__ int groups() const { return static_cast<int>(blockDim.x) >> bits; }

  /// Combines a value of each chain by a butterfly, so that all get the same bits.
  template <int Count, class Combine>
  __device__ __forceinline__ void join(float (&values)[Count], Combine combine) const {
    for (int distance = 1; distance < count(); distance *= 2) {
      HEDDLE_UNROLL
      for (int v = 0; v < Count; ++v) values[v] = combine(values[v], __shfl_xor_sync(0xffffffffu, values[v], distance));
    }
  }
};
constexpr int chain_bits = 3;  // where many slots are combined

/// Sums of columns c to c + 3 of row `row` over the first `count` slots, on all lanes of a chain, and the scores they are relative to.
struct DecodeTotals {
  float top, total, peak, sums[4];
};

/// Combines slots 0 to `count` - 1. `at(slot, place)` gives four floats from `place` on: sums of columns, and after `size` of them the
/// rest. Each chain takes every so many slots. All lanes of a warp take part.
template <class At>
__device__ __forceinline__ DecodeTotals put_together(DecodeChains chains, int count, int size, int c, At at) {
  float largest[2] = {OnlineSoftmax::hidden, -INFINITY};
  for (int slot = chains.own(); slot < count; slot += chains.count()) {
    const Pack<float, 4> head = at(slot, size);
    largest[0] = fmaxf(largest[0], head.v[0]);
    largest[1] = fmaxf(largest[1], head.v[2]);
  }
  chains.join(largest, [](float x, float y) { return fmaxf(x, y); });
  float sums[5] = {};  // the total, then the columns
  for (int slot = chains.own(); slot < count; slot += chains.count()) {
    const Pack<float, 4> head = at(slot, size), part = at(slot, c);
    const float factor = exp2_flushed((head.v[0] - largest[0]) * OnlineSoftmax::log2_e);
    sums[0] = fmaf(head.v[1], factor, sums[0]);
    HEDDLE_UNROLL
    for (int e = 0; e < 4; ++e) sums[1 + e] = fmaf(part.v[e], factor, sums[1 + e]);
  }
  chains.join(sums, [](float x, float y) { return x + y; });
  return {largest[0], sums[0], largest[1], {sums[1], sums[2], sums[3], sums[4]}};
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
