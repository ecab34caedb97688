// 8-bit floats of the OCP specification (OFP8), as storage: e4m3 has 4 bits of exponent, 3 of mantissa, no infinity, NaN at 0x7f and
// 0xff and 448 as its largest number; e5m2 is binary16 without its lower byte, its largest number is 57344. A store rounds to nearest, ties to
// even, saturates (infinities too), and writes every NaN as 0x7f: what the conversion instructions of sm_89 and later do, which have no
// other way, so that the bits are the same on every device. Loads are exact. src/runtime/float8.ts is the same on the host.
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
// Found by the type of their argument, like CUDA's own for halves.
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

/// The code of a float in a format of `Mantissa` bits of mantissa whose exponents are biased by `Bias` and whose largest code is `Largest`.
template <unsigned int Mantissa, unsigned int Bias, unsigned int Largest>
__device__ __forceinline__ unsigned char code_of(float value) {
  constexpr unsigned int dropped = 23 - Mantissa, infinity = 0x7f800000u, nan = 0x7f;
  constexpr unsigned int least_normal = (128 - Bias) << 23;
  const unsigned int bits = bits_as<unsigned int>(value), magnitude = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
  if (magnitude > infinity) return nan;
  unsigned int code;
  if (magnitude >= least_normal) {
    // Rebias the exponent, then round the dropped bits; a carry runs into the exponent as it should.
    const unsigned int odd = magnitude >> dropped & 1u;
    code = (magnitude - ((127 - Bias) << 23) + ((1u << (dropped - 1)) - 1) + odd) >> dropped;
    code = code < Largest ? code : Largest;
  } else {
    // Subnormals lie as far apart as the floats from 2^(23 + the exponent of their step) on, so the addition rounds.
    constexpr unsigned int rounds = (128 - Bias + dropped) << 23;
    code = bits_as<unsigned int>(bits_as<float>(magnitude) + bits_as<float>(rounds)) - rounds;
  }
  return static_cast<unsigned char>(sign | code);
}

}  // namespace float8

__device__ __forceinline__ F8E4M3 to_f8e4m3(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  return {static_cast<unsigned char>(pair)};
#else
  return {float8::code_of<3, 7, 0x7e>(value)};
#endif
}

__device__ __forceinline__ F8E5M2 to_f8e5m2(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  return {static_cast<unsigned char>(pair)};
#else
  return {float8::code_of<2, 15, 0x7b>(value)};
#endif
}

/// Through binary16, whose exponent is biased by 8 more: its conversion takes subnormals as well.
__device__ __forceinline__ float to_float(F8E4M3 value) {
  const unsigned int magnitude = value.bits & 0x7fu, sign = value.bits & 0x80u;
  const __half small = float8::bits_as<__half>(static_cast<unsigned short>(sign << 8 | magnitude << 7));
  return magnitude == 0x7fu ? float8::bits_as<float>(0x7fc00000u) : __half2float(small) * 256.0f;
}

__device__ __forceinline__ float to_float(F8E5M2 value) {
  return __half2float(float8::bits_as<__half>(static_cast<unsigned short>(value.bits << 8)));
}

}  // namespace heddle

#endif
