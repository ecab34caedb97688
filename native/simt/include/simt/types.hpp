// CUDA's built-in vocabulary as plain C++: qualifiers, index variables, vector types and the math functions kernels call.
#ifndef HEDDLE_SIMT_TYPES_HPP
#define HEDDLE_SIMT_TYPES_HPP

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __restrict__ __restrict

struct uint3 {
  unsigned int x, y, z;
};

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace heddle::simt {

/// Position of the running simulated thread in its grid. Every switch between fibers rewrites `thread`.
struct Place {
  uint3 thread = {0, 0, 0};
  uint3 block = {0, 0, 0};
  dim3 threads = {};
  dim3 blocks = {};
};

struct Worker;
/// The worker of the block that runs on this system thread. It is a library's only thread-local data: a process may load many libraries, and has only
/// a few hundred bytes of static thread-local storage for libraries that are opened at run time.
inline thread_local Worker* current = nullptr;

/// Place of `current`, inside of kernels.
__forceinline__ Place& place();

}  // namespace heddle::simt

#define threadIdx (heddle::simt::place().thread)
#define blockIdx (heddle::simt::place().block)
#define blockDim (heddle::simt::place().threads)
#define gridDim (heddle::simt::place().blocks)

constexpr int warpSize = 32;

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned int x, y;
};
struct alignas(16) uint4 {
  unsigned int x, y, z, w;
};

inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned int x, unsigned int y) { return {x, y}; }
inline uint4 make_uint4(unsigned int x, unsigned int y, unsigned int z, unsigned int w) { return {x, y, z, w}; }

namespace heddle::simt {

/// The bytes of `from` read as a `To` of the same size.
template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

}  // namespace heddle::simt

inline int __float_as_int(float x) { return heddle::simt::bit_cast<int>(x); }
inline float __int_as_float(int x) { return heddle::simt::bit_cast<float>(x); }
inline unsigned int __float_as_uint(float x) { return heddle::simt::bit_cast<unsigned int>(x); }
inline float __uint_as_float(unsigned int x) { return heddle::simt::bit_cast<float>(x); }

inline int min(int a, int b) { return b < a ? b : a; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned int min(unsigned int a, unsigned int b) { return b < a ? b : a; }
inline unsigned int max(unsigned int a, unsigned int b) { return a < b ? b : a; }
inline long min(long a, long b) { return b < a ? b : a; }
inline long max(long a, long b) { return a < b ? b : a; }
inline long long min(long long a, long long b) { return b < a ? b : a; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
using ::abs;

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
// Conversions saturate, and NaN becomes 0, where C++ leaves both undefined.
inline int __float2int_rz(float x) {
  if (x >= 2147483648.0f) return INT32_MAX;
  return x > -2147483648.0f ? static_cast<int>(x) : x == x ? INT32_MIN : 0;
}
inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned int>(x)); }
inline unsigned int __umulhi(unsigned int a, unsigned int b) { return static_cast<unsigned int>((uint64_t{a} * b) >> 32); }

template <class T>
inline T __ldg(const T* address) {
  return *address;
}

#endif
