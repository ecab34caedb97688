// Histograms of rows. The counts of a row are in the output that holds them. The lanes of its team set them to zero together, meet in a
// barrier, and then add to them in any order, since integer sums do not depend on it.
#ifndef HEDDLE_HISTOGRAM_CUH
#define HEDDLE_HISTOGRAM_CUH

#include "team.cuh"

namespace heddle {

/// Sets the counts of a row to zero; `place(bin)` is the offset of the count of a bin. No lane returns before all counts are zero.
template <class Team, class Place>
__device__ __forceinline__ void clear_counts(const Team& team, const Out<int>& counts, int bins, Place place) {
  for (int bin = team.lane(); bin < bins; bin += Team::lanes) counts.set(place(bin), 0);
  team.meet();
}

/// Counts one element. Elements outside [0, bins) are ignored.
template <class Place>
__device__ __forceinline__ void count(const Out<int>& counts, int bin, int bins, Place place) {
  if (bin >= 0 && bin < bins) counts.add(place(bin), 1);
}

}  // namespace heddle

#endif
