// Conversions between storage types and the scalars of a body: float32 for floats and int8, int32 for the other integers. A store rounds to
// nearest even. int8 saturates to [-127, 127] so that the range is symmetric, and stores -127 for NaN. Other integers saturate to the range
// of their type. Elements of uint32 and int64 beyond int32 are read as the nearest int32: as an index that stays out of bounds.
#ifndef HEDDLE_CONVERT_CUH
#define HEDDLE_CONVERT_CUH

#include "float8.cuh"

namespace heddle {

/// The scalar type of a storage type, and the two conversions.
template <class T>
struct Storage;

template <>
struct Storage<float> {
  using Scalar = float;
  static __device__ __forceinline__ float load(float x) { return x; }
  static __device__ __forceinline__ float store(float x) { return x; }
};

template <>
struct Storage<__half> {
  using Scalar = float;
  static __device__ __forceinline__ float load(__half x) { return __half2float(x); }
  static __device__ __forceinline__ __half store(float x) { return __float2half_rn(x); }
};

template <>
struct Storage<__nv_bfloat16> {
  using Scalar = float;
  static __device__ __forceinline__ float load(__nv_bfloat16 x) { return __bfloat162float(x); }
  static __device__ __forceinline__ __nv_bfloat16 store(float x) { return __float2bfloat16_rn(x); }
};

template <>
struct Storage<int> {
  using Scalar = int;
  static __device__ __forceinline__ int load(int x) { return x; }
  static __device__ __forceinline__ int store(int x) { return x; }
};

template <>
struct Storage<signed char> {
  using Scalar = float;
  static __device__ __forceinline__ float load(signed char x) { return static_cast<float>(x); }
  static __device__ __forceinline__ signed char store(float x) {
    return static_cast<signed char>(rintf(fminf(fmaxf(x, -127.0f), 127.0f)));
  }
};

template <>
struct Storage<unsigned char> {
  using Scalar = int;
  static __device__ __forceinline__ int load(unsigned char x) { return x; }
  static __device__ __forceinline__ unsigned char store(int x) { return static_cast<unsigned char>(min(max(x, 0), 255)); }
};

template <>
struct Storage<F8E4M3> {
  using Scalar = float;
  static __device__ __forceinline__ float load(F8E4M3 x) { return to_float(x); }
  static __device__ __forceinline__ F8E4M3 store(float x) { return to_float8<F8E4M3>(x); }
};

template <>
struct Storage<F8E5M2> {
  using Scalar = float;
  static __device__ __forceinline__ float load(F8E5M2 x) { return to_float(x); }
  static __device__ __forceinline__ F8E5M2 store(float x) { return to_float8<F8E5M2>(x); }
};

template <>
struct Storage<short> {
  using Scalar = int;
  static __device__ __forceinline__ int load(short x) { return x; }
  static __device__ __forceinline__ short store(int x) { return static_cast<short>(min(max(x, -32768), 32767)); }
};

template <>
struct Storage<unsigned int> {
  using Scalar = int;
  static __device__ __forceinline__ int load(unsigned int x) { return static_cast<int>(min(x, 2147483647u)); }
  static __device__ __forceinline__ unsigned int store(int x) { return static_cast<unsigned int>(max(x, 0)); }
};

template <>
struct Storage<int64_t> {
  using Scalar = int;
  static __device__ __forceinline__ int load(int64_t x) {
    constexpr int64_t least = -2147483647 - 1, greatest = 2147483647;
    return static_cast<int>(x < least ? least : x > greatest ? greatest : x);
  }
  static __device__ __forceinline__ int64_t store(int x) { return x; }
};

template <class T>
using Scalar = typename Storage<T>::Scalar;

/// Accumulator type of a matmul of T: int32 for int8, which is exact, float32 for the rest.
template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, signed char>, int, float>;

/// True if matmuls of T run on tensor cores.
template <class T>
constexpr bool tensor_core_type =
    std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, signed char>;

/// The unsigned integer of `Bytes` bytes.
template <int Bytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using Type = unsigned char;
};
template <>
struct UnsignedOf<2> {
  using Type = unsigned short;
};

