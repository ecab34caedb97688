// Outputs that replace elements of an input in its memory. For generated source of ops with `updates`.
#ifndef HEDDLE_UPDATE_CUH
#define HEDDLE_UPDATE_CUH

#include <algorithm>
#include <initializer_list>

#include "launcher.cuh"

namespace heddle {

/// Refuses a launch whose output `name` is not the memory of the input it updates: elements outside of the place would be undefined.
inline void check_update(Arguments& arguments, const heddle_launch* launch, heddle_error* error, const char* kernel, uint32_t index,
                         const char* name, uint32_t before, const char* before_name) {
  if (arguments.status != HEDDLE_OK || launch->buffers[index].data == launch->buffers[before].data) return;
  arguments.status =
      fail(error, HEDDLE_INVALID, "kernel %s: %s updates %s and must share its memory", kernel, name, before_name);
}

/// Number of slots for the places of an interval: the smallest of `most`, at least 0.
inline int slots_of(std::initializer_list<int64_t> most) { return static_cast<int>(std::max<int64_t>(0, std::min(most))); }

/// Places of an axis from `from` up to `to`, exclusive.
struct Interval {
  int64_t from, to;

  __device__ __forceinline__ explicit Interval(int extent) : from(0), to(extent) {}
  __device__ __forceinline__ void start_at(int64_t place) { from = place > from ? place : from; }
  __device__ __forceinline__ void end_before(int64_t place) { to = place < to ? place : to; }
  __device__ __forceinline__ bool is_empty() const { return from >= to; }
  __device__ __forceinline__ int64_t places() const { return to - from; }
};

}  // namespace heddle

#endif
