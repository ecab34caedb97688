// Requests of data before a kernel waits for the previous one: prefetches into the L2 cache, which is coherent, so that data may still be
// written afterwards. Requests change no result.
#ifndef HEDDLE_REQUEST_CUH
#define HEDDLE_REQUEST_CUH

#include "kernel.cuh"

namespace heddle {

/// Requests the first `elements` elements of a tensor, one cache line per thread of the first blocks.
template <template <class> class Tensor, class T>
__device__ __forceinline__ void request_vector([[maybe_unused]] const Tensor<T>& tensor, [[maybe_unused]] int64_t elements) {
#if !defined(HEDDLE_SIMT)
  constexpr int64_t line = 128 / static_cast<int64_t>(sizeof(T));
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * line;
  if (first < elements) asm volatile("prefetch.global.L2 [%0];" ::"l"(tensor.data + first));
#endif
}

}  // namespace heddle

#endif
