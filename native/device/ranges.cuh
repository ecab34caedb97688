// Interval arithmetic: bounds of integer expressions whose variables lie between two bounds, and possible results of their comparisons.
// Attention uses it to find tiles of pairs that a mask excludes entirely. All bounds are safe: no value of an expression lies outside of
// its range, but a range may be too wide.
#ifndef HEDDLE_RANGES_CUH
#define HEDDLE_RANGES_CUH

#include "kernel.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {
namespace ranges {

/// Numbers from `low` to `high`, of int or float.
template <class T>
struct Range {
  T low, high;

  __device__ __forceinline__ bool is_one() const { return low == high; }
};
using Ints = Range<int>;
using Floats = Range<float>;

/// Possible values of a condition.
struct Truth {
  bool may_hold, may_fail;
};

constexpr int least_int = -2147483647 - 1, largest_int = 2147483647;

__device__ __forceinline__ Ints all_ints() { return {least_int, largest_int}; }
__device__ __forceinline__ Floats all_floats() { return {-INFINITY, INFINITY}; }
__device__ __forceinline__ Truth either() { return {true, true}; }

/// Range of one number; of NaN, all floats.
__device__ __forceinline__ Ints one(int value) { return {value, value}; }
__device__ __forceinline__ Floats one(float value) { return value == value ? Floats{value, value} : all_floats(); }
__device__ __forceinline__ Truth one(bool value) { return {value, !value}; }
/// A condition from the bounds of its values 0 and 1 over places.
__device__ __forceinline__ Truth truth(Ints range) { return {range.high != 0, range.low == 0}; }

__device__ __forceinline__ int64_t smaller_of(int64_t a, int64_t b) { return b < a ? b : a; }
__device__ __forceinline__ int64_t larger_of(int64_t a, int64_t b) { return a < b ? b : a; }

/// Range of integers; all of them if 32 bits may overflow.
__device__ __forceinline__ Ints in_ints(int64_t low, int64_t high) {
  return low >= least_int && high <= largest_int ? Ints{static_cast<int>(low), static_cast<int>(high)} : all_ints();
}
__device__ __forceinline__ Ints between(int64_t a, int64_t b, int64_t c, int64_t d) {
  return in_ints(smaller_of(smaller_of(a, b), smaller_of(c, d)), larger_of(larger_of(a, b), larger_of(c, d)));
}

__device__ __forceinline__ Ints add(Ints a, Ints b) { return in_ints(int64_t{a.low} + b.low, int64_t{a.high} + b.high); }
__device__ __forceinline__ Ints sub(Ints a, Ints b) { return in_ints(int64_t{a.low} - b.high, int64_t{a.high} - b.low); }
__device__ __forceinline__ Ints neg(Ints a) { return in_ints(-int64_t{a.high}, -int64_t{a.low}); }
__device__ __forceinline__ Ints mul(Ints a, Ints b) {
  return between(int64_t{a.low} * b.low, int64_t{a.low} * b.high, int64_t{a.high} * b.low, int64_t{a.high} * b.high);
}

/// Quotients are monotonic in the dividend, and in the divisor where that has one sign.
__device__ __forceinline__ Ints idiv(Ints a, Ints b) {
  if ((b.low <= 0 && b.high >= 0) || a.low == least_int) return all_ints();
  return between(a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high);
}

/// Remainders have the sign of the dividend. If all quotients are equal, remainders lie as far apart as the dividends.
__device__ __forceinline__ Ints mod(Ints a, Ints b) {
  if ((b.low <= 0 && b.high >= 0) || a.low == least_int || b.low == least_int) return all_ints();
  if (b.is_one()) {
    const int quotient = a.low / b.low;
    if (quotient == a.high / b.low) return {a.low - quotient * b.low, a.high - quotient * b.low};
  }
  const int most = max(::abs(b.low), ::abs(b.high)) - 1;
  return {a.low < 0 ? max(a.low, -most) : 0, a.high > 0 ? min(a.high, most) : 0};
}

__device__ __forceinline__ Ints abs(Ints a) {
  if (a.low >= 0) return a;
  const Ints opposite = neg(a);
  return a.high <= 0 ? opposite : Ints{0, max(a.high, opposite.high)};
}
__device__ __forceinline__ Ints minimum(Ints a, Ints b) { return {min(a.low, b.low), min(a.high, b.high)}; }
__device__ __forceinline__ Ints maximum(Ints a, Ints b) { return {max(a.low, b.low), max(a.high, b.high)}; }

/// Ints as floats. Rounding keeps their order.
__device__ __forceinline__ Floats to_float(Ints a) { return {static_cast<float>(a.low), static_cast<float>(a.high)}; }

template <class T>
__device__ __forceinline__ Truth lt(Range<T> a, Range<T> b) {
  return {a.low < b.high, a.high >= b.low};
}
__device__ __forceinline__ Truth le(Ints a, Ints b) { return {a.low <= b.high, a.high > b.low}; }
/// A range of all floats may stand for NaN, and NaN <= infinity is false.
__device__ __forceinline__ Truth le(Floats a, Floats b) {
  return {a.low <= b.high, !(a.high <= b.low) || a.high == INFINITY || b.low == -INFINITY};
}
template <class T>
__device__ __forceinline__ Truth gt(Range<T> a, Range<T> b) {
  return lt(b, a);
}
template <class T>
__device__ __forceinline__ Truth ge(Range<T> a, Range<T> b) {
  return le(b, a);
}
template <class T>
__device__ __forceinline__ Truth eq(Range<T> a, Range<T> b) {
  return {a.low <= b.high && b.low <= a.high, !(a.is_one() && b.is_one() && a.low == b.low)};
}

__device__ __forceinline__ Truth no(Truth a) { return {a.may_fail, a.may_hold}; }
template <class T>
__device__ __forceinline__ Truth ne(Range<T> a, Range<T> b) {
  return no(eq(a, b));
}
__device__ __forceinline__ Truth both(Truth a, Truth b) { return {a.may_hold && b.may_hold, a.may_fail || b.may_fail}; }
__device__ __forceinline__ Truth any(Truth a, Truth b) { return {a.may_hold || b.may_hold, a.may_fail && b.may_fail}; }

template <class T>
__device__ __forceinline__ Range<T> select(Truth condition, Range<T> kept, Range<T> other) {
  if (!condition.may_fail) return kept;
  if (!condition.may_hold) return other;
  return {kept.low < other.low ? kept.low : other.low, kept.high > other.high ? kept.high : other.high};
}
__device__ __forceinline__ Truth select(Truth condition, Truth kept, Truth other) {
  return {(condition.may_hold && kept.may_hold) || (condition.may_fail && other.may_hold),
          (condition.may_hold && kept.may_fail) || (condition.may_fail && other.may_fail)};
}

}  // namespace ranges
}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
