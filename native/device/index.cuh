// Index arithmetic of generated kernels.
#ifndef HEDDLE_INDEX_CUH
#define HEDDLE_INDEX_CUH

namespace heddle {

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

/// Chunks of Vec elements a row of `length` has; the last may be partial. Correct up to the largest int.
template <int Vec>
__host__ __device__ __forceinline__ int chunks_of(int length) {
  return length / Vec + (length % Vec != 0 ? 1 : 0);
}

}  // namespace heddle

#endif
