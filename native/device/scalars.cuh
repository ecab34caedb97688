// Functions of one number with stronger guarantees than the C library's: exact powers of two, and bits that are the same on every device.
// Files whose kernels call none of them do not include this one.
#ifndef HEDDLE_SCALARS_CUH
#define HEDDLE_SCALARS_CUH

#include "kernel.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Bits of a float; for any NaN those that src/ir/float_bits.ts states.
__device__ __forceinline__ int bits_of(float x) { return x == x ? __float_as_int(x) : 0x7fc00000; }

/// 2^x; exact where x is an integer, results below the normal range included.
__device__ __forceinline__ float exp2(float x) {
  if (x != rintf(x)) return exp2f(x);
  const int n = __float2int_rz(x);
  if (n > 127) return INFINITY;
  return __int_as_float(n >= -126 ? (n + 127) << 23 : n >= -149 ? 1 << (n + 149) : 0);
}

/// The logarithm to base 2; exact for powers of two.
__device__ __forceinline__ float log2(float x) {
  const int bits = __float_as_int(x);
  const bool is_normal = bits >= 0x00800000 && bits < 0x7f800000;
  if (is_normal && (bits & 0x007fffff) == 0) return static_cast<float>((bits >> 23) - 127);
  if (bits > 0 && !is_normal && (bits & (bits - 1)) == 0) return static_cast<float>(31 - __clz(bits) - 149);
  return log2f(x);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
