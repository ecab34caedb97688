// Fast forms of float functions: approximate instructions, taken where the storage type of the results hides their error, or where an op asks for
// them (src/ir/forms.ts states the errors). Infinities, NaN, zeros and numbers below the normal range have the same results as in the exact forms,
// unless a function says otherwise. Files whose kernels call none of them do not include this one.
#ifndef HEDDLE_FAST_CUH
#define HEDDLE_FAST_CUH

#include "kernel.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
// The CPU device has no approximate instructions: its functions err by less than the documented errors.
#define HEDDLE_APPROXIMATE(name, instruction, value) \
  __device__ __forceinline__ float name(float x) { return value; }
#else
#define HEDDLE_APPROXIMATE(name, instruction, value)          \
  __device__ __forceinline__ float name(float x) {            \
    float result;                                             \
    asm(instruction " %0, %1;" : "=f"(result) : "f"(x));      \
    return result;                                            \
  }
#endif

namespace heddle {
namespace fast {

/// 2^x within 2 ulp.
HEDDLE_APPROXIMATE(exp2, "ex2.approx.f32", ::exp2f(x))
/// The square root within an ulp.
HEDDLE_APPROXIMATE(sqrt, "sqrt.approx.f32", ::sqrtf(x))
/// The logarithm to base 2 within 2 ulp, and within 2^-22 between 0.5 and 2.
HEDDLE_APPROXIMATE(log2, "lg2.approx.f32", ::log2f(x))
/// Sine and cosine of an angle of at most pi, within 2^-20.5.
HEDDLE_APPROXIMATE(sine, "sin.approx.f32", ::sinf(x))
HEDDLE_APPROXIMATE(cosine, "cos.approx.f32", ::cosf(x))

/// e^x within 2 + 1.2 |x| ulp.
__device__ __forceinline__ float exp(float x) { return exp2(x * 1.44269504f); }

/// The same; results below the normal range become 0.
__device__ __forceinline__ float exp_flushed(float x) { return exp2_flushed(x * 1.44269504f); }

/// The natural logarithm and that to base 10, with two roundings more than `log2`.
__device__ __forceinline__ float log(float x) { return log2(x) * 0.693147181f; }
__device__ __forceinline__ float log10(float x) { return log2(x) * 0.301029996f; }

/// a / b within 2 ulp, for all numbers: both are scaled where the reciprocal of b is beyond the normal range. `div.full` has the same error, but
/// the assembler may fuse its product with a sum that follows, and does so in some kernels of a source: rows would depend on their number.
__device__ __forceinline__ float quotient(float a, float b) {
#if defined(HEDDLE_SIMT)
  return a / b;
#else
  constexpr float largest = 8.5070592e37f, smallest = 1.1754944e-38f;  // 2^126, 2^-126
  const float scale = fabsf(b) > largest ? 0.25f : fabsf(b) < smallest ? 16777216.0f : 1.0f;
  float inverse;
  asm("rcp.approx.f32 %0, %1;" : "=f"(inverse) : "f"(b * scale));
  return __fmul_rn(a * scale, inverse);
#endif
}

/// Largest angle whose number of whole turns has an exact product with the first part of a turn.
constexpr float most_angle = 8192.0f;

/// An angle less its whole turns, each of which is 6.28125 + 0.00193530718.
__device__ __forceinline__ float within_turn(float x) {
  const float turns = rintf(x * 0.159154943f);
  return fmaf(turns, -0.00193530718f, fmaf(turns, -6.28125f, x));
}

/// Sine and cosine within 2^-20 for angles of at most `most_angle`; larger ones take the exact form.
__device__ __forceinline__ float sin(float x) { return fabsf(x) <= most_angle ? sine(within_turn(x)) : sinf(x); }
__device__ __forceinline__ float cos(float x) { return fabsf(x) <= most_angle ? cosine(within_turn(x)) : cosf(x); }

}  // namespace fast
}  // namespace heddle

#undef HEDDLE_APPROXIMATE

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
