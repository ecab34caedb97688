// Support for computed left factors whose rows are scaled by a function of sums over them, as in a norm. A kernel that reads a whole row
// accumulates the sums while it reads the elements, and scales after all of them. Slots may have for factor 0, besides the members in
// matmul_products.cuh,
//
//   static constexpr int FOLDS                                         number of sums
//   void prefetch_of(Factor<0>, k)                                     prefetches operands at k that all rows share
//   void unscaled_of<Whole>(Factor<0>, matrix, at, k, valid, Sum (&values)[8], float (&folds)[FOLDS])
//                                                                      elements as of chunk_of, but unscaled; adds their terms to folds
//   Sum scale_of(Factor<0>, matrix, at, folds)
//
// Elements may have parts besides that all rows share, as the bias of a layer norm. Then
//
//   static constexpr int COMMON                                         number of these parts
//   Sum anchor_of<Whole>(Factor<0>, matrix, at)                        the element from which distances are taken, also given to unscaled_of
//   void common_of<Whole>(Factor<0>, k, valid, Sum (&values)[COMMON][8]) the parts
//   Sum scale_of(Factor<0>, matrix, at, folds, anchor, Sum (&factors)[COMMON])    also the row's factors of the parts
#ifndef HEDDLE_MATMUL_ROW_SCALE_CUH
#define HEDDLE_MATMUL_ROW_SCALE_CUH

#include "matmul_factor.cuh"

namespace heddle {

/// Number of sums that the scale of a row depends on; 0 where rows are not scaled by sums.
template <class Slots, class = void>
constexpr int row_folds = 0;
template <class Slots>
constexpr int row_folds<Slots, decltype(static_cast<void>(Slots::FOLDS))> = Slots::FOLDS;

/// Number of parts of a row's elements that all rows share.
template <class Slots, class = void>
constexpr int row_commons = 0;
template <class Slots>
constexpr int row_commons<Slots, decltype(static_cast<void>(Slots::COMMON))> = Slots::COMMON;

/// Reduces the sums over a warp; its first lane stores them in `sums`, which all threads may read after a barrier.
template <class Slots, class Shared>
__device__ __forceinline__ void leave_folds(const float (&folds)[Slots::FOLDS], Shared& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  HEDDLE_UNROLL
  for (int f = 0; f < Slots::FOLDS; ++f) {
    const float sum = combine_lanes<Sum<float>, 32>(folds[f], 0xffffffffu);
    if (lane == 0) sums[warp * Slots::FOLDS + f] = sum;
  }
}

/// The sums of a row that the warps of a block have stored.
template <int Warps, class Slots, class Shared>
__device__ __forceinline__ void total_folds(const Shared& sums, float (&totals)[Slots::FOLDS]) {
  HEDDLE_UNROLL
  for (int f = 0; f < Slots::FOLDS; ++f) totals[f] = 0.0f;
  HEDDLE_UNROLL
  for (int w = 0; w < Warps; ++w) {
    HEDDLE_UNROLL
    for (int f = 0; f < Slots::FOLDS; ++f) totals[f] += sums[w * Slots::FOLDS + f];
  }
}

/// A row whose elements are read without their scale, with a thread's part of its sums.
template <class Slots, bool Anchored = (row_commons<Slots> > 0)>
struct UnscaledRow {
  float folds[Slots::FOLDS] = {};

  __device__ __forceinline__ void find(const Slots&, int) {}
  __device__ __forceinline__ void read(const Slots& slots, int row, int at, float (&values)[8]) {
    slots.template unscaled_of<true>(Factor<0>(), 0, row, at, 8, values, folds);
  }
  __device__ __forceinline__ void read_common(const Slots&, int, float (&)[1][8]) const {}
  /// The scale of the row and factors of its common parts, from the sums that the warps of a block have stored.
  template <int Warps, class Shared>
  __device__ __forceinline__ float scale(const Slots& slots, int row, const Shared& sums, float (&)[1]) const {
    float totals[Slots::FOLDS];
    total_folds<Warps, Slots>(sums, totals);
    return slots.scale_of(Factor<0>(), 0, row, totals);
  }
};
template <class Slots>
struct UnscaledRow<Slots, true> {
  float folds[Slots::FOLDS] = {};
  float anchor = 0.0f;

  __device__ __forceinline__ void find(const Slots& slots, int row) { anchor = slots.template anchor_of<true>(Factor<0>(), 0, row); }
  __device__ __forceinline__ void read(const Slots& slots, int row, int at, float (&values)[8]) {
    slots.template unscaled_of<true>(Factor<0>(), 0, row, at, 8, values, folds, anchor);
  }
  __device__ __forceinline__ void read_common(const Slots& slots, int at, float (&values)[Slots::COMMON][8]) const {
    slots.template common_of<true>(Factor<0>(), at, 8, values);
  }
  template <int Warps, class Shared>
  __device__ __forceinline__ float scale(const Slots& slots, int row, const Shared& sums, float (&factors)[Slots::COMMON]) const {
    float totals[Slots::FOLDS];
    total_folds<Warps, Slots>(sums, totals);
    return slots.scale_of(Factor<0>(), 0, row, totals, anchor, factors);
  }
};

}  // namespace heddle

#endif
