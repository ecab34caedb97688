// Combination of the sums of all workers in attention_decode_kernel.cuh: lanes share the slots of a column, in one order for every block.
#ifndef HEDDLE_ATTENTION_DECODE_OUTPUT_CUH
#define HEDDLE_ATTENTION_DECODE_OUTPUT_CUH

#include "attention_decode_parts.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Lanes that share the slots of four columns: the same number in every block, so that the order of summation is fixed.
constexpr int decode_chains = 8;

/// Sums of columns c to c + 3 of row `row` over the first `count` slots, on all lanes of a chain, and the scores they are relative to.
struct DecodeTotals {
  float top, total, peak, sums[4];
};

/// Combines slots 0 to `count` - 1. `at(slot, place)` gives four floats from `place` on: sums of columns, and after `size` of them the
/// rest. Of `Chains` adjacent lanes, each takes every `Chains`-th slot. A butterfly then adds them up, so that all lanes get the same bits. All
/// lanes of a warp take part.
template <int Chains, class At>
__device__ __forceinline__ DecodeTotals put_together(int count, int size, int c, At at) {
  const int chain = static_cast<int>(threadIdx.x) % Chains;
  DecodeTotals all = {OnlineSoftmax::hidden, 0.0f, -INFINITY, {}};
  for (int slot = chain; slot < count; slot += Chains) {
    const Pack<float, 4> head = at(slot, size);
    all.top = fmaxf(all.top, head.v[0]);
    all.peak = fmaxf(all.peak, head.v[2]);
  }
  const auto across = [](auto combine, float& value) {
    HEDDLE_UNROLL
    for (int distance = 1; distance < Chains; distance *= 2) {
      value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
  };
  const auto largest = [](float x, float y) { return fmaxf(x, y); };
  const auto sum = [](float x, float y) { return x + y; };
  across(largest, all.top);
  across(largest, all.peak);
  for (int slot = chain; slot < count; slot += Chains) {
    const Pack<float, 4> head = at(slot, size), part = at(slot, c);
    const float factor = exp2_flushed((head.v[0] - all.top) * OnlineSoftmax::log2_e);
    all.total = fmaf(head.v[1], factor, all.total);
    HEDDLE_UNROLL
    for (int e = 0; e < 4; ++e) all.sums[e] = fmaf(part.v[e], factor, all.sums[e]);
  }
  across(sum, all.total);
  HEDDLE_UNROLL
  for (int e = 0; e < 4; ++e) across(sum, all.sums[e]);
  return all;
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
