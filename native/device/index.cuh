// Index arithmetic of generated kernels.
#ifndef HEDDLE_INDEX_CUH
#define HEDDLE_INDEX_CUH

namespace heddle {

/// Integer quotient and remainder of 32 or 64 bits, rounded toward zero. Division by 0 is a fault of a kernel on the CPU device; on a GPU
/// its result is unspecified, and in a launcher 0. The lowest number divided by -1 wraps, as on a GPU: processors trap it.
template <class A, class B, std::enable_if_t<std::is_integral_v<A> && std::is_integral_v<B>, int> = 0>
__host__ __device__ __forceinline__ auto quotient(A a, B b) {
#if !defined(__CUDA_ARCH__)
  using Result = decltype(a / b);
#if defined(HEDDLE_SIMT)
  if (b == 0) simt::divided_by_zero(a);
#endif
  if (b == 0) return Result(0);
  if (b == -1) return static_cast<Result>(0 - static_cast<std::make_unsigned_t<Result>>(a));
#endif
  return a / b;
}
template <class A, class B, std::enable_if_t<std::is_integral_v<A> && std::is_integral_v<B>, int> = 0>
__host__ __device__ __forceinline__ auto remainder(A a, B b) {
#if !defined(__CUDA_ARCH__)
  using Result = decltype(a % b);
#if defined(HEDDLE_SIMT)
  if (b == 0) simt::divided_by_zero(a);
#endif
  if (b == 0 || b == -1) return Result(0);
#endif
  return a % b;
}

/// Peels the innermost index off a row-major position: returns `position % extent` and divides `position` by it. 64-bit
/// division is slow and positions are small in practice, so those that fit are divided in 32 bits.
__device__ __forceinline__ int peel(int64_t& position, int extent) {
  if (position <= 0x7fffffff) {
    const unsigned int small = static_cast<unsigned int>(position);
    const unsigned int quotient = small / static_cast<unsigned int>(extent);
    position = quotient;
    return static_cast<int>(small - quotient * static_cast<unsigned int>(extent));
  }
  const int64_t quotient = position / extent;
  const int index = static_cast<int>(position - quotient * extent);
  position = quotient;
  return index;
}

/// Chunks of Vec elements in a row of `length`; the last may be partial. Correct up to the largest int.
template <int Vec>
__host__ __device__ __forceinline__ int chunks_of(int length) {
  return length / Vec + (length % Vec != 0 ? 1 : 0);
}

}  // namespace heddle

#endif
