// The online softmax of the attention bodies, for a row whose scores arrive piece by piece.
#ifndef HEDDLE_ATTENTION_SOFTMAX_CUH
#define HEDDLE_ATTENTION_SOFTMAX_CUH

#include "kernel.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// A row's softmax so far. Weights are relative to a score `top` near the largest so far. Sums of earlier weights must be multiplied by the
/// result of `admit`: 1 unless a score is so much larger that weights could leave the range of a half.
struct OnlineSoftmax {
  static constexpr float log2_e = 1.4426950408889634f;
  static constexpr float slack = 5.5f;        // weights are at most e^5.5, less than 2^8
  static constexpr float hidden = -1e29f;     // scores below have weight 0, as those of -infinity
  static constexpr float exact = 65536.0f;    // log2_e * top errs by less than 2^-7 up to here

  float top = hidden;  // the same on all lanes of the row; finite, so that a score of -infinity weighs 0 and not NaN
  float total = 0.0f;  // this lane's share of the sum of weights

  /// Updates the softmax with scores whose largest is `largest`; returns the factor of earlier weights.
  __device__ __forceinline__ float admit(float largest) {
    if (largest <= top + slack) return 1.0f;
    const float factor = exp2_flushed((top - largest) * log2_e);
    top = largest;
    total *= factor;
    return factor;
  }

  /// Offset to subtract from scores first: 0 unless scores are so large that log2_e times them, rounded, is not accurate enough to be
  /// subtracted as `base`.
  __device__ __forceinline__ bool is_far() const { return fabsf(top) > exact; }
  __device__ __forceinline__ float offset() const { return is_far() ? top : 0.0f; }
  __device__ __forceinline__ float base() const { return is_far() ? 0.0f : top * log2_e; }

  /// The weight of a score that `admit` has taken, to be added to `total`.
  __device__ __forceinline__ float weight(float score) const {
    return exp2_flushed(fmaf(score - offset(), log2_e, -base()));
  }
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
