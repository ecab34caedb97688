// Support for computed left factors whose rows are scaled by a function of sums over them, as in a norm. A kernel that reads a whole row
// accumulates the sums while it reads the elements, and scales after all of them. Slots may have for factor 0, besides the members in
// matmul_products.cuh,
//
//   static constexpr int FOLDS                                         number of sums
//   void prefetch_of(Factor<0>, k)                                     prefetches operands at k that all rows share
//   void unscaled_of<Whole>(Factor<0>, matrix, at, k, valid, Sum (&values)[8], float (&folds)[FOLDS])
//                                                                      elements as of chunk_of, but unscaled; adds their terms to folds
//   Sum scale_of(Factor<0>, matrix, at, folds)
#ifndef HEDDLE_MATMUL_ROW_SCALE_CUH
#define HEDDLE_MATMUL_ROW_SCALE_CUH

#include "matmul_factor.cuh"

namespace heddle {

/// Number of sums that the scale of a row depends on; 0 where rows are not scaled by sums.
template <class Slots, class = void>
constexpr int row_folds = 0;
template <class Slots>
constexpr int row_folds<Slots, decltype(static_cast<void>(Slots::FOLDS))> = Slots::FOLDS;

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

/// Scale of a row from the sums that the warps of a block have stored.
template <int Warps, class Slots, class Shared>
__device__ __forceinline__ float scale_of_row(const Slots& slots, int row, const Shared& sums) {
  float totals[Slots::FOLDS] = {};
  HEDDLE_UNROLL
  for (int w = 0; w < Warps; ++w) {
    HEDDLE_UNROLL
    for (int f = 0; f < Slots::FOLDS; ++f) totals[f] += sums[w * Slots::FOLDS + f];
  }
  return slots.scale_of(Factor<0>(), 0, row, totals);
}

}  // namespace heddle

#endif
