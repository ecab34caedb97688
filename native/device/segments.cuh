// Sums of segments of a row, whose boundaries are data: the lanes of a team take the elements of a segment in turn, several at a time so that
// their loads overlap, and combine their sums as those of any row. The order depends on the team and the segment's length, never on timing.
// Files whose kernels sum no segments do not include this one.
#ifndef HEDDLE_SEGMENTS_CUH
#define HEDDLE_SEGMENTS_CUH

#include "team.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Sum of the elements from `from` to `to`, excluded, of a row of `length`; `value(i)` is element i of the segment.
template <class Team, class Value>
__device__ __forceinline__ auto segment_sum(Team& team, int from, int to, [[maybe_unused]] int length, Value value) {
#if defined(HEDDLE_SIMT)
  if (from < 0 || to < from || to > length) simt::current->fault("a segment from %d to %d is none of a row of %d elements", from, to, length);
#endif
  using Number = decltype(value(0));
  constexpr unsigned int batch = 4;
  const unsigned int count = to > from ? static_cast<unsigned int>(to - from) : 0;
  Accumulator<Sum<Number>> sum;
  HEDDLE_ROLLED
  for (unsigned int first = static_cast<unsigned int>(team.lane()); first < count; first += batch * Team::lanes) {
    Number values[batch];
    HEDDLE_UNROLL
    for (unsigned int i = 0; i < batch; ++i) {
      const unsigned int at = first + i * Team::lanes;
      values[i] = at < count ? value(static_cast<int>(at)) : Number(0);
    }
    HEDDLE_UNROLL
    for (unsigned int i = 0; i < batch; ++i) sum.total = Sum<Number>::combine(sum.total, values[i]);
  }
  return team.reduce(sum);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
