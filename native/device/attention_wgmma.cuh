// The two matmuls of attention by warpgroups of Hopper (wgmma): the left operand in registers, the right in a swizzled tile of 64 rows of
// 64 elements. attention_mma.cuh uses them in code for that GPU in place of the matmuls of single warps; fragments of the sums and of the
// left operand are the same.
#ifndef HEDDLE_ATTENTION_WGMMA_CUH
#define HEDDLE_ATTENTION_WGMMA_CUH

#include "attention_tiles.cuh"

#if defined(HEDDLE_HOPPER)
#include "wgmma.cuh"
#endif

#if defined(HEDDLE_HOPPER_CODE)

namespace heddle {

#if !defined(HEDDLE_SIMT)

#define HEDDLE_SUMS_4(mode, d) mode(d[0]), mode(d[1]), mode(d[2]), mode(d[3])
#define HEDDLE_WGMMA_64(type, mode, adds, transposed)                                                                           \
  asm volatile(                                                                                                                 \
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, " adds ", 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type          \
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24,"    \
      " %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, adds, 1, 1, " transposed ";\n}\n"                        \
      : HEDDLE_SUMS_4(mode, d[0]), HEDDLE_SUMS_4(mode, d[1]), HEDDLE_SUMS_4(mode, d[2]), HEDDLE_SUMS_4(mode, d[3]),             \
        HEDDLE_SUMS_4(mode, d[4]), HEDDLE_SUMS_4(mode, d[5]), HEDDLE_SUMS_4(mode, d[6]), HEDDLE_SUMS_4(mode, d[7])              \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

/// d = a x b, plus d when Adds: a is 64 x 16, 16 rows per warp. b is 16 x 64 and described as its 64 rows of columns, or as its 16 rows
/// when InRows.
template <class T, bool InRows, bool Adds>
__device__ __forceinline__ void multiply_64(float (&d)[8][4], const uint32_t (&a)[4], uint64_t b) {
  static_assert(Adds || !InRows, "the combinations in use");
  constexpr bool half = std::is_same_v<T, __half>;
  if constexpr (half && InRows) {
    HEDDLE_WGMMA_64("f16", "+f", "1", "1");
  } else if constexpr (half && Adds) {
    HEDDLE_WGMMA_64("f16", "+f", "1", "0");
  } else if constexpr (half) {
    HEDDLE_WGMMA_64("f16", "=f", "0", "0");
  } else if constexpr (InRows) {
    HEDDLE_WGMMA_64("bf16", "+f", "1", "1");
  } else if constexpr (Adds) {
    HEDDLE_WGMMA_64("bf16", "+f", "1", "0");
  } else {
    HEDDLE_WGMMA_64("bf16", "=f", "0", "0");
  }
}

#undef HEDDLE_WGMMA_64
#undef HEDDLE_SUMS_4

#endif

/// Waits for the matmuls, and keeps uses of their sums after this place.
__device__ __forceinline__ void finish_products(float (&sums)[8][4]) {
  commit_products();
  wait_products<0>();
  HEDDLE_UNROLL
  for (int i = 0; i < 8; ++i) pin(sums[i]);
}

/// scores = queries x keys^T.
template <class T>
__device__ __forceinline__ void multiply_keys_wgmma(const uint32_t (&query)[4][4], Shared16 tile, float (&scores)[8][4]) {
  // Descriptors count in units of 16 bytes; one is made and advanced.
  constexpr uint64_t step = 16 * sizeof(T) / 16;
  const uint64_t keys = swizzled_rows(tile);
  begin_products();
  multiply_64<T, false, false>(scores, query[0], keys);
  HEDDLE_UNROLL
  for (int k = 1; k < 4; ++k) {
    multiply_64<T, false, true>(scores, query[k], keys + static_cast<uint64_t>(k) * step);
  }
  finish_products(scores);
}

/// output += weights x values, the weights rounded to T.
template <class T>
__device__ __forceinline__ void multiply_values_wgmma(const float (&weights)[8][4], Shared16 tile, float (&output)[8][4]) {
  constexpr uint64_t step = 16 * 64 * sizeof(T) / 16;
  const uint64_t values = swizzled_rows(tile);
  uint32_t left[4][4];
  HEDDLE_UNROLL
  for (int i = 0; i < 16; ++i) {
    const float(&pair)[4] = weights[i / 2];
    left[i / 4][i % 4] = round_pair<T>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
  }
  begin_products();
  HEDDLE_UNROLL
  for (int k = 0; k < 4; ++k) {
    multiply_64<T, true, true>(output, left[k], values + static_cast<uint64_t>(k) * step);
  }
  finish_products(output);
}

}  // namespace heddle

#endif

#endif
