// Values of user-defined monoids: a word for each field, a float or an integer, which lanes exchange unchanged. Files whose kernels use no
// such monoid do not include this one.
#ifndef HEDDLE_FIELDS_CUH
#define HEDDLE_FIELDS_CUH

#include "team.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

template <int Count>
struct Fields {
  unsigned int words[Count];

  /// True if all bits are equal: a scan skips values that equal the identity.
  __device__ __forceinline__ bool operator==(const Fields& other) const {
    bool same = true;
    HEDDLE_UNROLL
    for (int i = 0; i < Count; ++i) same = same && words[i] == other.words[i];
    return same;
  }
};

/// Field Place of a value.
template <class T, int Place, int Count>
__device__ __forceinline__ T field(const Fields<Count>& value) {
  static_assert(Place < Count && sizeof(T) == sizeof(unsigned int), "a field is a word");
  T result;
  memcpy(&result, &value.words[Place], sizeof result);
  return result;
}

__device__ __forceinline__ unsigned int word_of(float value) {
  unsigned int word;
  memcpy(&word, &value, sizeof word);
  return word;
}
__device__ __forceinline__ unsigned int word_of(int value) { return static_cast<unsigned int>(value); }

template <class... T>
__device__ __forceinline__ Fields<static_cast<int>(sizeof...(T))> fields(T... values) {
  return {{word_of(values)...}};
}

template <int Count>
__device__ __forceinline__ Fields<Count> exchange(Fields<Count> value, unsigned int lanes, int distance) {
  HEDDLE_UNROLL
  for (int i = 0; i < Count; ++i) value.words[i] = exchange(value.words[i], lanes, distance);
  return value;
}
template <int Count>
__device__ __forceinline__ Fields<Count> from_lane(Fields<Count> value, unsigned int lanes, int lane, int count) {
  HEDDLE_UNROLL
  for (int i = 0; i < Count; ++i) value.words[i] = from_lane(value.words[i], lanes, lane, count);
  return value;
}
template <int Count>
__device__ __forceinline__ Fields<Count> from_below(Fields<Count> value, unsigned int lanes, int distance, int count) {
  HEDDLE_UNROLL
  for (int i = 0; i < Count; ++i) value.words[i] = from_below(value.words[i], lanes, distance, count);
  return value;
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
