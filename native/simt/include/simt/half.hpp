// Half and bfloat16 storage types with their conversions: round to nearest, ties to even; subnormals and infinities exact; a NaN stays a (quiet) NaN
// with the top bits of its payload. The F16C instructions, if the build allows them, give the same bits. Layouts: IEEE 754 binary16 (1 sign, 5
// exponent, 10 mantissa bits); bfloat16 is binary32's upper half.
#ifndef HEDDLE_SIMT_HALF_HPP
#define HEDDLE_SIMT_HALF_HPP

#include "types.hpp"

namespace heddle::simt {

/// float32 to binary16 in software.
inline uint16_t half_from_float(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Below 2^-14 the result is subnormal, in steps of 2^-24: the spacing of floats just above 0.5, so the addition rounds.
    const float shifted = bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  // Rebias the exponent by 15 - 127, then round the 13 dropped bits; a carry runs into the exponent, which is correct.
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

/// binary16 to float32 in software; exact.
inline float float_from_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) {
    const uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return bit_cast<float>(sign | 0x7f800000u | quiet | ((magnitude & 0x3ffu) << 13));
  }
  if (magnitude < 0x400u) return bit_cast<float>(sign | bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f));
  return bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
}

inline uint16_t bfloat_from_float(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float float_from_bfloat(uint16_t bfloat) { return bit_cast<float>(static_cast<uint32_t>(bfloat) << 16); }

}  // namespace heddle::simt

struct __half {
  uint16_t bits;
};

struct __nv_bfloat16 {
  uint16_t bits;
};

#if defined(__F16C__)
inline float __half2float(__half value) {
  using Halves = short __attribute__((vector_size(16)));
  return __builtin_ia32_vcvtph2ps(Halves{static_cast<short>(value.bits)})[0];
}
inline __half __float2half_rn(float value) {
  using Floats = float __attribute__((vector_size(16)));
  return {static_cast<uint16_t>(__builtin_ia32_vcvtps2ph(Floats{value}, 0)[0])};
}
#else
inline float __half2float(__half value) { return heddle::simt::float_from_half(value.bits); }
inline __half __float2half_rn(float value) { return {heddle::simt::half_from_float(value)}; }
#endif

inline float __bfloat162float(__nv_bfloat16 value) { return heddle::simt::float_from_bfloat(value.bits); }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {heddle::simt::bfloat_from_float(value)}; }

#endif
