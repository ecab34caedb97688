// Calls of a compiled epilogue by the matmuls: adds partial sums over k, and prefetches the epilogue's operands where it supports that.
#ifndef HEDDLE_MATMUL_EPILOGUE_CUH
#define HEDDLE_MATMUL_EPILOGUE_CUH

#include <type_traits>

#include "columns_store.cuh"
#include "mma.cuh"

namespace heddle {

/// Maximum number of int8 products, of factors within [-127, 127], whose sum int32 holds.
constexpr int64_t most_int8_terms = INT32_MAX / (127 * 127);

/// Refuses an int8 matmul whose sums might overflow int32.
inline int32_t check_int8_terms(heddle_error* error, const char* name, int64_t k) {
  if (k <= most_int8_terms) return HEDDLE_OK;
  return fail(error, HEDDLE_INVALID, "kernel %s: k is %lld; int32 holds sums of at most %lld products of int8", name,
              static_cast<long long>(k), static_cast<long long>(most_int8_terms));
}

/// Adds `slots` partial sums of eight columns, `stride` bytes apart, in their order, which is the order of k.
template <class S>
__device__ __forceinline__ void add_parts(S (&total)[8], Shared16 from, int slots, uint32_t stride) {
  constexpr int batch = 4;  // loaded together, so that their latencies overlap
  for (int first = 0; first < slots; first += batch) {
    Pack<S, 4> parts[batch][2] = {};
    HEDDLE_UNROLL
    for (int i = 0; i < batch; ++i) {
      if (first + i < slots) {
        parts[i][0] = load_shared_16<S>(from + (first + i) * stride);
        parts[i][1] = load_shared_16<S>(from + ((first + i) * stride + 16));
      }
    }
    HEDDLE_UNROLL
    for (int i = 0; i < batch; ++i) {
      HEDDLE_UNROLL
      for (int c = 0; c < 8; ++c) total[c] += parts[i][c / 4].v[c % 4];
    }
  }
}

/// Calls an epilogue, in two steps where it has them (see matmul.cuh), so that its loads overlap the matmul. `Sums`: eight columns, or an
/// array of these for several matmuls.
template <class Epilogue, class = void>
struct EpilogueCall {
  struct Loaded {};
  static bool whole_chunks(const Epilogue&) { return true; }
  template <bool Whole>
  static __device__ __forceinline__ Loaded load(const Epilogue&, int64_t, int, int) {
    return {};
  }
  template <bool Whole, class Sums>
  static __device__ __forceinline__ void finish(const Epilogue& epilogue, int64_t row, int column, int valid, const Sums& sums,
                                                const Loaded&) {
    epilogue(row, column, valid, sums);
  }
};
template <class Epilogue>
struct EpilogueCall<Epilogue, std::void_t<typename Epilogue::Loaded>> {
  using Loaded = typename Epilogue::Loaded;
  static bool whole_chunks(const Epilogue& epilogue) { return epilogue.whole_chunks(); }
  template <bool Whole>
  static __device__ __forceinline__ Loaded load(const Epilogue& epilogue, int64_t row, int column, int valid) {
    return epilogue.template load<Whole>(row, column, valid);
  }
  template <bool Whole, class Sums>
  static __device__ __forceinline__ void finish(const Epilogue& epilogue, int64_t row, int column, int valid, const Sums& sums,
                                                const Loaded& loaded) {
    epilogue.template finish<Whole>(row, column, valid, sums, loaded);
  }
};

/// Prefetches the epilogue's constants of eight columns, where it has any.
template <class Epilogue>
__device__ __forceinline__ auto prefetch_constants(const Epilogue& epilogue, int column, int)
    -> decltype(epilogue.prefetch(column)) {
  epilogue.prefetch(column);
}
template <class Epilogue>
__device__ __forceinline__ void prefetch_constants(const Epilogue&, int, long) {}

/// Prefetches the cache line of element `offset` into the L2 cache.
template <template <class> class Tensor, class T>
__device__ __forceinline__ void prefetch([[maybe_unused]] const Tensor<T>& tensor, [[maybe_unused]] int64_t offset) {
#if !defined(HEDDLE_SIMT)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(tensor.data + offset));
#endif
}

}  // namespace heddle

#endif
