// Quotients and remainders of places, counted from one element to the next.
#ifndef HEDDLE_COUNT_CUH
#define HEDDLE_COUNT_CUH

#include "kernel.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// The quotient and the remainder of a place by a divisor, and those of each quotient by the next divisor. Places are not negative.
template <int Divisors>
class Places {
 public:
  template <class... D>
  __device__ __forceinline__ explicit Places(int place, D... divisors) : divisors_{static_cast<int>(divisors)...} {
    static_assert(sizeof...(D) == Divisors);
    HEDDLE_UNROLL
    for (int i = 0; i < Divisors; ++i) {
      quotients_[i] = place / divisors_[i];
      remainders_[i] = place - quotients_[i] * divisors_[i];
      place = quotients_[i];
    }
  }

  __device__ __forceinline__ int quotient(int i) const { return quotients_[i]; }
  __device__ __forceinline__ int remainder(int i) const { return remainders_[i]; }

  /// Goes on to the next place.
  __device__ __forceinline__ void next() {
    bool wraps = true;
    HEDDLE_UNROLL
    for (int i = 0; i < Divisors; ++i) {
      remainders_[i] += wraps ? 1 : 0;
      wraps = remainders_[i] == divisors_[i];
      remainders_[i] = wraps ? 0 : remainders_[i];
      quotients_[i] += wraps ? 1 : 0;
    }
  }

 private:
  int divisors_[Divisors];
  int quotients_[Divisors];
  int remainders_[Divisors];
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
