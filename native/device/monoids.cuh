// Associative combinations for row reductions and scans. T is the scalar type of the reduced elements; threads exchange Values. `identity`
// is the value of an empty reduction and of a lane that has no element.
#ifndef HEDDLE_MONOIDS_CUH
#define HEDDLE_MONOIDS_CUH

#include "math.cuh"

namespace heddle {

template <class T>
struct Lowest;
template <>
struct Lowest<float> {
  static constexpr float value = -INFINITY;
  static constexpr float opposite = INFINITY;
};
template <>
struct Lowest<int> {
  static constexpr int value = INT32_MIN;
  static constexpr int opposite = INT32_MAX;
};

template <class T>
struct Sum {
  using Element = T;
  using Value = T;
  static __device__ __forceinline__ Value identity() { return T(0); }
  static __device__ __forceinline__ Value lift(T element, int) { return element; }
  static __device__ __forceinline__ Value combine(Value a, Value b) { return a + b; }
  static __device__ __forceinline__ T result(Value value) { return value; }
};

template <class T>
struct Max {
  using Element = T;
  using Value = T;
  static __device__ __forceinline__ Value identity() { return Lowest<T>::value; }
  static __device__ __forceinline__ Value lift(T element, int) { return element; }
  static __device__ __forceinline__ Value combine(Value a, Value b) { return larger(a, b); }
  static __device__ __forceinline__ T result(Value value) { return value; }
};

template <class T>
struct Min {
  using Element = T;
  using Value = T;
  static __device__ __forceinline__ Value identity() { return Lowest<T>::opposite; }
  static __device__ __forceinline__ Value lift(T element, int) { return element; }
  static __device__ __forceinline__ Value combine(Value a, Value b) { return smaller(a, b); }
  static __device__ __forceinline__ T result(Value value) { return value; }
};

/// An element and its place. Among equal elements the lowest place wins, so the order of combination does not matter. NaN, which compares
/// false with everything, is never picked.
template <class T>
struct Placed {
  T value;
  int index;

  __device__ __forceinline__ bool operator==(const Placed& other) const { return value == other.value && index == other.index; }
};

template <class T>
struct ArgMax {
  using Element = T;
  using Value = Placed<T>;
  static __device__ __forceinline__ Value identity() { return {Lowest<T>::value, INT32_MAX}; }
  static __device__ __forceinline__ Value lift(T element, int index) { return {element, index}; }
  static __device__ __forceinline__ Value combine(Value a, Value b) {
    return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
  }
  static __device__ __forceinline__ int result(Value best) { return best.index == INT32_MAX ? 0 : best.index; }
};

template <class T>
struct ArgMin {
  using Element = T;
  using Value = Placed<T>;
  static __device__ __forceinline__ Value identity() { return {Lowest<T>::opposite, INT32_MAX}; }
  static __device__ __forceinline__ Value lift(T element, int index) { return {element, index}; }
  static __device__ __forceinline__ Value combine(Value a, Value b) {
    return b.value < a.value || (b.value == a.value && b.index < a.index) ? b : a;
  }
  static __device__ __forceinline__ int result(Value best) { return best.index == INT32_MAX ? 0 : best.index; }
};

/// One thread's share of a reduction. Chunks are combined one by one, each from its own identity, so that a lane with many
/// chunks and many lanes with one chunk each add in the same order.
template <class Monoid>
struct Accumulator {
  typename Monoid::Value total = Monoid::identity();
  typename Monoid::Value chunk = Monoid::identity();

  __device__ __forceinline__ void add(typename Monoid::Element element, int index) {
    chunk = Monoid::combine(chunk, Monoid::lift(element, index));
  }
  __device__ __forceinline__ void end_chunk() {
    total = Monoid::combine(total, chunk);
    chunk = Monoid::identity();
  }
};

/// One thread's share of a scan: its current chunk, and the combination of the row before it. The elements of a chunk are known after the
/// team's barrier in `scan`.
template <class Monoid, int Vec>
struct Prefix {
  using Value = typename Monoid::Value;

  Value chunk[Vec];
  /// The chunk's elements so far.
  Value total = Monoid::identity();
  /// Everything before the chunk.
  Value before = Monoid::identity();
  /// Everything before the team's next chunks.
  Value carry = Monoid::identity();

  /// Takes element i of the chunk, in ascending order; `index` is its place in the row.
  __device__ __forceinline__ void add(int i, typename Monoid::Element element, int index) {
    total = Monoid::combine(total, Monoid::lift(element, index));
    chunk[i] = total;
  }
  /// Ends the chunk: `own` is the combination of the row before it, `next` that before the team's next chunks.
  __device__ __forceinline__ void end_chunk(Value own, Value next) {
    before = own;
    carry = next;
    total = Monoid::identity();
  }
  __device__ __forceinline__ auto operator[](int i) const { return Monoid::result(Monoid::combine(before, chunk[i])); }
};

/// Serial reduction inside an element: one thread combines `value(0) .. value(length - 1)` in order.
template <class Monoid, class Function>
__device__ __forceinline__ auto fold(int length, Function value) {
  typename Monoid::Value total = Monoid::identity();
  for (int i = 0; i < length; ++i) total = Monoid::combine(total, Monoid::lift(value(i), i));
  return Monoid::result(total);
}

}  // namespace heddle

#endif
