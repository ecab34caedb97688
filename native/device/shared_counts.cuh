// Counts of the integers of a row in shared memory. The lanes of its team set them to zero together, meet in a barrier, add to them in any
// order, meet again, and then read any of them. Files whose kernels read no counts do not include this one.
#ifndef HEDDLE_SHARED_COUNTS_CUH
#define HEDDLE_SHARED_COUNTS_CUH

#include "team.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// The counts of one team among those of its block.
template <class Places>
struct SharedCounts {
  Places& places;
  int start;
  int bins;

  /// Counts one element. Elements outside [0, bins) are ignored.
  __device__ __forceinline__ void count(int bin) const {
    if (bin >= 0 && bin < bins) add_shared(places, start + bin, 1);
  }
  __device__ __forceinline__ int get(int bin) const { return places[start + bin]; }
};

/// Counts set to zero, of which a row of the block has memory for Room. No lane returns before all are zero.
template <int Room, class Team, class Places>
__device__ __forceinline__ SharedCounts<Places> shared_counts(const Team& team, Places& places, int bins) {
  const int start = static_cast<int>(threadIdx.x) / Team::lanes * Room;
  for (int bin = team.lane(); bin < bins; bin += Team::lanes) places[start + bin] = 0;
  team.meet();
  return {places, start, bins};
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
