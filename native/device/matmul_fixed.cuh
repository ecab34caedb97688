// Rows that int8 weights are multiplied by, in fixed point: sixteen neighbours as integers of three bytes with a common scale, so that byte
// instructions (dp4a) multiply them. As floats each weight takes 3.5 instructions, which bound the time of a single row; in fixed point it
// takes two. The rounding error of an integer is at most 2^-22 of the largest of the sixteen, less than float32 loses when thousands of
// products are added. Sums of bytes are exact.
#ifndef HEDDLE_MATMUL_FIXED_CUH
#define HEDDLE_MATMUL_FIXED_CUH

#include "math.cuh"

namespace heddle {

/// sum + the products of four signed bytes, pairwise by position in two words.
__device__ __forceinline__ int add_byte_products(unsigned int a, unsigned int b, int sum) {
#if defined(HEDDLE_SIMT)
  for (int i = 0; i < 4; ++i) sum += static_cast<signed char>(a >> (8 * i)) * static_cast<signed char>(b >> (8 * i));
  return sum;
#else
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
#endif
}

/// Byte `I` of four words as one word.
template <int I>
__device__ __forceinline__ unsigned int bytes_of(const unsigned int (&words)[4]) {
#if defined(HEDDLE_SIMT)
  unsigned int bytes = 0;
  for (int w = 0; w < 4; ++w) bytes |= (words[w] >> (8 * I) & 0xffu) << (8 * w);
  return bytes;
#else
  constexpr unsigned int pair = 0x0040u + 0x0011u * I;
  return __byte_perm(__byte_perm(words[0], words[1], pair), __byte_perm(words[2], words[3], pair), 0x5410u);
#endif
}

/// Sixteen numbers as integers of three digits in base 256, each digit a signed byte.
class FixedPoint {
 public:
  static constexpr int count = 16;

  __device__ __forceinline__ explicit FixedPoint(const float (&values)[count / 8][8]) {
    float largest = 0.0f;
    HEDDLE_UNROLL
    for (int i = 0; i < count; ++i) largest = larger(largest, fabsf(values[i / 8][i % 8]));
    // Exponent bits of floats: of the largest, of the scale that raises it to at least 2^21, and of that scale's inverse.
    constexpr unsigned int exponents = 0x7f800000u, step = 1u << 23, most = 253 * step, inverse = 254 * step;
    const unsigned int own = bits_of(largest) & exponents, wanted = (127 + 21 + 127) * step - own;
    const unsigned int raised = wanted < most ? wanted : most;
    const float scale = float_of(raised);
    unit_ = float_of(own == exponents ? 0x7fc00000u : inverse - raised);
    HEDDLE_UNROLL
    for (int w = 0; w < words; ++w) {
      unsigned int integers[4];
      HEDDLE_UNROLL
      for (int i = 0; i < 4; ++i) {
        // Floats from 2^23 on are integers. The middle of that binade leaves room for 22 bits and their sign.
        constexpr float middle = 12582912.0f;
        constexpr unsigned int middle_bits = 0x4b400000u, halves = 0x00808080u;
        const int at = 4 * w + i;
        integers[i] = (bits_of(values[at / 8][at % 8] * scale + middle) - middle_bits + halves) ^ halves;
      }
      digits_[0][w] = bytes_of<0>(integers);
      digits_[1][w] = bytes_of<1>(integers);
      digits_[2][w] = bytes_of<2>(integers);
    }
  }

  /// The sum of the products with sixteen bytes; NaN where one of the numbers is NaN or infinite.
  __device__ __forceinline__ float times(const unsigned int (&bytes)[4]) const {
    int sums[digits] = {};
    HEDDLE_UNROLL
    for (int d = 0; d < digits; ++d) {
      HEDDLE_UNROLL
      for (int w = 0; w < words; ++w) sums[d] = add_byte_products(bytes[w], digits_[d][w], sums[d]);
    }
    return (static_cast<float>(sums[2]) * 65536.0f + static_cast<float>(sums[1] * 256 + sums[0])) * unit_;
  }

 private:
  static constexpr int words = count / 4, digits = 3;

  static __device__ __forceinline__ unsigned int bits_of(float value) {
    unsigned int bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
  }
  static __device__ __forceinline__ float float_of(unsigned int bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }

  unsigned int digits_[digits][words];  // least significant digit first
  float unit_;
};

}  // namespace heddle

#endif
