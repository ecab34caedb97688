// What the attention bodies share: the softmax of a row whose scores arrive piece by piece, and the rows nobody computes.
#ifndef HEDDLE_ATTENTION_SOFTMAX_CUH
#define HEDDLE_ATTENTION_SOFTMAX_CUH

#include "kernel.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// A row's softmax so far, in units of log 2. Weights are relative to a `base` near the largest score met, and sums made with
/// them are to be multiplied by what `admit` returns: 1 unless a score is so much larger that weights could leave the range of a
/// half.
struct OnlineSoftmax {
  static constexpr float log2_e = 1.4426950408889634f;
  static constexpr float slack = 8.0f;  // weights are at most 2^8

  float base = -3.0e38f;  // the same on all lanes of the row; finite, so that a score of -infinity weighs 0 and not NaN
  float total = 0.0f;     // this lane's share of the sum of weights

  /// Takes note of scores whose largest is `largest`; returns the factor of earlier weights.
  __device__ __forceinline__ float admit(float largest) {
    const float level = largest * log2_e;
    if (level <= base + slack) return 1.0f;
    const float factor = exp2_flushed(base - level);
    base = level;
    total *= factor;
    return factor;
  }

  /// The weight of a score that `admit` has seen, to be added to `total`.
  __device__ __forceinline__ float weight(float score) const { return exp2_flushed(fmaf(score, log2_e, -base)); }
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
