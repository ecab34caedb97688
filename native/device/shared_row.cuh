// Rows in shared memory: the lanes of a row write an element each, meet in a barrier, and then read any of them. Files whose kernels share
// no rows do not include this one.
#ifndef HEDDLE_SHARED_ROW_CUH
#define HEDDLE_SHARED_ROW_CUH

#include "team.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// The row of one team among those of its block.
template <class T, class Places>
struct SharedRow {
  Places& places;
  int start;

  __device__ __forceinline__ void set(int i, T value) const { places[start + i] = value; }
  __device__ __forceinline__ T get(int i) const { return places[start + i]; }
};

template <class Team, class T, int Length, class Places>
__device__ __forceinline__ SharedRow<T, Places> shared_row(Places& places) {
  return {places, static_cast<int>(threadIdx.x) / Team::lanes * Length};
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
