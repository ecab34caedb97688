// A computed left factor whose rows are scaled by what is known of sums over them, as a norm's are: a kernel that meets a whole row adds up
// the sums while it reads the elements, and scales when it has seen all of them. Slots may say for factor 0, besides what matmul_products.cuh
// has,
//
//   static constexpr int FOLDS                                         how many sums there are
//   void prefetch_of(Factor<0>, k)                                     of what all rows read there
//   void unscaled_of<Whole>(Factor<0>, matrix, at, k, valid, Sum (&values)[8], float (&folds)[FOLDS])
//                                                                      elements as chunk_of gives them but for the scale; their terms are added
//   Sum scale_of(Factor<0>, matrix, at, folds)
#ifndef HEDDLE_MATMUL_ROW_SCALE_CUH
#define HEDDLE_MATMUL_ROW_SCALE_CUH

#include "matmul_factor.cuh"

namespace heddle {

/// The sums that the scale of a row is known of; 0 where rows are not scaled by any.
template <class Slots, class = void>
constexpr int row_folds = 0;
template <class Slots>
constexpr int row_folds<Slots, decltype(static_cast<void>(Slots::FOLDS))> = Slots::FOLDS;

/// What a warp has of the sums: its first lane leaves them in `sums`, which all may read behind a barrier.
template <class Slots, class Shared>
__device__ __forceinline__ void leave_folds(const float (&folds)[Slots::FOLDS], Shared& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  HEDDLE_UNROLL
  for (int f = 0; f < Slots::FOLDS; ++f) {
    const float sum = combine_lanes<Sum<float>, 32>(folds[f], 0xffffffffu);
    if (lane == 0) sums[warp * Slots::FOLDS + f] = sum;
  }
}

/// Of what the warps of a block have left.
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
