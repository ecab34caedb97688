// Instructions of matmul_tall.cuh, in addition to those of hopper.cuh and wgmma.cuh: wgmma of any multiple of 16 columns, copies to one pair of a
// larger cluster, stores of single sums. Exists only in passes for sm_90a.
#ifndef HEDDLE_WGMMA_TALL_CUH
#define HEDDLE_WGMMA_TALL_CUH

#include "wgmma.cuh"

#if defined(HEDDLE_HOPPER_CODE) && !defined(HEDDLE_SIMT)

namespace heddle {

/// Starts the copy of the map's box at (column, row) to the same offset in the cluster's blocks `first` and the next; the barrier at the offset of
/// `done` counts the bytes in each.
__device__ __forceinline__ void copy_box_to_pair(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column, int row, uint32_t first) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to.address),
      "l"(&map), "r"(done.address), "r"(column), "r"(row), "h"(static_cast<uint16_t>(3u << first))
      : "memory");
}

/// Stores a sum in shared memory.
__device__ __forceinline__ void store_shared_4(Shared16 to, float sum) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to.address), "f"(sum) : "memory");
}

// Sums as operands, and their names; eight of them for sixteen columns.
#define HEDDLE_SUMS_8(i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define HEDDLE_SUMS_64 HEDDLE_SUMS_8(0), HEDDLE_SUMS_8(8), HEDDLE_SUMS_8(16), HEDDLE_SUMS_8(24)
#define HEDDLE_SUMS_80 HEDDLE_SUMS_64, HEDDLE_SUMS_8(32)
#define HEDDLE_SUMS_96 HEDDLE_SUMS_80, HEDDLE_SUMS_8(40)
#define HEDDLE_SUMS_112 HEDDLE_SUMS_96, HEDDLE_SUMS_8(48)
#define HEDDLE_SUMS_128 HEDDLE_SUMS_112, HEDDLE_SUMS_8(56)
#define HEDDLE_SUMS_144 HEDDLE_SUMS_128, HEDDLE_SUMS_8(64)
#define HEDDLE_SUMS_160 HEDDLE_SUMS_144, HEDDLE_SUMS_8(72)
#define HEDDLE_SUMS_176 HEDDLE_SUMS_160, HEDDLE_SUMS_8(80)
#define HEDDLE_SUMS_192 HEDDLE_SUMS_176, HEDDLE_SUMS_8(88)
#define HEDDLE_SUMS_208 HEDDLE_SUMS_192, HEDDLE_SUMS_8(96)
#define HEDDLE_SUMS_224 HEDDLE_SUMS_208, HEDDLE_SUMS_8(104)
#define HEDDLE_SUMS_240 HEDDLE_SUMS_224, HEDDLE_SUMS_8(112)
#define HEDDLE_SUMS_256 HEDDLE_SUMS_240, HEDDLE_SUMS_8(120)
#define HEDDLE_NAMES_64 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25," \
  " %26, %27, %28, %29, %30, %31"
#define HEDDLE_NAMES_80 HEDDLE_NAMES_64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define HEDDLE_NAMES_96 HEDDLE_NAMES_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define HEDDLE_NAMES_112 HEDDLE_NAMES_96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define HEDDLE_NAMES_128 HEDDLE_NAMES_112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define HEDDLE_NAMES_144 HEDDLE_NAMES_128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define HEDDLE_NAMES_160 HEDDLE_NAMES_144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define HEDDLE_NAMES_176 HEDDLE_NAMES_160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define HEDDLE_NAMES_192 HEDDLE_NAMES_176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define HEDDLE_NAMES_208 HEDDLE_NAMES_192 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define HEDDLE_NAMES_224 HEDDLE_NAMES_208 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define HEDDLE_NAMES_240 HEDDLE_NAMES_224 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define HEDDLE_NAMES_256 HEDDLE_NAMES_240 ", %120, %121, %122, %123, %124, %125, %126, %127"

