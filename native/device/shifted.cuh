// A maximum of a row and sums of exponentials that are shifted by it, in one pass. Files whose kernels have no such sums do not include this one.
#ifndef HEDDLE_SHIFTED_CUH
#define HEDDLE_SHIFTED_CUH

#include "fields.cuh"

#include <utility>

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// One thread's share: its maximum, which is field 0, and the sums, which `Monoid::scaled` scales to a larger one. The largest element of a chunk is
/// known before the terms of the chunk are added, so that sums are scaled once per chunk.
template <class Monoid>
struct Shifted : Accumulator<Monoid> {
  using Value = typename Monoid::Value;
  static constexpr int sums = static_cast<int>(sizeof(Value) / sizeof(float)) - 1;
  using Places = std::make_integer_sequence<int, sums>;

  /// The largest element so far.
  float largest = -INFINITY;

  __device__ __forceinline__ void raise(float element) { largest = larger(largest, element); }

  /// Scales the sums to the largest element; returns it, or the least finite number if all are -infinity: their terms are then 0 times their weights.
  __device__ __forceinline__ float rescale() {
    constexpr float lowest = -3.40282347e38f;
    this->total = Monoid::scaled(this->total, fields(largest));
    return larger(largest, lowest);
  }

  template <class... Terms>
  __device__ __forceinline__ void add_terms(Terms... terms) {
    static_assert(sizeof...(Terms) == sums, "a term of each sum");
    add_each(Places{}, terms...);
  }

  __device__ __forceinline__ void end_chunk() { end_each(Places{}); }

 private:
  template <int... Place, class... Terms>
  __device__ __forceinline__ void add_each(std::integer_sequence<int, Place...>, Terms... terms) {
    ((this->chunk.words[Place + 1] = word_of(field<float, Place + 1>(this->chunk) + terms)), ...);
  }
  template <int... Place>
  __device__ __forceinline__ void end_each(std::integer_sequence<int, Place...>) {
    ((this->total.words[Place + 1] = word_of(field<float, Place + 1>(this->total) + field<float, Place + 1>(this->chunk)),
      this->chunk.words[Place + 1] = 0u),
     ...);
  }
};

/// Combination of the shares of several threads: the largest maximum first, to which each scales its sums once. `reduce` combines accumulators.
template <class Monoid, class Reduce>
__device__ __forceinline__ typename Monoid::Value combine_shares(const Shifted<Monoid>& lanes, Reduce reduce) {
  Accumulator<Max<float>> top;
  top.total = field<float, 0>(lanes.total);
  typename Monoid::Value all = Monoid::scaled(lanes.total, fields(static_cast<float>(reduce(top))));
  HEDDLE_UNROLL
  for (int i = 1; i <= Shifted<Monoid>::sums; ++i) {
    Accumulator<Sum<float>> sum;
    memcpy(&sum.total, &all.words[i], sizeof sum.total);
    all.words[i] = word_of(static_cast<float>(reduce(sum)));
  }
  return all;
}

/// Of the lanes of a row's team.
template <class Team, class Monoid>
__device__ __forceinline__ typename Monoid::Value reduce_shifted(Team& team, const Shifted<Monoid>& lanes) {
  return combine_shares(lanes, [&](const auto& accumulator) { return team.reduce(accumulator); });
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
