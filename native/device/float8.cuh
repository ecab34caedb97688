// 8-bit floats of the OCP specification (OFP8), as storage. e4m3 has 4 bits of exponent, 3 of mantissa, no infinity, NaN at 0x7f and 0xff
// and 448 as its largest number. e5m2 is binary16 without its lower byte; its largest number is 57344. A store rounds to nearest, ties to
// even, saturates (infinities too), and writes every NaN as 0x7f. The conversion instructions of sm_89 and later have no other mode, so the
// bits are the same on every device. Loads are exact. src/runtime/float8.ts is the same on the host.
#ifndef HEDDLE_FLOAT8_CUH
#define HEDDLE_FLOAT8_CUH

namespace heddle {

struct F8E4M3 {
  unsigned char bits;
};
struct F8E5M2 {
  unsigned char bits;
};

#if !defined(HEDDLE_SIMT)
// Found by argument-dependent lookup, like CUDA's own for halves.
__device__ __forceinline__ F8E4M3 __ldg(const F8E4M3* from) { return {::__ldg(&from->bits)}; }
__device__ __forceinline__ F8E5M2 __ldg(const F8E5M2* from) { return {::__ldg(&from->bits)}; }
#endif

namespace float8 {

template <class To, class From>
__device__ __forceinline__ To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits keep their number");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

/// The code of a float in a format with `Mantissa` bits of mantissa, exponent bias `Bias` and largest code `Largest`.
template <unsigned int Mantissa, unsigned int Bias, unsigned int Largest>
__device__ __forceinline__ unsigned char code_of(float value) {
  constexpr unsigned int dropped = 23 - Mantissa, infinity = 0x7f800000u, nan = 0x7f;
  constexpr unsigned int least_normal = (128 - Bias) << 23;
  const unsigned int bits = bits_as<unsigned int>(value), magnitude = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
  if (magnitude > infinity) return nan;
  unsigned int code;
  if (magnitude >= least_normal) {
    // Rebias the exponent, then round the dropped bits; a carry into the exponent is correct.
    const unsigned int odd = magnitude >> dropped & 1u;
    code = (magnitude - ((127 - Bias) << 23) + ((1u << (dropped - 1)) - 1) + odd) >> dropped;
    code = code < Largest ? code : Largest;
  } else {
    // The spacing of subnormals equals that of floats from 2^(23 + the exponent of the spacing) on, so the addition rounds.
    constexpr unsigned int rounds = (128 - Bias + dropped) << 23;
    code = bits_as<unsigned int>(bits_as<float>(magnitude) + bits_as<float>(rounds)) - rounds;
  }
  return static_cast<unsigned char>(sign | code);
}

}  // namespace float8

namespace float8 {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
// One instruction converts two numbers; the first is the lower byte.
__device__ __forceinline__ unsigned short pair_of(F8E4M3, float first, float second) {
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %2, %1;" : "=h"(pair) : "f"(first), "f"(second));
  return pair;
}
__device__ __forceinline__ unsigned short pair_of(F8E5M2, float first, float second) {
  unsigned short pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %2, %1;" : "=h"(pair) : "f"(first), "f"(second));
  return pair;
}
#else
__device__ __forceinline__ unsigned char code_of(F8E4M3, float value) { return code_of<3, 7, 0x7e>(value); }
__device__ __forceinline__ unsigned char code_of(F8E5M2, float value) { return code_of<2, 15, 0x7b>(value); }
template <class T>
__device__ __forceinline__ unsigned short pair_of(T type, float first, float second) {
  return static_cast<unsigned short>(code_of(type, first) | code_of(type, second) << 8);
}
#endif

#if !defined(HEDDLE_SIMT)
/// Two numbers as halves.
__device__ __forceinline__ unsigned int halves_of(F8E5M2, unsigned short pair) { return __byte_perm(pair, 0, 0x1404); }
__device__ __forceinline__ unsigned int halves_of(F8E4M3, unsigned short pair) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned int halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
  return halves;
#else
  // The exponent bias of binary16 is larger by 8. Only NaN has a carry out of the exponent when 1 is added to the mantissa's lowest bit; it
  // becomes all ones.
  const unsigned int spread = __byte_perm(pair, 0, 0x1404), magnitudes = spread >> 1 & 0x3f803f80u;
  const __half2 small = bits_as<__half2>(magnitudes | (spread & 0x80008000u)), raise = bits_as<__half2>(0x5c005c00u);
  const unsigned int nan = (magnitudes + 0x00800080u) >> 14 & 0x00010001u;
  return bits_as<unsigned int>(__hmul2(small, raise)) | nan * 0x7fffu;
#endif
}
#endif

}  // namespace float8

template <class T>
constexpr bool is_float8 = std::is_same_v<T, F8E4M3> || std::is_same_v<T, F8E5M2>;

template <class T>
__device__ __forceinline__ T to_float8(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  return {static_cast<unsigned char>(float8::pair_of(T(), value, 0.0f))};
#else
  return {float8::code_of(T(), value)};
#endif
}

__device__ __forceinline__ float to_float(F8E4M3 value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  return __half2float(float8::bits_as<__half>(static_cast<unsigned short>(float8::halves_of(value, value.bits))));
#else
  // As float32, whose exponent bias is larger by 120. Multiplied by NaN, it is NaN.
  const unsigned int magnitude = value.bits & 0x7fu, sign = value.bits & 0x80u;
  const float small = float8::bits_as<float>(sign << 24 | magnitude << 20);
  return small * float8::bits_as<float>(magnitude == 0x7fu ? 0x7fc00000u : 0x7b800000u);
#endif
}

__device__ __forceinline__ float to_float(F8E5M2 value) {
  return __half2float(float8::bits_as<__half>(static_cast<unsigned short>(value.bits << 8)));
}

}  // namespace heddle

#endif
