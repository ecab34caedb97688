// Maxima and sums of exponentials shifted by them (shifted.cuh), of tensors or rows whose chunks the blocks of the grid divide (totals.cuh).
#ifndef HEDDLE_SHIFTED_TOTALS_CUH
#define HEDDLE_SHIFTED_TOTALS_CUH

#include "shifted.cuh"
#include "totals.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

template <class Team, class Monoid>
__device__ __forceinline__ typename Monoid::Value total_of_share(const Team& team, const Accumulator<Monoid>& share) {
  return total_of(team, share);
}
template <class Team, class Monoid>
__device__ __forceinline__ typename Monoid::Value total_of_share(const Team& team, const Shifted<Monoid>& share) {
  return combine_shares(share, [&](const auto& accumulator) { return total_of(team, accumulator); });
}

template <class Monoid>
__device__ __forceinline__ void take_share(Accumulator<Monoid>& share, const Out<float>& sums, int64_t place, int parts, int stride) {
  share.total = take_total<Monoid>(sums, place, parts, stride);
}

template <class Monoid>
__host__ __device__ constexpr int words_of_share(const Accumulator<Monoid>&) {
  return words_of_totals<Monoid>;
}

/// `combine_totals` for walks with shifted sums.
template <bool Alone, class Team, class... Shares>
__device__ __forceinline__ bool combine_shifted(const Team& team, int part, int parts, const Out<float>& sums, const Out<int>& arrived,
                                               Shares&... all) {
  ((all.total = total_of_share(team, all)), ...);
  if constexpr (Alone) {
    return true;
  } else {
    const int words = (0 + ... + words_of_share(all));
    int64_t place = int64_t{blockIdx.x} * words;
    ((leave_total(sums, place, all.total), place += words_of_share(all)), ...);
    if (!is_last_part(arrived, blockIdx.x / parts, parts)) return false;
    place = (int64_t{blockIdx.x} - part) * words;
    ((take_share(all, sums, place, parts, words), place += words_of_share(all)), ...);
    return true;
  }
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