/// One instruction; `a`, `b` and `add` number the operands after the sums.
#define HEDDLE_WGMMA_TALL(types, columns, a, b, add)                                                                                     \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" add ", 0;\nwgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." types " {"     \
               HEDDLE_NAMES_##columns "}, %" a ", %" b ", adds, 1, 1, 0, 0;\n}\n"                                                         \
               : HEDDLE_SUMS_##columns                                                                                                   \
               : "l"(rows_a), "l"(rows_b), "r"(adds))
#define HEDDLE_WGMMA_TALL_TYPES(...)                    \
  do {                                                  \
    if constexpr (std::is_same_v<T, __half>) {          \
      HEDDLE_WGMMA_TALL("f16.f16", __VA_ARGS__);        \
    } else {                                            \
      HEDDLE_WGMMA_TALL("bf16.bf16", __VA_ARGS__);      \
    }                                                   \
  } while (false)

/// As multiply_rows(), for more widths.
template <class T, int Columns>
__device__ __forceinline__ void multiply_tall_rows(float (&d)[Columns / 2], uint64_t rows_a, uint64_t rows_b, int adds) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, "the types summed in float");
  static_assert(Columns % 16 == 0 && Columns >= 64 && Columns <= 256, "the widths in use");
  if constexpr (Columns == 64) {
    HEDDLE_WGMMA_TALL_TYPES(64, "32", "33", "34");
  } else if constexpr (Columns == 80) {
    HEDDLE_WGMMA_TALL_TYPES(80, "40", "41", "42");
  } else if constexpr (Columns == 96) {
    HEDDLE_WGMMA_TALL_TYPES(96, "48", "49", "50");
  } else if constexpr (Columns == 112) {
    HEDDLE_WGMMA_TALL_TYPES(112, "56", "57", "58");
  } else if constexpr (Columns == 128) {
    HEDDLE_WGMMA_TALL_TYPES(128, "64", "65", "66");
  } else if constexpr (Columns == 144) {
    HEDDLE_WGMMA_TALL_TYPES(144, "72", "73", "74");
  } else if constexpr (Columns == 160) {
    HEDDLE_WGMMA_TALL_TYPES(160, "80", "81", "82");
  } else if constexpr (Columns == 176) {
    HEDDLE_WGMMA_TALL_TYPES(176, "88", "89", "90");
  } else if constexpr (Columns == 192) {
    HEDDLE_WGMMA_TALL_TYPES(192, "96", "97", "98");
  } else if constexpr (Columns == 208) {
    HEDDLE_WGMMA_TALL_TYPES(208, "104", "105", "106");
  } else if constexpr (Columns == 224) {
    HEDDLE_WGMMA_TALL_TYPES(224, "112", "113", "114");
  } else if constexpr (Columns == 240) {
    HEDDLE_WGMMA_TALL_TYPES(240, "120", "121", "122");
  } else {
    HEDDLE_WGMMA_TALL_TYPES(256, "128", "129", "130");
  }
}

#undef HEDDLE_WGMMA_TALL_TYPES
#undef HEDDLE_WGMMA_TALL
#undef HEDDLE_NAMES_256
#undef HEDDLE_NAMES_240
#undef HEDDLE_NAMES_224
#undef HEDDLE_NAMES_208
#undef HEDDLE_NAMES_192
#undef HEDDLE_NAMES_176
#undef HEDDLE_NAMES_160
#undef HEDDLE_NAMES_144
#undef HEDDLE_NAMES_128
#undef HEDDLE_NAMES_112
#undef HEDDLE_NAMES_96
#undef HEDDLE_NAMES_80
#undef HEDDLE_NAMES_64
#undef HEDDLE_SUMS_256
#undef HEDDLE_SUMS_240
#undef HEDDLE_SUMS_224
#undef HEDDLE_SUMS_208
#undef HEDDLE_SUMS_192
#undef HEDDLE_SUMS_176
#undef HEDDLE_SUMS_160
#undef HEDDLE_SUMS_144
#undef HEDDLE_SUMS_128
#undef HEDDLE_SUMS_112
#undef HEDDLE_SUMS_96
#undef HEDDLE_SUMS_80
#undef HEDDLE_SUMS_64
#undef HEDDLE_SUMS_8

}  // namespace heddle

#endif

#endif
