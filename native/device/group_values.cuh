// Values that all columns of a group have, such as its mean. A thread of the block computes that of one group, rather than of each of its own
// columns: groups of a tile are few, and their values may take loops. Files whose kernels have no such values do not include this one.
#ifndef HEDDLE_GROUP_VALUES_CUH
#define HEDDLE_GROUP_VALUES_CUH

#include "column_team.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Leaves in `results` the values of a thread's columns: of the `valid` ones that are `Step` apart from `first` on. Of `columns` columns, group g has
/// those from `g * length` on. All threads of the block call it, each place of a kernel once: its shared memory is not used again.
template <int Vec, int Step, class Team, class Value, class Function>
__device__ __forceinline__ void take_group_values(const Team&, int tile, int columns, int length, int first, int valid, Value (&results)[Vec],
                                                  Function of_group) {
  constexpr int width = Team::lanes * Vec;
  HEDDLE_SHARED(Value, values, width);
  const int begin = tile * width;
  const int end = columns - begin < width ? columns : begin + width;
  const int last = (end - 1) / length;
  for (int group = begin / length + static_cast<int>(threadIdx.x); group <= last; group += Team::threads) {
    const Value value = of_group(group);
    const int from = group * length > begin ? group * length : begin;
    const int to = end - group * length < length ? end : (group + 1) * length;
    for (int column = from; column < to; ++column) values[column - begin] = value;
  }
  __syncthreads();
  HEDDLE_UNROLL
  for (int i = 0; i < Vec; ++i) {
    if (i < valid) results[i] = values[first - begin + i * Step];
  }
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
