// Weights from raw dot products: the work of attention on tensor cores on a tile's scores between its two matmuls. A thread has parts of
// two rows, and its quad the rest of them.
#ifndef HEDDLE_ATTENTION_WEIGHTS_CUH
#define HEDDLE_ATTENTION_WEIGHTS_CUH

#include "attention_slots.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// A condition whose code is placed apart from the usual path: instructions are fetched in order.
__device__ __forceinline__ bool is_rare(bool condition) { return __builtin_expect(condition, false); }

/// The softmax of a thread's two rows so far.
struct QuadSoftmax {
  OnlineSoftmax rows[2];
  float peak[2] = {-INFINITY, -INFINITY};  // the largest scores; updated only if a Slots needs them

  /// Replaces the tile's `Elements` raw dot products, `element(i)`, by weights, and sets the factors of earlier sums. Returns true if a
  /// lane of the warp has a factor other than 1. Element i belongs to row i / 2 % 2 and to the key i / 4 * 8 + i % 2 places after the
  /// thread's first, for which `score(half, place, raw)` compiles the op's arithmetic. Unless the tile is Whole, keys for which
  /// `is_attended(half, place)` is false have weight 0. `rescale()` is called if factors are not 1.
  template <bool Whole, int Elements, class Slots, class Element, class IsAttended, class Score, class Rescale>
  __device__ __forceinline__ bool weigh(Element element, const Slots& slots, IsAttended is_attended, Score score, float (&factors)[2],
                                        Rescale rescale) {
    const auto half_of = [](int i) { return i / 2 % 2; };
    const auto place_of = [](int i) { return i / 4 * 8 + i % 2; };
    // If scores are a positive multiple of dot products, the multiplication is merged with that by log2 e.
    float factor = 1.0f;
    if constexpr (is_proportional<Slots>) factor = slots.score_factor();
    // Even and odd columns are kept apart, which halves the chains of dependent instructions.
    float largest[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    HEDDLE_UNROLL
    for (int i = 0; i < Elements; ++i) {
      float& own = element(i);
      if constexpr (!is_proportional<Slots>) own = Whole || is_attended(half_of(i), place_of(i)) ? score(half_of(i), place_of(i), own) : own;
      if (!Whole && !is_attended(half_of(i), place_of(i))) own = -INFINITY;
      largest[i % 4] = fmaxf(largest[i % 4], own);
    }
    bool far = false;
    HEDDLE_UNROLL
    for (int half = 0; half < 2; ++half) {
      float top = fmaxf(largest[2 * half], largest[2 * half + 1]);
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2)) * factor;
      if constexpr (needs_peak<Slots>) peak[half] = fmaxf(peak[half], top);
      factors[half] = rows[half].admit(top);
      far = far || rows[half].is_far();
    }
    // One vote serves both, since each is rare.
    const bool changes = __any_sync(0xffffffffu, far || factors[0] != 1.0f || factors[1] != 1.0f);
    float bases[2] = {rows[0].top * OnlineSoftmax::log2_e, rows[1].top * OnlineSoftmax::log2_e};
    if (is_rare(changes)) {
      if (__any_sync(0xffffffffu, far)) {
        HEDDLE_UNROLL
        for (int i = 0; i < Elements; ++i) element(i) = element(i) * factor - rows[half_of(i)].offset();
        HEDDLE_UNROLL
        for (int half = 0; half < 2; ++half) bases[half] = rows[half].base();
        factor = 1.0f;
      }
      rescale();
    }
    const float exponent = factor * OnlineSoftmax::log2_e;
    float sums[4] = {};
    HEDDLE_UNROLL
    for (int i = 0; i < Elements; ++i) {
      float& own = element(i);
      own = exp2_flushed(fmaf(own, exponent, -bases[half_of(i)]));
      sums[i % 4] += own;
    }
    HEDDLE_UNROLL
    for (int half = 0; half < 2; ++half) rows[half].total += sums[2 * half] + sums[2 * half + 1];
    return changes;
  }

  /// Divisor of the sums of one of the rows, whose values are stored if it exists. All lanes of the quad take part.
  template <class Slots>
  __device__ __forceinline__ Quotient quotient(const Slots& slots, int half, int b, int h, int i, [[maybe_unused]] bool exists) const {
    float total = rows[half].total;
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    if (stores_rows<Slots> && exists && threadIdx.x % 4 == 0) store_row_of(slots, total, rows[half].top, peak[half], b, h, i);
    return quotient_of(slots, total, rows[half].top, peak[half], b, h, i);
  }
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
