// Histograms of rows. The counts of a row lie in the output that holds them; the lanes of its team make them zero together,
// meet, and then add to them in any order: integers do not mind.
#ifndef HEDDLE_HISTOGRAM_CUH
#define HEDDLE_HISTOGRAM_CUH

#include "team.cuh"

namespace heddle {

/// Makes the counts of a row zero; `place(bin)` is where the count of a bin lies. No lane returns before all counts are zero.
template <class Team, class Place>
__device__ __forceinline__ void clear_counts(const Team& team, const Out<int>& counts, int bins, Place place) {
  for (int bin = team.lane(); bin < bins; bin += Team::lanes) counts.set(place(bin), 0);
  team.meet();
}

/// Counts one element. One outside [0, bins) is counted nowhere.
template <class Place>
__device__ __forceinline__ void count(const Out<int>& counts, int bin, int bins, Place place) {
  if (bin >= 0 && bin < bins) counts.add(place(bin), 1);
}

}  // namespace heddle

#endif