/// N scalars rounded into a pack.
template <class T, int N>
__device__ __forceinline__ std::enable_if_t<!is_float8<T>> round_into(Pack<T, N>& pack, const Scalar<T>* values) {
  HEDDLE_UNROLL
  for (int i = 0; i < N; ++i) pack.v[i] = Storage<T>::store(values[i]);
}

/// Rounds pairs of 8-bit floats, with one instruction from sm_89 on.
template <class T, int N>
__device__ __forceinline__ std::enable_if_t<is_float8<T>> round_into(Pack<T, N>& pack, const float* values) {
  if constexpr (N == 1) {
    pack.v[0] = Storage<T>::store(values[0]);
  } else {
    unsigned short pairs[N / 2];
    HEDDLE_UNROLL
    for (int i = 0; i < N / 2; ++i) pairs[i] = float8::pair_of(T(), values[2 * i], values[2 * i + 1]);
    memcpy(pack.v, pairs, sizeof pairs);
  }
}

#if !defined(HEDDLE_SIMT)
// One instruction rounds two floats to half or bfloat16.
template <int N>
__device__ __forceinline__ void round_into(Pack<__half, N>& pack, const float* values) {
  if constexpr (N == 1) {
    pack.v[0] = __float2half_rn(values[0]);
  } else {
    __half2* const pairs = reinterpret_cast<__half2*>(pack.v);
    HEDDLE_UNROLL
    for (int i = 0; i < N / 2; ++i) pairs[i] = __floats2half2_rn(values[2 * i], values[2 * i + 1]);
  }
}

template <int N>
__device__ __forceinline__ void round_into(Pack<__nv_bfloat16, N>& pack, const float* values) {
  if constexpr (N == 1) {
    pack.v[0] = __float2bfloat16_rn(values[0]);
  } else {
    __nv_bfloat162* const pairs = reinterpret_cast<__nv_bfloat162*>(pack.v);
    HEDDLE_UNROLL
    for (int i = 0; i < N / 2; ++i) pairs[i] = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
  }
}

/// Bits of a float whose lowest byte is the int8 that Storage<signed char> stores: floats beyond 2^23 are integers, so the addition rounds.
/// A conversion takes four times as long.
__device__ __forceinline__ unsigned int int8_bits(float x) {
  constexpr float rounds = 12582912.0f;  // 1.5 * 2^23, so that negative sums stay in the binade
  return __float_as_uint(fminf(fmaxf(x, -127.0f), 127.0f) + rounds);
}

template <int N>
__device__ __forceinline__ void round_into(Pack<signed char, N>& pack, const float* values) {
  if constexpr (N % 4 == 0) {
    unsigned int words[N / 4];
    HEDDLE_UNROLL
    for (int i = 0; i < N / 4; ++i) {
      constexpr unsigned int low_bytes = 0x0040, low_halves = 0x5410;
      const unsigned int first = __byte_perm(int8_bits(values[4 * i]), int8_bits(values[4 * i + 1]), low_bytes);
      const unsigned int second = __byte_perm(int8_bits(values[4 * i + 2]), int8_bits(values[4 * i + 3]), low_bytes);
      words[i] = __byte_perm(first, second, low_halves);
    }
    memcpy(pack.v, words, sizeof words);
  } else {
    HEDDLE_UNROLL
    for (int i = 0; i < N; ++i) pack.v[i] = Storage<signed char>::store(values[i]);
  }
}
#endif

/// One element as a scalar, and a scalar into one element.
template <template <class> class Tensor, class T>
__device__ __forceinline__ Scalar<T> read(const Tensor<T>& tensor, int64_t offset) {
  return Storage<T>::load(tensor.get(offset));
}

template <class T>
__device__ __forceinline__ void write(const Out<T>& tensor, int64_t offset, Scalar<T> value) {
  tensor.set(offset, Storage<T>::store(value));
}

__device__ __forceinline__ float square(float x) { return x * x; }

}  // namespace heddle

#endif
